"""Files and folders: atomic writes, digests, locks between processes, guarded removal."""

import contextlib
import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from tenv.core.errors import EnvironmentBusyError, ForeignFolderError, StorageError

if TYPE_CHECKING:
    from tenv.core.file_lock import FileLock

MOST = 64 * 1024 * 1024
"""Maximum bytes of a manifest, a lock or a record; the largest lock in public repositories has 10 MB."""

MOST_HASHED = 64 << 30
"""Maximum bytes of a file that is hashed: the most that an archive may unpack to."""

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_ELSEWHERE = "choose a writable folder (`--prefix` for an environment, XDG_CONFIG_HOME for settings)"


def digest_bytes(data: bytes) -> str:
    """Return the sha256 of `data` in hex."""
    import hashlib  # late: OpenSSL is loaded with it

    return hashlib.sha256(data).hexdigest()


def digest(path: Path) -> str:
    """Return the sha256 of a regular file's bytes in hex; raises OSError as `open_regular` does."""
    import hashlib  # late: OpenSSL is loaded with it

    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_regular(path: Path, most: int = MOST) -> bytes:
    """Return the bytes of a regular file, up to a limit; other kinds of files are rejected.

    A named pipe or a device would block a command forever or fill the memory.

    Args:
        path: The file.
        most: The maximum number of bytes.

    Raises:
        OSError: It is missing, unreadable, not a regular file or too large; `strerror` has the reason.
    """
    with open_regular(path, most) as file:
        data = file.read(most + 1)
    if len(data) > most:  # it grew in the meantime, or is a file of /proc, which have no size
        raise OSError(errno.EFBIG, "is too large", str(path))
    return data


def open_regular(path: str | Path, most: int = MOST_HASHED) -> BufferedReader:
    """Open a regular file for reading, up to a limit of its size.

    Raises:
        OSError: As in `read_regular`.
    """
    return os.fdopen(regular_handle(path, most), "rb")


def regular_handle(path: str | Path, most: int = MOST_HASHED) -> int:
    """Return a handle to read a regular file by; raises OSError as `open_regular` does."""
    handle = os.open(path, _READ)
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    if info.st_size > most:
        os.close(handle)
        raise OSError(errno.EFBIG, f"is too large ({info.st_size} bytes)", str(path))
    return handle


@contextlib.contextmanager
def storage_errors(what: str, elsewhere: str = _ELSEWHERE) -> Iterator[None]:
    """Convert the operating system's write errors into a `StorageError` that names the operation.

    Args:
        what: The operation that failed.
        elsewhere: The hint for a folder that this user can't write.
    """
    try:
        yield
    except OSError as error:
        raise_storage_error(error, what, elsewhere)


def raise_storage_error(error: OSError, what: str, elsewhere: str = _ELSEWHERE) -> NoReturn:
    """Raise a `StorageError` for a failed write, with the hint for its cause; arguments as in `storage_errors`."""
    hints = {
        errno.ENOSPC: "free some space (`tenv clean` shows what the caches hold), then run the same command again",
        errno.EDQUOT: "the disk quota is used up: free some space, then run the same command again",
        errno.EROFS: f"the file system is read-only; {elsewhere}",
        errno.EACCES: elsewhere,
        errno.EPERM: elsewhere,
        errno.EEXIST: elsewhere,  # a file where a folder is to be made
        errno.ENOTDIR: elsewhere,
    }
    reason = error.strerror or str(error)
    written = error.filename2 or error.filename  # a failed copy has both files, the source first
    where = f" ({written})" if written else ""
    raise StorageError(f"{what}: {reason}{where}", hint=hints.get(error.errno or 0, "")) from error


def make_folder(path: Path) -> None:
    """Create a folder and its parents."""
    with storage_errors(f"can't create {path}"):
        path.mkdir(parents=True, exist_ok=True)


def write_atomic(
    path: Path, data: str | bytes, *, durable: bool = False, within: Path | None = None, parents: bool = True
) -> None:
    """Write a file atomically: a reader sees the old or the new content, never a part.

    Links are not followed: a repository or an archive may have created them.

    Args:
        path: The file.
        data: Its whole content.
        durable: Sync it and its name to the disk before returning, so that later changes can't be stored without it.
        within: The folder that links in the file's path must not leave; None if the user named the file.
        parents: Make the folders that are missing; without it, a folder that another process has removed stays so.

    Raises:
        StorageError: The disk is full, the folder is missing or not writable, or the path has a link.
    """
    raw = data.encode() if isinstance(data, str) else data
    with storage_errors(f"can't write {path}"):
        refuse_link(path, within)
        path = path.parent.resolve() / path.name
        if path.exists() and not path.is_file():
            raise OSError(errno.EEXIST, "is not a regular file", str(path))
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(raw)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if durable:
            sync_names(path.parent)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of a file when the body ends; an error leaves the old one.

    It keeps the mode of the old one. Else the system applies the umask: a process can read its own only by changing it
    for a moment, in which other threads would make files that everybody writes.
    """
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    file = open(part, "xb", opener=partial(os.open, mode=0o666 if mode is None else mode))  # noqa: SIM115
    try:
        with file:
            yield file
        if mode is not None:
            part.chmod(mode)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def make_private(path: Path) -> None:
    """Make a file that only this user reads and writes, empty if there is none; `write_atomic` keeps its mode.

    Raises:
        StorageError: The folder is not writable, or the path has a link.
    """
    with storage_errors(f"can't write {path}"):
        refuse_link(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.chmod(0o600)


def sync_names(folder: Path) -> None:
    """Wait until the disk has the names in a folder: a rename alone may be lost while later writes are kept."""
    if sys.platform == "win32":  # a folder can't be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system that can't sync folders stores names in order
            os.fsync(handle)
    finally:
        os.close(handle)


def refuse_link(path: Path, within: Path | None = None) -> None:
    """Raise StorageError if a file is a link, or if a link in its path leaves a folder."""
    home = os.path.realpath(within) if within else ""
    real = os.path.realpath(path.parent)
    if path.is_symlink():
        what, hint = f"{path} is a link", f"pass the file that it links to: {path.resolve()}"
    elif within and real != home and not real.startswith(home + os.sep):
        what, hint = f"a link leads from {path.parent} to {real}", "replace the link with a folder"
    else:
        return
    raise StorageError(f"{what}, and tenv does not write through links", hint=hint)


@contextlib.contextmanager
def exclusive(
    folder: Path, purpose: str, on_wait: Callable[[str], None], timeout: float | None = None, *, inside: bool = False
) -> Iterator[None]:
    """Lock a folder for this process while the body runs. The folder need not exist yet.

    The lock file is next to the folder, since it must survive a removal of the folder. If the parent is not writable
    (so nothing can remove the folder), it is inside.

    Args:
        folder: The folder.
        purpose: The work of this process on it, shown to waiting processes.
        on_wait: Called once with a sentence that names the process to wait for.
        timeout: The maximum wait in seconds; None waits forever.
        inside: Whether the lock file is inside in any case: for a folder that no command removes.

    Raises:
        EnvironmentBusyError: The wait took longer than `timeout`.
    """
    from tenv.core.file_lock import FileLock, LockTakenError  # late: many commands lock nothing

    beside = not inside and (not folder.exists() or os.access(folder.parent, os.W_OK))
    stem = folder.parent / f".{folder.name}" if beside else folder / ".tenv"
    if stem.parent.exists() and not os.access(stem.parent, os.W_OK):
        if hasattr(os, "statvfs") and os.statvfs(stem.parent).f_flag & os.ST_RDONLY:
            raise_storage_error(OSError(errno.EROFS, os.strerror(errno.EROFS), str(stem.parent)), purpose)
        raise StorageError(f"{purpose}: this user may not write {stem.parent}")
    owner = stem.with_name(stem.name + ".owner")
    lock = stem.with_name(stem.name + ".lock")
    for file in (lock, owner):
        refuse_link(file)
    with storage_errors(f"can't lock {folder}"):
        stem.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(lock)
        try:
            _first_try(held, folder)
        except LockTakenError:
            if timeout != 0:
                on_wait(f"waiting: {_busy(folder, owner)}")
            try:
                held.acquire(timeout)
            except LockTakenError:
                raise EnvironmentBusyError(_busy(folder, owner), hint="run the same command again later") from None
    try:
        with contextlib.suppress(StorageError):  # only information for waiting processes; a full disk must not stop it
            write_atomic(owner, json.dumps({"pid": os.getpid(), "purpose": purpose}))
        yield
    finally:
        with contextlib.suppress(OSError):
            owner.unlink(missing_ok=True)
        held.release()


@contextlib.contextmanager
def first_free(folders: Sequence[Path], purpose: str, on_wait: Callable[[str], None]) -> Iterator[Path]:
    """Lock the first of some folders that no process has, or wait for the last, and yield it while the body runs.

    Args:
        folders: The folders, best first; at least one.
        purpose: The work of this process on it, shown to waiting processes.
        on_wait: Called once with a sentence that names the process to wait for.
    """
    with contextlib.ExitStack() as held:
        for folder in folders[:-1]:
            with contextlib.suppress(EnvironmentBusyError):
                held.enter_context(exclusive(folder, purpose, on_wait, timeout=0))
                break
        else:
            held.enter_context(exclusive(folder := folders[-1], purpose, on_wait))
        yield folder


_LOCKLESS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What `flock` reports where a network file system offers no locks: NFS without a lock service, Lustre and other
parallel file systems without the mount option `flock` (flock(2), mount.lustre(8))."""


def _first_try(lock: "FileLock", folder: Path) -> None:
    """Take the lock on a folder, if no other process has it.

    Raises:
        LockTakenError: Another process has it.
        StorageError: The file system has no locks, or its server has replaced the folder.
        OSError: Any other fault.
    """
    try:
        lock.acquire(0)
    except OSError as error:
        if error.errno in _LOCKLESS:
            raise StorageError(
                f"can't lock {folder}: its file system gives no locks ({error.strerror}), "
                "so two commands could change it at once",
                hint="`--prefix FOLDER` on a disk of this machine; or mount it with locks (Lustre: `-o flock`, NFS: "
                "NFSv4 or a running rpc.statd), or `tenv export squashfs` packs an environment into a file for it",
            ) from error
        if error.errno == errno.ESTALE:
            raise StorageError(
                f"can't lock {folder}: the server of its file system has replaced or removed it ({error.strerror})",
                hint="run the same command again, from a folder that you entered anew (`cd .`)",
            ) from error
        raise


def _busy(folder: Path, owner: Path) -> str:
    try:
        data = json.loads(read_regular(owner).decode())
        return f"{folder} is in use by process {data['pid']} (`{data['purpose']}`)"
    except (OSError, ValueError, RecursionError, KeyError, TypeError):  # it has just started, or just ended
        return f"{folder} is in use by another process"


def relative_link(link: Path, target: Path) -> None:
    """Make `link` a relative symbolic link to `target`, so that their common tree can be moved."""
    link.symlink_to(os.path.relpath(target, link.parent))


def empty_folder(folder: Path, is_ours: Callable[[Path], bool]) -> list[Path]:
    """Remove the entries of a cache folder that bear the mark of its programs, and the folder if nothing else is in it.

    Args:
        folder: The folder; nothing is done where it is missing or a link.
        is_ours: Returns whether an entry bears that mark.

    Returns:
        The other entries, which stay.
    """
    import shutil  # late: few commands remove anything

    if not folder.is_dir() or folder.is_symlink():
        return [folder] if folder.is_symlink() else []
    with storage_errors(f"can't empty {folder}"):
        ours = [path for path in sorted(folder.iterdir()) if is_ours(path)]  # all of them before the first goes
        for path in ours:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        left = sorted(folder.iterdir())
        if not left:
            folder.rmdir()
    return left


def remove_tree(folder: Path, marker: str) -> None:
    """Remove a folder that tenv made.

    It is renamed first, so that no process sees a part of it.

    Args:
        folder: The folder.
        marker: A path inside it that only tenv creates.

    Raises:
        ForeignFolderError: The marker is missing.
        StorageError: The folder can't be removed.
    """
    import shutil  # late: commands that only read do not need it
    import tempfile

    if not (folder / marker).exists():
        raise ForeignFolderError(
            f"{folder} is not managed by tenv (it has no {marker}), so it is not removed",
            hint="`rm -r` it if you need nothing in it",
        )
    with storage_errors(f"can't remove {folder}"):
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.removed-", dir=folder.parent))
        try:
            with contextlib.suppress(PermissionError):  # not the owner: the rename reports it
                folder.chmod(folder.stat().st_mode | stat.S_IWUSR)
            folder.rename(aside / folder.name)
        except OSError:
            aside.rmdir()
            raise
        sync_names(folder.parent)
        shutil.rmtree(aside, onerror=_make_writable)


def _make_writable(remove: Callable[[str], object], path: str, _: object) -> None:
    """Remove the content of a read-only folder, such as one made by a build."""
    parent = Path(path).parent
    parent.chmod(parent.stat().st_mode | stat.S_IWUSR | stat.S_IXUSR)
    if not Path(path).is_symlink():
        Path(path).chmod(Path(path).stat().st_mode | stat.S_IWUSR)
    remove(path)


def flush(folder: Path) -> None:
    """Wait until the disk has all that was written to the file system of a folder.

    Installers do not wait for their writes; after a loss of power a file could be empty that a state calls ready.
    """
    if sys.platform != "linux":
        if hasattr(os, "sync"):
            os.sync()
        return
    import ctypes  # late: only commands that make environments wait

    handle = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle):
            number = ctypes.get_errno()
            raise_storage_error(OSError(number, os.strerror(number), str(folder)), f"can't write {folder}")
    finally:
        os.close(handle)


def same_file(one: str | Path, other: str | Path) -> bool:
    """Return whether two paths lead to the same file or folder; False if one leads nowhere."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def entries_of(folder: Path) -> list[Path]:
    """Return the files and folders in a folder, sorted; none of one that can't be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def folder_size(folder: Path) -> int:
    """Return the bytes of a folder's files; hard links to the same file count once, and vanished files not at all."""
    inodes: set[tuple[int, int]] = set()
    total, stack = 0, [os.fspath(folder)]
    while stack:
        with contextlib.suppress(OSError), os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                    continue
                info = entry.stat(follow_symlinks=False)
                if info.st_nlink > 1:
                    if (info.st_dev, info.st_ino) in inodes:
                        continue
                    inodes.add((info.st_dev, info.st_ino))
                total += info.st_size
    return total


def hash_regular(path: str | Path, hasher: Any, room: memoryview) -> str:
    """Return the digest of a regular file's bytes in hex.

    Args:
        path: The file.
        hasher: A hash object that has seen nothing yet.
        room: Where the bytes are read to; `hashlib.file_digest` makes room anew for each file.

    Raises:
        OSError: As in `open_regular`.
    """
    handle = regular_handle(path)
    try:
        while count := _read_into(handle, room):
            hasher.update(room[:count])
    finally:
        os.close(handle)
    return str(hasher.hexdigest())


def _read_into(handle: int, room: memoryview) -> int:
    """Read the next bytes into the room, and return how many bytes; 0 at the end."""
    if sys.platform != "win32":
        return os.readv(handle, (room,))
    data = os.read(handle, len(room))
    room[: len(data)] = data
    return len(data)
