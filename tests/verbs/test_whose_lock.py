"""Whose manifest and whose lock counts, where a lock is written, and the way back to the one before."""

import os
from pathlib import Path

import pytest

from tests.support.fakes import make_wheel
from tests.support.projects import Project, call


@pytest.fixture
def built_in(locked: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Project:
    """The target `tiny` as a built-in one; the test stands outside every project."""
    monkeypatch.setattr("tenv.targets.search._built_in", lambda: locked.folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("PWD", str(elsewhere))
    make_wheel(locked.index.folder, "alpha", "3.0")
    return locked


def own_lock() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "tenv" / "locks" / "tiny.lock"


def row() -> dict[str, object]:
    return next(row for row in call("targets", "--json").data if row["name"] == "tiny")


def test_outside_a_project_an_update_of_a_built_in_target_needs_user(built_in: Project) -> None:
    before = built_in.lock.read_bytes()
    err = built_in.fails(2, "usage", "update", "tiny")
    assert str(own_lock()) in err
    assert "hint: `tenv update --user tiny` does that" in err
    assert not own_lock().exists()
    assert "3.0" in built_in.ok("update", "--dry-run", "tiny").err
    ended = built_in.ok("update", "--user", "tiny")
    assert f"compared with {built_in.lock}, the lock in use before (built-in):" in ended.err
    assert "alpha" in ended.err
    assert "3.0" in own_lock().read_text()
    assert built_in.lock.read_bytes() == before
    built_in.ok("update", "--user", "tiny")


def test_a_lock_that_counts_already_is_not_written_again(built_in: Project) -> None:
    built_in.ok("lock", "tiny")
    assert not own_lock().exists()
    built_in.ask_for('gamma = "*"')
    built_in.fails(2, "usage", "lock", "tiny")
    built_in.fails(7, "lock-stale", "lock", "--check", "tiny")
    built_in.ok("lock", "--user", "tiny")
    assert own_lock().exists()


def test_an_update_that_finds_nothing_newer_writes_no_copy(built_in: Project) -> None:
    (built_in.index.folder / "alpha-3.0-py3-none-any.whl").unlink()
    for words in (
        ("update", "--user", "tiny"),
        ("update", "--user", "--dry-run", "tiny"),
        ("update", "--user", "tiny", "beta"),
    ):
        ended = built_in.ok(*words, "--json")
        assert (ended.data["changed"], ended.data["path"]) == (False, str(built_in.lock))
        assert not own_lock().exists()
    assert f"{built_in.lock} is up to date" in built_in.ok("update", "--user", "tiny").err


def test_targets_show_and_create_say_whose_counts(built_in: Project) -> None:
    assert (row()["origin"], row()["lock_origin"]) == ("built-in", "built-in")
    assert "tiny (built-in)" in built_in.ok("show", "tiny").out
    built_in.ok("update", "--user", "tiny")
    assert (row()["origin"], row()["lock_origin"]) == ("built-in", "user")
    assert "tiny (manifest built-in, lock yours)" in built_in.ok("show", "tiny").out
    data = built_in.ok("create", "tiny", "--json").data
    assert (data["manifest_origin"], data["lock_origin"]) == ("built-in", "user")
    assert f"from {own_lock()} (manifest built-in, lock yours)" in built_in.ok("create", "tiny", "--exact").err


def test_reset_goes_back_to_the_lock_beside_the_manifest(built_in: Project) -> None:
    built_in.ok("update", "--user", "tiny")
    ended = built_in.ok("lock", "tiny", "--reset")
    assert ended.err == f"{own_lock()} removed: {built_in.lock} is in use now (built-in)\n"
    assert not own_lock().exists()
    assert row()["lock_origin"] == "built-in"
    built_in.fails(7, "lock-missing", "lock", "tiny", "--reset")
    assert built_in.lock.exists()


def test_a_project_s_lock_of_its_own_target_is_never_reset(locked: Project) -> None:
    locked.fails(7, "lock-missing", "lock", "tiny", "--reset")
    assert locked.lock.exists()


def test_in_a_project_the_lock_of_a_built_in_target_is_the_project_s(
    built_in: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("tenv.toml").write_text("")
    built_in.ok("update", "tiny")
    assert Path("locks/tiny.lock").is_file()
    assert row()["lock_origin"] == "project"
    built_in.ok("lock", "tiny", "--reset")
    assert not Path("locks/tiny.lock").exists()


def test_import_outside_a_project_makes_one_or_needs_user(built_in: Project) -> None:
    Path("environment.yml").write_text("name: theirs\ndependencies: [python=3.11]\n")
    built_in.ok("import", "--user", "environment.yml")
    assert (own_lock().parents[1] / "manifests" / "theirs.toml").is_file()
    assert not Path("manifests").exists()
    assert f"{Path.cwd()} is a project now" in built_in.ok("import", "environment.yml").err
    assert Path("manifests/theirs.toml").is_file()


@pytest.fixture
def checkout(built_in: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PyTorch checkout without manifests, in which the test stands."""
    folder = tmp_path / "elsewhere" / "pytorch"
    (folder / "torch" / "csrc").mkdir(parents=True)
    (folder / "setup.py").touch()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder


def test_a_checkout_without_manifests_becomes_a_project_on_request(built_in: Project, checkout: Path) -> None:
    err = built_in.fails(2, "usage", "update", "tiny")
    assert "`tenv update --user tiny` does that; `tenv update --project tiny` writes it here" in err
    built_in.ok("update", "--project", "--dry-run", "tiny")
    assert list(checkout.glob("[lt]*")) == [checkout / "torch"]
    assert "the checkout is a project now" in built_in.ok("update", "--project", "tiny").err
    assert "3.0" in (checkout / "locks" / "tiny.lock").read_text()
    assert not own_lock().exists()
    assert (row()["origin"], row()["lock_origin"]) == ("built-in", "project")
    built_in.ok("lock", "tiny")  # the project is found again
    assert call("update", "--project", "--user", "tiny").status == 2


def test_a_checkout_in_a_project_changes_its_lock_only_on_request(built_in: Project, checkout: Path) -> None:
    project = checkout.parent
    (project / "tenv.toml").touch()
    err = built_in.fails(2, "usage", "update", "tiny")
    assert str(project / "locks" / "tiny.lock") in err
    assert "hint: `tenv update --project tiny` does that" in err
    built_in.ok("lock", "tiny")  # which satisfies its manifest: nothing is written
    built_in.ok("update", "--project", "tiny")
    assert "3.0" in (project / "locks" / "tiny.lock").read_text()
    assert not (checkout / "locks").exists()


def test_project_needs_one(built_in: Project) -> None:
    assert "`tenv init` makes this folder a project" in built_in.fails(2, "usage", "lock", "--project", "tiny")
