"""A terminal for a program that shows its progress on one only."""

import os
import re
from collections.abc import Iterator

__all__ = ["ESCAPES", "open_terminal", "read_terminal"]

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
"""Control sequences of terminals: colors, movements, titles."""


def open_terminal() -> tuple[int, int]:
    """Return both ends of a wide terminal, in which names and sizes are not truncated.

    A pipe stands in where there is no terminal to have, as in a bare chroot without ``/dev/pts``: its program reports
    less progress.
    """
    import fcntl  # not on Windows
    import pty  # not on Windows
    import struct
    import termios  # not on Windows

    try:
        ours, theirs = pty.openpty()
    except OSError:
        return os.pipe()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    return ours, theirs


def read_terminal(handle: int) -> Iterator[str]:
    """Yield the output of a terminal without escape sequences until its last writer ends; empty while there is none."""
    import select  # not on Windows

    (waiting := select.poll()).register(handle, select.POLLIN)
    while True:
        if not waiting.poll(200):  # milliseconds
            yield ""
            continue
        try:
            chunk = os.read(handle, 65536)
        except OSError:  # Linux returns EIO after the last writer has ended
            return
        if not chunk:
            return
        yield ESCAPES.sub("", chunk.decode("utf-8", "replace"))
