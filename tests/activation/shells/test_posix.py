"""POSIX shells alone: names that a script must not leave behind, and the status of a hook that asks tenv."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Activation, Change, Watch
from tenv.activation.shells import posix
from tests.support.each import each

SHELLS = [name for name in ("bash", "zsh", "dash", "ksh", "mksh") if shutil.which(name)]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    watch = Watch(((str(tmp_path / "watched"), str(tmp_path / "stamp")),), "changed")
    changes = (
        Change("TENV_TARGET", Action.SET, "cuda130", ""),
        Change("TENV_PREFIX", Action.SET, str(tmp_path), ""),
        Change("PATH", Action.PREPEND, f"{tmp_path}/bin:{tmp_path}/cuda/bin", ""),
        Change("PYTHONHOME", Action.UNSET, "", ""),
        Change("MAX_JOBS", Action.SET, "8", "", default=True),
    )
    path = tmp_path / "activate.sh"
    path.write_text(posix.render_activation(Activation("cuda130", tmp_path, changes, (watch,))))
    (tmp_path / "watched").touch()
    return path


def run(shell: str, text: str) -> "subprocess.CompletedProcess[str]":
    """Run a text in a shell that stops at the first error and at every unset variable."""
    words = [str(shutil.which(shell)), "-euc", text]
    return subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shell", SHELLS)
def test_no_function_and_no_variable_is_left_behind(shell: str, script: Path) -> None:
    own = sorted(set(re.findall(r"\b_tenv_\w+", script.read_text())))
    assert {"_tenv_pop", "_tenv_activate", "_tenv_full", "_tenv_own", "_tenv_keep", "_tenv_same"} <= {*own}
    probes = "".join(f'type {name} >/dev/null 2>&1 && echo {name}; echo "${{{name}-}}"\n' for name in own)
    done = run(shell, f". '{script}'\n. '{script}'\n{{ {probes}}} || :")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")


@each("shell", SHELLS)
def test_the_hook_passes_on_the_status_of_tenv(shell: str, tmp_path: Path) -> None:
    program = tmp_path / "tenv program"
    program.write_text('#!/bin/sh\necho "started: $*" >&2\nexit 8\n')
    program.chmod(0o755)
    hook = posix.render_hook([str(program)], tmp_path / "data" / "envs")
    for words, started in (("activate cpu", "activate --shell sh cpu"), ("create 'two words'", "create two words")):
        done = run(shell, f"{hook}cd /\ntenv {words} || echo status $?\n")
        assert (done.stdout, done.stderr) == ("status 8\n", f"started: {started}\n")
