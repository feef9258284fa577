"""`tenv activate`, `env` and `run`: only what is ready is used."""

import json
import os
from pathlib import Path

import pytest

from tests.support.fakes import make_nvidia
from tests.support.projects import TINY, Project, call

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


@pytest.mark.parametrize("words", [("run", "tiny", "--", "true"), ("activate", "tiny"), ("shell", "tiny")])
def test_the_active_environment_of_that_name_elsewhere_is_named_and_not_taken(
    locked: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    elsewhere = tmp_path / "some where" / "tiny"
    locked.ok("create", "tiny", "--prefix", str(elsewhere))
    monkeypatch.setenv("TENV_TARGET", "tiny")
    monkeypatch.setenv("TENV_PREFIX", str(elsewhere))
    err = locked.fails(8, "environment-missing", *words)
    assert f"`--prefix '{elsewhere}'` takes it" in err
    assert locked.run("run", "--prefix", str(elsewhere), "--", "true").status == 0
    monkeypatch.setenv("TENV_TARGET", "cpu")
    assert "--prefix" not in locked.fails(8, "environment-missing", *words)


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
    assert "release 13.0" in project.run("run", "tiny", "--", "nvcc", "--version").out


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
    ended = project.run("run", "tiny", "--", "sh", "-c", shown, environment={"GONE": "x"})
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


@pytest.mark.parametrize("words", [("run", "tiny", "--", "true"), ("activate", "tiny"), ("verify", "tiny")])
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
