"""What every archive format must have: an ending, a reader, a packer of these tests, a word in the docs.

A new kind is unpacked, and refused where it is hostile, by the cases of ``test_unpack.py``: they ask `redist.pack`.
"""

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

from tenv.core.errors import ArchiveRefusedError
from tenv.sources import archives
from tenv.sources.archives.answers import KINDS, kind_of
from tenv.sources.archives.unpack import reader_of, unpack
from tests.support.each import each
from tests.support.redist import pack, packed, regular

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "archives.md").read_text(encoding="utf-8")
READERS = sorted(
    f"{module.name}.{name}"
    for module in pkgutil.iter_modules(archives.__path__)
    for name, value in vars(importlib.import_module(f"{archives.__name__}.{module.name}")).items()
    if name.startswith("read_") and value.__module__ == f"{archives.__name__}.{module.name}"
)


def test_every_reader_is_asked_for_by_a_kind() -> None:
    tree = ast.parse((ROOT / "src" / "tenv" / "sources" / "archives" / "unpack.py").read_text())
    used = {
        f"{(node.module or '').rpartition('.')[2]}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert [name for name in READERS if name not in used] == [], "`reader_of` in unpack.py lacks it"


@each("kind", KINDS)
def test_a_kind_is_known_by_its_ending_read_and_in_the_docs(kind: str, tmp_path: Path) -> None:
    assert kind_of(f"some.thing-1.0.{kind}") == kind
    assert callable(reader_of(kind))
    row = next(line for line in PAGE.splitlines() if line.startswith("| `url`"))
    assert f"`{kind}`" in row, "docs/archives.md has a list of the kinds"
    members = [regular("top/bin/tool", b"#!/bin/sh\n", 0o755), regular("top/data", bytes(range(256)) * 300)]
    contents = unpack(packed(tmp_path, kind, members), kind, tmp_path / "out")
    assert {"top/bin/tool", "top/data"} <= set(contents.files)
    assert (tmp_path / "out" / "top" / "data").read_bytes() == bytes(range(256)) * 300


@each("kind", KINDS)
def test_what_is_cut_off_is_refused(kind: str, tmp_path: Path) -> None:
    raw = pack(kind, [regular("data", bytes(range(256)) * 300)])
    for part in (0, 7, len(raw) // 2):
        (tmp_path / "cut").write_bytes(raw[:part])
        with pytest.raises(ArchiveRefusedError):
            unpack(tmp_path / "cut", kind, tmp_path / "out")
        assert [path.name for path in tmp_path.iterdir()] == ["cut"]
