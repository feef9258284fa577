"""What the formats share: what each is given, what each returns.

A format is a module with one `Format`; its name in `tenv.interop.formats` is all that is said about it elsewhere.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tenv.activation.changes import Activation
from tenv.core import process
from tenv.core.errors import FormatError
from tenv.core.versions import Version
from tenv.locks.lock import Lock, Wheel
from tenv.targets.manifest import PLATFORMS, CondaRequest, Manifest, WheelRequest
from tenv.targets.variable_requests import VariableRequest
from tenv.toolchain.discover import Toolchain

__all__ = [
    "Addition",
    "Draft",
    "Exported",
    "ForeignLock",
    "Format",
    "GivenFile",
    "Imported",
    "Located",
    "Site",
    "Subject",
    "minor_of",
]


@dataclass(frozen=True, slots=True)
class Located:
    """Where the indexes in use have a wheel, and what it says of itself.

    Attributes:
        url: Its URL.
        requires_dist: What it requires, as PEP 508 lines.
        requires_python: The Pythons that it is for, or an empty string.
        known: Whether what it requires could be read.
    """

    url: str
    requires_dist: tuple[str, ...] = ()
    requires_python: str = ""
    known: bool = True


@dataclass(frozen=True, slots=True)
class Site:
    """An environment on this machine, for formats that name it rather than its lock.

    Attributes:
        folder: The folder that the files are for, such as the one that an editor opens.
        activation: What activating the environment changes.
        environ: The variables of the environment when it is active here.
        toolchain: Where things are in it.
        python: The minor version of its Python.
        checkout: The PyTorch checkout that is built with it; None where none is known.
        tenv: The words that start tenv.
        manifest: The target's manifest, as a file.
    """

    folder: Path
    activation: Activation
    environ: Mapping[str, str]
    toolchain: Toolchain
    python: str
    checkout: Path | None
    tenv: tuple[str, ...]
    manifest: Path

    @property
    def prefix(self) -> Path:
        """The environment's folder."""
        return self.toolchain.prefix

    def program(self, name: str) -> str:
        """Return the absolute path of a program as the active environment finds it, or an empty text."""
        return process.find(name, self.environ.get("PATH")) or ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to be exported.

    Attributes:
        manifest: The target's manifest.
        lock: Its lock.
        platforms: The platforms to write.
        python: The Python minor to write for, where Python is no conda package and the format serves one; or empty.
        located: Where the wheels are, by sha256; empty where the format needs no URLs.
        indexes: The package indexes in use, the main one first; empty where the format needs no URLs.
        requests: Write what the manifest asks for, not what the lock holds (`environment.yml`).
        md5: Give MD5 rather than sha256 (explicit lists).
        site: The environment on this machine, for a format that needs one.
        carried: The target's manifests and its lock, by name, for a format that takes them along.
        base: The image that a container is made from; empty for the one that fits.
    """

    manifest: Manifest
    lock: Lock
    platforms: tuple[str, ...]
    python: str = ""
    located: Mapping[str, Located] = field(default_factory=dict)
    indexes: tuple[str, ...] = ()
    requests: bool = False
    md5: bool = False
    site: Site | None = None
    carried: Mapping[str, bytes] = field(default_factory=dict)
    base: str = ""

    def minor(self, platform: str) -> str:
        """Return the Python minor of a platform: that of its conda package, or the one asked for, or an empty text."""
        found = [p.version for p in self.lock.conda.get(platform, ()) if p.name == "python"]
        return minor_of(found[0]) if found else self.python

    def wheels(self, platform: str) -> tuple[Wheel, ...]:
        """Return the wheels of a platform, in its Python minor when there is one."""
        minor = self.minor(platform)
        return self.lock.wheels_for(platform, minor) if minor else self.lock.wheels.get(platform, ())

    def has_conda_python(self) -> bool:
        """Tell whether Python is a conda package wherever there are wheels, and there are conda packages at all."""
        alone = [name for name in self.platforms if self.wheels(name) and not self._conda_python(name)]
        return not alone and any(self.lock.conda.get(name) for name in self.platforms)

    def _conda_python(self, platform: str) -> bool:
        return any(package.name == "python" for package in self.lock.conda.get(platform, ()))

    def with_one_python(self, lost: list[str]) -> "Subject":
        """Return this with the wheels of one Python: the newest of the lock where none is named."""
        minors = {minor for platform in self.platforms for minor in self.lock.python_minors(platform)}
        if self.python or len(minors) < 2 or all(map(self.minor, self.platforms)):  # noqa: PLR2004 (several)
            return self
        newest = max(minors, key=Version)
        lost.append(f"the lock serves several Pythons, this is for {newest} (`--python` names another)")
        return replace(self, python=newest)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export gives.

    Attributes:
        files: The bytes of each file, by name.
        lost: What the format can't hold, a sentence each.
        notes: What to do with the files, and what they need, a line each.
    """

    files: Mapping[str, bytes]
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Addition:
    """A file that is there, after what an export holds was added to it.

    Attributes:
        data: Its bytes.
        kept: The places whose own value was kept.
    """

    data: bytes
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file of another tool.

    Attributes:
        path: The file.
        raw: Its bytes.
        environment: The environment to take where it holds several; empty for the usual one.
        platforms: The platforms to take; empty for all that tenv knows, where the file names some.
    """

    path: Path
    raw: bytes
    environment: str = ""
    platforms: tuple[str, ...] = ()

    def choose(self, platforms: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return which of the file's platforms are taken, in tenv's own order, and which are left."""
        wanted, there = self.platforms or PLATFORMS, tuple(platforms)
        taken = tuple(name for name in PLATFORMS if name in there and name in wanted)
        return taken, tuple(name for name in there if name not in taken)

    def take(self, platforms: Iterable[str], lost: list[str], hint: str = "") -> tuple[str, ...]:
        """Return which of the file's platforms are taken, in tenv's own order, where there must be one.

        Args:
            platforms: The platforms that the file has something for.
            lost: Told of those that are not taken.
            hint: What to do where there is none to take.

        Raises:
            FormatError: There is none to take.
        """
        taken, left = self.choose(platforms)
        if left:
            lost.append(f"platforms that are not taken: {', '.join(left)}")
        if not taken:
            held = f"only for {', '.join(left)}" if left else "for none at all"
            raise FormatError(f"{self.path}: has nothing for a platform that tenv knows, {held}", hint=hint)
        return taken


@dataclass(frozen=True, slots=True)
class Draft:
    """A manifest that is to be written.

    Attributes:
        platforms: Its platforms.
        channels: Its channels, best first, as people write them.
        python: The range of Pythons when it is no conda package.
        cuda: The CUDA that the host must offer, or an empty string.
        glibc: The oldest C library, or an empty string.
        dependencies: What is asked of conda, by platform and name.
        wheels: What is asked of the package index, by platform and name.
        environment: Variables to set, by platform and name.
        description: One line for people, or an empty string.
    """

    platforms: tuple[str, ...]
    channels: tuple[str, ...] = ()
    python: str = ""
    cuda: str = ""
    glibc: str = ""
    dependencies: Mapping[str, Mapping[str, CondaRequest]] = field(default_factory=dict)
    wheels: Mapping[str, Mapping[str, WheelRequest]] = field(default_factory=dict)
    environment: Mapping[str, Mapping[str, VariableRequest]] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True, slots=True)
class ForeignLock:
    """What a lock of another tool holds.

    Attributes:
        channels: The channels, best first, as URLs.
        conda: The conda packages of each platform, as rows of a ``pixi.lock`` of version 7.
        wheels: The wheels of each platform.
        options: How it was solved, as such a lock says it.
    """

    channels: tuple[str, ...]
    conda: Mapping[str, tuple[Mapping[str, Any], ...]]
    wheels: Mapping[str, tuple[Wheel, ...]]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import gives.

    Attributes:
        name: What the file calls the environment; empty when it has no name for it.
        draft: The manifest.
        part: What its lock shall hold; None where the file has no hashes for it.
        lost: What tenv can't hold, a sentence each.
    """

    name: str
    draft: Draft
    part: ForeignLock | None
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Attributes:
        name: What it is called on the command line.
        export: Writes it; None where tenv does not.
        read: Reads it; None where tenv does not.
        recognize: Tells whether a file, by its name and its first bytes, is of this format.
        needs_urls: Tells whether an export names the wheels of a subject by URL, so that the indexes have to be asked.
        needs_metadata: Whether it also says what they require.
        needs_environment: Whether an export names the environment on this machine.
        holds_lock: Whether an export stands for what is locked, so that what is not in it has to be said.
        carries: Whether an export takes the manifests and the lock along.
        add: Adds an export to a file that is there (its name, its bytes, those of the export, whether to replace what
            differs); None where a file is only ever written whole. Raises ValueError for a file that it can't read.
    """

    name: str
    export: Callable[[Subject], Exported] | None
    read: Callable[[GivenFile], Imported] | None
    recognize: Callable[[str, bytes], bool]
    needs_urls: Callable[[Subject], bool] = lambda _: False
    needs_metadata: bool = False
    needs_environment: bool = False
    holds_lock: bool = True
    carries: bool = False
    add: Callable[[str, bytes, bytes, bool], Addition] | None = None


def minor_of(version: str) -> str:
    """Return the minor of a Python version, such as ``3.11`` of ``3.11.9``."""
    found = Version.find(version)
    return found.major_minor if found else ""
