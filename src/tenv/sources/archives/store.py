"""The store: archives by sha256, and their unpacked trees, shared by all environments of a user.

    files/SHA256          an archive, or any other file that was fetched for a bundle, verified after its download
    parts/KEY             a partial download
    trees/SHA256-STRIP    an unpacked archive, with a list of its content in SHA256-STRIP.json beside it

A tree's files are linked into prefixes. If the file system can share blocks of files (btrfs, XFS), a prefix gets
reflinks. Otherwise it gets read-only hard links, so an editor can't change the file in all prefixes at once. If neither
is possible, it gets copies.

A store that another user can write is refused. In a folder that the user's settings call safe it is used: those users
are trusted, each of its files is compared with the list beside its tree, and prefixes get copies. ``CACHEDIR.TAG``
(https://bford.info/cachedir/) marks a folder as a store, and no other folder is emptied.
"""

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path, PurePosixPath

from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBusyError, ForeignFolderError
from tenv.core.file_content import read_text
from tenv.core.files import digest, empty_folder, exclusive, make_private, storage_errors, write_atomic
from tenv.core.names import is_sha256
from tenv.core.other_users import open_part, others_write
from tenv.core.unpack_limits import UnpackLimits
from tenv.core.user_folders import user_cache
from tenv.locks.lock import Archive
from tenv.sources.archives.download import Fetched, Fetcher, RemoteFile
from tenv.sources.archives.unpack import Contents, File, unpack
from tenv.targets.config import safe_folders
from tenv.targets.search import settings_folder

_SCHEMA = 1
_PARTS = ("files", "parts", "trees")
_TAG = "CACHEDIR.TAG"
_MARK = "Signature: 8a477f597d28d172789f06886806bc55\n# The store of archives of tenv: `tenv clean --archives`\n"
_CLONE = 0x40049409
"""FICLONE of linux/fs.h: makes one file share the blocks of another."""

_ELSEWHERE = "`TENV_CACHE_DIR` names a folder that this user can write"

_UNPACKED, _USE = "unpacked-", "use"


class Sharing(StrEnum):
    """How a file of the store is installed into a prefix."""

    CLONE = "clone"
    LINK = "hard link"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file in the store."""

    path: Path
    """The file."""
    reason: str
    """The fault."""


@dataclass(frozen=True, slots=True)
class Tree:
    """An unpacked archive."""

    folder: Path
    """Its folder."""
    contents: Contents
    """Its content."""
    shared: bool = False
    """Whether another user can write it, so that its files are compared and copied."""


@dataclass(frozen=True, slots=True)
class Store:
    """The store in a folder."""

    folder: Path
    """The folder."""
    say: Callable[[str], None] = field(default=lambda _: None, compare=False)
    """Receives messages about waiting for another process."""
    limits: UnpackLimits = field(default_factory=UnpackLimits)
    """The limits on the content of an archive."""
    safe: Callable[[], Sequence[Path]] = field(default=tuple, compare=False)
    """Returns the folders that the user's settings call safe; asked only about a store that others can write."""

    def is_shared(self, *entries: Path) -> bool:
        """Return whether another user can write the store or some of its entries, in a folder that is called safe.

        Raises:
            ForeignFolderError: Another user can write it, and the settings call no such folder safe.
        """
        part = self._open_part(*entries)
        if part is None:
            return False
        real = Path(os.path.realpath(self.folder))
        if any(real.is_relative_to(os.path.realpath(folder)) for folder in self.safe()):
            return True
        raise ForeignFolderError(
            f"another user can write {part}, so the store of archives in {self.folder} is not used",
            hint=f"`TENV_SAFE_FOLDERS={shlex.quote(str(self.folder))}` has its files compared and copied; "
            "`TENV_CACHE_DIR` names another folder",
        )

    def _open_part(self, *entries: Path) -> Path | None:
        """Return the first part that another user can write; None without one."""
        parts = (*(self.folder / name for name in _PARTS), *entries)
        return open_part(self.folder) or next(filter(_is_open, parts), None)

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
        self.is_shared(part, self.file(wanted.sha256 or key))
        with self._hold(part, f"fetching {wanted.name}"):
            if wanted.sha256 and self.has(wanted.sha256):
                path = self.file(wanted.sha256)
                return Fetched(path, wanted.sha256, path.stat().st_size)
            make_private(part)  # that of a command which was killed before the rename is read-only
            fetched = fetcher.file(wanted, part)
            with storage_errors(f"can't keep {wanted.name}"):
                path = self.file(fetched.sha256)
                part.chmod(0o444)
                part.replace(path)
        return Fetched(path, fetched.sha256, fetched.size)

    def keep(self, source: Path, sha256: str) -> None:
        """Copy a file that has a digest into the store."""
        part = self.folder / "parts" / sha256
        self.is_shared(part)
        with self._hold(part, f"keeping {source.name}"), storage_errors(f"can't keep {source.name}"):
            make_private(part)
            shutil.copyfile(source, part)
            part.chmod(0o444)
            part.replace(self.file(sha256))

    def keeps(self, archive: Archive, *, windows: bool = False) -> bool:
        """Return whether the store has an archive, packed or unpacked; its content is not read."""
        return self.file(archive.sha256).is_file() or self._tree(archive, windows)[1].is_file()

    def tree(self, archive: Archive, *, windows: bool = False, thorough: bool = False) -> Tree | None:
        """Return an unpacked archive if the store has it and it is intact by the sizes and times of its files.

        Args:
            archive: The archive.
            windows: Whether it was unpacked for Windows.
            thorough: Also verify every byte.
        """
        folder, note = self._tree(archive, windows)
        shared = self.is_shared(note, folder)
        kept = _read_note(note)
        if kept is None:
            return None
        contents, times = kept
        shared = self.is_shared(*_entries(folder, contents)) or shared
        for name, file in contents.files.items():
            if _stamp(folder / name) != (file.size, times[name]):
                return None
            if (thorough or shared) and digest(folder / name) != file.sha256:
                return None
        if any(not (folder / name).is_symlink() for name in contents.links):
            return None
        return Tree(folder, contents, shared)

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
                name, limits = archive.url.partition("?")[0].rpartition("/")[2], self.limits
                contents = unpack(
                    path, archive.kind, folder, strip=archive.strip, windows=windows, limits=limits, name=name
                )
                times = {name: (folder / name).lstat().st_mtime_ns for name in contents.files}
                write_atomic(note, _note(contents, times))
                note.chmod(0o444)
        return Tree(folder, contents, self.is_shared())

    def _tree(self, archive: Archive, windows: bool) -> tuple[Path, Path]:
        name = f"{archive.sha256}-{archive.strip}{'-windows' if windows else ''}"
        return self.folder / "trees" / name, self.folder / "trees" / f"{name}.json"

    @contextlib.contextmanager
    def _hold(self, path: Path, purpose: str) -> Iterator[None]:
        with storage_errors(f"can't create {self.folder}", _ELSEWHERE):
            self._make()
        with exclusive(path, f"tenv: {purpose}", self.say):
            yield

    def _make(self) -> None:
        """Create the folders of the store, which nobody else can write whatever the umask, and its mark."""
        for folder in (*reversed(self.folder.parents), self.folder, *(self.folder / name for name in _PARTS)):
            if not folder.is_dir():
                folder.mkdir(mode=0o755, exist_ok=True)
        if not (self.folder / _TAG).exists():
            write_atomic(self.folder / _TAG, _MARK)

    def damages(self) -> Iterator[Damage]:
        """Yield the damaged files in the store, and the part of it that another user can write; reads every byte."""
        if part := self._open_part():
            yield Damage(part, "another user can write it")
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

    def clear(self) -> list[Path]:
        """Remove the entries of tenv, and return the paths of others; environments are unaffected."""
        if not self.folder.is_dir():
            return []
        with storage_errors(f"can't remove {self.folder}"):
            if not self._is_marked():
                return [self.folder]
            places = [self.folder / name for name in _PARTS if (self.folder / name).is_dir()]
            for path in (path for place in places for path in place.iterdir() if _is_entry(path.name)):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            for place in (place for place in places if not any(place.iterdir())):
                place.rmdir()
            rest = [path for path in sorted(self.folder.iterdir()) if path.name != _TAG]
            if not rest:
                (self.folder / _TAG).unlink()
                self.folder.rmdir()
        return [path for place in rest for path in (sorted(place.iterdir()) if place in places else [place])]

    def _is_marked(self) -> bool:
        """Return whether tenv has made the folder a store."""
        try:
            return read_text(self.folder / _TAG) == _MARK
        except (OSError, ValueError):
            return False


def default_store(say: Callable[[str], None] = lambda _: None, limits: UnpackLimits | None = None) -> Store:
    """Return the store in the user's cache folder (TENV_CACHE_DIR, else the default of the system)."""
    return Store(
        _cache() / "archives", say, limits or UnpackLimits(), lambda: safe_folders(settings_folder(), os.environ)
    )


def bundles_folder() -> Path:
    """Return the folder of downloads of bundles and of unpacked ones; each command removes its own."""
    return _cache() / "bundles"


@contextlib.contextmanager
def unpacked_bundle() -> Iterator[Path]:
    """Yield a new folder for an unpacked bundle; `clear_bundles` removes nothing of a process that has one."""
    import tempfile  # late: few environments come from a bundle

    folder = bundles_folder()
    with storage_errors(f"can't create {folder}", _ELSEWHERE):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in folder.glob(f"{_UNPACKED}*/.{_USE}.lock"):  # of killed processes
            if not _is_used(left.parent):
                shutil.rmtree(left.parent, ignore_errors=True)
        made = tempfile.TemporaryDirectory(prefix=_UNPACKED, dir=folder, ignore_cleanup_errors=True)
    with made as name, exclusive(Path(name) / _USE, "tenv create --bundle", lambda _: None):
        yield Path(name)


def clear_bundles() -> None:
    """Remove the leftovers of bundles; while any command uses a bundle, downloads and their locks stay."""
    folder = bundles_folder()
    used = {path for path in folder.glob(f"{_UNPACKED}*") if _is_used(path)}
    empty_folder(folder, lambda path: not used or (path.name.startswith(_UNPACKED) and path not in used))


def _is_used(unpacked: Path) -> bool:
    if unpacked.is_symlink() or not unpacked.is_dir():
        return False
    try:
        with exclusive(unpacked / _USE, "tenv clean", lambda _: None, 0):
            return False
    except EnvironmentBusyError:
        return True


def _cache() -> Path:
    named = os.environ.get("TENV_CACHE_DIR")
    return Path(named) if named else user_cache()


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


def _is_open(path: Path) -> bool:
    """Return whether another user can write an entry of the store."""
    try:
        return others_write(path.lstat())
    except OSError:  # it does not exist
        return False


def _is_entry(name: str) -> bool:
    """Return whether a name is one that tenv gives to an entry, or to a lock or a leftover of it."""
    stem = name.removeprefix(".").removeprefix("url-")
    return is_sha256(stem[:64]) and stem[64:65] in ("", "-", ".")


def _entries(folder: Path, contents: Contents) -> Iterator[Path]:
    """Yield the files, links and folders of a tree."""
    names = (*contents.files, *contents.links)
    yield from (folder / name for name in names)
    yield from {folder / parent for name in names for parent in PurePosixPath(name).parents}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        info = path.lstat()
    except OSError:
        return -1, -1
    return info.st_size, info.st_mtime_ns


def _stopped(folder: Path) -> Iterator[Path]:
    """Yield the leftovers of a killed process that was unpacking a tree."""
    return folder.parent.glob(f".{folder.name}.*")


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
