"""Read the files of a fleet: one report after the other, so that at most one is in memory."""

import errno
import io
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

from tenv.core.errors import HostReportError, UsageError
from tenv.core.file_content import read_given
from tenv.host.report_json import is_json, parse
from tenv.host.report_members import MemberReader

__all__ = ["find_files", "read_items"]

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".txt")
_TEXT = ".txt"
_CHUNK = 1 << 20
_MOST = 1 << 30
"""Maximum bytes of a file of reports, which are read one by one."""

_BLANKS = re.compile(r"\s*")


def find_files(path: Path) -> tuple[str, list[str]]:
    """Return the folder of a fleet and the names of the files in it with reports; the folder is empty for one file.

    Raises:
        UsageError: There is no such file or folder, or it has no report.
    """
    try:
        if not path.is_dir():
            _require_size(path)
            return "", [str(path)]
        names = [name for name in os.listdir(path) if _suffix(name) in _SUFFIXES]  # noqa: PTH208 (no object for each)
    except OSError as error:
        hint = "name a file of host reports, or a folder with one report per file"
        raise UsageError(f"{path}: can't be read: {error.strerror or error}", hint=hint) from error
    if not names:
        hint = "`tenv host --json > FOLDER/NAME.json` writes one"
        raise UsageError(f"{path}: has no host report (*.json, *.jsonl)", hint=hint)
    return str(path), sorted(names, key=os.path.normcase)


def _suffix(name: str) -> str:
    """Return the suffix of a file's name as `pathlib` has it."""
    dot = name.rfind(".")
    return name[dot:] if 0 < dot < len(name) - 1 else ""


def read_items(folder: str, name: str, reader: MemberReader) -> Iterator[tuple[str, "object | HostReportError"]]:
    """Yield what each report of a file holds, with its origin.

    Args:
        folder: The folder of the fleet; empty for one file. What is no report in a ``.txt`` of a folder is skipped.
        name: The file's name there.
        reader: Reads the plain ones.

    Yields:
        The `Members` of a plain report, any other JSON value, the `HostReport` of a pasted text, or the error in its
        place.
    """
    if not folder:
        return _every(name, _suffix(Path(name).name), name, reader)
    suffix = _suffix(name)
    found = _every(f"{folder}{os.sep}{name}", suffix, name, reader)
    return (row for row in found if not isinstance(row[1], HostReportError)) if suffix == _TEXT else found


def _every(
    file: str, suffix: str, shown: str, reader: MemberReader
) -> Iterator[tuple[str, "object | HostReportError"]]:
    """Yield what each report of a file holds, or the error in its place."""
    try:
        with _opened(file) as text:
            if suffix not in (".json", ".jsonl", ".ndjson") and not is_json(_first(text, 1)):
                yield shown, _pasted(Path(file), text, shown)
            elif _is_lines(suffix, text):
                yield from _lines(text, shown, reader)
            elif _first(text, 1).startswith("["):
                yield from _list(text, shown, reader)
            else:
                yield shown, _parsed(text.read(), shown, reader)
    except OSError as error:
        yield shown, HostReportError(f"{shown}: can't be read: {error.strerror or error}")


def _opened(file: str) -> TextIO:
    """Return a file as text that can be rewound; a small one is read at once."""
    info = os.stat(file)  # noqa: PTH116 (no object for each file)
    if stat.S_ISFIFO(info.st_mode):  # it is read once
        return io.StringIO(read_given(Path(file), _MOST).decode("utf-8-sig", "replace"))
    if stat.S_ISREG(info.st_mode) and info.st_size < _CHUNK:
        with open(file, "rb", buffering=0) as raw:  # noqa: PTH123
            return io.StringIO(raw.readall().decode("utf-8-sig", "replace"), newline=None)
    _require_size(Path(file))
    return Path(file).open(encoding="utf-8-sig", errors="replace")


def _require_size(file: Path) -> None:
    """Raise OSError for what is neither a readable regular file of a sensible size nor a pipe."""
    info = file.stat()
    if stat.S_ISFIFO(info.st_mode):  # it can be opened only once
        return
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(file))
    if info.st_size > _MOST:
        raise OSError(errno.EFBIG, f"is too large ({info.st_size} bytes)", str(file))
    file.open("rb").close()


def _pasted(file: Path, text: TextIO, shown: str) -> "object | HostReportError":
    """Return the report in a pasted text. A file that can be read twice is decoded by its byte order mark."""
    from tenv.host.pasted.clean_text import decode  # late: most reports are JSON

    try:
        raw = decode(file.read_bytes()) if file.is_file() else text.read()
        return parse(raw, shown).report
    except HostReportError as error:
        return error


def _first(text: TextIO, number: int) -> str:
    """Return the non-blank line of that number, and rewind the file."""
    found = ""
    while number and (found := text.readline(_CHUNK)):
        number -= bool(found.strip())
    text.seek(0)
    return found.strip()


def _is_lines(suffix: str, text: TextIO) -> bool:
    """Return whether each line of a file is a separate JSON value."""
    if suffix in (".jsonl", ".ndjson"):
        return True
    first = _first(text, 1)
    return not first.startswith("[") and (
        _first(text, 2).startswith("{") or (first.startswith("{") and first[-1] == "}")
    )


def _parsed(text: str, source: str, reader: MemberReader) -> "object | HostReportError":
    found = reader.read(text)
    if found is not None and not text[found[1] :].strip(" \t\n\r"):
        return found[0]
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError) as error:
        return HostReportError(f"{source}: not JSON: {error}")


def _lines(text: TextIO, shown: str, reader: MemberReader) -> Iterator[tuple[str, "object | HostReportError"]]:
    for number, line in enumerate(text, start=1):
        if not line.isspace():
            source = f"{shown}:{number}"
            yield source, _parsed(line, source, reader)


def _list(text: TextIO, shown: str, reader: MemberReader) -> Iterator[tuple[str, "object | HostReportError"]]:
    """Yield the values of a JSON list while reading it; nothing after a broken value is read."""
    decoder = json.JSONDecoder()
    buffer, size, index = text.read(_CHUNK), _CHUNK, 0
    at = _skip(buffer, buffer.index("[") + 1)
    while not buffer.startswith("]", at):
        source = f"{shown}[{index}]"
        fault = "expected `,` or `]` in the list"
        try:
            value, end = reader.read(buffer, at) or decoder.raw_decode(buffer, at)
            end = _skip(buffer, end)
        except (ValueError, RecursionError) as error:
            fault, end = str(error), len(buffer)
        if buffer.startswith(("]", ","), end):  # otherwise the value may continue in the next chunk
            yield source, value
            at, index, size = _skip(buffer, end + buffer.startswith(",", end)), index + 1, _CHUNK
        elif more := text.read(size):
            buffer, at, size = buffer[at:] + more, 0, size * 2  # so that a long value is parsed only a few times
            at = _skip(buffer, 0)
        else:
            yield source, HostReportError(f"{source}: not JSON: {fault}; the rest was not read")
            return


def _skip(text: str, start: int) -> int:
    """Return the end of the white space that begins at `start`."""
    found = _BLANKS.match(text, start)
    return found.end() if found else start
