"""Run a program, or a shell, in an environment."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tenv import process
from tenv.errors import UsageError
from tenv.shells import posix
from tenv.workflows.activate import find_activation, find_script
from tenv.workflows.context import Context

__all__ = ["run", "start_shell"]


def run(context: Context, target: str, prefix: Path | None, words: Sequence[str]) -> int:
    """Become a program that runs in an environment; returns only where the system can't do that (Windows).

    Raises:
        UsageError: There is no such program.
    """
    environment = find_activation(context, target, prefix).apply(context.environ)
    program = process.find(words[0], environment.get("PATH"))
    if program is None:
        raise UsageError(f"there is no program `{words[0]}` in the environment or on PATH")
    return process.replace([program, *words[1:]], environment)


def start_shell(context: Context, target: str | None, prefix: Path | None, say: Callable[[str], None]) -> int:
    """Become the user's shell with an environment active.

    bash and zsh read their start files first and activate after them, since start files put folders before PATH.
    Other shells get the variables before they start.
    """
    name, script = find_script(context, target, prefix, posix.SCRIPT)
    shell = context.environ.get("SHELL") or process.find("bash") or "/bin/sh"
    program = process.find(shell, context.environ.get("PATH"))
    if program is None:
        raise UsageError(f"the shell `{shell}` ($SHELL) is not there")
    say(f"{name} is active in this shell; `exit` leaves it")
    environment = dict(context.environ)
    kind = Path(program).name
    if kind == "bash":
        start = _start_file("[ -f ~/.bashrc ] && . ~/.bashrc\n" + posix.render_source(str(script)))
        return process.replace([program, "--rcfile", str(start), "-i"], environment)
    if kind == "zsh":
        own = environment.get("ZDOTDIR", "")
        home = own or environment.get("HOME", "")
        restore = f"export ZDOTDIR={posix.quote(own)}" if own else "unset ZDOTDIR"
        text = f"{restore}\n[ -f {posix.quote(home)}/.zshrc ] && . {posix.quote(home)}/.zshrc\n"
        start = _start_file(text + posix.render_source(str(script)), ".zshrc")
        environment["ZDOTDIR"] = str(start.parent)
        return process.replace([program, "-i"], environment)
    return process.replace([program], find_activation(context, name, prefix).apply(environment))


def _start_file(text: str, name: str = "start.sh") -> Path:
    """Write a start file that removes itself once it has been read."""
    folder = Path(tempfile.mkdtemp(prefix="tenv-shell-"))
    path = folder / name
    path.write_text(f"{text}command rm -rf {posix.quote(str(folder))}\n")
    os.chmod(folder, 0o700)  # noqa: PTH101
    return path
