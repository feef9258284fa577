"""Replace this process with another program."""

import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tenv.core.process import spawn

__all__ = ["replace"]


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
        from tenv.core.program_file import not_started  # late: a rare failure

        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        raise not_started(arguments[0], error) from error


def _become(arguments: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    try:
        os.execvpe(arguments[0], list(arguments), environment)  # noqa: S606 (the point of this function)
    except OSError as error:
        from tenv.core.program_file import is_shell_script  # late: a rare failure

        if error.errno != errno.ENOEXEC or not is_shell_script(arguments[0]):
            raise
        os.execve("/bin/sh", ["/bin/sh", *arguments], environment)  # noqa: S606
