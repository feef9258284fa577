"""The sources of a folder: their copy, and the digest that an edit changes."""

import os
from pathlib import Path

from tenv.sources.wheels.folder_copy import copy_folder, digest_of_folder


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_environments_caches_and_results_of_builds_are_no_sources(tmp_path: Path) -> None:
    own = tmp_path / "own"
    sources = ("setup.py", "csrc/one.cpp", "kern/build/__init__.py")
    others = (
        ".tenv/envs/ext/x",
        ".venv/pyvenv.cfg",
        "tools/env/pyvenv.cfg",
        "conda/conda-meta/history",
        ".pytest_cache/CACHEDIR.TAG",
        ".pytest_cache/v/x",
        "build/one.o",
        "k.egg-info/x",
        ".git/HEAD",
    )
    for name in (*sources, *others):
        _write(own / name, "1")
    before = digest_of_folder(own)
    for name in (*others, "kern/_C.so"):
        _write(own / name, "22")
    assert digest_of_folder(own) == before
    copy_folder(own, tmp_path / "copy")
    there = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert there == {*sources, "kern/_C.so"}


def test_each_edit_is_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "own" / "one.cpp"
    _write(file, "1")
    seen = [digest_of_folder(tmp_path / "nowhere"), digest_of_folder(file.parent)]
    file.write_text("22")
    seen.append(digest_of_folder(file.parent))
    os.utime(file, (1, 1))
    seen.append(digest_of_folder(file.parent))
    file.rename(file.with_name("two.cpp"))
    seen.append(digest_of_folder(file.parent))
    assert len({*seen}) == len(seen)
