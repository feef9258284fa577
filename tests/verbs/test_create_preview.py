"""`tenv create --dry-run`: the files, the download and its servers; nothing is written."""

from pathlib import Path

import pytest

from tenv.install import make
from tenv.sources.interface import NeededFile
from tests.support.projects import Project, snapshot


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "index" not in path.parts}


def test_a_dry_run_lists_what_create_would_install_and_changes_nothing(project: Project) -> None:
    said = project.fails(7, "lock-missing", "create", "tiny", "--dry-run", "--locked")
    assert "`tenv lock tiny`" in said
    before = files_of(project.folder)
    unlocked = project.ok("create", "tiny", "--dry-run")
    assert f"{project.lock}: no lock yet: would be locked\n" in unlocked.err
    assert files_of(project.folder) == before
    project.ok("lock", "tiny")
    before = files_of(project.folder)
    assert project.ok("create", "tiny", "--dry-run").out == unlocked.out
    ended = project.ok("create", "tiny", "--dry-run", "--json")
    assert files_of(project.folder) == before
    assert not project.prefix.exists()
    found = {row["name"]: row for row in ended.data["files"]}
    assert ended.data["changed"] is True
    assert ended.data["download"]["files"] == len([row for row in found.values() if not row["cached"]])
    assert all(row["kind"] == "wheel" and row["server"] == "the index of wheels" for row in found.values())
    made = project.ok("create", "tiny", "--json").data
    assert made["counts"]["wheels"] == len(found)
    whole = snapshot(project.prefix)
    again = project.ok("create", "tiny", "--dry-run")
    assert again.out == ""
    assert f"tiny is ready in {project.prefix}: nothing to do" in again.err
    anew = project.ok("create", "tiny", "--dry-run", "--anew")
    assert "alpha" in anew.out
    assert "a cache" in anew.out  # uv has them now
    assert "in caches: " in anew.err
    assert "to download" not in anew.err
    assert snapshot(project.prefix) == whole


def test_the_line_before_a_long_download_names_each_server(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = (
        NeededFile("a", "1", "conda", 1 << 30, "https://conda.anaconda.org/conda-forge", cached=False),
        NeededFile("b", "1", "wheel", 300 << 20, "the index of wheels", cached=False),
        NeededFile("c", "1", "archive", 50 << 20, "developer.download.nvidia.com", cached=True),
    )
    assert list(make.download_lines(needs)) == [
        "to download: 2 files, 1.3 GiB (1.0 GiB from https://conda.anaconda.org/conda-forge, "
        "300.0 MiB from the index of wheels)",
        "in caches: 1 file, 50.0 MiB",
        "on the disk: at least 2.7 GiB",
    ]
    project.ok("lock", "tiny")
    monkeypatch.setattr(make, "LONG", 0)
    said = project.ok("create", "tiny").err
    assert "to download: " in said or "in caches: " in said
    assert "; on the disk: at least " in said
    assert "on the disk" not in project.ok("create", "tiny").err
