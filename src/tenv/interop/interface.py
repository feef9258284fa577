"""The interface of formats: their inputs and results; the files of other tools, read and completed.

A format is a module with one `Format`. Elsewhere, it has only a name in `tenv.interop.formats`. Any content of a file
of another tool leads to at most one error. Of a file of the user, tenv replaces the block between two lines.
"""

import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from tenv.activation.changes import Activation
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError, ManifestError, TenvError
from tenv.core.file_content import in_utf8
from tenv.core.files import read_regular
from tenv.core.toml_reader import nearest
from tenv.core.user_folders import user_home
from tenv.core.versions import Version
from tenv.core.yaml_reader import load
from tenv.debugging.install_line import has_pip
from tenv.locks.lock import Lock, LockedTree, Wheel
from tenv.locks.lock_features import take
from tenv.targets.manifest import PLATFORMS, CondaRequest, Manifest, WheelRequest, with_features
from tenv.targets.variable_requests import VariableRequest
from tenv.targets.wheel_origin import Index
from tenv.toolchain.discover import Toolchain


@dataclass(frozen=True, slots=True)
class Located:
    """A wheel's URL on an index, and its metadata."""

    url: str
    """Its URL."""
    requires_dist: tuple[str, ...] = ()
    """Its requirements, as PEP 508 lines."""
    requires_python: str = ""
    """The supported Pythons, or an empty string."""
    known: bool = True
    """Whether its requirements could be read."""


@dataclass(frozen=True, slots=True)
class Site:
    """An environment on this machine, for formats that name it rather than its lock."""

    folder: Path
    """The folder that the files are for, such as the one that an editor opens."""
    activation: Activation
    """The changes of the environment's activation."""
    environ: Mapping[str, str]
    """The variables of the environment when it is active here."""
    toolchain: Toolchain
    """Where things are in it."""
    python: str
    """The minor version of its Python."""
    checkout: Path | None
    """The PyTorch checkout that is built with it; None if none is known."""
    manifest: Path
    """The target's manifest, as a file."""
    activate: tuple[str, ...] = ()
    """The words after `tenv` that print the activation script, from the folder."""
    beside: bool = False
    """Whether it is a toolkit for another environment, whose Python the toolchain names then."""

    @property
    def prefix(self) -> Path:
        """The environment's folder."""
        return self.toolchain.prefix

    @property
    def install_words(self) -> tuple[str, ...]:
        """The words that install into the environment beside; it has pip, or is one of uv."""
        python = str(self.toolchain.python)
        pip = (python, "-m", "pip", "install")
        return pip if has_pip(self.toolchain.site_packages) else ("uv", "pip", "install", "--python", python)

    def relative(self, path: Path) -> str:
        """Return a path relative to the folder; empty where they share no folder below the user's home.

        A clone of the repository on another machine has it in the same place then.
        """
        shared = Path(os.path.commonpath([path, self.folder])) if path.is_absolute() else Path()
        if shared == Path() or shared in (home := user_home(), *home.parents):
            return ""
        return Path(os.path.relpath(path, self.folder)).as_posix()

    def program(self, name: str) -> str:
        """Return the absolute path of a program as the active environment finds it, or an empty text."""
        return process.find(name, self.environ.get("PATH")) or ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The input of an export."""

    manifest: Manifest
    """The target's manifest."""
    lock: Lock
    """Its lock."""
    platforms: tuple[str, ...]
    """The platforms to write."""
    python: str = ""
    """The Python minor to write for, if Python is not a conda package and the format has one; or empty."""
    located: Mapping[str, Located] = field(default_factory=dict)
    """The URLs of wheels by sha256; empty if the format needs none."""
    indexes: tuple[str, ...] = ()
    """The package indexes, the main one first; empty if the format needs no URLs."""
    requests: bool = False
    """Write the manifest's requests, not the lock's versions (`environment.yml`)."""
    md5: bool = False
    """Write MD5 instead of sha256 (explicit lists)."""
    site: Site | None = None
    """The environment on this machine, for a format that needs one."""
    carried: Mapping[str, bytes] = field(default_factory=dict)
    """The target's manifests and its lock, by name, for a format that takes them along."""
    base: str = ""
    """The image that a container is made from; empty for the one that fits."""
    home: str = ""
    """The project of the target, relative to the folder of the export, whose files need no copy; empty for a target of
    another place."""
    whole: Lock | None = None
    """The lock with the files of the target's features; None for the target alone."""
    here: str = ""
    """The Python minor of the environment on this machine, for a format that has one Python; empty for none."""
    folder: Path = Path()
    """The folder of the export as it was typed, for a format that prints commands about its files."""
    own: Path | None = None
    """The folder with the manifests and the locks of the target; None for a target that is built in."""

    def placed(self, name: str = "") -> str:
        """Return the path of an exported file, quoted for a shell of the folder in which tenv ran."""
        return shlex.quote(str(self.folder / name))

    def with_feature(self, name: str) -> "Subject":
        """Return this for an environment that has a feature, too."""
        return replace(self, lock=take(self.whole or self.lock, [name]))

    def minor(self, platform: str) -> str:
        """Return the Python minor of a platform: of its conda package, else the requested one, else an empty string."""
        found = [p.version for p in self.lock.conda.get(platform, ()) if p.name == "python"]
        return minor_of(found[0]) if found else self.python

    def wheels(self, platform: str) -> tuple[Wheel, ...]:
        """Return the wheels of a platform, for its Python minor if there is one."""
        minor = self.minor(platform)
        return self.lock.wheels_for(platform, minor) if minor else self.lock.wheels.get(platform, ())

    def trees(self, platform: str) -> tuple[LockedTree, ...]:
        """Return the source trees and archives of a platform that other tools build, for its Python minor if any."""
        minor = self.minor(platform)
        rows = self.lock.trees_for(platform, minor) if minor else self.lock.trees.get(platform, ())
        return tuple(row for row in rows if row.isolated)

    def archives(self, platform: str) -> tuple[LockedTree, ...]:
        """Return the source archives of `trees` whose addresses are known."""
        return tuple(row for row in self.trees(platform) if row.digest in self.located)

    def folder_of(self, platform: str, tree: LockedTree) -> Path | None:
        """Return the folder of a source tree; None for another one."""
        request = with_features(self.manifest).on(platform).wheels.get(tree.name) if tree.path else None
        return request.tree.folder if request and request.tree else None

    def file_of(self, platform: str, wheel: Wheel) -> Path | None:
        """Return the file of a wheel that the manifest requests in a folder; None for another wheel."""
        request = with_features(self.manifest).on(platform).wheels.get(wheel.name) if wheel.path else None
        return request.file.file if request and request.file else None

    def address_of(self, platform: str, wheel: Wheel) -> str:
        """Return the address of a wheel that is no wheel of an index; else an empty string."""
        file = self.file_of(platform, wheel)
        return file.as_uri() if file else wheel.url

    def has_conda_python(self) -> bool:
        """Return whether there are conda packages, and Python is one of them on every platform with wheels."""
        alone = [name for name in self.platforms if self.wheels(name) and not self._conda_python(name)]
        return not alone and any(self.lock.conda.get(name) for name in self.platforms)

    def _conda_python(self, platform: str) -> bool:
        return any(package.name == "python" for package in self.lock.conda.get(platform, ()))

    def with_one_python(self, lost: list[str]) -> "Subject":
        """Return this with the wheels of one Python: that of the environment here, or the newest in the lock."""
        minors = {minor for platform in self.platforms for minor in self.lock.python_minors(platform)}
        if self.python or len(minors) < 2 or all(map(self.minor, self.platforms)):  # noqa: PLR2004 (several)
            return self
        own = self.here in minors
        chosen = self.here if own else max(minors, key=Version)
        named = f"{chosen}, the environment's" if own else chosen
        lost.append(f"the lock has several Pythons; this is for {named} (`--python` selects another)")
        return replace(self, python=chosen)


FILE = "@FILE@"
"""Stands in a note for the path of the only file of an export, which ``-o`` may name."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    files: Mapping[str, bytes]
    """The bytes of each file, by name."""
    lost: tuple[str, ...] = ()
    """The losses in the format, one sentence each."""
    notes: tuple[str, ...] = ()
    """The use of the files and their needs, a line each; `FILE` stands for the path of the only file."""
    write: Callable[[Path], None] | None = None
    """Writes the only file, whose bytes are too many for memory; None for files with bytes."""
    built: frozenset[str] = frozenset()
    """The packages from source trees and archives that the files have."""

    def at(self, path: Path) -> "Exported":
        """Return the export with the path of its only file in its notes, quoted for a shell."""
        return replace(self, notes=tuple(note.replace(FILE, shlex.quote(str(path))) for note in self.notes))


@dataclass(frozen=True, slots=True)
class Addition:
    """An existing file with the content of an export added to it."""

    data: bytes
    """Its bytes."""
    kept: tuple[str, ...] = ()
    """The places whose own value was kept."""


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file of another tool."""

    path: Path
    """The file."""
    raw: bytes
    """Its bytes."""
    environment: str = ""
    """The environment to import if it has several; empty for the default one."""
    platforms: tuple[str, ...] = ()
    """The platforms to import; empty for all supported ones of the file."""

    def beside(self, name: str) -> str:
        """Return the path of a file beside this one, quoted for a shell."""
        return shlex.quote(str(self.path.with_name(name)))

    def own_package(self, name: str) -> str:
        """Return the note about the package of the file's own folder, which an import does not request."""
        return f"{name} itself is no request: `tenv add --editable {shlex.quote(str(self.path.parent))}` adds it"

    def no_requests(self, lost: Iterable[str], hint: str = "") -> ManifestError:
        """Return the error of a file of which nothing is left to request, with the parts that were left out."""
        left = "; ".join(dict.fromkeys(lost))
        return ManifestError(f"{self.path}: has no requests{f' that tenv can take: {left}' if left else ''}", hint=hint)

    def choose(self, platforms: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the file's platforms to import, in tenv's order, and the skipped ones."""
        wanted, there = self.platforms or PLATFORMS, tuple(platforms)
        taken = tuple(name for name in PLATFORMS if name in there and name in wanted)
        return taken, tuple(name for name in there if name not in taken)

    def take(self, platforms: Iterable[str], lost: list[str], hint: str = "") -> tuple[str, ...]:
        """Return the file's platforms to import, in tenv's order; at least one is required.

        Args:
            platforms: The file's platforms.
            lost: Receives a sentence about skipped platforms.
            hint: The hint if there is no platform to import.

        Raises:
            FormatError: There is no platform to import.
        """
        taken, left = self.choose(platforms)
        if left:
            lost.append(f"skipped platforms: {', '.join(left)}")
        if not taken:
            held = f"only for {', '.join(left)}" if left else "and lists none"
            raise FormatError(f"{self.path}: has nothing for a platform that tenv supports, {held}", hint=hint)
        return taken


@dataclass(frozen=True, slots=True)
class Draft:
    """The content of a new manifest."""

    platforms: tuple[str, ...]
    """Its platforms."""
    channels: tuple[str, ...] = ()
    """Its channels, best first, as people write them."""
    python: str = ""
    """The range of Pythons if Python is not a conda package."""
    cuda: str = ""
    """The CUDA that the host must offer, or an empty string."""
    glibc: str = ""
    """The oldest C library, or an empty string."""
    dependencies: Mapping[str, Mapping[str, CondaRequest]] = field(default_factory=dict)
    """The requests to conda, by platform and name."""
    wheels: Mapping[str, Mapping[str, WheelRequest]] = field(default_factory=dict)
    """The requests to the package index, by platform and name."""
    environment: Mapping[str, Mapping[str, VariableRequest]] = field(default_factory=dict)
    """Variables to set, by platform and name."""
    description: str = ""
    """One line for users, or an empty string."""
    indexes: tuple[Index, ...] = ()
    """The package indexes, best first."""
    features: Mapping[str, Mapping[str, Mapping[str, WheelRequest]]] = field(default_factory=dict)
    """The requests to the package index of each feature, by feature, platform and name."""
    sdists: tuple[str, ...] = ()
    """The normalized names of packages that the file has as source archives alone."""
    bounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The lines of `constraints` and of `overrides`, by that key."""


@dataclass(frozen=True, slots=True)
class ForeignLock:
    """The content of another tool's lock."""

    channels: tuple[str, ...]
    """The channels, best first, as URLs."""
    conda: Mapping[str, tuple[Mapping[str, Any], ...]]
    """The conda packages of each platform, as rows of a ``pixi.lock`` of version 7."""
    wheels: Mapping[str, tuple[Wheel, ...]]
    """The wheels of each platform."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The solve options in that lock."""
    trees: Mapping[str, tuple[LockedTree, ...]] = field(default_factory=dict)
    """The packages of each platform that are built from source trees, and from source archives, which lack the wheels
    that their build needs."""
    left: Mapping[str, str] = field(default_factory=dict)
    """The packages that a lock of tenv can't have, each with the reason."""
    unread: frozenset[str] = frozenset()
    """The names of the packages of `trees` whose requirements the file does not have."""
    requirers: Mapping[str, str] = field(default_factory=dict)
    """A package that requires each of some packages of `trees`, where the wheels have no requirements."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The index of each wheel that the lock names one for, by the wheel's sha256."""
    faults: tuple[str, ...] = ()
    """Why the other tool itself does not take the lock for its requests, one sentence each."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    name: str
    """The file's name for the environment; empty if it has none."""
    draft: Draft
    """The manifest."""
    part: ForeignLock | None
    """The content of its lock; None if the file has no hashes for it."""
    lost: tuple[str, ...] = ()
    """The losses of the import, one sentence each."""
    notes: tuple[str, ...] = ()
    """What a reader may want to know of the manifest, a sentence each."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format."""

    name: str
    """Its name on the command line."""
    export: Callable[[Subject], Exported] | None = None
    """Writes it; None if tenv does not write it."""
    read: Callable[[GivenFile], Imported] | None = None
    """Reads it; None if tenv does not read it."""
    recognize: Callable[[str, bytes], bool] = lambda _, __: False
    """Returns whether a file has this format, by its name and its first bytes."""
    needs_urls: Callable[[Subject], bool] = lambda _: False
    """Returns whether an export writes the URLs of a subject's wheels, which need queries to indexes."""
    needs_metadata: bool = False
    """Whether it also writes the requirements of wheels."""
    needs_environment: bool = False
    """Whether an export names the environment on this machine."""
    holds_lock: bool = True
    """Whether the export represents the lock, so that omissions are listed."""
    carries: bool = False
    """Whether an export takes the manifests and the lock along."""
    features: bool = False
    """Whether an export has the features of a target, each for itself."""
    alone: Callable[[], Exported] | None = None
    """Writes a format that is about no target; None for all others."""
    add: Callable[[str, bytes, bytes, bool], Addition] | None = None
    """Adds an export to an existing file (its name, its bytes, the export's bytes, whether to replace differences);
    None if a file is only ever written whole. Raises ValueError for a file that it can't read."""
    whole: bool = False
    """Whether an export that names the environment has files of its own, which are only ever written whole."""


def minor_of(version: str) -> str:
    """Return the minor of a Python version, such as ``3.11`` of ``3.11.9``."""
    found = Version.find(version)
    return found.major_minor if found else ""


_USUAL = ("environment.yml", "environment.yaml", "pixi.toml", "pyproject.toml", "pixi.lock", "pylock.toml")
"""Common names of other tools' files."""

_MAX_BYTES = 200 * 1024 * 1024
"""Maximum bytes; the largest lock in public repositories has 10 MB."""


def read_source(path: Path, environment: str = "", platforms: tuple[str, ...] = ()) -> GivenFile:
    """Read a file to import.

    Raises:
        FormatError: It is missing, not a regular file, unreadable or too large.
    """
    try:
        raw = read_regular(path, _MAX_BYTES)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file", hint=_hint(path)) from None
    except OSError as error:
        raise FormatError(f"{path}: can't be read: {error.strerror}") from error
    return GivenFile(path, in_utf8(raw), environment, platforms)


def _hint(path: Path) -> str:
    """Return a hint at similar names in the folder of a missing file, or at those that other tools give theirs."""
    try:
        there = sorted(entry.name for entry in path.absolute().parent.iterdir() if entry.is_file())
    except OSError:
        return ""
    if similar := nearest(path.name, there):
        return similar
    usual = [name for name in there if name in _USUAL or name.endswith(("requirements.txt", "conda-lock.yml"))]
    return f"did you mean {' or '.join(f'`{name}`' for name in usual)}?" if usual else ""


def text_of(source: GivenFile, error: type[TenvError]) -> str:
    """Return the file's text."""
    try:
        return source.raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error(f"{source.path}: not UTF-8 text (byte {fault.start})") from fault


def load_yaml(source: GivenFile, error: type[TenvError]) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Content that other parsers read differently, or that exhausts them, is rejected.
    """
    try:
        data = load(text_of(source, error))
    except ValueError as fault:
        raise error(f"{source.path}: unsupported YAML: {fault}") from fault
    if not isinstance(data, dict):
        kind = "nothing" if data is None else f"a {type(data).__name__}"
        raise error(f"{source.path}: expected a mapping, got {kind}")
    return data


def quoted(text: str) -> str:
    """Return a text as a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_BEGIN, _END = "# >>> tenv >>>", "# <<< tenv <<<"


def block(text: str) -> bytes:
    """Return a text between the two lines."""
    return f"{_BEGIN}\n{text}{_END}\n".encode()


def add_block(name: str, old: bytes, new: bytes, force: bool) -> Addition:  # noqa: ARG001 (the signature of all formats)
    """Put a block in the place of the one before, or at the end.

    Raises:
        ValueError: The file has the line that begins a block and none that ends it.
    """
    text = old.decode("utf-8")
    start = text.find(_BEGIN)
    if start < 0:
        return Addition((f"{text}\n" if text and not text.endswith("\n") else text).encode() + new)
    end = text.find(f"{_END}\n", start)
    if end < 0:
        raise ValueError(f"a line `{_BEGIN}` without its `{_END}`")
    return Addition((text[:start] + new.decode() + text[end + len(_END) + 1 :]).encode())
