"""`tenv update`: what was asked for moves, and as little else as can be."""

from pathlib import Path

import pytest

from tenv.host.machine import current_platform
from tenv.locks.lock_file import read_lock
from tests.support.fakes import Index, make_native, make_wheel
from tests.support.projects import Project
from tests.support.rarely import first_fast


@pytest.fixture
def moved(locked: Project) -> Project:
    """The project, locked, with an index that has a newer release of each of its wheels."""
    locked.ok("lock", "tiny")
    make_wheel(locked.index.folder, "alpha", "1.1", requires=["beta>=1"])
    make_wheel(locked.index.folder, "beta", "1.1")
    make_native(locked.index.folder, "native", "1.1")
    return locked


def versions(project: Project) -> dict[str, str]:
    lock = read_lock(project.lock, "tiny")
    [wheels] = [lock.wheels[platform] for platform in lock.platforms[:1]]
    return {wheel.name: wheel.version for wheel in wheels}


def test_moves_the_package_that_is_named_and_no_other(moved: Project) -> None:
    ended = moved.ok("update", "tiny", "alpha")
    assert versions(moved) == {"alpha": "1.1", "beta": "1.0", "native": "1.0"}
    assert "  ~ alpha  1.0 → 1.1  " in ended.err
    assert ended.err.endswith(f"{moved.lock} written: {read_lock(moved.lock, 'tiny').platforms[0]} 3 wheels\n")


@pytest.mark.long
def test_moves_what_is_required_only_by_others_too(moved: Project) -> None:
    moved.ok("update", "tiny", "Beta")
    assert versions(moved) == {"alpha": "1.0", "beta": "1.1", "native": "1.0"}


def test_moves_another_package_where_the_named_one_needs_that(moved: Project) -> None:
    make_wheel(moved.index.folder, "alpha", "1.2", requires=["beta>=1.1"])
    moved.ok("update", "tiny", "alpha")
    assert versions(moved) == {"alpha": "1.2", "beta": "1.1", "native": "1.0"}


@pytest.mark.long
def test_an_index_with_a_part_of_the_files_moves_no_other_package(
    moved: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv looks for a version that it is to keep on the first index that has it, whatever files that has."""
    folder = moved.index.folder
    for name, needs in (("gamma", []), ("needs", ["beta>=1.1"])):
        make_wheel(folder, name, "1.0")
        moved.ok("add", "tiny", f"{name}==1.0")
        make_wheel(folder, name, "1.1", requires=needs)
        moved.edit(f'{name} = "1.0"', f'{name} = "*"')
    for name in ("beta", "gamma", "native"):
        make_wheel(tmp_path, name, "1.0", tag="cp38-cp38-win32")
        make_wheel(folder, name, "0.9")
    with Index(tmp_path) as part:
        monkeypatch.setenv("UV_INDEX", part.url)
        monkeypatch.setenv("UV_INDEX_STRATEGY", "unsafe-best-match")
        moved.ok("update", "tiny", "alpha")
        still = {"beta": "1.0", "gamma": "1.0", "native": "1.0"}
        assert versions(moved) == {"alpha": "1.1", "needs": "1.0", **still}
        moved.ok("update", "tiny", "needs")  # which needs another beta
        assert versions(moved) == {"alpha": "1.1", "needs": "1.1", **still, "beta": "1.1"}
        moved.ok("add", "tiny", "native>1")
        assert versions(moved) == {"alpha": "1.1", "needs": "1.1", "beta": "1.1", "gamma": "1.0", "native": "1.1"}


def test_moves_everything_when_nothing_is_named(moved: Project) -> None:
    moved.ok("update", "tiny")
    assert versions(moved) == {"alpha": "1.1", "beta": "1.1", "native": "1.1"}


def test_stays_within_the_manifest(moved: Project) -> None:
    moved.edit('alpha  = ">=1"', 'alpha  = "1.0.*"')
    moved.ok("lock", "tiny")
    assert moved.ok("update", "tiny", "alpha", "--json").data["difference"]["changed"] == []
    assert versions(moved)["alpha"] == "1.0"


@pytest.mark.long
def test_a_manifest_that_changed_moves_only_what_it_must(moved: Project) -> None:
    make_wheel(moved.index.folder, "alpha", "1.2", requires=["beta>=1.1"])
    moved.edit('alpha  = ">=1"', 'alpha  = ">=1.2"')
    moved.ok("lock", "tiny")
    assert versions(moved) == {"alpha": "1.2", "beta": "1.1", "native": "1.0"}


def test_a_dry_run_tells_and_writes_nothing(moved: Project) -> None:
    before = moved.lock.read_bytes()
    ended = moved.ok("update", "tiny", "beta", "--dry-run")
    assert "  ~ beta  1.0 → 1.1  " in ended.err
    assert f"{moved.lock} would be written: " in ended.err
    data = moved.ok("update", "tiny", "beta", "--dry-run", "--json").data
    assert (data["changed"], data["dry_run"]) == (True, True)
    assert [(row["name"], row["old"], row["new"]) for row in data["difference"]["changed"]] == [("beta", "1.0", "1.1")]
    assert moved.lock.read_bytes() == before


def test_says_that_nothing_is_newer(locked: Project) -> None:
    locked.ok("lock", "tiny")
    locked.ok("update", "tiny")
    assert f"{locked.lock} is up to date: " in locked.ok("update", "tiny").err


def test_a_first_lock_has_no_difference(project: Project) -> None:
    assert project.ok("update", "tiny", "--json").data["difference"] is None


def test_an_unknown_package_is_told(locked: Project) -> None:
    err = locked.fails(2, "usage", "update", "tiny", "alfa")
    assert err == "error[usage]: tiny has no package `alfa`\nhint: did you mean `alpha`?\n"


@pytest.mark.parametrize("others", first_fast(["0.9", "1.1"]))
def test_a_held_version_that_no_index_has_is_named_and_not_replaced(locked: Project, others: str) -> None:
    folder = locked.index.folder
    (held,) = (row.file for row in read_lock(locked.lock, "tiny").wheels[current_platform()] if row.name == "beta")
    (folder / held).unlink()
    make_wheel(folder, "beta", others)
    make_wheel(folder, "alpha", "1.1", requires=["beta>=0.5"])
    before = locked.lock.read_bytes()
    said = locked.fails(5, "no-solution", "update", "tiny", "alpha")
    assert f"no index in use has {held}, which the lock of tiny holds" in said
    assert f"`tenv update tiny beta` selects beta {others}" in said
    assert locked.lock.read_bytes() == before
