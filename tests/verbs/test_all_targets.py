"""`lock`, `update` and `check` without a target take all targets of the project, and outside one none."""

from pathlib import Path

import pytest

from tests.support.fakes import make_wheel
from tests.support.projects import TINY, Project, call


@pytest.fixture
def two(locked: Project) -> Project:
    """The project with a second target, `other`, which is not locked."""
    (locked.folder / "manifests" / "other.toml").write_text(TINY)
    return locked


def test_lock_takes_all(two: Project) -> None:
    two.fails(7, "lock-missing", "lock", "--check")
    data = two.ok("lock", "--json").data
    assert [(row["target"], row["changed"]) for row in data["targets"]] == [("other", True), ("tiny", False)]
    assert data["changed"] is True
    ended = two.ok("lock", "--check")
    assert ended.err.count("satisfies its manifest") == 2


def test_a_target_that_fails_does_not_stop_the_others(two: Project) -> None:
    (two.folder / "manifests" / "bad.toml").write_text(TINY.replace('alpha  = ">=1"', 'alpha  = ">=99"'))
    ended = call("lock")
    assert ended.status == 5
    assert "other.lock written" in ended.err
    assert (two.folder / "locks" / "other.lock").is_file()


def test_update_takes_all(two: Project) -> None:
    two.ok("lock")
    make_wheel(two.index.folder, "alpha", "3.0")
    data = two.ok("update", "--dry-run", "--json").data
    assert [row["changed"] for row in data["targets"]] == [True, True]
    two.ok("update")
    assert all("alpha-3.0" in (two.folder / "locks" / f"{name}.lock").read_text() for name in ("tiny", "other"))


def test_check_takes_all(two: Project) -> None:
    two.ok("lock")
    data = call("check", "--build-only", "--json").data
    assert [row["target"] for row in data["targets"]] == ["other", "tiny"]
    assert data["build"] is all(row["build"] for row in data["targets"])


@pytest.mark.parametrize("command", ["lock", "update"])
def test_outside_a_project_a_target_must_be_named(
    project: Project, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    err = project.fails(2, "usage", command)
    assert "no TARGET is given, and there is no project" in err
