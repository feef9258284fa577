"""Every installed POSIX shell runs the scripts; the environments before and after are compared byte by byte."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Activation, Change, Watch
from tenv.activation.shells import posix
from tests.support.marked import mark
from tests.support.shells import note_lock

SHELLS = [name for name in ("bash", "zsh", "dash", "ksh", "mksh") if shutil.which(name)]
AWKWARD = 'it\'s "quoted" $HOME `x` \\ ;&|'


def activation(name: str, prefix: Path) -> Activation:
    return Activation(
        name,
        prefix,
        (
            Change("TENV_TARGET", Action.SET, name, ""),
            Change("TENV_PREFIX", Action.SET, str(prefix), ""),
            Change("PATH", Action.PREPEND, f"{prefix}/bin:{prefix}/cuda/bin", ""),
            Change("CMAKE_PREFIX_PATH", Action.PREPEND, str(prefix), ""),
            Change("CUDA_HOME", Action.SET, AWKWARD, ""),
            Change("PYTHONHOME", Action.UNSET, "", ""),
        ),
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    prefix = tmp_path / "a folder" / "cuda130"
    path = tmp_path / "activate.sh"
    path.write_text(posix.render_activation(activation("cuda130", prefix)))
    return path


def run(shell: str, text: str, **variables: str) -> str:
    """Run a text in a shell that stops at the first error and at every unset variable."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **variables}
    done = subprocess.run(
        [str(shutil.which(shell)), "-euc", text], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def snapshot(name: str) -> str:
    """Return shell text that prints every exported variable but those that shells set by themselves."""
    return f"echo '[{name}]'; env | grep -v -e '^_=' -e '^SHLVL=' -e '^OLDPWD=' | sort\n"


def sections(output: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = current = []
        else:
            current.append(line)
    return found


@pytest.mark.parametrize("shell", SHELLS)
def test_activation_sets_and_deactivation_restores_to_the_byte(shell: str, script: Path) -> None:
    undo = posix.render_deactivation()
    text = f"{snapshot('before')}. '{script}'\n{snapshot('active')}{undo}\n{snapshot('after')}"
    seen = sections(run(shell, text, CUDA_HOME="/opt/old cuda", PYTHONHOME="/odd", CMAKE_PREFIX_PATH=""))
    prefix = script.parent / "a folder" / "cuda130"
    assert f"CUDA_HOME={AWKWARD}" in seen["active"]
    assert f"PATH={prefix}/bin:{prefix}/cuda/bin:/usr/bin:/bin" in seen["active"]
    assert f"CMAKE_PREFIX_PATH={prefix}" in seen["active"]
    assert not [line for line in seen["active"] if line.startswith("PYTHONHOME=")]
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", SHELLS)
def test_variables_that_were_not_set_are_unset_again(shell: str, script: Path) -> None:
    text = f"{snapshot('before')}. '{script}'\n{posix.render_deactivation()}\n{snapshot('after')}"
    seen = sections(run(shell, text))
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", SHELLS)
def test_activations_nest(shell: str, script: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner.sh"
    inner.write_text(posix.render_activation(activation("cpu", tmp_path / "cpu")))
    undo = posix.render_deactivation()
    text = (
        f"{snapshot('before')}. '{script}'\n{snapshot('outer')}. '{inner}'\necho \"[inner]\"; echo $TENV_TARGET\n"
        f"{undo}\n{snapshot('outer again')}{undo}\n{snapshot('after')}"
    )
    seen = sections(run(shell, text))
    assert seen["inner"] == ["cpu"]
    assert seen["outer again"] == seen["outer"]
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", SHELLS)
def test_activating_the_active_environment_again_renews_it(shell: str, script: Path) -> None:
    text = f". '{script}'\n{snapshot('once')}. '{script}'\n{snapshot('twice')}"
    seen = sections(run(shell, text))
    assert seen["twice"] == seen["once"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ("PATH=/new:$PATH", "/new:/usr/bin:/bin"),
        ("PATH=$PATH:/new", "/usr/bin:/bin:/new"),
        ("PATH=/only", "/only"),
    ],
)
def test_what_others_did_to_path_meanwhile_is_kept(shell: str, script: Path, edit: str, expected: str) -> None:
    undo = posix.render_deactivation()
    assert run(shell, f". '{script}'\n{edit}\n{undo}\nPATH=$PATH:/usr/bin; echo \"$PATH\"") == f"{expected}:/usr/bin\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_subshell_can_deactivate_what_its_parent_activated(shell: str, script: Path) -> None:
    program = shutil.which(shell)
    child = posix.render_deactivation().replace("'", "'\\''") + 'echo "${CUDA_HOME-none} ${TENV_LEVEL-none}"'
    assert run(shell, f". '{script}'\n{program} -euc '{child}'") == "none none\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_deactivating_with_nothing_active_says_so_and_does_not_leave(shell: str) -> None:
    done = subprocess.run(
        [str(shutil.which(shell)), "-euc", f"{posix.render_deactivation()}\necho still here"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == "still here\n"
    assert done.stderr == "tenv: no environment is active\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_no_function_and_no_variable_is_left_behind(shell: str, script: Path) -> None:
    own = sorted(set(re.findall(r"\b_tenv_\w+", script.read_text())))
    assert {"_tenv_pop", "_tenv_activate", "_tenv_kind", "_tenv_full", "_tenv_own", "_tenv_keep"} <= set(own)
    probes = "".join(f'type {name} >/dev/null 2>&1 && echo {name}; echo "${{{name}-}}"\n' for name in own)
    assert run(shell, f". '{script}'\n. '{script}'\n{{ {probes}}} || :").split() == []


def hook(tmp_path: Path, program: str) -> str:
    return posix.render_hook([program], tmp_path / "data" / "envs")


def make_environment(folder: Path, home: Path, state: str) -> None:
    meta = folder / "tenv-meta"
    meta.mkdir(parents=True)
    (meta / "state.json").write_text(f'{{"state": "{state}", "schema": 2, "target": "tiny"}}\n')
    note_lock(meta)
    (meta / "activate.sh").write_text(posix.render_activation(activation(folder.name, folder)))
    mark(folder, home)


def fake_program(tmp_path: Path) -> Path:
    """A stand-in for tenv that tells it was asked, so that a test sees whether a program was started."""
    program = tmp_path / "tenv program"
    program.write_text('#!/bin/sh\necho "started: $*" >&2\nexit 8\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell in ("bash", "zsh")])
def test_the_hook_activates_a_project_s_environment_without_a_program(shell: str, tmp_path: Path) -> None:
    project = tmp_path / "my project"
    (project / "manifests").mkdir(parents=True)
    (project / "manifests" / "cuda130.toml").touch()
    (project / "src" / "deep").mkdir(parents=True)
    make_environment(project / ".tenv" / "envs" / "cuda130", tmp_path / "data" / "envs", "ready")
    text = (
        f"{hook(tmp_path, str(fake_program(tmp_path)))}cd '{project}/src/deep'\n"
        f"tenv activate cuda130\necho $TENV_PREFIX\ntenv deactivate\necho ${{TENV_PREFIX-none}}\n"
    )
    assert run(shell, text).splitlines() == [str(project / ".tenv" / "envs" / "cuda130"), "none"]


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell in ("bash", "zsh")])
def test_the_hook_finds_environments_of_the_user_outside_a_project(shell: str, tmp_path: Path) -> None:
    make_environment(tmp_path / "data" / "envs" / "cpu", tmp_path / "data" / "envs", "ready")
    text = f"{hook(tmp_path, str(fake_program(tmp_path)))}cd /\ntenv activate cpu\necho $TENV_PREFIX\n"
    assert run(shell, text) == f"{tmp_path / 'data' / 'envs' / 'cpu'}\n"


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell in ("bash", "zsh")])
@pytest.mark.parametrize("state", ["creating", "broken"])
def test_the_hook_never_takes_an_unfinished_environment(shell: str, state: str, tmp_path: Path) -> None:
    make_environment(tmp_path / "data" / "envs" / "cpu", tmp_path / "data" / "envs", state)
    text = f"{hook(tmp_path, str(fake_program(tmp_path)))}cd /\ntenv activate cpu || echo status $?\n"
    done = subprocess.run(
        [str(shutil.which(shell)), "-euc", text],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == "status 8\n"
    assert done.stderr == "started: activate --shell sh cpu\n"


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell in ("bash", "zsh")])
def test_the_hook_passes_everything_else_on(shell: str, tmp_path: Path) -> None:
    text = f"{hook(tmp_path, str(fake_program(tmp_path)))}tenv create 'two words' || echo status $?\n"
    done = subprocess.run(
        [str(shutil.which(shell)), "-euc", text],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert (done.stdout, done.stderr) == ("status 8\n", "started: create two words\n")


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    """A file of the machine, with its stamp beside it and a script that watches it."""
    file, stamp = tmp_path / "it's nvcc", tmp_path / "stamp"
    file.write_text("nvcc")
    stamp.touch()
    os.utime(file, (1_600_000_000, 1_600_000_000))
    os.utime(stamp, (1_600_000_000, 1_600_000_000))
    watch = Watch(((str(file), str(stamp)),), f"warning: {AWKWARD} %s")
    made = replace(activation("cuda130", tmp_path / "env"), watches=(watch,))
    (tmp_path / "watch.sh").write_text(posix.render_activation(made))
    return file


def said(shell: str, file: Path) -> str:
    """Return what a script says in a shell that stops at the first error, and that it has set its variables."""
    text = f'. {posix.quote(str(file.with_name("watch.sh")))}; echo "$TENV_TARGET"; command -v _tenv_same || :'
    done = subprocess.run([str(shutil.which(shell)), "-euc", text], capture_output=True, text=True, check=True)
    assert done.stdout == "cuda130\n"
    return done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_that_is_as_it_was_is_not_told(shell: str, watched: Path) -> None:
    assert said(shell, watched) == ""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("time", [1_500_000_000, 1_600_000_001])
def test_a_file_that_is_older_or_newer_is_told(shell: str, watched: Path, time: int) -> None:
    os.utime(watched, (time, time))
    assert said(shell, watched) == f"tenv: warning: {AWKWARD} %s\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_that_is_gone_is_told(shell: str, watched: Path) -> None:
    watched.unlink()
    assert said(shell, watched) == f"tenv: warning: {AWKWARD} %s\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_without_a_stamp_only_what_is_gone_is_told(shell: str, watched: Path) -> None:
    watched.with_name("stamp").unlink()
    os.utime(watched, (1, 1))
    assert said(shell, watched) == ""
