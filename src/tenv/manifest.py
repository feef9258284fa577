"""Manifests: one target as a person wrote it.

The format reads like ``pixi.toml``; DESIGN's page on it is ``docs/manifest.md``. A manifest is read into frozen values,
and everything in it that the format does not know is an error with its path, its line and the nearest known word.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tenv.errors import ManifestError, TenvError
from tenv.files import digest_bytes
from tenv.tables import Table, locate, read_toml
from tenv.versions import CondaRange, Range, Version

__all__ = [
    "PLATFORMS",
    "ArchiveRequest",
    "CondaRequest",
    "Manifest",
    "Requirements",
    "WheelRequest",
    "channel_url",
    "normalize",
    "read_manifest",
    "tool_of",
]

PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
"""The platforms that a manifest may name, by their conda names."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_CONDA_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?")
_BUILD = re.compile(r"[A-Za-z0-9_.+*]+")
_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@%~-]*")
_SECTIONS = ("dependencies", "pypi-dependencies", "archives", "system")
_KEYS = (
    "description",
    "extends",
    "platforms",
    "channels",
    "pytorch",
    "python",
    "requirements",
    *_SECTIONS,
    "platform",
    "activation",
)
_MAX_DEPTH = 8


def channel_url(name: str) -> str:
    """Return the URL of a conda channel that is named as a manifest may name one: by name, label or URL."""
    return name.rstrip("/") if "://" in name else f"https://conda.anaconda.org/{name.strip('/')}"


def normalize(name: str) -> str:
    """Return a package name as PyPI compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


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
            "channel": self.channel and channel_url(self.channel),
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
    """

    version: str = ""
    url: str = ""
    sha256: str = ""
    strip: int = 0
    to: str = ""
    product: str = ""

    def asked(self) -> list[str | int]:
        """Return the request as plain values, as a lock records it."""
        return [self.version, self.url, self.sha256, self.strip, self.to, *([self.product] if self.product else [])]


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
        environment: The variables of ``[activation.env]``.
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
    environment: Mapping[str, str] = field(default_factory=dict)
    by_platform: Mapping[str, "Manifest"] = field(default_factory=dict)

    def on(self, platform: str) -> "Manifest":
        """Return the manifest as it reads on one platform."""
        return self.by_platform.get(platform, self)

    def sources(self) -> tuple[str, ...]:
        """Return the URLs of the channels, best first; one that only a package names comes after all others."""
        named = [request.channel for _, request in sorted(self.dependencies.items()) if request.channel]
        return tuple(dict.fromkeys(map(channel_url, [*self.channels, *named])))

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
        }

    def digest(self) -> str:
        """Return the sha256 of what the manifest asks for; its comments, order and description do not count."""
        asked = {platform: self.asked(platform) for platform in sorted(self.platforms)}
        return digest_bytes(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode())

    def settings_digest(self) -> str:
        """Return the sha256 of all that an environment is made from: what is asked for, and what activation sets."""
        variables = {platform: dict(self.on(platform).environment) for platform in sorted(self.platforms)}
        return digest_bytes(json.dumps([self.digest(), variables], sort_keys=True).encode())


def read_manifest(name: str, path: Path, find: Callable[[str], Path], shown: str = "") -> Manifest:
    """Read the manifest of a target, its parents taken in.

    Args:
        name: The target's name.
        path: The manifest's file.
        find: Returns the file of a parent by its name; raises a `TenvError` when there is none.
        shown: How messages name the file; its path when empty.

    Raises:
        ManifestError: The file can't be read, says something unknown, or contradicts itself.
    """
    table = read_toml(path, ManifestError, shown or str(path))
    manifest = _complete(_read_chain(name, table, find, (name,)), table)
    for platform in manifest.platforms:
        _check_single_supplier(manifest.on(platform), platform, table)
    return manifest


def _read_chain(name: str, table: Table, find: Callable[[str], Path], seen: tuple[str, ...]) -> Manifest:
    own = _read_one(name, table)
    parent = table.text("extends")
    if not parent:
        return own
    if parent in seen or len(seen) >= _MAX_DEPTH:
        hint = "a manifest can't extend one of its own name: give it another" if parent == name else ""
        raise table.fail("extends", f"goes round in a circle: {' → '.join((*seen, parent))}", hint=hint)
    try:
        path = find(parent)
    except TenvError as error:
        raise table.fail("extends", f"no manifest `{parent}`", hint=error.hint) from error
    above = _read_chain(parent, read_toml(path), find, (*seen, parent))
    return _merge(above, own)


def _read_one(name: str, table: Table) -> Manifest:
    table.only(_KEYS)
    general = replace(
        _read_sections(name, table),
        description=table.text("description"),
        platforms=table.strings("platforms"),
        channels=tuple(_channel(table, "channels", name) for name in table.strings("channels")),
        pytorch=table.parsed("pytorch", Range, None),
        python=table.parsed("python", Range, None),
        requirements=_read_requirements(table.table("requirements")),
    )
    if len(set(general.platforms)) < len(general.platforms):
        raise table.fail("platforms", "names a platform twice")
    for platform in general.platforms:
        if platform not in PLATFORMS:
            raise table.fail("platforms", f"unknown platform `{platform}`", hint=f"known: {', '.join(PLATFORMS)}")
    parts = {platform: _read_platform(name, part) for platform, part in _platforms(table)}
    return replace(general, by_platform={platform: _lay(general, part) for platform, part in parts.items()})


def _platforms(table: Table) -> list[tuple[str, Table]]:
    section = table.table("platform")
    section.only(PLATFORMS)
    return list(section.tables())


def _read_platform(name: str, table: Table) -> Manifest:
    table.only((*_SECTIONS, "activation"))
    return _read_sections(name, table)


def _read_sections(name: str, table: Table) -> Manifest:
    """Read the sections that may also stand below ``[platform.NAME]``."""
    activation = table.table("activation")
    activation.only(("env",))
    variables = activation.table("env")
    wheels = table.table("pypi-dependencies")
    return Manifest(
        name=name,
        file=table.file,
        dependencies={_conda_package(p, key): _read_conda(p, key) for p, key in _each(table.table("dependencies"))},
        wheels={normalize(_package(part, key)): _read_wheel(part, key) for part, key in _each(wheels)},
        archives={_package(part, key): _read_archive(part, key) for part, key in _each(table.table("archives"))},
        system={_package(part, key): _range(part, key) for part, key in _each(table.table("system"))},
        environment={key: _read_variable(variables, key) for key in variables.data},
    )


def _each(table: Table) -> list[tuple[Table, str]]:
    return [(table, key) for key in table.data]


def _package(table: Table, key: str) -> str:
    if not _NAME.fullmatch(key):
        raise table.fail(key, f"`{key}` is not a package name")
    return key


def _conda_package(table: Table, key: str) -> str:
    if not _CONDA_NAME.fullmatch(key):
        raise table.fail(key, f"`{key}` is not the name of a conda package (small letters, digits, `-`, `_`, `.`)")
    return key


def _channel(table: Table, key: str, name: str) -> str:
    """Return the name of a channel, which must be one: a name, a label of one, or a URL."""
    if not _CHANNEL.fullmatch(name) or ".." in name or ("://" not in name and ":" in name):
        raise table.fail(key, f"`{name}` is not a channel", hint="a name, NAME/label/LABEL, or a URL")
    return name.rstrip("/")


def _range(table: Table, key: str) -> Range:
    text = table.required_text(key)
    try:
        return Range(text)
    except ValueError as error:
        raise table.fail(key, str(error)) from error


def _is_text(table: Table, key: str) -> bool:
    value = table.data[key]
    if isinstance(value, str):
        return True
    if isinstance(value, dict):
        return False
    raise table.fail(key, "expected a version such as `*` or `>=1.2,<2`, or a table such as { version = ... }")


def _read_conda(table: Table, key: str) -> CondaRequest:
    number = locate(table.source, (*table.path, key))
    line = f"{table.file}:{number}" if number else table.file
    if _is_text(table, key):
        table.required_text(key)
        return CondaRequest(table.parsed(key, CondaRange, CondaRange("*")), line=line)
    inner = table.table(key)
    inner.only(("version", "channel", "build"))
    channel, build = inner.text("channel"), inner.text("build")
    if build and not _BUILD.fullmatch(build):
        raise inner.fail("build", f"`{build}` is not a build string or a pattern of one such as `*_cuda`")
    version = inner.parsed("version", CondaRange, CondaRange("*"))
    return CondaRequest(version, channel and _channel(inner, "channel", channel), build, line)


def _read_wheel(table: Table, key: str) -> WheelRequest:
    if _is_text(table, key):
        return WheelRequest(_range(table, key))
    inner = table.table(key)
    inner.only(("version", "extras"))
    extras = inner.strings("extras")
    for extra in extras:
        if not _NAME.fullmatch(extra):
            raise inner.fail("extras", f"`{extra}` is not the name of an extra")
    return WheelRequest(inner.parsed("version", Range, Range("*")), tuple(sorted(extras)))


def _read_archive(table: Table, key: str) -> ArchiveRequest:
    if _is_text(table, key):
        return ArchiveRequest(version=_archive_version(table, key))
    inner = table.table(key)
    inner.only(("version", "url", "sha256", "strip", "to", "product"))
    strip = inner.data.get("strip", 0)
    if not isinstance(strip, int) or isinstance(strip, bool) or strip < 0:
        raise inner.fail("strip", "expected a number of folders, 0 or more")
    version = _archive_version(inner, "version") if "version" in inner.data else ""
    url, to = _archive_url(inner), _archive_place(inner)
    archive = ArchiveRequest(version, url, inner.text("sha256"), strip, to, inner.text("product"))
    if archive.product and not _NAME.fullmatch(archive.product):
        raise inner.fail("product", f"`{archive.product}` is not the name of a product")
    if bool(archive.version) == bool(archive.url):
        raise table.fail(key, "needs either a version of a known product or a url")
    if archive.sha256 and not re.fullmatch(r"[0-9a-f]{64}", archive.sha256):
        raise inner.fail("sha256", "expected 64 hex digits")
    return archive


def _archive_version(table: Table, key: str) -> str:
    text = table.required_text(key)
    return text if text == "auto" else _range(table, key).text


def _archive_url(table: Table) -> str:
    url = table.text("url")
    if url and not re.fullmatch(r"https?://[^\s/@]+/\S+", url):
        hint = "a user and a password belong into ~/.netrc, which `tenv` reads" if "@" in url else ""
        raise table.fail("url", "expected an address that begins with https:// or http://, without a user", hint=hint)
    return url


def _archive_place(table: Table) -> str:
    """Return the folder in the prefix that an archive goes to, which must be one below it."""
    to = table.text("to")
    parts = to.split("/")
    if to.startswith(("/", "~")) or ".." in parts or "\\" in to or ":" in to or not to.isprintable():
        raise table.fail("to", "expected a folder below the prefix, such as `opt/magma`, or `.` for the prefix itself")
    if any(part.startswith((".tenv", "tenv-meta")) for part in parts):
        raise table.fail("to", "that folder is tenv's own")
    return to


def _read_variable(table: Table, key: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        raise table.fail(key, f"`{key}` is not a name that a shell can hold")
    value = table.text(key)
    if "\0" in value or "\n" in value:
        raise table.fail(key, "a variable can't hold a line break or a null byte")
    return value


def _read_requirements(table: Table) -> Requirements:
    table.only(("cuda", "glibc"))
    return Requirements(table.parsed("cuda", Version, None), table.parsed("glibc", Version, None))


def _merge(above: Manifest, own: Manifest) -> Manifest:
    """Lay a manifest over its parent, platform by platform: nothing of a parent wins over what its child says."""
    platforms = sorted({*above.by_platform, *own.by_platform})
    return replace(
        _lay(above, own), by_platform={platform: _lay(above.on(platform), own.on(platform)) for platform in platforms}
    )


def _lay(above: Manifest, own: Manifest) -> Manifest:
    """Lay one manifest over another: single values replace, tables are joined key by key."""
    return Manifest(
        name=own.name,
        file=own.file,
        description=own.description or above.description,
        platforms=own.platforms or above.platforms,
        channels=own.channels or above.channels,
        pytorch=own.pytorch or above.pytorch,
        python=own.python or above.python,
        requirements=Requirements(
            own.requirements.cuda or above.requirements.cuda, own.requirements.glibc or above.requirements.glibc
        ),
        dependencies={**above.dependencies, **own.dependencies},
        wheels={**above.wheels, **own.wheels},
        archives={**above.archives, **own.archives},
        system={**above.system, **own.system},
        environment={**above.environment, **own.environment},
    )


def _complete(manifest: Manifest, table: Table) -> Manifest:
    """Check what only the whole manifest can show."""
    if not manifest.platforms:
        raise table.fail("platforms", "is required", hint='add for example platforms = ["linux-64"]')
    for platform, _ in _platforms(table):  # a parent may know of more
        if platform not in manifest.platforms:
            raise table.table("platform").fail(platform, f"`{platform}` is not one of the manifest's platforms")
    conda_python = any("python" in manifest.on(platform).dependencies for platform in manifest.platforms)
    wheels = any(manifest.on(platform).wheels for platform in manifest.platforms)
    if conda_python and manifest.python:
        raise table.fail("python", "is given both here and in [dependencies]", hint="keep one of the two")
    if wheels and not conda_python and not manifest.python:
        raise table.fail(
            "python",
            "is required, since [pypi-dependencies] need a Python and no conda package supplies one",
            hint='add for example python = ">=3.11,<3.15"',
        )
    if manifest.python and not manifest.python_minors():
        raise table.fail("python", f"no Python 3 minor lies in `{manifest.python}`")
    return manifest


def tool_of(name: str) -> str:
    """Return the tool that a package supplies, by its normalized name; most have the name of their tool."""
    return _TOOLS.get(name, name)


def _check_single_supplier(manifest: Manifest, platform: str, table: Table) -> None:
    """Refuse a manifest in which two sections supply one tool."""
    sections: dict[str, list[str]] = {
        "dependencies": [normalize(name) for name in manifest.dependencies],
        "pypi-dependencies": list(manifest.wheels),
        "archives": [normalize(name) for name in manifest.archives],
        "system": [normalize(name) for name in manifest.system],
    }
    supplier: dict[str, str] = {}
    for section, names in sections.items():
        for tool in {tool_of(name) for name in names}:
            if tool in supplier:
                raise table.fail(
                    section,
                    f"`{tool}` is supplied by both [{supplier[tool]}] and [{section}] on {platform}",
                    hint="keep it in one of the two",
                )
            supplier[tool] = section


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
