"""Manifests as frozen values, and manifests laid over each other: a child over its parent, a feature over its target.

`tenv.targets.manifest_file` reads them.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.files import digest_bytes
from tenv.core.names import channel_url, channel_urls
from tenv.core.versions import CondaRange, Range, Version
from tenv.targets.sections import SECTIONS
from tenv.targets.tree_request import TreeRequest
from tenv.targets.variable_requests import VariableRequest
from tenv.targets.wheel_origin import FileRequest, Index, laid

PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
"""The platforms that a manifest may name, by their conda names."""

DEBUG_PYTHON = "python-debug"
"""The name in ``system`` of the host's debug build of Python: ``python = { version, debug = true }`` of a manifest."""

CONDA_TORCHES = ("pytorch", "pytorch-gpu", "libtorch")
"""The conda packages that are torch: of conda-forge, which splits its libraries off, and of the channel pytorch."""

_TOOLS = {
    "nvidia-cuda-nvcc": "cuda-toolkit",
    "cuda-nvcc": "cuda-toolkit",
    "nvidia-cudnn-cu12": "cudnn",
    "nvidia-cudnn-cu13": "cudnn",
    "nvidia-cusparselt-cu12": "cusparselt",
    "nvidia-cusparselt-cu13": "cusparselt",
    "libcusparselt": "cusparselt",
    "libcusparse-lt": "cusparselt",
    "cuda": "cuda-toolkit",
    "nvidia-nccl-cu12": "nccl",
    "nvidia-nccl-cu13": "nccl",
    "gcc-linux-64": "gcc",
    "gxx": "gcc",
    "gxx-linux-64": "gcc",
}
"""The tool that a package supplies, for packages with another name than their tool."""


def tool_of(name: str) -> str:
    """Return the tool that a package supplies; for most packages that is the normalized name itself."""
    return _TOOLS.get(name, name)


@dataclass(frozen=True, slots=True)
class CondaRequest:
    """A request for a conda package."""

    version: CondaRange
    """The versions accepted."""
    channel: str = ""
    """Its channel, by name, label or URL; empty for any."""
    build: str = ""
    """A pattern for the build string; empty for any."""
    line: str = field(default="", compare=False)
    """Its file and line, such as ``manifests/mine.toml:12``, for messages."""

    def __str__(self) -> str:
        if not self.channel and not self.build:
            return f'"{self.version}"'
        given = {"version": "" if str(self.version) == "*" else str(self.version)}
        given |= {"build": self.build, "channel": self.channel}
        return "{ " + ", ".join(f'{key} = "{value}"' for key, value in given.items() if value) + " }"

    def asked(self) -> list[str]:
        """Return the request as JSON values, as in a lock."""
        return [str(self.version), self.channel, self.build]

    def spec(self, name: str) -> str:
        """Return the request as conda's match specification."""
        given = {
            "version": self.version.spec,
            "build": self.build,
            "channel": self.channel and channel_url(self.channel, name),
        }
        return f"{name}[" + ",".join(f'{key}="{value}"' for key, value in given.items() if value) + "]"


@dataclass(frozen=True, slots=True)
class WheelRequest:
    """A request for a wheel."""

    version: Range
    """The versions accepted."""
    extras: tuple[str, ...] = ()
    """The requested extras, sorted."""
    tree: TreeRequest | None = None
    """The source tree that it is built from; None for a wheel."""
    index: str = ""
    """The name or the address of the only index that it comes from; empty for any index in use."""
    file: FileRequest | None = None
    """The one file that is accepted; None for a wheel of an index."""
    build: bool = False
    """Whether it may be built from a source archive where no wheel fits."""
    isolated: bool = True
    """Whether its build has an environment of its own; else it is compiled against the target's torch."""
    requires: tuple[str, ...] | None = None
    """Its requirements; None where its source has them."""
    cxx: int = 0
    """The C++ standard, such as 20; 0 for its own."""
    archs: str = ""
    """The GPU architectures in place of its own, as ``TORCH_CUDA_ARCH_LIST``; empty for its own."""
    always: bool = False
    """Whether it is compiled against the target's torch even where an index has a wheel that fits."""

    @property
    def must_compile(self) -> bool:
        """Whether no wheel of an index takes the place of the build: none is known to have another C++ standard."""
        return not self.isolated and (self.always or bool(self.cxx or self.archs))

    def asked(self) -> list[str]:
        """Return the request as JSON values, as in a lock."""
        ways = [f"index={self.index}"] * bool(self.index) + [
            f"build={'always' if self.always else 'true'}"
        ] * self.build
        ways += ["isolation=false"] * (not self.isolated) + [f"cxx={self.cxx}"] * bool(self.cxx)
        ways += [f"archs={self.archs}"] * bool(self.archs)
        ways += [] if self.requires is None else [f"requires={','.join(self.requires)}"]
        ways += place.asked() if (place := self.tree or self.file) else []
        return [str(self.version), *self.extras, *ways]


@dataclass(frozen=True, slots=True, order=True)
class ArchiveRequest:
    """A request for an archive."""

    version: str = ""
    """A version, a range or ``auto`` of a known product; empty for a request by URL."""
    url: str = ""
    """Its URL; empty for a request by version."""
    sha256: str = ""
    """Its digest in hex; empty if the manifest names none."""
    strip: int = 0
    """The number of leading folders to remove from the names in the archive."""
    to: str = ""
    """The destination folder in the prefix; empty for the default one, ``.`` for the prefix itself."""
    product: str = ""
    """The product, if the name of the request is a component's."""
    components: tuple[str, ...] = ()
    """The requested components of the product; empty for those that a build of PyTorch uses."""
    optional: bool = False
    """Whether it is left out of a lock, unless downloads without a published digest are trusted."""

    def asked(self) -> list[str | int]:
        """Return the request as JSON values, as in a lock."""
        values: list[str | int] = [self.version, self.url, self.sha256, self.strip, self.to]
        named = [self.product] if self.product or self.components else []
        return [*values, *named, *self.components]


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """A request for a source without a request type of its own."""

    values: Mapping[str, str]
    """The values, by the keys in the source's row of `tenv.targets.sections`."""

    @property
    def version(self) -> str:
        """The request as text: its values, in the order of the manifest."""
        return ", ".join(self.values.values())

    def asked(self) -> list[str]:
        """Return the request as JSON values, as in a lock."""
        return [f"{key}={value}" for key, value in sorted(self.values.items())]


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements on the host."""

    cuda: Version | None = None
    """The CUDA release, from which the minimum driver follows. None for a target without CUDA."""
    glibc: Version | None = None
    """The minimum version of glibc. None if the manifest names none."""
    cuda_from: str = ""
    """The package whose locked release decides on the CUDA release, ``torch``; empty for none."""

    @property
    def waits(self) -> bool:
        """Whether the CUDA release is open until the target is locked."""
        return bool(self.cuda_from) and self.cuda is None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a target, merged with its parents."""

    name: str
    """The target's name."""
    file: str
    """Where it stands, for messages."""
    description: str = ""
    """One line for people."""
    platforms: tuple[str, ...] = ()
    """The platforms that it is for."""
    channels: tuple[str, ...] = ()
    """The conda channels, best first."""
    pytorch: Range | None = None
    """The source revisions that it builds."""
    python: Range | None = None
    """The Python minors that the lock serves, when Python is not a conda package."""
    requirements: Requirements = field(default_factory=Requirements)
    """The requirements on the host."""
    dependencies: Mapping[str, CondaRequest] = field(default_factory=dict)
    """Conda packages by name."""
    wheels: Mapping[str, WheelRequest] = field(default_factory=dict)
    """Wheels by normalized name."""
    archives: Mapping[str, ArchiveRequest] = field(default_factory=dict)
    """Files from elsewhere by name."""
    system: Mapping[str, Range] = field(default_factory=dict)
    """The tools of the host, by name."""
    others: Mapping[str, Mapping[str, OtherRequest]] = field(default_factory=dict)
    """The requests of further sources, by the key of the source and by name."""
    environment: Mapping[str, VariableRequest] = field(default_factory=dict)
    """The variables of ``[activation.env]``."""
    dropped: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The names that it removes from a parent's requests, by the key of the source."""
    cache_name: str = ""
    """The compile cache of ``[build]``: ``ccache``, ``sccache`` or ``off``; empty if it is not set."""
    cache_storage: str = ""
    """The shared storage of the compile cache: an address, ``gha``, or empty for none."""
    by_platform: Mapping[str, "Manifest"] = field(default_factory=dict)
    """The whole manifest of each platform that has sections of its own."""
    features: Mapping[str, "Manifest"] = field(default_factory=dict)
    """The additions of ``[feature.NAME]``, by name: locked with the target, installed on request."""
    inherited: frozenset[str] = frozenset()
    """The features that only parents have: where one does not fit, the lock is made without it."""
    unfollowed: "Manifest | None" = field(default=None, repr=False)
    """The manifest before `tenv.targets.torch_cuda.follow` added the toolkit; None for any other."""
    indexes: tuple[Index, ...] = ()
    """The package indexes, best first."""
    sdists: tuple[str, ...] = ()
    """Packages that may be built from their source archives although only others require them."""
    constraints: tuple[str, ...] = ()
    """Bounds of packages that only others require, as PEP 508 lines."""
    overrides: tuple[str, ...] = ()
    """Lines that replace the requirements of packages, as PEP 508 lines."""
    wheelhouse: str = ""
    """The folder with wheels that are compiled against its torch; empty for none."""
    beside: str = ""
    """The environment whose torch the toolkit is for, as `tenv.targets.torch_beside` reads it; empty for none."""

    @property
    def bounds(self) -> dict[str, list[str]]:
        """The constraints and the overrides as settings of uv."""
        rows = {"constraint-dependencies": self.constraints, "override-dependencies": self.overrides}
        return {key: list(lines) for key, lines in rows.items() if lines}

    @property
    def builds(self) -> frozenset[str]:
        """The names of the packages that may be built from their source archives."""
        return frozenset((*self.sdists, *(name for name, request in self.wheels.items() if request.build)))

    @property
    def cache(self) -> str:
        """The compile cache that a build takes."""
        return self.cache_name or "ccache"

    def on(self, platform: str) -> "Manifest":
        """Return the manifest for one platform."""
        return self.by_platform.get(platform, self)

    def wanted(self, key: str) -> Mapping[str, Any]:
        """Return the requests for a source by name; the keys stand in `tenv.targets.sections`."""
        typed = {"conda": self.dependencies, "wheels": self.wheels, "archives": self.archives, "system": self.system}
        return typed[key] if key in typed else self.others.get(key, {})

    def index(self, word: str) -> Index | None:
        """Return the index that a request names; None if the manifest has none of that name.

        An address that is not among the indexes stands for an index that serves the requests with that address alone.
        """
        for index in self.indexes:
            if word.rstrip("/") in (index.name, index.url):
                return index
        return Index(word.rstrip("/"), explicit=True) if "://" in word else None

    def bound_indexes(self) -> dict[str, Index]:
        """Return the index of each request that names one, by the name of the wheel."""
        return {name: found for name, row in self.wheels.items() if row.index and (found := self.index(row.index))}

    def sources(self, platform: str) -> tuple[str, ...]:
        """Return the URLs of a platform's channels, best first; a channel that only a request names comes last."""
        found = [url for word in self.channels for url in channel_urls(word, platform)]
        named = [(name, request.channel) for name, request in sorted(self.dependencies.items()) if request.channel]
        return tuple(dict.fromkeys((*found, *(channel_url(word, name) for name, word in named))))

    def python_minors(self) -> tuple[str, ...]:
        """Return every Python minor of the manifest's range, lowest first, such as ``("3.11", "3.12")``."""
        return () if self.python is None else _minors(self.python)

    def asked(self, platform: str) -> dict[str, Any]:
        """Return the requests of the manifest for a platform, as JSON values in a stable order."""
        here = self.on(platform)
        return {
            "channels": list(here.channels),
            "python": list(here.python_minors()),
            "cuda": str(here.requirements.cuda or here.requirements.cuda_from),
            "glibc": str(here.requirements.glibc or ""),
            "dependencies": {name: r.asked() for name, r in sorted(here.dependencies.items())},
            "pypi-dependencies": {name: r.asked() for name, r in sorted(here.wheels.items())},
            "archives": {name: r.asked() for name, r in sorted(here.archives.items()) if not r.optional},
            "system": {name: str(r) for name, r in sorted(here.system.items())},
            **{
                section.name: {name: r.asked() for name, r in sorted(here.others[section.key].items())}
                for section in SECTIONS
                if here.others.get(section.key)  # older locks lack this section and stay unchanged
            },
            **({"feature": self._asked_of_features(platform)} if self.features else {}),
            **({"index": [index.asked() for index in here.indexes]} if here.indexes else {}),
            **{key: sorted(getattr(here, key)) for key in ("sdists", "constraints", "overrides") if getattr(here, key)},
        }

    def _asked_of_features(self, platform: str) -> dict[str, Any]:
        named = {"index", *(section.name for section in SECTIONS)}
        return {
            name: {key: rows for key, rows in feature.asked(platform).items() if rows and key in named}
            for name, feature in sorted(self.features.items())
        }

    def variables(self) -> dict[str, object]:
        """Return ``[activation.env]`` as JSON values."""
        return {name: request.to_plain() for name, request in self.environment.items()}

    def digest(self) -> str:
        """Return the sha256 of the requests; comments, order and description do not count."""
        asked = {platform: self.asked(platform) for platform in sorted(self.platforms)}
        return digest_bytes(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode())

    def settings_digest(self) -> str:
        """Return the sha256 of the requests and of ``[activation.env]``."""
        variables = {platform: self.on(platform).variables() for platform in sorted(self.platforms)}
        return digest_bytes(json.dumps([self.digest(), variables], sort_keys=True).encode())


def merge(above: Manifest, own: Manifest, *, adds: bool = False) -> Manifest:
    """Merge a manifest with its parent, platform by platform; the child wins everywhere.

    Args:
        above: The parent.
        own: The child.
        adds: Whether the child is a feature, whose indexes come after those of its target.
    """
    platforms = sorted({*above.by_platform, *own.by_platform})
    names = dict.fromkeys((*above.features, *own.features))
    empty = Manifest(own.name, own.file)
    return replace(
        lay(above, own, adds=adds),
        by_platform={platform: lay(above.on(platform), own.on(platform), adds=adds) for platform in platforms},
        features={name: merge(above.features.get(name, empty), own.features.get(name, empty)) for name in names},
        inherited=frozenset(names) - frozenset(own.features),
    )


def feature_with(manifest: Manifest, package: str, platform: str) -> str:
    """Return the first feature of a manifest that requests a package on a platform; empty without one."""
    for name, feature in manifest.features.items():
        here = feature.on(platform)
        if any(package == one.replace("_", "-") for section in SECTIONS for one in here.wanted(section.key)):
            return name
    return ""


def with_features(manifest: Manifest, names: Iterable[str] | None = None) -> Manifest:
    """Return a manifest with the requests of some of its features in its own sections.

    Args:
        manifest: The manifest.
        names: The features; None for all of them. One that the manifest does not have adds nothing.
    """
    chosen = manifest.features if names is None else [name for name in manifest.features if name in set(names)]
    found = replace(manifest, features={})
    for name in chosen:
        found = merge(found, replace(manifest.features[name], name=manifest.name, file=manifest.file), adds=True)
    return found


def placed(manifest: Manifest, home: Path) -> Manifest:
    """Return a manifest whose paths are relative to a folder."""
    return replace(
        manifest,
        wheels={
            name: replace(
                request,
                tree=request.tree and replace(request.tree, base=home),
                file=request.file and replace(request.file, base=home),
            )
            for name, request in manifest.wheels.items()
        },
        indexes=tuple(replace(index, base=home) for index in manifest.indexes),
        wheelhouse=manifest.wheelhouse and os.path.normpath(home / manifest.wheelhouse),
        beside=manifest.beside and os.path.normpath(home / manifest.beside),
        by_platform={platform: placed(part, home) for platform, part in manifest.by_platform.items()},
        features={name: placed(part, home) for name, part in manifest.features.items()},
    )


def lay(above: Manifest, own: Manifest, *, adds: bool = False) -> Manifest:
    """Merge two manifests: single values replace, tables merge key by key.

    Args:
        above: The manifest below the other: a parent, a target, or the values for all platforms.
        own: The one that is laid over it.
        adds: Whether the indexes of `own` come after those of `above`.
    """
    return Manifest(
        name=own.name,
        file=own.file,
        description=own.description or above.description,
        platforms=own.platforms or above.platforms,
        channels=own.channels or above.channels,
        pytorch=own.pytorch or above.pytorch,
        python=own.python or above.python,
        requirements=_lay_requirements(above.requirements, own.requirements),
        dependencies={**_kept(above, own, "conda"), **own.dependencies},
        wheels=_laid_wheels(_kept(above, own, "wheels"), own.wheels, adds=adds),
        archives={**_kept(above, own, "archives"), **own.archives},
        system={**_kept(above, own, "system"), **own.system},
        others={
            key: {**_kept(above, own, key), **own.others.get(key, {})} for key in sorted({*above.others, *own.others})
        },
        environment={**above.environment, **own.environment},
        dropped={key: names | above.dropped.get(key, frozenset()) for key, names in own.dropped.items()},
        cache_name=own.cache_name or above.cache_name,
        cache_storage=own.cache_storage or above.cache_storage,
        indexes=laid(above.indexes, own.indexes, adds=adds),
        wheelhouse=own.wheelhouse or above.wheelhouse,
        beside=own.beside or above.beside,
        sdists=_both(above.sdists, own.sdists),
        constraints=_both(above.constraints, own.constraints),
        overrides=_both(above.overrides, own.overrides),
    )


def _both(above: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*above, *own)))


def _laid_wheels(
    above: Mapping[str, WheelRequest], own: Mapping[str, WheelRequest], *, adds: bool
) -> dict[str, WheelRequest]:
    """Return all requests; a feature (`adds`) may add extras to a package of the target."""
    found = {**above, **own}
    for name in own.keys() & above.keys() if adds else ():
        found[name] = replace(own[name], extras=tuple(sorted({*above[name].extras, *own[name].extras})))
    return found


def _lay_requirements(above: Requirements, own: Requirements) -> Requirements:
    cuda = own if own.cuda or own.cuda_from else above
    return Requirements(cuda.cuda, own.glibc or above.glibc, cuda.cuda_from)


def _kept(above: Manifest, own: Manifest, key: str) -> Mapping[str, Any]:
    """Return the requests to a source of the manifest above that the one below does not drop."""
    wanted, dropped = above.wanted(key), own.dropped.get(key)
    return {name: request for name, request in wanted.items() if name not in dropped} if dropped else wanted


def request_for_torch(manifest: Manifest) -> WheelRequest | CondaRequest | None:
    """Return the request for torch, as a wheel or as a conda package; None for none."""
    conda = (manifest.dependencies[name] for name in CONDA_TORCHES if name in manifest.dependencies)
    return manifest.wheels.get("torch") or next(conda, None)


@cache  # several rules ask it of each host
def _minors(pythons: Range) -> tuple[str, ...]:
    # 3.30 is far beyond every Python that a range of today can mean.
    return tuple(minor for n in range(30) if f"{(minor := f'3.{n}')}.0" in pythons)
