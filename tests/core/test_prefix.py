"""The folder of an environment, listed and cleared."""

import os
import sys
from pathlib import Path

import pytest

from tenv.core.errors import StorageError
from tenv.core.prefix import clear, files_in


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A prefix with files at several depths, links, and what is tenv's own."""
    made = tmp_path / "tiny"
    for name in ("bin/alpha", "lib/x/deep.so", "notes.txt", "tenv-meta/state.json", "lib/tenv-meta", ".tenv.lock"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text("")
    (made / "linked").symlink_to("/somewhere")
    return made


def entries(prefix: Path) -> set[str]:
    return {path.name for path in prefix.iterdir()}


def test_every_file_but_tenvs_own_is_listed(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (prefix / "lib" / "folder").symlink_to(tmp_path / "outside")
    assert {*files_in(prefix)} == {
        "bin/alpha",
        "lib/x/deep.so",
        "lib/tenv-meta",
        "lib/folder",
        "linked",
        "notes.txt",
    }


def test_clearing_removes_all_but_tenvs_own(prefix: Path) -> None:
    clear(prefix, ())
    assert entries(prefix) == {"tenv-meta", ".tenv.lock"}
    assert (prefix / "tenv-meta" / "state.json").exists()


def test_clearing_what_is_not_there_is_done_at_once(tmp_path: Path) -> None:
    clear(tmp_path / "nowhere", ())
    assert not (tmp_path / "nowhere").exists()


def test_clearing_keeps_what_it_is_told_to_keep(prefix: Path) -> None:
    clear(prefix, ["lib/x/deep.so", "linked"])
    assert {*files_in(prefix)} == {"lib/x/deep.so", "linked"}
    assert entries(prefix) == {"lib", "linked", "tenv-meta", ".tenv.lock"}


def test_clearing_follows_no_link(prefix: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (prefix / "folder").symlink_to(outside)
    clear(prefix, ["notes.txt"])
    assert not (prefix / "folder").is_symlink()
    (prefix / "folder").symlink_to(outside)
    clear(prefix, ())
    assert not (prefix / "folder").is_symlink()
    assert (outside / "file").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_what_can_not_be_removed_is_told(prefix: Path) -> None:
    (prefix / "bin").chmod(0o500)
    with pytest.raises(StorageError, match="can't clear"):
        clear(prefix, ())
    (prefix / "bin").chmod(0o700)
