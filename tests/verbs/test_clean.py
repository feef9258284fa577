"""`tenv clean` and `tenv info`: whatever tenv leaves in the user's home is named, and caches are emptied."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.conda_project import Conda
from tests.support.projects import Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packages with links and shell scripts")


def files_below(*folders: str) -> Iterator[Path]:
    """Yield the files with content in some folders; uv leaves an empty one where its cache was."""
    for folder in folders:
        yield from (path for path in Path(folder).rglob("*") if not path.is_dir() and path.lstat().st_size)


def require_named_and_emptied(project: Project) -> set[str]:
    """Return the names of the caches that hold files, after each file of the home was found in a named folder."""
    about = project.ok("info", "--json").data
    named = [folder for folder in (*about["caches"].values(), *about["folders"].values()) if folder]
    there = list(files_below(os.environ["HOME"]))
    assert there
    assert [path for path in there if not any(path.is_relative_to(folder) for folder in named)] == []
    used = {name for name, folder in about["caches"].items() if any(files_below(folder))}
    project.ok("remove", "tiny")
    freed = {row["name"] for row in project.ok("clean", "--all", "--json").data if row["freed"]}
    assert used <= freed
    assert list(files_below(*about["caches"].values())) == []
    return used


def test_caches_of_conda_packages_and_their_notes_are_named_and_emptied(conda: Conda) -> None:
    conda.lock("tool", "data")
    conda.project.ok("update", "tiny")  # reads the package lists of the channel
    conda.create()
    conda.project.ok("remove", "tiny")
    conda.create()  # notes what it reads in the cache
    used = require_named_and_emptied(conda.project)
    assert used >= {"conda packages", "conda package lists", "notes on cached files"}


def test_caches_of_wheels_and_their_notes_are_named_and_emptied(created: Project) -> None:
    assert require_named_and_emptied(created) == {"wheels (uv)", "notes on cached files"}


def test_what_bears_no_mark_of_a_cache_is_left_and_named(conda: Conda) -> None:
    conda.lock("tool")
    conda.project.ok("update", "tiny")
    conda.create()
    caches = conda.project.ok("info", "--json").data["caches"]
    kept = []
    for name, entries in {
        "conda packages": ("thesis.tex", "photos/one.jpg", "urls.txt"),
        "conda package lists": ("list.json", "notes/a.json"),
        "notes on cached files": ("notes.json", "mine/b.json"),
    }.items():
        for entry in entries:
            path = Path(caches[name]) / entry
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("mine")
            kept.append(path)
    ended = conda.project.ok("clean", "--all")
    assert [path for path in kept if path.read_text() != "mine"] == []
    for path in kept:
        top = next(folder for folder in (path, *path.parents) if str(folder.parent) in caches.values())
        assert f"left, since tenv did not make it: {top}" in ended.err
    assert {path.name for path in Path(caches["conda packages"]).iterdir()} == {"thesis.tex", "photos", "urls.txt"}
    conda.project.ok("remove", "tiny")
    conda.create()  # the caches work as before


def test_a_file_in_uvs_cache_folder_that_is_not_uvs_is_left(created: Project) -> None:
    mine = Path(os.environ["UV_CACHE_DIR"]) / "thesis.tex"
    mine.write_text("mine")
    ended = created.ok("clean", "--wheels")
    assert mine.read_text() == "mine"
    assert f"left, since tenv did not make it: {mine}" in ended.err
    assert [path for path in mine.parent.iterdir() if path != mine] == []
    mine.unlink()


def test_the_notes_stay_where_one_cache_is_emptied(created: Project) -> None:
    rows = {row["name"]: row["freed"] for row in created.ok("clean", "--wheels", "--json").data}
    assert rows == {"wheels (uv)": True, "notes on cached files": False}


def test_pythons_that_uv_downloaded_are_named(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    assert project.ok("info", "--json").data["folders"]["Pythons (uv)"] is None
    (tmp_path / "pythons").mkdir()
    assert project.ok("info", "--json").data["folders"]["Pythons (uv)"] == str(tmp_path / "pythons")


def test_a_folder_of_the_user_in_the_place_of_the_store_is_named_and_stays(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENV_CACHE_DIR", str(tmp_path / "data"))
    photo = tmp_path / "data" / "archives" / "my-photos" / "1.jpg"
    photo.parent.mkdir(parents=True)
    photo.write_text("photo")
    ended = project.ok("clean", "--archives")
    assert f"left, since tenv did not make it: {tmp_path / 'data' / 'archives'}" in ended.err
    assert "freed" not in ended.out
    (row,) = [row for row in project.ok("clean", "--all", "--json").data if row["name"] == "archives"]
    assert (row["freed"], row["left"]) == (False, [str(tmp_path / "data" / "archives")])
    assert photo.read_text() == "photo"
