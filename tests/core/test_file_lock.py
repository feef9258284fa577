"""Locks on files between processes."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tenv.core import file_lock
from tenv.core.errors import StorageError
from tenv.core.file_lock import FileLock, LockTakenError
from tenv.core.files import exclusive

HOLD = """\
import sys
from pathlib import Path
from tenv.core.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire(None)
print("held", flush=True)
sys.stdin.read(1)
"""


FAULTS = [
    (errno.ENOLCK, "its file system gives no locks (No locks available)", "-o flock"),
    (errno.EOPNOTSUPP, "its file system gives no locks (Operation not supported)", "tenv export squashfs"),
    (errno.ENOSYS, "its file system gives no locks (Function not implemented)", "`--prefix FOLDER`"),
    (
        errno.ESTALE,
        "the server of its file system has replaced or removed it (Stale file handle)",
        "run the same command",
    ),
    (errno.EIO, ": Input/output error", ""),
]
"""What flock reports on file systems of a network."""


@pytest.mark.skipif(sys.platform == "win32", reason="flock")
def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, message, hint in FAULTS:

        def fail(*_: object, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(file_lock, "_take", fail)
        with pytest.raises(StorageError) as caught, exclusive(tmp_path / "env", "a test", lambda _: None):
            pass
        assert caught.value.message.startswith(f"can't lock {tmp_path / 'env'}: ")
        assert message in caught.value.message
        assert hint in caught.value.hint
        assert [path.name for path in tmp_path.iterdir()] == [".env.lock"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".env.lock"


def test_a_second_one_is_refused_until_the_first_is_released(file: Path) -> None:
    first, second = FileLock(file), FileLock(file)
    first.acquire(0)
    with pytest.raises(LockTakenError):
        second.acquire(0)
    first.release()
    second.acquire(0)
    second.release()
    assert file.is_file()


def test_a_wait_ends_with_the_release(file: Path) -> None:
    first, second = FileLock(file), FileLock(file)
    first.acquire(0)
    threading.Timer(0.2, first.release).start()
    start = time.monotonic()
    second.acquire(20)
    assert time.monotonic() - start >= 0.1
    second.release()


def test_a_wait_has_its_limit(file: Path) -> None:
    first = FileLock(file)
    first.acquire(0)
    with pytest.raises(LockTakenError):
        FileLock(file).acquire(0.15)


def test_a_lock_ends_with_its_process(file: Path) -> None:
    lock = FileLock(file)
    words = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(LockTakenError):
            lock.acquire(0)
        process.kill()
    lock.acquire(20)
    lock.release()


def test_a_file_that_is_removed_meanwhile_is_no_lock(file: Path) -> None:
    first, second, third = FileLock(file), FileLock(file), FileLock(file)
    first.acquire(0)
    waiting = threading.Thread(target=second.acquire, args=(20,))
    waiting.start()
    file.unlink()
    first.release()
    waiting.join()
    with pytest.raises(LockTakenError):  # the second one holds the file that has the name now
        third.acquire(0)
    second.release()


@pytest.mark.skipif(sys.platform == "win32", reason="opens links")
def test_a_link_is_not_followed(file: Path, tmp_path: Path) -> None:
    file.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(file).acquire(0)
    assert not (tmp_path / "other").exists()


def test_nothing_stays_open(file: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()]) if Path("/proc/self/fd").is_dir() else 0
    for _ in range(20):
        lock = FileLock(file)
        lock.acquire(0)
        with pytest.raises(LockTakenError):
            FileLock(file).acquire(0)
        lock.release()
        lock.release()
    assert not before or len([*Path("/proc/self/fd").iterdir()]) <= before  # what tests before it left may be closed


def test_a_folder_of_another_user_is_closed_and_not_missing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def opened(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, flags, mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opened)
        with pytest.raises(PermissionError):
            FileLock(file).acquire(0)
