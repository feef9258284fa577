"""The process ``tenv``, also as ``python -m tenv``: the command line, and an end without the interpreter's own."""

import os
import sys

__all__ = ["leave", "run"]

_SIGN = 1 << 31


def run() -> None:
    """Run the command line and end the process with its status."""
    status = 0
    try:
        from tenv.quick.short_way import answer  # late: here, so that Ctrl-C while it is loaded is one, too

        if not answer(sys.argv[1:]):
            from tenv.cli.main import main  # late: far more to load

            main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:  # while the program was still being loaded
        status = 130
    leave(status)


def leave(status: int) -> None:
    """End the process at once, its output flushed; a negative status is a signal that it is to die of.

    The interpreter is not taken down: to free one by one what the system takes back at once is a fifth of a short
    command's time, and rattler's threads now and then crash meanwhile, after all work is done. So whatever must be
    cleaned up stands in a ``with`` or a ``finally``; nothing may wait for the end of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # closed by the caller
                stream.flush()
        except (OSError, ValueError):
            status = status or 1
    if status < 0:
        os.kill(os.getpid(), -status)  # its handler is the system's again
    # A crash on Windows is a status above what a C int holds (0xC0000005), which `tenv run` passes on.
    os._exit((status + _SIGN) % (2 * _SIGN) - _SIGN)


def _without_working_folder() -> None:
    """Take off the path what ``python -m`` puts first: a ``yaml.py`` of a cloned repository must not be imported."""
    try:
        here = os.getcwd()  # noqa: PTH109 (pathlib is not loaded yet)
    except OSError:  # it was removed
        here = ""
    if not sys.flags.safe_path and sys.path[:1] and sys.path[0] in ("", here):
        del sys.path[0]


if __name__ == "__main__":
    _without_working_folder()
    run()
