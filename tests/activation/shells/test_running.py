"""The shell that `activate` writes for: the one that started tenv."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.activation.shells.interface import find_shell, known_shells
from tenv.core.errors import UsageError
from tests.support.projects import SOURCE
from tests.support.shells import SPOKEN

ASK = (
    "import os; from tenv.activation.shells.interface import running_shell; print(running_shell(os.environ)); "
    "import sys; sys.stdout.flush()"
)


def asked_from(program: str, folder: Path, name: str, login: str) -> str:
    """Start a program under a name as the parent of a Python that asks; a launcher lies between them."""
    link = folder / name
    link.symlink_to(program)
    environment = {"PATH": "/usr/bin:/bin", "SHELL": login, "PYTHONPATH": str(SOURCE)}
    code = f"env {sys.executable} -c '{ASK}'; exit 0"
    done = subprocess.run(
        [str(link), "-c", code], env=environment, capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a machine without /proc tells no parents")
@pytest.mark.parametrize("name", ["dash", "fish", "tcsh", "csh", "sh"])
def test_the_parent_counts_and_not_the_login_shell(name: str, tmp_path: Path) -> None:
    assert asked_from(os.path.realpath("/bin/sh"), tmp_path, name, "/bin/zsh") == name


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a machine without /proc tells no parents")
def test_a_title_that_holds_the_whole_command_line_names_the_shell(tmp_path: Path) -> None:
    """xonsh sets its title so where setproctitle is installed."""
    assert asked_from(os.path.realpath("/bin/sh"), tmp_path, "xonsh --no-rc", "/bin/zsh") == "xonsh"


@pytest.mark.parametrize("shell", [pytest.param(shell, id=shell.name) for shell in SPOKEN if shell.program])
def test_each_shell_is_found_out(shell: object, tmp_path: Path) -> None:
    spoken = next(one for one in SPOKEN if one is shell)
    file = tmp_path / "ask.py"
    file.write_text(ASK + "\n")
    line = f"{sys.executable} {file}\n"
    steps = [line] if spoken.name != "nu" else [f"^{line}"]
    environment = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/false", "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)}
    script = tmp_path / f"steps.{spoken.ending}"
    script.write_text("".join([*steps, "echo end\n"]))
    done = subprocess.run(
        [str(spoken.program), *spoken.words, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    found = done.stdout.splitlines()[0]
    assert find_shell(found) is spoken.module


def test_a_shell_that_tenv_does_not_speak_to_gets_what_works_in_any() -> None:
    with pytest.raises(UsageError) as caught:
        find_shell("tcsh", "cuda130")
    assert "`tcsh` is not a shell that tenv supports" in str(caught.value)
    assert "`tenv shell cuda130` and `tenv run cuda130 -- COMMAND`" in (caught.value.hint or "")
    assert "fish" in known_shells()
