"""The process ``tenv``, also as ``python -m tenv``: the command line, and an end without the interpreter's own."""

import os
import sys

_SIGN = 1 << 31
_VERSION = (["--version"], ["-V"], ["version"])
"""The command lines by which scripts detect tenv; they load nothing else of it."""


def run() -> None:
    """Run the command line and end the process with its status."""
    status = 0
    try:
        if sys.argv[1:] not in _VERSION or not _print_version():
            from tenv.cli.main import main  # late: far more to load

            main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:  # while the program was still being loaded
        status = 130
    leave(status)


def _print_version() -> bool:
    """Print the version and the commit; return False if that fails, so that the whole program reports the reason."""
    if sys.stdout is None:  # closed by the caller; 1 may be another file now
        return False
    from tenv import __version__  # late: here, so that Ctrl-C while it is loaded is one, too
    from tenv.core.source_commit import source_commit

    commit = source_commit()
    text = f"tenv {__version__} ({commit[:12]})\n" if commit else f"tenv {__version__}\n"
    try:
        os.write(1, text.encode())  # `sys.stdout` would keep what it can't write
    except OSError:
        return False
    return True


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
