"""Replace this process with another program, or name the reason why the system can't start it."""

import errno
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tenv.core.errors import ProgramError
from tenv.core.process import spawn


def replace(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Replace this process with another program; on Windows, run it and return its exit status.

    The program keeps the process id, so that signals and its exit status need no forwarding. A text without an
    interpreter is a script of the shell, as for every shell.

    Raises:
        ProgramError: The system can't start it.
    """
    if sys.platform == "win32":
        return spawn(arguments, environment)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the caller
            stream.flush()
    ignored = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ")]
    for number in ignored:  # by Python, and an ignored signal stays so in a new program
        signal.signal(number, signal.SIG_DFL)
    try:
        _become(arguments, environment)
    except OSError as error:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        raise not_started(arguments[0], error) from error


def _become(arguments: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    try:
        os.execvpe(arguments[0], list(arguments), environment)  # noqa: S606 (the point of this function)
    except OSError as error:
        if error.errno != errno.ENOEXEC or not is_shell_script(arguments[0]):
            raise
        os.execve("/bin/sh", ["/bin/sh", *arguments], environment)  # noqa: S606


_MOST = 256
"""Bytes of a first line that Linux reads."""


def require_interpreter(program: str) -> None:
    """Refuse a script whose first line names an interpreter that is not there.

    Args:
        program: The path of the file.

    Raises:
        ProgramError: There is no such interpreter.
    """
    line, *_ = _head(program).split(b"\n", 1)
    words = line.removeprefix(b"#!").strip(b" \t").split(None, 1) if line.startswith(b"#!") else []
    if not words:
        return
    name = os.fsdecode(words[0])
    if line.endswith(b"\r") and len(words) == 1 and not os.path.lexists(f"{name}\r"):
        raise ProgramError(
            f"{program} can't be started: its lines end as those of Windows, so `{name}\\r` is its interpreter",
            hint=rf"`sed -i 's/\r$//' {shlex.quote(program)}` mends it",
        )
    if not os.path.lexists(name):
        raise ProgramError(
            f"{program} can't be started: its interpreter `{name}` does not exist",
            hint=f"the first line of the file names it: `{os.fsdecode(line)}`",
        )


def is_shell_script(program: str) -> bool:
    """Return whether a file that the system can't execute is text, which shells run as a script of theirs."""
    line, *_ = _head(program).split(b"\n", 1)
    return b"\0" not in line and not line.startswith(b"\x7fELF")


def not_started(program: str, error: OSError) -> ProgramError:
    """Return the error for a program that exists and that the system refuses to start."""
    why = error.strerror or str(error)
    if error.errno == errno.ENOEXEC:
        why = "it is no program of this machine (Exec format error)"
    elif error.errno == errno.ENOENT and _head(program).startswith(b"\x7fELF"):
        why = "its loader does not exist; it was built for another libc or another processor (`file` says for which)"
    return ProgramError(f"{program} can't be started: {why}")


def _head(program: str) -> bytes:
    """Return the first bytes of a file; none of one that can't be read, which may be executed all the same."""
    try:
        with open(program, "rb") as file:  # noqa: PTH123 (a name of the command line)
            return file.read(_MOST)
    except OSError:
        return b""
