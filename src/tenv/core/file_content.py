"""Read a file that may be anything: its kind and its size are checked before its content is.

A named pipe or a device would block a command forever or fill the memory.
"""

import codecs
import contextlib
import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenv.core.files import MOST, open_regular, read_regular

_PIECE = 1 << 20

_SILENT = 300
"""Seconds without a byte after which a pipe is given up; a report over ssh takes some seconds."""

_UNOPENED = 2
"""Seconds that a pipe without a writer is waited for."""

_PAUSE = 0.02


def read_text(path: Path, most: int = MOST, errors: str = "strict") -> str:
    """Return the text of a regular file in UTF-8, with line breaks as they are in any text file.

    Raises:
        OSError: As in `read_regular`.
        UnicodeDecodeError: It is not UTF-8 and `errors` is ``strict``.
    """
    return read_regular(path, most).decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def text_or_empty(path: Path) -> str:
    """Return the text of a file, as `read_text`, with a sign for bytes that are not UTF-8; empty if unreadable."""
    try:
        return read_text(path, errors="replace")
    except OSError:
        return ""


def noted_json(path: Path) -> Any:
    """Return the values of a file of notes in JSON; None if it is missing or damaged."""
    try:
        return json.loads(read_text(path))
    except (OSError, ValueError, RecursionError):
        return None


def read_given(path: Path, most: int = MOST) -> bytes:
    """Return the bytes of a file that a user names: a regular one, or a pipe such as a shell's ``<(command)``.

    Raises:
        OSError: As in `given_pieces`.
    """
    return b"".join(given_pieces(path, most))


def given_pieces(path: Path, most: int = MOST) -> Iterator[bytes]:
    """Yield the bytes of a file that a user names, as in `read_given`, in pieces of at most 1 MiB.

    Raises:
        OSError: As in `read_regular`, or the pipe has no writer or is silent; `strerror` has the reason.
    """
    read = 0
    for piece in _pieces(path, most):
        read += len(piece)
        if read > most:
            raise OSError(errno.EFBIG, "is too large", str(path))
        yield piece


def _pieces(path: Path, most: int) -> Iterator[bytes]:
    if sys.platform == "win32" or not stat.S_ISFIFO(path.stat().st_mode):
        with open_regular(path, most) as file:
            while piece := file.read(_PIECE):
                yield piece
        return
    import select  # late: pipes are rare
    import time

    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    began, end = False, time.monotonic() + _UNOPENED
    try:
        while True:
            try:
                piece = os.read(handle, _PIECE)
            except BlockingIOError:  # a writer has it open
                if not select.select([handle], [], [], _SILENT)[0]:
                    raise OSError(errno.ETIMEDOUT, f"is silent for {_SILENT} s", str(path)) from None
                continue
            if piece:
                began = True
                yield piece
            elif began:
                return
            elif time.monotonic() > end:
                raise OSError(errno.ETIMEDOUT, f"no program writes to it within {_UNOPENED} s", str(path))
            else:
                time.sleep(_PAUSE)
    finally:
        os.close(handle)


def in_utf8(raw: bytes) -> bytes:
    """Return the bytes of a text in UTF-8 without a byte order mark.

    ``pip freeze > requirements.txt`` in PowerShell writes UTF-16.
    """
    with contextlib.suppress(UnicodeDecodeError):  # no text, which its reader reports
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return raw.decode("utf-16").encode()
    return raw.removeprefix(codecs.BOM_UTF8)
