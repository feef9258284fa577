"""Answer questions about many hosts from their reports, one report after the other.

An unreadable report is an answer of its own, so that one broken host does not hide the others. At most one report is
in memory at a time.
"""

import errno
import io
import json
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar, cast

from tenv.checks.host_options import HostOptions
from tenv.core.errors import HostReportError, UsageError
from tenv.core.file_content import read_given
from tenv.host.interface import Missing, fact_to_json
from tenv.host.pasted.clean_text import decode
from tenv.host.report import HostReport
from tenv.host.report_file import is_json, parse
from tenv.host.report_json import ReadValues, from_json

__all__ = ["MachineVerdicts", "ask", "refuse_host_options"]

T = TypeVar("T")

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".txt")
_TEXT = ".txt"
_CHUNK = 1 << 20
_MOST = 1 << 30
"""Maximum bytes of a file of reports, which are read one by one."""

_BLANKS = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class MachineVerdicts(Generic[T]):
    """The answers about one host.

    Attributes:
        machine: The host's name; the report's origin if the report is unreadable or names no host.
        source: The origin of its report.
        driver: Its driver as in `data`; empty if the report is unreadable.
        gpus: The names of its GPUs.
        answers: The answers to the questions.
        problem: Why the report is unreadable, or an empty string.
    """

    machine: str
    source: str
    driver: dict[str, str]
    gpus: tuple[str, ...]
    answers: tuple[T, ...]
    problem: str = ""

    def to_json(self, answer: Callable[[T], Any]) -> dict[str, Any]:
        """Return the answers as JSON values, each converted by `answer`."""
        return {
            "machine": self.machine,
            "source": self.source,
            "driver": self.driver,
            "gpus": list(self.gpus),
            "targets": [answer(one) for one in self.answers],
            "problem": self.problem,
        }


def refuse_host_options(options: HostOptions) -> None:
    """Reject options that name one host together with a fleet; raises UsageError."""
    if options != HostOptions():
        raise UsageError(
            "`--against` names the hosts, so `--host-report` and `--assume-...` have no effect",
            hint="leave out one of them",
        )


def ask(path: Path, question: Callable[[HostReport], Sequence[T]]) -> Iterator[MachineVerdicts[T]]:
    """Yield the answers about each host, in the order of the files.

    Args:
        path: A folder with one file per host, or a file with one report, a list of reports or one report per line. A
            report is what ``tenv host --json`` prints, or one pasted text per file. A ``.txt`` in a folder that is not
            a report is skipped.
        question: Answers the questions about a host.

    Raises:
        UsageError: There is no such file or folder, or it has no report.
    """
    files, known = _files(path), ReadValues()

    def every() -> Iterator[MachineVerdicts[T]]:
        for file in files:
            for source, item in _items(file, file.name if path.is_dir() else str(file)):
                if not (isinstance(item, HostReportError) and file.suffix == _TEXT and path.is_dir()):
                    yield _one(source, item, question, known)

    return every()


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            _require_size(path)
            return [path]
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
    except OSError as error:
        hint = "name a file of host reports, or a folder with one report per file"
        raise UsageError(f"{path}: can't be read: {error.strerror or error}", hint=hint) from error
    if not files:
        hint = "`tenv host --json > FOLDER/NAME.json` writes one"
        raise UsageError(f"{path}: has no host report (*.json, *.jsonl)", hint=hint)
    return files


def _one(
    source: str, item: "object | HostReportError", question: Callable[[HostReport], Sequence[T]], known: ReadValues
) -> MachineVerdicts[T]:
    try:
        if isinstance(item, HostReportError):
            raise item
        report = item if isinstance(item, HostReport) else from_json(item, source, known)
    except HostReportError as error:
        return MachineVerdicts(source, source, {}, (), (), problem=error.message.removeprefix(f"{source}: "))
    name = source if isinstance(report.hostname, Missing) else report.hostname.value
    gpus = () if isinstance(report.gpus, Missing) else tuple(gpu.name or gpu.pci_id for gpu in report.gpus.value)
    return MachineVerdicts(name, source, fact_to_json(report.driver), gpus, tuple(question(report)))


def _items(file: Path, shown: str) -> Iterator[tuple[str, "object | HostReportError"]]:
    """Yield every JSON value of a file with its origin, or the error in its place."""
    try:
        with _opened(file) as text:
            if file.suffix not in (".json", ".jsonl", ".ndjson") and not is_json(_first(text, 1)):
                yield shown, _pasted(file, text, shown)
            elif _is_lines(file, text):
                yield from _lines(text, shown)
            elif _first(text, 1).startswith("["):
                yield from _list(text, shown)
            else:
                yield shown, _parsed(text.read(), shown)
    except OSError as error:
        yield shown, HostReportError(f"{shown}: can't be read: {error.strerror or error}")


def _opened(file: Path) -> TextIO:
    """Return a file as text that can be rewound."""
    if stat.S_ISFIFO(file.stat().st_mode):  # it is read once
        return io.StringIO(read_given(file, _MOST).decode("utf-8-sig", "replace"))
    _require_size(file)
    return file.open(encoding="utf-8-sig", errors="replace")


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


def _is_lines(file: Path, text: TextIO) -> bool:
    """Return whether each line of a file is a separate JSON value."""
    if file.suffix in (".jsonl", ".ndjson"):
        return True
    first = _first(text, 1)
    return not first.startswith("[") and (
        _first(text, 2).startswith("{") or (first.startswith("{") and first[-1] == "}")
    )


def _parsed(text: str, source: str) -> "object | HostReportError":
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError) as error:
        return HostReportError(f"{source}: not JSON: {error}")


def _lines(text: TextIO, shown: str) -> Iterator[tuple[str, "object | HostReportError"]]:
    for number, line in enumerate(text, start=1):
        if line.strip():
            source = f"{shown}:{number}"
            yield source, _parsed(line, source)


def _list(text: TextIO, shown: str) -> Iterator[tuple[str, "object | HostReportError"]]:
    """Yield the values of a JSON list while reading it; nothing after a broken value is read."""
    decoder = json.JSONDecoder()
    buffer, size, index = text.read(_CHUNK), _CHUNK, 0
    at = _skip(buffer, buffer.index("[") + 1)
    while not buffer.startswith("]", at):
        source = f"{shown}[{index}]"
        fault = "expected `,` or `]` in the list"
        try:
            value, end = decoder.raw_decode(buffer, at)
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
