"""An environment whose lock has other files: every command that uses it reports so, and `--sync` ends it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.activation.shells import fish, posix
from tenv.targets.search import find_places
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project, call, write_config
from tests.support.rarely import first_fast

USES = [("activate", "tiny"), ("run", "tiny", "--", "true"), ("env", "tiny"), ("verify", "tiny", "--no-probes")]


def newer(project: Project) -> str:
    """Lock newer versions; the environment stays what it was."""
    make_wheel(project.index.folder, "alpha", "3.0")
    project.ok("update", "tiny")
    return f"{project.lock} has other files: alpha 1.0 → 3.0, beta 1.0 removed"


def for_windows(project: Project) -> None:
    """Lock all platforms, and change the lock for win-64 alone."""
    project.widen_platforms()
    project.ok("lock", "tiny")
    head, _, tail = project.lock.read_text().partition("  wheels:\n")
    before, _, windows = tail.partition("    win-64:\n")
    assert windows
    project.lock.write_text(f"{head}  wheels:\n{before}    win-64:\n{windows.replace('beta', 'other')}")


def state_of(project: Project) -> str:
    [row] = project.ok("list", "--json").data
    return str(row["state"])


def test_a_stale_environment_is_reported_by_every_command_that_uses_it(created: Project) -> None:
    said = newer(created)
    for words in USES[:-1]:
        ended = created.ran(*words)
        assert (ended.status, ended.err.count(f"warning: the environment `tiny` is stale: {said}")) == (0, 1), ended
        assert ended.err.count("`tenv create tiny` updates it") == 1
    [row] = created.ok("list", "--json").data
    assert (row["state"], row["reason"]) == ("stale", said)
    shown = created.ok("show", "tiny", "--json").data
    assert (shown["state"], shown["reason"]) == ("stale", row["reason"])
    assert "(stale: " in created.ok("show", "tiny").out
    created.ok("create", "tiny")
    assert state_of(created) == "ready"
    assert created.ok("activate", "tiny").err == ""


@pytest.mark.long
def test_stale_changes_no_status_but_that_of_verify_and_of_list_check(created: Project) -> None:
    assert call("list", "--check").status == 0
    assert call(*USES[-1]).status == 0
    newer(created)
    assert [created.ran(*words).status for words in USES] == [0, 0, 0, 1]
    found = call(*USES[-1], "--json").data
    assert found["stale"] is True
    assert (call("list").status, call("list", "--check").status) == (0, 1)
    assert "is stale" in call("list", "--check").err


@pytest.mark.parametrize("words", first_fast(USES, 2))
def test_with_locked_a_stale_environment_is_refused(
    created: Project, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    newer(created)
    monkeypatch.setenv("TENV_LOCKED", "1")
    err = created.fails(7, "environment-stale", *words)
    assert "hint: `tenv create tiny` updates it" in err
    monkeypatch.setenv("TENV_LOCKED", "0")
    assert call(*USES[0]).status == 0


def test_locked_is_an_option_too(created: Project) -> None:
    newer(created)
    for words in (("run", "--locked", "tiny", "--", "true"), ("activate", "--locked", "tiny")):
        assert "`tenv create tiny` updates it" in created.fails(7, "environment-stale", *words)


def test_a_variable_that_is_neither_yes_nor_no_is_an_error(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENV_OFFLINE", "perhaps")
    err = created.fails(2, "usage", "list")
    assert "TENV_OFFLINE is `perhaps`" in err


def test_a_change_for_another_platform_is_no_change_here(created: Project) -> None:
    for_windows(created)
    assert state_of(created) == "ready"
    assert created.ok("activate", "tiny").err == ""


def test_a_lock_of_other_bytes_and_the_same_files_is_current(created: Project) -> None:
    created.lock.write_text(created.lock.read_text() + "# a comment\n")
    assert state_of(created) == "ready"
    assert created.ok("activate", "tiny").err == ""


def test_a_checkout_of_the_same_lock_is_current(created: Project) -> None:
    text = created.lock.read_bytes()
    created.lock.unlink()
    created.lock.write_bytes(text)
    assert state_of(created) == "ready"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda lock: lock.unlink(), "there is no lock for `tiny`"),
        (lambda lock: lock.write_text("<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n"), "merge"),
        (lambda lock: lock.write_text(lock.read_text().replace("  schema: 6", "  schema: 99")), "reads 6 alone"),
        (lambda lock: lock.write_text("nonsense: ["), "tiny.lock"),
    ],
    ids=["deleted", "conflict", "another schema", "corrupt"],
)
def test_a_lock_that_can_not_be_compared_is_reported(created: Project, damage: object, reason: str) -> None:
    assert callable(damage)
    damage(created.lock)
    ended = created.ok("activate", "tiny")
    assert "whether the environment `tiny` is stale is unknown: " in ended.err
    assert reason in ended.err
    [row] = created.ok("list", "--json").data
    assert row["state"] == "ready"
    assert reason in row["reason"]
    assert call("list", "--check").status == 1
    created.fails(7, "environment-stale", "run", "--locked", "tiny", "--", "true")


def test_a_lock_that_appears_nearer_counts(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv"
    own.mkdir(parents=True)
    (locked.folder / "manifests").rename(own / "manifests")
    (locked.folder / "tenv.toml").write_text("")
    shutil.copytree(locked.folder / "locks", own / "locks")
    locked.lock.unlink()
    locked.ok("create", "tiny")
    assert locked.ok("activate", "tiny").err == ""
    text = (own / "locks" / "tiny.lock").read_text()
    locked.lock.write_text(text.replace("alpha", "omega"))
    assert "is stale" in locked.ok("activate", "tiny").err


def test_an_environment_outside_the_project_has_a_lock_outside_it(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(os.environ["XDG_DATA_HOME"]) / "tenv" / "envs" / "cpu"
    created.ok("create", "tiny", "--prefix", str(other))
    rows = {row["prefix"]: row for row in created.ok("list", "--json").data}
    assert "there is no target `tiny`" in rows[str(other)]["reason"]


def test_an_environment_of_another_project_has_its_lock_there(
    created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    used = ("activate", "--prefix", str(created.prefix))
    assert created.ok(*used).err == ""
    monkeypatch.chdir(created.folder)
    newer(created)
    monkeypatch.chdir(tmp_path)
    way = f"`cd {created.folder} && tenv create tiny` updates it"
    assert f"is stale: {created.lock} has other files" in created.ok(*used).err
    assert way in created.ok(*used).err
    created.fails(7, "environment-stale", *used, "--locked")


def test_what_is_created_for_another_project_is_not_noted_by_the_lock_there(
    created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    shutil.copytree(created.folder / "manifests", other / "manifests")
    shutil.copytree(created.folder / "locks", other / "locks")
    lock = other / "locks" / "tiny.lock"
    lock.write_text(lock.read_text().replace("alpha", "omega"))
    monkeypatch.chdir(created.folder)
    prefix = other / ".tenv" / "envs" / "tiny"
    created.ok("create", "tiny", "--prefix", str(prefix))
    monkeypatch.chdir(other)
    assert f"is stale: {lock} has other files" in created.ok("activate", "tiny").err


def test_run_brings_it_up_to_date_on_request(created: Project) -> None:
    newer(created)
    shown = ("tiny", "--", "sh", "-c", "python -B -c 'import alpha; print(alpha.VERSION)'")
    assert created.ran("run", *shown).out == "1.0\n"
    assert created.ran("run", "--sync", *shown).out == "3.0\n"
    assert state_of(created) == "ready"


@pytest.mark.long
def test_an_update_of_the_same_size_and_second_runs_the_new_module(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.delenv(name, raising=False)
    newer(created)
    shown = ("tiny", "--", "python", "-c", "import alpha; print(alpha.VERSION)")
    assert created.ran("run", *shown).out == "1.0\n"
    module = created.site() / "alpha.py"
    before = module.stat()
    created.ok("create", "tiny")
    assert module.stat().st_size == before.st_size
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert created.ran("run", *shown).out == "3.0\n"


@pytest.mark.parametrize("where", first_fast(["project", "user"]))
def test_the_project_or_the_user_can_ask_for_that_always(created: Project, where: str) -> None:
    newer(created)
    if where == "project":
        (created.folder / "tenv.toml").write_text("sync = true\n")
    else:
        write_config("sync = true\n")
    shown = ("tiny", "--", "sh", "-c", "python -B -c 'import alpha; print(alpha.VERSION)'")
    assert created.ran("run", "--no-sync", *shown).out == "1.0\n"
    assert created.ran("run", *shown).out == "3.0\n"


def test_the_project_wins_over_the_user(created: Project) -> None:
    newer(created)
    (created.folder / "tenv.toml").write_text("sync = false\n")
    write_config("sync = true\n")
    assert "is stale" in created.ran("run", "tiny", "--", "true").err


def test_sync_writes_no_lock(created: Project) -> None:
    created.ask_for('gamma = "*"')
    before = created.lock.read_bytes()
    created.fails(7, "lock-stale", "run", "--sync", "tiny", "--", "true")
    assert created.lock.read_bytes() == before


def test_an_unknown_key_of_tenv_toml_is_an_error(created: Project) -> None:
    (created.folder / "tenv.toml").write_text("snyc = true\n")
    err = created.fails(2, "usage", "run", "tiny", "--", "true")
    assert "tenv.toml:1: snyc: unknown key" in err
    assert "did you mean `sync`?" in err


def test_a_rollback_is_stale_until_the_next_create(created: Project) -> None:
    newer(created)
    created.ok("create", "tiny")
    created.ok("rollback", "tiny")
    assert state_of(created) == "stale"


@pytest.mark.parametrize("shell", first_fast(["bash", "fish"]))
def test_the_hook_starts_python_only_when_the_lock_changes(created: Project, shell: str) -> None:
    program = shutil.which(shell, path="/usr/bin:/bin")
    assert program, f"{shell} is not installed"
    wrapper = created.folder / "tenv"
    wrapper.write_text(f'#!/bin/sh\necho asked >>"{created.folder}/asked"\nexec {sys.executable} -m tenv "$@"\n')
    wrapper.chmod(0o755)
    module = {"bash": posix, "fish": fish}[shell]
    (created.folder / "hook").write_text(module.render_hook([str(wrapper)], find_places().data / "envs"))

    def activate() -> tuple[int, str]:
        asked = created.folder / "asked"
        asked.write_text("")
        done = subprocess.run(
            [program, "-c", f"source '{created.folder}/hook'; tenv activate tiny"],
            cwd=created.folder,
            env={**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return len(asked.read_text().splitlines()), done.stderr

    assert activate() == (0, "")
    os.utime(created.lock)
    assert [activate(), activate()] == [(1, ""), (0, "")]
    newer(created)
    count, said = activate()
    assert (count, "is stale" in said) == (1, True)
    count, said = activate()
    assert (count, said.count("tenv: the environment `tiny` is stale")) == (0, 1)
    created.ok("create", "tiny")
    assert activate() == (0, "")
    assert json.loads(created.state_file.read_text())["python"] == HERE


@pytest.mark.long
def test_an_environment_elsewhere_is_compared_with_the_lock_that_it_was_made_from(
    created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies below no project, so that its folder does not tell whose it is."""
    there = tmp_path / "there"
    created.ok("create", "tiny", "--prefix", str(there))
    other = tmp_path / "other"
    (other / "manifests").mkdir(parents=True)
    (tmp_path / "none").mkdir()
    text = created.manifest.read_text()
    (other / "manifests" / "tiny.toml").write_text(text.replace('alpha  = ">=1"', 'gamma = "*"'))
    uses = (("gdb", "--prefix", str(there), "--json"), ("activate", "--prefix", str(there), "--shell", "bash"))
    monkeypatch.chdir(other)
    created.ok("lock", "tiny")
    for folder in (other, tmp_path / "none"):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PWD", str(folder))
        for words in uses:
            assert "stale" not in call(*words).err, words

    monkeypatch.chdir(created.folder)
    created.ok("add", "tiny", "gamma", "--no-create")
    monkeypatch.chdir(other)
    monkeypatch.setenv("PWD", str(other))
    way = f"`cd {created.folder} && tenv create tiny --prefix {there}` updates it"
    for words in uses:
        said = call(*words).err
        assert f"is stale: {created.lock} has other files: gamma 1.0 added; {way}" in said

    created.ok("create", "tiny", "--prefix", str(there))  # that of the project of the working folder counts now
    for words in uses:
        assert "stale" not in call(*words).err, words
