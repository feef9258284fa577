"""The store: archives by sha256, and their unpacked trees, shared by all environments of a user.

    files/SHA256          an archive, verified after its download
    parts/KEY             a partial download
    trees/SHA256-STRIP    an unpacked archive, with a list of its content in SHA256-STRIP.json beside it

A tree's files are linked into prefixes. If the file system can share blocks of files (btrfs, XFS), a prefix gets
reflinks. Otherwise it gets read-only hard links, so an editor can't change the file in all prefixes at once. If neither
is possible, it gets copies.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.core.files import digest, exclusive, storage_errors, write_atomic
from tenv.core.unpack_limits import UnpackLimits
from tenv.core.user_folders import user_cache
from tenv.locks.lock import Archive
from tenv.sources.archives.download import Fetched, Fetcher
from tenv.sources.archives.extract import Contents, File
from tenv.sources.archives.partial_file import RemoteFile
from tenv.sources.archives.unpack import unpack

__all__ = ["Damage", "Store", "Tree", "default_store"]

_SCHEMA = 1
_CLONE = 0x40049409
"""FICLONE of linux/fs.h: makes one file share the blocks of another."""


class Sharing(StrEnum):
    """How a file of the store is installed into a prefix."""

    CLONE = "clone"
    LINK = "hard link"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file in the store.

    Attributes:
        path: The file.
        reason: The fault.
    """

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Tree:
    """An unpacked archive.

    Attributes:
        folder: Its folder.
        contents: Its content.
    """

    folder: Path
    contents: Contents


@dataclass(frozen=True, slots=True)
class Store:
    """The store in a folder.

    Attributes:
        folder: The folder.
        say: Receives messages about waiting for another process.
        limits: The limits on what an archive unpacks to.
    """

    folder: Path
    say: Callable[[str], None] = field(default=lambda _: None, compare=False)
    limits: UnpackLimits = field(default_factory=UnpackLimits)

    def file(self, sha256: str) -> Path:
        """Return the path of an archive."""
        return self.folder / "files" / sha256

    def has(self, sha256: str) -> bool:
        """Return whether the store has an intact archive; a damaged one is removed."""
        path = self.file(sha256)
        if not path.is_file():
            return False
        if digest(path) == sha256:
            return True
        path.unlink()
        return False

    def fetch(self, fetcher: Fetcher, wanted: RemoteFile) -> Fetched:
        """Return an archive from the store, after downloading it if needed; concurrent processes download it once.

        Raises:
            NetworkError: The download fails, or has another digest.
        """
        key = wanted.sha256 or f"url-{hashlib.sha256(wanted.url.encode()).hexdigest()}"
        part = self.folder / "parts" / key
        with self._hold(part, f"fetching {wanted.name}"):
            if wanted.sha256 and self.has(wanted.sha256):
                path = self.file(wanted.sha256)
                return Fetched(path, wanted.sha256, path.stat().st_size)
            fetched = fetcher.file(wanted, part)
            with storage_errors(f"can't keep {wanted.name}"):
                path = self.file(fetched.sha256)
                path.parent.mkdir(parents=True, exist_ok=True)
                part.chmod(0o444)
                part.replace(path)
        return Fetched(path, fetched.sha256, fetched.size)

    def tree(self, archive: Archive, *, windows: bool = False, thorough: bool = False) -> Tree | None:
        """Return an unpacked archive if the store has it and it is intact by the sizes and times of its files.

        Args:
            archive: The archive.
            windows: Whether it was unpacked for Windows.
            thorough: Also verify every byte.
        """
        folder, note = self._tree(archive, windows)
        kept = _read_note(note)
        if kept is None:
            return None
        contents, times = kept
        for name, file in contents.files.items():
            if _stamp(folder / name) != (file.size, times[name]):
                return None
            if thorough and digest(folder / name) != file.sha256:
                return None
        if any(not (folder / name).is_symlink() for name in contents.links):
            return None
        return Tree(folder, contents)

    def unpacked(
        self, archive: Archive, fetched: Callable[[], Path], *, windows: bool = False, thorough: bool = False
    ) -> Tree:
        """Return an unpacked archive, after unpacking it if needed.

        Args:
            archive: The archive.
            fetched: Returns its verified file if needed.
            windows: Whether it is unpacked for Windows, which can't hold every name.
            thorough: Verify every byte of an existing tree.

        Raises:
            ArchiveRefusedError: The archive is damaged or unsafe.
        """
        folder, note = self._tree(archive, windows)
        with self._hold(folder, f"unpacking {archive.name}"):
            tree = self.tree(archive, windows=windows, thorough=thorough)
            if tree:
                return tree
            path = fetched()
            with storage_errors(f"can't unpack {archive.name}"):
                note.unlink(missing_ok=True)
                for old in (folder, *_stopped(folder)):
                    if old.is_dir():
                        shutil.rmtree(old)
                name, limits = _file_name(archive.url), self.limits
                contents = unpack(
                    path, archive.kind, folder, strip=archive.strip, windows=windows, limits=limits, name=name
                )
                times = {name: (folder / name).lstat().st_mtime_ns for name in contents.files}
                write_atomic(note, _note(contents, times))
        return Tree(folder, contents)

    def _tree(self, archive: Archive, windows: bool) -> tuple[Path, Path]:
        name = f"{archive.sha256}-{archive.strip}{'-windows' if windows else ''}"
        return self.folder / "trees" / name, self.folder / "trees" / f"{name}.json"

    @contextlib.contextmanager
    def _hold(self, path: Path, purpose: str) -> Iterator[None]:
        with exclusive(path, f"tenv: {purpose}", lambda sentence: self.say(f"waiting: {sentence}")):
            yield

    def damages(self) -> Iterator[Damage]:
        """Yield the damaged files in the store; reads every byte."""
        for path in sorted((self.folder / "files").glob("[0-9a-f]*")):
            if digest(path) != path.name:
                yield Damage(path, "its sha256 has changed")
        for note in sorted((self.folder / "trees").glob("[0-9a-f]*.json")):
            kept = _read_note(note)
            if kept is None:
                yield Damage(note, "can't be read")
                continue
            for name, file in kept[0].files.items():
                path = note.with_suffix("") / name
                if not path.is_file():
                    yield Damage(path, "is missing")
                elif digest(path) != file.sha256:
                    yield Damage(path, "its sha256 has changed")

    def clear(self) -> None:
        """Remove the whole content; environments are unaffected."""
        with storage_errors(f"can't remove {self.folder}"):
            if self.folder.is_dir():
                shutil.rmtree(self.folder)


def default_store(say: Callable[[str], None] = lambda _: None, limits: UnpackLimits | None = None) -> Store:
    """Return the store in the user's cache folder (TENV_CACHE_DIR, else the default of the system)."""
    cache = os.environ.get("TENV_CACHE_DIR")
    return Store((Path(cache) if cache else user_cache()) / "archives", say, limits or UnpackLimits())


def share(source: Path, target: Path, how: Sharing) -> Sharing:
    """Install a file of the store at a new path; return how: the requested way or a fallback."""
    if how is Sharing.CLONE:
        if _clone(source, target):
            return how
        how = Sharing.LINK
    if how is Sharing.LINK and sys.platform != "win32":  # Windows can't remove a read-only file
        with contextlib.suppress(OSError):
            target.hardlink_to(source)
            return how
    shutil.copyfile(source, target)
    target.chmod(_writable(source))
    return Sharing.COPY


def _clone(source: Path, target: Path) -> bool:
    if sys.platform != "linux":
        return False
    import fcntl  # not on Windows

    with source.open("rb") as old, target.open("wb") as new:
        try:
            fcntl.ioctl(new, _CLONE, old.fileno())
        except OSError:
            target.unlink()
            return False
    target.chmod(_writable(source))
    return True


def _writable(source: Path) -> int:
    return 0o755 if source.stat().st_mode & 0o111 else 0o644


def _stamp(path: Path) -> tuple[int, int]:
    try:
        info = path.lstat()
    except OSError:
        return -1, -1
    return info.st_size, info.st_mtime_ns


def _stopped(folder: Path) -> Iterator[Path]:
    """Yield the leftovers of a killed process that was unpacking a tree."""
    return folder.parent.glob(f".{folder.name}.*")


def _file_name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def _note(contents: Contents, times: dict[str, int]) -> str:
    files = {name: [file.size, times[name], file.sha256, file.executable] for name, file in contents.files.items()}
    return json.dumps({"schema": _SCHEMA, "files": files, "links": dict(contents.links)})


def _read_note(path: Path) -> tuple[Contents, dict[str, int]] | None:
    """Return the content of a tree and the times of its files; None without a record."""
    try:
        data = json.loads(read_text(path))
        if data["schema"] != _SCHEMA:
            return None
        files = {name: File(row[0], row[2], row[3]) for name, row in data["files"].items()}
        return Contents(files, dict(data["links"])), {name: row[1] for name, row in data["files"].items()}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, IndexError, AttributeError):
        return None
