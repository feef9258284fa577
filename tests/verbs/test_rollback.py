"""`tenv rollback`: the environment of the lock before, one further back each time, and forward again by `create`."""

import json
import re

import pytest

from tests.support.fakes import make_wheel
from tests.support.projects import Project, snapshot

pytestmark = pytest.mark.long


@pytest.fixture
def moved(created: Project) -> Project:
    """The project with an environment that was made from beta 1.0, then 1.1."""
    move(created, "1.1")
    return created


def move(project: Project, version: str) -> None:
    """Make a newer beta, lock it and install it."""
    make_wheel(project.index.folder, "beta", version)
    project.ok("update", "tiny", "beta")
    project.ok("create", "tiny")
    assert beta(project) == version


def beta(project: Project) -> str:
    version: str = project.state()["packages"]["beta"][0]
    [info] = project.site().glob("beta-*.dist-info")
    assert info.name == f"beta-{version}.dist-info"
    return version


def test_goes_one_lock_back_and_leaves_the_project_s_lock_alone(moved: Project) -> None:
    lock = moved.lock.read_bytes()
    ended = moved.ok("rollback", "tiny")
    assert beta(moved) == "1.0"
    assert "  ~ beta  1.1 → 1.0  " in ended.err
    assert ended.err.startswith("tiny goes back to ")
    assert ended.err.index("beta  1.1 → 1.0") < ended.err.index("downloading and installing")
    assert ended.err.endswith("; `tenv create tiny` installs the present lock again\n")
    assert moved.lock.read_bytes() == lock
    assert moved.state()["state"] == "ready"


def test_goes_one_further_back_each_time_until_there_is_none(moved: Project) -> None:
    move(moved, "1.2")
    moved.ok("rollback", "tiny")
    moved.ok("rollback")
    assert beta(moved) == "1.0"
    before = snapshot(moved.prefix)
    err = moved.fails(7, "lock-missing", "rollback", "tiny")
    assert f"{moved.prefix} keeps no previous lock\n" in err
    assert "hint: `tenv create tiny --lock-file FILE --frozen` installs a lock from a file" in err
    assert snapshot(moved.prefix) == before


def test_create_goes_forward_again_and_that_can_be_undone(moved: Project) -> None:
    moved.ok("rollback", "tiny")
    moved.ok("create", "tiny")
    assert beta(moved) == "1.1"
    moved.ok("rollback", "tiny")
    assert beta(moved) == "1.0"


def test_needs_no_network(moved: Project) -> None:
    moved.index.stop()
    moved.ok("rollback", "tiny", "--offline")
    assert beta(moved) == "1.0"


def test_a_dry_run_tells_and_changes_nothing(moved: Project) -> None:
    before = snapshot(moved.prefix)
    ended = moved.ok("rollback", "tiny", "--dry-run")
    assert "  ~ beta  1.1 → 1.0  " in ended.err
    assert re.match(r"tiny would go back to \S+:\n", ended.err)
    assert ended.err.count("would go back") == 1
    data = moved.ok("rollback", "tiny", "--dry-run", "--json").data
    assert [(row["name"], row["old"], row["new"]) for row in data["difference"]["changed"]] == [("beta", "1.1", "1.0")]
    assert snapshot(moved.prefix) == before


def test_an_installation_that_was_stopped_is_undone(moved: Project) -> None:
    state = moved.state()
    moved.state_file.write_text(json.dumps({**state, "state": "creating", "lock": ""}))
    moved.ok("rollback", "tiny")
    assert (beta(moved), moved.state()["state"]) == ("1.1", "ready")


def test_what_was_installed_by_hand_stays(moved: Project) -> None:
    (moved.prefix / "notes.txt").write_text("mine")
    moved.ok("rollback", "tiny")
    assert (moved.prefix / "notes.txt").read_text() == "mine"


def test_where_there_is_no_environment_it_is_said(locked: Project) -> None:
    none = str(locked.folder / "none")
    assert "`tenv create tiny`" in locked.fails(8, "environment-missing", "rollback", "tiny")
    said = locked.fails(8, "environment-missing", "rollback", "tiny", "--prefix", none)
    assert f"hint: `tenv create tiny --prefix {none}` creates it" in said


def test_a_first_environment_has_nothing_to_go_back_to(created: Project) -> None:
    assert "keeps no previous lock" in created.fails(7, "lock-missing", "rollback", "tiny")


def test_a_prefix_of_one_s_own(locked: Project) -> None:
    prefix = str(locked.folder / "mine")
    locked.ok("create", "tiny", "--prefix", prefix)
    make_wheel(locked.index.folder, "beta", "1.1")
    locked.ok("update", "tiny", "beta")
    locked.ok("create", "tiny", "--prefix", prefix)
    data = locked.ok("rollback", "--prefix", prefix, "--json").data
    assert (data["target"], data["prefix"], data["state"]) == ("tiny", prefix, "ready")
