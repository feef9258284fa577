"""The store of archives: nothing that another user can write is used, and nothing that tenv did not make is removed."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tenv.core.errors import ForeignFolderError
from tenv.core.other_users import open_part
from tenv.locks.lock import Archive
from tenv.sources.archives.download import RemoteFile
from tenv.sources.archives.link import place
from tenv.sources.archives.store import Store
from tests.sources.archives.test_download import fetcher
from tests.support.redist import Server, link, pack, regular

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has its own rights")

DATA = pack("tar.gz", [regular("include/a.h", b"abc\n"), regular("bin/tool", b"x", 0o755), link("lib", "include")])
SHA256 = hashlib.sha256(DATA).hexdigest()
ARCHIVE = Archive("a", "1", "https://example.com/a.tar.gz", SHA256, len(DATA), "tar.gz", 0, "opt/a")
TREE = f"trees/{SHA256}-0"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server({"/a.tar.gz": DATA}) as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "above").mkdir()
    return tmp_path / "above" / "archives"


def filled(folder: Path, server: Server) -> Store:
    """Return a store with an archive and its tree."""
    store = Store(folder)
    store.unpacked(ARCHIVE, fetched_by(store, server))
    return store


def fetched_by(store: Store, server: Server) -> Callable[[], Path]:
    return lambda: store.fetch(fetcher(), RemoteFile("a", f"{server.url}/a.tar.gz", SHA256, len(DATA))).path


PARTS = [
    *("", "files", f"files/{SHA256}", "trees", TREE, f"{TREE}.json", f"{TREE}/include", f"{TREE}/include/a.h"),
    f"{TREE}/bin/tool",
]


@pytest.mark.parametrize("mode", [0o002, 0o020])
@pytest.mark.parametrize("part", [*PARTS, ".."])
def test_a_store_that_others_can_write_is_refused(
    part: str, mode: int, folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(folder, server)
    monkeypatch.setattr("tenv.core.other_users._private_groups", frozenset)
    path = Path(os.path.normpath(folder / part))
    path.chmod(path.stat().st_mode & 0o777 | mode)
    server.asked.clear()
    with pytest.raises(ForeignFolderError, match="another user can write") as caught:
        fetched_by(store, server)() if part.startswith("files/") else store.unpacked(ARCHIVE, list)  # type: ignore[arg-type]
    assert f"another user can write {path}," in caught.value.message
    assert f"TENV_SAFE_FOLDERS={folder}" in caught.value.hint
    assert server.asked == []


@pytest.mark.parametrize("part", [*PARTS, "..", f"{TREE}/lib"])
def test_a_store_of_another_user_is_refused(
    part: str, folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(folder, server)
    if os.geteuid() == 0:
        os.chown(os.path.normpath(folder / part), 65534, 65534, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(ForeignFolderError, match="another user can write"):
        fetched_by(store, server)() if part.startswith("files/") else store.unpacked(ARCHIVE, list)  # type: ignore[arg-type]


def test_a_sticky_folder_above_and_a_private_group_are_no_fault(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.parent.chmod(0o1777)
    store = filled(folder, server)
    assert store.tree(ARCHIVE) is not None
    folder.chmod(0o775)
    monkeypatch.setattr("tenv.core.other_users._private_groups", lambda: frozenset((folder.stat().st_gid,)))
    assert store.tree(ARCHIVE) is not None
    assert open_part(folder) is None


def test_the_folder_that_a_link_leads_to_is_judged(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    folder.symlink_to(tmp_path / "shared")
    assert open_part(folder) is None
    (tmp_path / "shared").chmod(0o777)
    assert open_part(folder) == folder


@pytest.mark.parametrize("umask", [0, 0o002, 0o077])
def test_no_umask_lets_others_write(
    umask: int, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenv.core.other_users._private_groups", frozenset)
    before = os.umask(umask)
    try:
        store = filled(tmp_path / "new" / "cache" / "archives", server)
        assert store.tree(ARCHIVE) is not None
        assert fetched_by(store, server)().read_bytes() == DATA
    finally:
        os.umask(before)


def test_a_safe_store_that_others_can_write_is_compared_and_copied(
    folder: Path, server: Server, tmp_path: Path
) -> None:
    filled(folder, server)
    folder.chmod(0o777)
    store, prefix = Store(folder, safe=lambda: (folder.parent,)), tmp_path / "prefix"
    prefix.mkdir()
    header = folder / TREE / "include" / "a.h"
    before = header.stat()
    header.chmod(0o644)
    header.write_text("EVIL")
    os.utime(header, ns=(before.st_atime_ns, before.st_mtime_ns))
    tree = store.unpacked(ARCHIVE, fetched_by(store, server))
    assert tree.shared
    assert header.read_text() == "abc\n"  # unpacked again
    place(prefix, ARCHIVE, tree)
    assert (prefix / "opt/a/include/a.h").read_text() == "abc\n"
    assert (prefix / "opt/a/include/a.h").stat().st_nlink == 1
    header.chmod(0o644)
    header.write_text("EVIL")
    (tmp_path / "other").mkdir()
    with pytest.raises(ForeignFolderError, match="was changed while it was copied"):
        place(tmp_path / "other", ARCHIVE, tree)
    assert list((tmp_path / "other").rglob("*.h")) == []


def test_only_the_entries_of_tenv_are_removed(folder: Path, server: Server) -> None:
    store = filled(folder, server)
    mine = [folder / "photos" / "1.jpg", folder / "files" / "notes.txt", folder / "trees" / "old" / "1.jpg"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    assert store.clear() == [folder / "files/notes.txt", folder / "photos", folder / "trees/old"]
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == sorted([*mine, folder / "CACHEDIR.TAG"])
    for path in mine:
        path.unlink()
    for place_ in ("photos", "trees/old"):
        (folder / place_).rmdir()
    assert store.clear() == []
    assert not folder.exists()


def test_a_folder_without_the_mark_of_tenv_stays(folder: Path) -> None:
    file = folder / "files" / SHA256
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    assert Store(folder).clear() == [folder]
    assert file.read_text() == "mine"


def test_the_read_only_part_of_a_killed_command_is_taken(tmp_path: Path) -> None:
    """It is killed between the two calls that make a whole download a file of the store."""
    source, sha256, uid = tmp_path / "file", hashlib.sha256(DATA).hexdigest(), os.geteuid()
    source.write_bytes(DATA)
    for path in (*tmp_path.parents[:3], tmp_path):
        path.chmod(path.stat().st_mode | 0o055)
    store = Store(tmp_path / "own" / "archives")
    part = store.folder / "parts" / sha256
    store.folder.parent.mkdir()
    try:
        if uid == 0:  # whom no mode stops
            os.chown(store.folder.parent, 65534, -1)
            os.seteuid(65534)
        part.parent.mkdir(parents=True)
        fetch = partial(store.fetch, fetcher(), RemoteFile("file", source.as_uri(), sha256))
        for take in (fetch, partial(store.keep, source, sha256)):
            store.file(sha256).unlink(missing_ok=True)
            part.write_bytes(DATA[:2])
            part.chmod(0o444)
            take()
            assert store.file(sha256).read_bytes() == DATA
    finally:
        os.seteuid(uid)
