"""`tenv list`, `show` and `clean`: what is there, as programs read it."""

import os
from pathlib import Path

import pytest

from tests.support.projects import HERE, Project


def test_lists_environments_with_their_states(created: Project) -> None:
    [row] = created.ok("list", "--json").data
    state = created.state()
    assert row == {
        "target": "tiny",
        "prefix": str(created.prefix),
        "state": "ready",
        "reason": None,
        "lock_digest": state["lock"],
        "bytes": state["bytes"],
        "python": HERE,
        "torch": None,
    }


def test_lists_nothing_that_is_no_environment(created: Project) -> None:
    (created.prefix.parent / "empty").mkdir()
    (created.prefix.parent / "file").write_text("")
    assert (created.prefix.parent / ".tiny.lock").is_file()  # what tells others to wait stands there
    assert [row["target"] for row in created.ok("list", "--json").data] == ["tiny"]
    created.ok("remove", "tiny")
    assert created.ok("list", "--json").data == []
    assert created.ok("list").err == "there is no environment here; `tenv create TARGET` creates one\n"


def test_lists_one_that_is_not_ready_as_such(locked: Project, impatient: None) -> None:
    locked.ok("create", "tiny")
    locked.state_file.write_text(locked.state_file.read_text().replace('"ready"', '"creating"'))
    assert [row["state"] for row in locked.ok("list", "--json").data] == ["creating"]
    locked.state_file.write_text("{")
    [row] = locked.ok("list", "--json").data
    assert (row["target"], row["state"]) == ("tiny", "broken")


def test_lists_those_of_the_user_beside_those_of_the_project(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Path(os.environ["XDG_DATA_HOME"]) / "tenv" / "envs" / "tiny"
    created.ok("create", "tiny", "--prefix", str(other))
    assert [row["prefix"] for row in created.ok("list", "--json").data] == [str(created.prefix), str(other)]


def test_outside_a_project_environments_are_the_users(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv"
    own.mkdir(parents=True)
    for name in ("manifests", "locks"):
        (locked.folder / name).rename(own / name)
    monkeypatch.chdir(Path.home())
    monkeypatch.setenv("PWD", str(Path.home()))
    data = locked.ok("create", "tiny", "--json").data
    assert data["prefix"] == str(Path(os.environ["XDG_DATA_HOME"]) / "tenv" / "envs" / "tiny")


def test_shows_what_is_asked_for_and_what_is_locked(created: Project) -> None:
    data = created.ok("show", "tiny", "--json").data
    assert (data["name"], data["origin"], data["state"]) == ("tiny", "project", "ready")
    assert data["manifest"] == str(created.manifest)
    assert data["lock_state"].endswith("(up to date)")
    rows = {row["name"]: (row["wanted"], row["locked"]) for row in data["packages"]}
    assert rows == {"alpha": (">=1", "1.0"), "beta": ("", "1.0"), "native": ("*", "1.0")}
    assert all(row["size"] for row in data["packages"])


def test_shows_why_a_lock_is_stale(locked: Project) -> None:
    locked.ask_for('gamma = "*"')
    data = locked.ok("show", "tiny", "--json").data
    assert "stale: linux-64: gamma is not in the lock" in data["lock_state"]
    assert data["state"] is None


def test_shows_a_target_without_a_lock(project: Project) -> None:
    data = project.ok("show", "tiny", "--json").data
    assert data["lock_state"] == f"there is no lock for `tiny` ({project.lock})"
    assert {row["name"]: row["locked"] for row in data["packages"]} == {"alpha": "", "native": ""}


def test_clean_frees_nothing_unless_told(created: Project) -> None:
    row, _ = created.ok("clean", "--json").data
    assert (row["name"], row["path"], row["freed"]) == ("wheels (uv)", os.environ["UV_CACHE_DIR"], False)
    assert row["bytes"] > 0
    created.ok("remove", "tiny")
    created.index.stop()
    created.ok("create", "tiny", "--offline")


def test_clean_empties_the_cache_of_wheels(created: Project, impatient: None) -> None:
    before = created.state()
    row, _ = created.ok("clean", "--wheels", "--json").data
    assert row["freed"] is True
    assert created.state() == before
    created.ok("remove", "tiny")
    created.fails(6, "network", "create", "tiny", "--offline")


def test_clean_removes_what_a_killed_removal_left(created: Project) -> None:
    left = created.prefix.parent / ".tiny.removed-abc" / "tiny"
    left.parent.mkdir()
    created.prefix.rename(left)
    assert [row["freed"] for row in created.ok("clean", "--json").data] == [False, False, False]
    assert left.is_dir()
    rows = created.ok("clean", "--leftovers", "--json").data
    assert [row["name"] for row in rows if row["freed"]] == ["half-removed environment"]
    assert not left.parent.exists()
