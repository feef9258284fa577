"""Names that a file system may not tell apart."""

from pathlib import Path

import pytest

from tenv.core.errors import ArchiveRefusedError
from tenv.locks.lock import Archive
from tenv.sources.archives import member_names as clashes
from tenv.sources.archives.link import place, placed
from tenv.sources.archives.member_names import Clashes, first_clash
from tenv.sources.archives.store import Tree
from tenv.sources.archives.unpack import unpack
from tests.support import redist
from tests.support.redist import WithoutCase, regular

PAIR = ["net/xt_MARK.h", "net/xt_mark.h"]
ARCHIVE = Archive("headers", "", "https://example.com/sample.tar.gz", "0" * 64, None, "tar.gz", 0, "opt/headers")


def tree(home: Path) -> Tree:
    members = [regular(name, name.encode()) for name in PAIR]
    return Tree(home / "tree", unpack(redist.packed(home, "tar.gz", members), "tar.gz", home / "tree"))


def test_nothing_is_tried_out_for_names_that_differ(tmp_path: Path) -> None:
    names = Clashes(tmp_path / "not there")
    assert [names.add(name) for name in ("a", "b", "a/b", "ab")] == [""] * 4


def test_what_is_tried_out_leaves_nothing(tmp_path: Path) -> None:
    assert first_clash([*PAIR, "Net/xt_mark.h"], tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [PAIR, ["a", "b", "A"], ["Lib/x", "lib/y"], ["lib", "Lib/x"]])
def test_names_that_are_one(names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clashes, "_make", WithoutCase())
    found = first_clash(names, tmp_path)
    assert found is not None
    assert found[0] != found[1]
    assert found[0].casefold() == found[1].casefold()


def test_a_prefix_whose_file_system_tells_them_apart_gets_both(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    place(prefix, ARCHIVE, tree(tmp_path))
    assert {name: (prefix / "opt/headers" / name).read_text() for name in PAIR} == {name: name for name in PAIR}


def test_a_prefix_whose_file_system_does_not_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store may lie on another disk than the prefix."""
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    unpacked = tree(tmp_path)
    monkeypatch.setattr(clashes, "_make", WithoutCase())
    with pytest.raises(ArchiveRefusedError) as caught:
        place(prefix, ARCHIVE, unpacked)
    assert caught.value.message == (
        f"headers: its files 'net/xt_MARK.h' and 'net/xt_mark.h' clash in {prefix}, "
        "whose file system does not distinguish case"
    )
    assert caught.value.hint == "`--prefix FOLDER` names a folder on another file system"
    assert not (prefix / "opt").exists()
    assert placed(prefix) == {}
