"""The command line of gdb, as data."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.debugging.interpreter import DebuggedPython

__all__ = ["PY_BT", "Debuggee", "gdb_environment", "gdb_words", "unfrozen"]

PY_BT = Path(__file__).with_name("py_bt.gdb")
"""Defines `py-bt` where the interpreter has no debug information."""

# SIGTRAP stays as gdb has it, a stop that the program does not see: in a script it is a breakpoint.
_SETTINGS = (
    "set breakpoint pending on",  # the libraries of torch are loaded later
    "set follow-fork-mode parent",  # DataLoader forks its workers; gdb stays with the program
    "set detach-on-fork on",
    "set follow-exec-mode same",
    "handle SIGCHLD nostop noprint pass",  # DataLoader's own handler reports workers that died
    "handle SIGPIPE nostop noprint pass",
)
_UNFREEZE_FROM = (3, 11)


@dataclass(frozen=True, slots=True)
class Debuggee:
    """A debugged program and its helpers.

    Attributes:
        words: The program's command line; empty to attach.
        pid: The process to attach to; None to start `words`.
        interpreter: The Python that runs it; None if no Python runs it.
        prefix: The environment's folder.
        pystack: The program `pystack`, or an empty text.
        install: The command that installs pystack.
        torch_script: PyTorch's own script for gdb; None without a checkout.
        shell: The user's shell, which gdb does not start and the program shall see.
    """

    words: tuple[str, ...]
    pid: int | None
    interpreter: DebuggedPython | None
    prefix: Path
    pystack: str = ""
    install: str = ""
    torch_script: Path | None = None
    shell: str | None = None


def unfrozen(words: Sequence[str], interpreter: DebuggedPython | None) -> tuple[str, ...]:
    """Return a Python's command line with the modules that are frozen into it left out, so that their files are shown.

    Only Python 3.11 and newer know `-X frozen_modules`.

    Args:
        words: The command line, the interpreter first.
        interpreter: That interpreter; None where the program is no Python.
    """
    minor = tuple(map(int, interpreter.minor.split("."))) if interpreter and interpreter.minor else ()
    if minor < _UNFREEZE_FROM or any("frozen_modules" in word for word in words):
        return tuple(words)
    return (words[0], "-X", "frozen_modules=off", *words[1:])


def gdb_words(gdb: str, debuggee: Debuggee, extra: Sequence[str] = ()) -> list[str]:
    """Return the command line of gdb.

    Args:
        gdb: The debugger.
        debuggee: The debugged program.
        extra: Further words of the user for gdb.
    """
    words = [gdb, "-q"]
    for command in _early(debuggee):  # before the program's file is read, whose scripts are loaded with it
        words += ["-iex", command]
    for command in (*_SETTINGS, *_late(debuggee)):
        words += ["-ex", command]
    words += extra
    return [*words, "-p", str(debuggee.pid)] if debuggee.pid is not None else [*words, "--args", *debuggee.words]


def _early(debuggee: Debuggee) -> Iterator[str]:
    python = debuggee.interpreter
    safe = [debuggee.prefix]
    safe += [python.real.parent, python.core.parent] if python and python.script and python.loads else []
    yield from (f"add-auto-load-safe-path {folder}" for folder in dict.fromkeys(safe))
    printers = debuggee.prefix / "share" / "gdb" / "auto-load"
    if printers.is_dir():  # the environment's compilers bring the printers of their libstdc++
        yield f"add-auto-load-scripts-directory {printers}"


def _late(debuggee: Debuggee) -> Iterator[str]:
    python = debuggee.interpreter
    if python and python.script and python.symbols and not python.loads:
        yield f"source {python.script}"
    if python and not python.frames:
        values = {"pystack": debuggee.pystack, "lacks": python.lacks(), "hint": debuggee.install}
        yield "python " + "; ".join(f"tenv_{name} = {json.dumps(value)}" for name, value in values.items())
        yield f"source {PY_BT}"
    if debuggee.torch_script:
        yield f"source {debuggee.torch_script}"
    if debuggee.pid is None:
        yield f"set environment SHELL {debuggee.shell}" if debuggee.shell else "unset environment SHELL"


def gdb_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of gdb.

    gdb starts the program by way of a shell. The start files of zsh and fish may change PATH, and `sh` reads none. The
    program itself sees the user's SHELL.
    """
    return {**environment, "SHELL": "/bin/sh"}
