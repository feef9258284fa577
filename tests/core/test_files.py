"""Files are written whole or not at all, folders are held by one, and only tenv's own are removed."""

import errno
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tenv.core import files
from tenv.core.errors import EnvironmentBusyError, ForeignFolderError, StorageError
from tests.support.each import each
from tests.support.projects import SOURCE, held


def test_digest_is_the_sha256_of_the_bytes(tmp_path: Path) -> None:
    data = b"x" * 3_000_000
    (tmp_path / "file").write_bytes(data)
    assert files.digest(tmp_path / "file") == files.digest_bytes(data) == hashlib.sha256(data).hexdigest()


# Atomic writes.


def test_writes_a_file_and_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    files.write_atomic(path, "grüße\n", durable=True)
    assert path.read_bytes() == "grüße\n".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_new_file_obeys_the_umask_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    mask = os.umask(0o027)
    try:
        files.write_atomic(path, "one")
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    files.write_atomic(path, "two")
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_umask_of_other_threads_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process can read its umask only by setting it, and a file of another thread would be everybody's then."""
    monkeypatch.setattr(os, "umask", None)
    files.write_atomic(tmp_path / "file", "one")
    files.write_atomic(tmp_path / "file", "two")
    assert (tmp_path / "file").read_text() == "two"


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = {letter * 200_000 for letter in "abc"}
    files.write_atomic(path, "a" * 200_000)
    seen: set[str] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(path.read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for text in [*texts] * 5:
        files.write_atomic(path, text)
    stop.set()
    reader.join()
    assert seen <= texts


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fail(_: int) -> None:
        raise full

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=r"can't write .*: No space left on device") as caught:
        files.write_atomic(path, "new", durable=True)
    assert "free some space" in caught.value.hint
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@each(
    "number, hint",
    [
        (errno.ENOSPC, "free some space (`tenv clean` shows what the caches hold), then run the same command again"),
        (errno.EDQUOT, "the disk quota is used up: free some space, then run the same command again"),
        (
            errno.EROFS,
            "the file system is read-only; choose a writable folder (`--prefix` for an environment, XDG_CONFIG_HOME "
            "for settings)",
        ),
        (errno.EACCES, "choose a writable folder (`--prefix` for an environment, XDG_CONFIG_HOME for settings)"),
        (errno.EPERM, "choose a writable folder (`--prefix` for an environment, XDG_CONFIG_HOME for settings)"),
        (errno.ENOTDIR, "choose a writable folder (`--prefix` for an environment, XDG_CONFIG_HOME for settings)"),
        (errno.EIO, ""),
    ],
)
def test_a_refused_write_is_told_with_its_way_out(number: int, hint: str) -> None:
    with pytest.raises(StorageError) as caught, files.storage_errors("can't do it"):
        raise OSError(number, os.strerror(number), "/a/file")
    assert caught.value.message == f"can't do it: {os.strerror(number)} (/a/file)"
    assert (caught.value.hint, caught.value.status) == (hint, 8)


def test_a_file_where_a_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"can't create .*file/below: Not a directory"):
        files.make_folder(tmp_path / "file" / "below")


# Holding a folder.


def test_a_second_one_waits_and_is_told_for_whom(tmp_path: Path) -> None:
    said: list[str] = []
    with held(tmp_path / "env") as release:

        def hear(text: str) -> None:
            said.append(text)
            release.set()

        with files.exclusive(tmp_path / "env", "tenv remove tiny", hear):
            assert release.is_set()
    assert said == [f"waiting: {tmp_path / 'env'} is in use by process {os.getpid()} (`tenv create tiny`)"]


def test_who_will_not_wait_is_told_for_whom(tmp_path: Path) -> None:
    with (
        held(tmp_path / "env"),
        pytest.raises(EnvironmentBusyError, match=r"in use by process \d+ \(`tenv create tiny`\)"),
        files.exclusive(tmp_path / "env", "x", lambda _: None, 0),
    ):
        pass


@each("text", ["{", "[]", "[" * 200_000])
def test_an_owner_that_can_not_be_read_is_no_obstacle(tmp_path: Path, text: str) -> None:
    with held(tmp_path / "env"):
        (tmp_path / ".env.owner").write_text(text)
        with (
            pytest.raises(EnvironmentBusyError, match="is in use by another process"),
            files.exclusive(tmp_path / "env", "x", lambda _: None, 0),
        ):
            pass


def test_a_folder_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), files.exclusive(tmp_path / "env", "x", lambda _: None):
        _ = 1 / 0
    with files.exclusive(tmp_path / "env", "x", lambda _: None, 0):
        assert (tmp_path / ".env.owner").is_file()
    assert not (tmp_path / ".env.owner").exists()


COUNT_UP = """\
import sys, time
from pathlib import Path
from tenv.core import files

count = Path(sys.argv[1]) / "count"
for _ in range(10):
    with files.exclusive(count.parent, "count", lambda _: None):
        number = int(count.read_text())
        time.sleep(0.001)
        count.write_text(str(number + 1))
"""


def test_processes_take_turns(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    folder.mkdir()
    (folder / "count").write_text("0")
    command = [sys.executable, "-c", COUNT_UP, str(folder)]
    children = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    assert (folder / "count").read_text() == "40"


# Removal.


def test_removes_what_tenv_made_even_where_it_is_read_only(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "mark").write_text("")
    (folder / "deep" / "er" / "file").write_text("")
    (folder / "deep" / "er").chmod(0o500)
    (folder / "deep").chmod(0o500)
    files.remove_tree(folder, "mark")
    assert list(tmp_path.iterdir()) == []


def test_removes_links_and_not_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("mine")
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "mark").write_text("")
    (tmp_path / "env" / "link").symlink_to(tmp_path / "kept")
    files.remove_tree(tmp_path / "env", "mark")
    assert (tmp_path / "kept" / "file").read_text() == "mine"


def test_leaves_what_tenv_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ForeignFolderError, match="is not managed by tenv"):
        files.remove_tree(tmp_path / "mine", "mark")
    assert (tmp_path / "mine").is_dir()


# Links.


def test_a_relative_link_moves_with_its_tree(tmp_path: Path) -> None:
    (tmp_path / "tree" / "a").mkdir(parents=True)
    (tmp_path / "tree" / "file").write_text("here")
    files.relative_link(tmp_path / "tree" / "a" / "link", tmp_path / "tree" / "file")
    (tmp_path / "tree").rename(tmp_path / "moved")
    assert (tmp_path / "moved" / "a" / "link").read_text() == "here"
