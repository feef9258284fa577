"""`tenv activate`, `env` and `run`: only what is ready is used."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fakes import make_nvidia
from tests.support.projects import SOURCE, TINY, Project, call
from tests.support.rarely import first_fast, pairs_fast
from tests.support.shells import SPOKEN, Spoken

COMMANDS = [("activate", "tiny"), ("env", "tiny"), ("run", "tiny", "--", "true"), ("shell", "tiny")]


@pytest.mark.parametrize("state", ["creating", "broken", "damaged"])
def test_what_is_not_ready_is_not_used(created: Project, state: str) -> None:
    data = {**created.state(), "state": state}
    created.state_file.write_text(json.dumps(data) if state != "damaged" else "{")
    what = "the environment `tiny` is not ready (its state is `creating`)"
    for words in COMMANDS:
        err = created.fails(8, "environment-broken", *words)
        assert (what if state == "creating" else f"the state of {created.prefix} is broken, unreadable") in err
        assert "hint: `tenv create tiny` " in err


@pytest.mark.parametrize("words", COMMANDS)
def test_what_is_not_there_is_told(locked: Project, words: tuple[str, ...]) -> None:
    err = locked.fails(8, "environment-missing", *words)
    assert "hint: `tenv create tiny` creates it" in err


def test_the_hint_about_another_folder_names_it(locked: Project, tmp_path: Path) -> None:
    away = str(tmp_path / "not there")
    for words, target in (
        (("run", "--prefix", away, "--", "true"), "TARGET"),
        (("packages", "--prefix", away), "TARGET"),
        (("verify", "tiny", "--prefix", away), "tiny"),
    ):
        err = locked.fails(8, "environment-missing", *words)
        assert f"hint: `tenv create {target} --prefix '{away}'` creates it" in err


def test_the_only_environment_needs_no_name(created: Project) -> None:
    assert created.ok("activate", "--json").data["target"] == "tiny"


def test_two_environments_need_a_name(created: Project) -> None:
    (created.folder / "manifests" / "other.toml").write_text(TINY)
    created.ok("create", "other")
    err = created.fails(2, "usage", "activate")
    assert "no TARGET is given, and there are several environments: other, tiny" in err


def test_an_environment_elsewhere_is_named_by_its_folder(locked: Project, tmp_path: Path) -> None:
    prefix = tmp_path / "elsewhere"
    locked.ok("create", "tiny", "--prefix", str(prefix))
    data = locked.ok("activate", "--prefix", str(prefix), "--json").data
    assert data == {"target": "tiny", "script": str(prefix / "tenv-meta" / "activate.sh")}


@pytest.mark.parametrize("words", first_fast([("run", "tiny", "--", "true"), ("activate", "tiny"), ("shell", "tiny")]))
def test_the_active_environment_of_that_name_elsewhere_is_named_and_not_taken(
    locked: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    elsewhere = tmp_path / "some where" / "tiny"
    locked.ok("create", "tiny", "--prefix", str(elsewhere))
    monkeypatch.setenv("TENV_TARGET", "tiny")
    monkeypatch.setenv("TENV_PREFIX", str(elsewhere))
    err = locked.fails(8, "environment-missing", *words)
    assert f"`--prefix '{elsewhere}'` takes it" in err
    assert locked.ran("run", "--prefix", str(elsewhere), "--", "true").status == 0
    monkeypatch.setenv("TENV_TARGET", "cpu")
    assert "--prefix" not in locked.fails(8, "environment-missing", *words)


@pytest.mark.long
def test_run_becomes_the_program_with_its_status(created: Project) -> None:
    ended = created.run("run", "tiny", "--", "sh", "-c", 'echo "$TENV_TARGET $VIRTUAL_ENV"; exit 7')
    assert (ended.status, ended.out) == (7, f"tiny {created.prefix}\n")
    assert created.run("run", "tiny", "--", "beta").out == "beta 1.0\n"


def test_run_tells_of_a_program_that_is_not_there(created: Project) -> None:
    err = created.fails(2, "usage", "run", "tiny", "--", "no-such-program")
    assert "no program `no-such-program` in the environment or on PATH" in err


def test_a_toolkit_of_wheels_becomes_one_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    make_nvidia(project.index.folder)
    for name in ("nvidia-cuda-runtime", "nvidia-cuda-nvcc", "nvidia-cudnn-cu13", "cuda-toolkit"):
        project.ask_for(f'{name} = "*"')
    project.edit('glibc = "2.17"', 'glibc = "2.17"\ncuda = "13.0"')
    project.ok("create", "tiny")
    values = {row["name"]: row["value"] for row in call("env", "tiny", "--json").data}
    root = project.prefix / "cuda"
    assert (values["CUDA_HOME"], values["CUDNN_ROOT"]) == (str(root), str(root))
    assert values["CUDACXX"] == str(root / "bin" / "nvcc")
    assert values["PATH"] == os.pathsep.join([str(project.prefix / "bin"), str(root / "bin")])
    assert "release 13.0" in project.ran("run", "tiny", "--", "nvcc", "--version").out


def test_variables_of_a_manifest_are_expanded_in_the_environment(project: Project) -> None:
    text = """
[activation.env]
OWN = "$TENV_PREFIX/own $$HOME"
PATH = { append = "/opt/it's last" }
GONE = { unset = true }
"""
    project.manifest.write_text(project.manifest.read_text() + text)
    project.ok("create", "tiny")
    shown = 'printf "%s|%s|%s" "$OWN" "${PATH##*:}" "${GONE-none}"'
    ended = project.ran("run", "tiny", "--", "sh", "-c", shown, environment={"GONE": "x"})
    assert ended.out == f"{project.prefix}/own $HOME|/opt/it's last|none"
    told = project.ok("env", "tiny", "--explain", "OWN").out
    line = project.manifest.read_text().splitlines().index('OWN = "$TENV_PREFIX/own $$HOME"') + 1
    assert f"set by the manifest of tiny ([activation.env], manifests/tiny.toml:{line})" in told
    both = project.ok("env", "tiny", "--explain", "PATH").out
    assert "PATH=$PATH:/opt/it's last" in both
    assert f"PATH={project.prefix}/bin" in both


def test_a_manifest_that_would_replace_path_is_refused(project: Project) -> None:
    project.manifest.write_text(project.manifest.read_text() + '\n[activation.env]\nPATH = "/x:$PATH"\n')
    assert 'PATH = { prepend = "FOLDER" }' in project.fails(3, "manifest", "lock", "tiny")


@pytest.mark.parametrize("words", first_fast([("activate", "tiny"), ("run", "tiny", "--", "true"), ("verify", "tiny")]))
def test_one_that_was_made_outside_of_projects_is_offered_and_not_taken(
    locked: Project, words: tuple[str, ...]
) -> None:
    older = Path(os.environ["XDG_DATA_HOME"], "tenv", "envs", "tiny")
    locked.ok("create", "tiny", "--prefix", str(older))
    err = locked.fails(8, "environment-missing", *words)
    assert f"`--prefix {older}` takes it" in err
    assert "`tenv create tiny` creates one here" in err
    (older / "pyvenv.cfg").unlink()  # gutted: nothing to offer
    assert "--prefix" not in locked.fails(8, "environment-missing", *words)


def test_a_value_of_yours_stays_and_is_explained(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.manifest.write_text(project.manifest.read_text() + '\n[activation.env]\nUSE_X = "1"\n')
    project.ok("create", "tiny")
    jobs = project.ok("env", "tiny", "--json").data
    (made,) = (row["value"] for row in jobs if row["name"] == "MAX_JOBS")
    words = ("run", "tiny", "--", "sh", "-c", "echo $MAX_JOBS $USE_X")
    assert project.ok("env", "tiny", "--explain", "MAX_JOBS").out.endswith("in this shell it is not set\n")
    monkeypatch.setenv("MAX_JOBS", "777")
    assert project.ran(*words).out == "777 1\n"
    assert project.ok("env", "tiny", "--explain", "MAX_JOBS").out.endswith("in this shell it is `777`, which stays\n")
    monkeypatch.setenv("_TENV_GIVEN_MAX_JOBS", "777")
    assert project.ran(*words).out == f"{made} 1\n"
    assert project.ok("env", "tiny", "--explain", "MAX_JOBS").out.endswith("in this shell it is `777`\n")


@pytest.mark.parametrize(
    ("shell", "words"),
    pairs_fast(["bash", "sh", "fish"], ["nosuch", "--nosuch", "tiny tiny", "--shell=fish nosuch"]),
)
def test_a_failing_activation_fails_in_the_shell_that_evaluates_it(shell: str, words: str, locked: Project) -> None:
    program = shutil.which(shell, path="/usr/bin:/bin")
    assert program, f"{shell} is not installed"
    tenv = f"{sys.executable} -P -m tenv activate {words}"
    text = f"{tenv} | source; or exit 9; echo on" if shell == "fish" else f'set -e; eval "$({tenv})"; echo on'
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [program, "-c", text], env=environment, cwd=locked.folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (9 if shell == "fish" else 1, "")
    assert "error[" in done.stderr


@pytest.mark.long
def test_a_failing_activation_prints_no_script_for_others(locked: Project) -> None:
    ended = {
        name: locked.run("activate", "tiny", "--shell", name) for name in ("bash", "fish", "elvish", "xonsh", "csh")
    }
    assert {name: one.out for name, one in ended.items()} == {
        **dict.fromkeys(("bash", "fish"), "false\n"),
        **dict.fromkeys(("elvish", "xonsh", "csh"), ""),
    }
    assert not any(one.status == 0 for one in ended.values())
    assert json.loads(locked.run("activate", "tiny", "--json").out)["error"]["code"] == "environment-missing"


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param(s, id=s.name, marks=[pytest.mark.long] if s.name == "xonsh" else [])
        for s in SPOKEN
        if s.program and not s.stored
    ],
)
def test_a_shell_without_a_stored_script_starts_with_the_variables(shell: Spoken, created: Project) -> None:
    """nushell activates after its start files; elvish and xonsh inherit, and can deactivate."""
    ended = created.run("shell", "tiny", "--json", environment={"SHELL": str(shell.program), "MAX_JOBS": "777"})
    plan = json.loads(ended.out)["data"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **plan["environment"]["set"], "MAX_JOBS": "777"}
    _, *options = plan["command"]
    steps = [f"{options[1]}\n"] if options else []
    seen, _ = shell.run(created.folder, [*steps, shell.shot("started")], environment)
    started = {name.decode(): value.decode() for name, value in seen["started"].items()}
    assert (started["TENV_TARGET"], started["TENV_LEVEL"], started["MAX_JOBS"]) == ("tiny", "1", "777")
    assert started["PATH"].startswith(f"{created.prefix}/bin:")
