"""Manifests: one target as a person wrote it, as frozen values. `tenv.targets.manifest_file` reads them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tenv.core.files import digest_bytes
from tenv.core.names import channel_url, channel_urls
from tenv.core.versions import CondaRange, Range, Version
from tenv.targets.sections import SECTIONS
from tenv.targets.variable_requests import VariableRequest

__all__ = [
    "PLATFORMS",
    "ArchiveRequest",
    "CondaRequest",
    "Manifest",
    "OtherRequest",
    "Requirements",
    "WheelRequest",
    "tool_of",
]

PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
"""The platforms that a manifest may name, by their conda names."""

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
"""Packages that supply a tool under another name than the tool's own."""


def tool_of(name: str) -> str:
    """Return the tool that a package supplies, by its normalized name; most have the name of their tool."""
    return _TOOLS.get(name, name)


@dataclass(frozen=True, slots=True)
class CondaRequest:
    """A conda package wanted.

    Attributes:
        version: The versions accepted.
        channel: The channel that it must come from, by name, label or URL, or an empty string.
        build: A pattern for the build string, or an empty string.
        line: Where it stands, such as ``manifests/mine.toml:12``, for messages.
    """

    version: CondaRange
    channel: str = ""
    build: str = ""
    line: str = field(default="", compare=False)

    def __str__(self) -> str:
        if not self.channel and not self.build:
            return f'"{self.version}"'
        given = {"version": "" if str(self.version) == "*" else str(self.version)}
        given |= {"build": self.build, "channel": self.channel}
        return "{ " + ", ".join(f'{key} = "{value}"' for key, value in given.items() if value) + " }"

    def asked(self) -> list[str]:
        """Return the request as plain values, as a lock records it."""
        return [str(self.version), self.channel, self.build]

    def spec(self, name: str) -> str:
        """Return the request as a match specification of conda."""
        given = {
            "version": self.version.spec,
            "build": self.build,
            "channel": self.channel and channel_url(self.channel, name),
        }
        return f"{name}[" + ",".join(f'{key}="{value}"' for key, value in given.items() if value) + "]"


@dataclass(frozen=True, slots=True)
class WheelRequest:
    """A wheel wanted.

    Attributes:
        version: The versions accepted.
        extras: The extras wanted, sorted.
    """

    version: Range
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class ArchiveRequest:
    """A file wanted from outside any package manager.

    Attributes:
        version: A version, a range or ``auto`` of a known product; empty when a URL is given.
        url: Where it is, or an empty string.
        sha256: Its digest in hex, or an empty string.
        strip: How many leading folders of the archive's names are dropped.
        to: The folder in the prefix that it goes to; empty for the usual one, ``.`` for the prefix itself.
        product: The product that it is a component of, when its name is that of the component.
        components: The components of the product that are taken; empty for those that a build of PyTorch uses.
    """

    version: str = ""
    url: str = ""
    sha256: str = ""
    strip: int = 0
    to: str = ""
    product: str = ""
    components: tuple[str, ...] = ()

    def asked(self) -> list[str | int]:
        """Return the request as plain values, as a lock records it."""
        values: list[str | int] = [self.version, self.url, self.sha256, self.strip, self.to]
        named = [self.product] if self.product or self.components else []
        return [*values, *named, *self.components]


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """A request of a source whose requests have no type of their own.

    Attributes:
        values: Texts by the keys that the source's row in `tenv.targets.sections` allows.
    """

    values: Mapping[str, str]

    @property
    def version(self) -> str:
        """What a person sees as asked for: the texts, in the order of the manifest."""
        return ", ".join(self.values.values())

    def asked(self) -> list[str]:
        """Return the request as plain values, as a lock records it."""
        return [f"{key}={value}" for key, value in sorted(self.values.items())]


@dataclass(frozen=True, slots=True)
class Requirements:
    """What the host must offer.

    Attributes:
        cuda: The CUDA release that the target is built with; the minimum driver follows from it. None for no CUDA.
        glibc: The oldest C library on which the environment must work. None for no statement.
    """

    cuda: Version | None = None
    glibc: Version | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """One target as a person wrote it, its parents taken in.

    Attributes:
        name: The target's name.
        file: Where it stands, for messages.
        description: One line for people.
        platforms: The platforms that it is for.
        channels: The conda channels, best first.
        pytorch: The source revisions that it builds.
        python: The Python minors that the lock serves, when Python is not a conda package.
        requirements: What the host must offer.
        dependencies: Conda packages by name.
        wheels: Wheels by normalized name.
        archives: Files from elsewhere by name.
        system: What is taken from the host, by name.
        others: The requests of further sources, by the key of the source and by name.
        environment: The variables of ``[activation.env]``.
        cache_name: The compile cache of ``[build]``: ``ccache``, ``sccache`` or ``off``; empty where it does not say.
        by_platform: The whole manifest as it reads on the platforms for which it says something of its own.
    """

    name: str
    file: str
    description: str = ""
    platforms: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    pytorch: Range | None = None
    python: Range | None = None
    requirements: Requirements = field(default_factory=Requirements)
    dependencies: Mapping[str, CondaRequest] = field(default_factory=dict)
    wheels: Mapping[str, WheelRequest] = field(default_factory=dict)
    archives: Mapping[str, ArchiveRequest] = field(default_factory=dict)
    system: Mapping[str, Range] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, OtherRequest]] = field(default_factory=dict)
    environment: Mapping[str, VariableRequest] = field(default_factory=dict)
    cache_name: str = ""
    by_platform: Mapping[str, "Manifest"] = field(default_factory=dict)

    @property
    def cache(self) -> str:
        """The compile cache that a build takes."""
        return self.cache_name or "ccache"

    def on(self, platform: str) -> "Manifest":
        """Return the manifest as it reads on one platform."""
        return self.by_platform.get(platform, self)

    def wanted(self, key: str) -> Mapping[str, Any]:
        """Return what is asked of a source, by name; of `tenv.targets.sections` each row has a key."""
        typed = {"conda": self.dependencies, "wheels": self.wheels, "archives": self.archives, "system": self.system}
        return typed[key] if key in typed else self.others.get(key, {})

    def sources(self, platform: str) -> tuple[str, ...]:
        """Return the URLs of a platform's channels, best first; one that only a package names comes after all."""
        found = [url for word in self.channels for url in channel_urls(word, platform)]
        named = [(name, request.channel) for name, request in sorted(self.dependencies.items()) if request.channel]
        return tuple(dict.fromkeys((*found, *(channel_url(word, name) for name, word in named))))

    def python_minors(self) -> tuple[str, ...]:
        """Return every Python minor of the manifest's range, lowest first, such as ``("3.11", "3.12")``."""
        if self.python is None:
            return ()
        # 3.30 is far beyond any Python that a range written today can mean to name one by one.
        return tuple(minor for n in range(30) if f"{(minor := f'3.{n}')}.0" in self.python)

    def asked(self, platform: str) -> dict[str, Any]:
        """Return what the manifest asks for on a platform, as plain values in a stable order."""
        here = self.on(platform)
        return {
            "channels": list(here.channels),
            "python": list(here.python_minors()),
            "cuda": str(here.requirements.cuda or ""),
            "glibc": str(here.requirements.glibc or ""),
            "dependencies": {name: r.asked() for name, r in sorted(here.dependencies.items())},
            "pypi-dependencies": {name: [str(r.version), *r.extras] for name, r in sorted(here.wheels.items())},
            "archives": {name: r.asked() for name, r in sorted(here.archives.items())},
            "system": {name: str(r) for name, r in sorted(here.system.items())},
            **{
                section.name: {name: r.asked() for name, r in sorted(here.others[section.key].items())}
                for section in SECTIONS
                if here.others.get(section.key)  # no lock of before has such a section, and none changes for it
            },
        }

    def variables(self) -> dict[str, object]:
        """Return ``[activation.env]`` as plain values."""
        return {name: request.to_plain() for name, request in self.environment.items()}

    def digest(self) -> str:
        """Return the sha256 of what the manifest asks for; its comments, order and description do not count."""
        asked = {platform: self.asked(platform) for platform in sorted(self.platforms)}
        return digest_bytes(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode())

    def settings_digest(self) -> str:
        """Return the sha256 of all that an environment is made from: what is asked for, and what activation sets."""
        variables = {platform: self.on(platform).variables() for platform in sorted(self.platforms)}
        return digest_bytes(json.dumps([self.digest(), variables], sort_keys=True).encode())
