"""`TENV_LOCKED`, `TENV_FROZEN` and `TENV_OFFLINE`: every command that they concern obeys them."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenv.cli.main import COMMANDS
from tenv.verbs.create import LockMode
from tenv.verbs.lock_place import mode_by_variables
from tests.support.each import each
from tests.support.fakes import make_wheel
from tests.support.projects import Project
from tests.support.rarely import first_fast

if TYPE_CHECKING:
    import click

BOTH = pytest.mark.parametrize("variable", first_fast(["TENV_LOCKED", "TENV_FROZEN"]))


def files(project: Project) -> dict[Path, bytes]:
    return {path: path.read_bytes() for name in ("manifests", "locks") for path in (project.folder / name).iterdir()}


@each("name", COMMANDS)
def test_every_option_has_its_variable(name: str) -> None:
    module, attribute = COMMANDS[name]
    command: click.Command = getattr(importlib.import_module(f"tenv.cli.{module}"), attribute)
    options = {option: part.envvar for part in command.params for option in part.opts}
    for variable in ("TENV_LOCKED", "TENV_FROZEN", "TENV_OFFLINE"):
        option = f"--{variable.removeprefix('TENV_').lower()}"
        assert options.get(option, variable) == variable


@BOTH
def test_lock_only_checks(locked: Project, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    assert "satisfies its manifest" in locked.ok("lock", "tiny").err
    locked.ask_for('gamma = "*"')
    before = files(locked)
    err = locked.fails(7, "lock-stale", "lock")
    assert f"hint: `{variable}=0 tenv lock tiny` writes it" in err
    assert files(locked) == before
    locked.lock.unlink()
    locked.fails(7, "lock-missing", "lock", "tiny")
    monkeypatch.setenv(variable, "0")
    locked.ok("lock")


@BOTH
def test_what_would_change_the_lock_changes_nothing(
    created: Project, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(created), created.state_file.read_bytes()
    monkeypatch.setenv(variable, "1")
    err = created.fails(7, "lock-stale", "add", "tiny", "gamma>=1")
    assert f"{created.lock} would change, and {variable} is set" in err
    assert f"hint: `{variable}=0 tenv add tiny 'gamma>=1'` writes it" in err
    assert f"`{variable}=0 tenv drop tiny alpha`" in created.fails(7, "lock-stale", "drop", "alpha")
    created.ok("update")
    make_wheel(created.index.folder, "alpha", "7.0")
    err = created.fails(7, "lock-stale", "update", "tiny", "alpha")
    assert f"hint: `{variable}=0 tenv update tiny alpha` writes it; `tenv update tiny alpha --dry-run` prints" in err
    assert created.ok("update", "--dry-run", "--json").data["changed"] is True
    assert (files(created), created.state_file.read_bytes()) == before


def test_what_keeps_the_lock_as_it_is_may_change_the_manifest(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENV_LOCKED", "1")
    before = locked.lock.read_bytes()
    locked.ok("lock", "--check")
    locked.ok("default", "tiny")
    locked.ok("init", "mine", "--extends", "tiny")
    assert locked.lock.read_bytes() == before


def test_a_file_with_hashes_is_imported_without_its_lock(
    locked: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pinned.txt"
    package = "https://conda.anaconda.org/conda-forge/linux-64/bzip2-1.0.8-hda65f42_8.conda"
    file.write_text(f"@EXPLICIT\n{package}#{'ab' * 32}\n")
    monkeypatch.setenv("TENV_LOCKED", "1")
    before = files(locked)
    words = ("import", str(file), "--name", "other")
    assert "--no-lock` writes the manifest alone" in locked.fails(7, "lock-stale", *words)
    assert files(locked) == before
    locked.ok(*words, "--no-lock")
    assert not (locked.folder / "locks" / "other.lock").exists()


def test_the_lock_of_a_user_is_not_reset(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    own = locked.folder / "locks" / "cpu.lock"
    own.write_text("a lock of the project replaces the built-in one\n")
    monkeypatch.setenv("TENV_FROZEN", "1")
    locked.fails(7, "lock-stale", "lock", "cpu", "--reset")
    assert own.is_file()
    monkeypatch.delenv("TENV_FROZEN")
    locked.ok("lock", "cpu", "--reset")
    assert not own.exists()


def test_a_build_and_a_synchronized_run_take_the_lock_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mode_by_variables() is LockMode.UPDATE
    monkeypatch.setenv("TENV_FROZEN", "yes")
    assert mode_by_variables() is LockMode.FROZEN
    monkeypatch.setenv("TENV_LOCKED", "on")
    assert mode_by_variables() is LockMode.LOCKED
