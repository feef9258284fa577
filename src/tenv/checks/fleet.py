"""Judge targets on each host of a fleet, from one report after the other.

An unreadable report is an answer of its own, so that one broken host does not hide the others. At most one report is
in memory at a time. Machines that differ only in name, memory, disk and the torches of their users are of one kind: the
rules that read none of these are asked once for a kind.
"""

import errno
import io
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar, cast

from tenv.checks.host_options import HostOptions
from tenv.checks.judge import Answers, Judge, Verdicts
from tenv.checks.judge_targets import find_targets
from tenv.checks.pytorch_source import find_source
from tenv.checks.rules.catalogue import MACHINE_RULES
from tenv.checks.rules.gpu import VARIABLE
from tenv.checks.rules.whole_toolkit import exported_switches
from tenv.core.dataclass import dataclass
from tenv.core.errors import HostReportError, UsageError
from tenv.core.file_content import read_given
from tenv.host.interface import Fact, Missing, ReasonKind, fact_to_json
from tenv.host.report import HostReport
from tenv.host.report_json import from_json, is_json, parse, standard_input
from tenv.project.context import Context

T = TypeVar("T")

_KINDS = 512
"""Kinds of machines whose findings are kept."""
_UNASKED = Missing.because(ReasonKind.UNREPORTED)
UNSHARED = ("hostname", "torches", "memory", "disk")
"""The values that machines of one kind do not share. No rule reads the first two, `MACHINE_RULES` the others."""
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".txt")
_TEXT = ".txt"
_CHUNK = 1 << 20
_MOST = 1 << 30
"""Maximum bytes of a file of reports, which are read one by one."""
_MOST_PIPED = 1 << 28
"""Maximum bytes of reports from a pipe, which are read at once; 30,000 machines have as many."""

_BLANKS = re.compile(r"\s*")
STDIN = Path("-")
"""Standard input in place of a file of reports."""
_LABELLED = re.compile(r'^[^{"\n]{0,300}\{[ \t]*"(schema|tenv)"', re.MULTILINE)
"""A line with a report behind the label of a program that runs a command on many machines."""
_SCHEMA = '{"schema":'
_HEADER = re.compile(r"\S+ \| (CHANGED|SUCCESS) \| rc=0 >>\s*")
"""Ansible's line before the output of a machine."""
_RULE = re.compile(r"-{4,}\s*")
"""The line of dshbak and `clush -b` above and below the names of nodes, which stand above what these print."""
_LONGEST = 1 << 20
"""Characters of a report that comes in several lines."""
_MOST_PIECES = 2 * _LONGEST // 1024
"""The lines of such a report that are joined; Slurm's have 1,024 characters."""
_SHOWN = 60
"""Characters of a line that a message quotes."""


@dataclass(frozen=True, slots=True)
class MachineVerdicts(Generic[T]):
    """The answers about one host."""

    machine: str
    """The host's name; the report's origin if the report is unreadable or names no host."""
    source: str
    """The origin of its report."""
    driver: dict[str, str]
    """Its driver as in `data`; empty if the report is unreadable."""
    gpus: tuple[str, ...]
    """The names of its GPUs, of AMD too."""
    answers: tuple[T, ...]
    """The answers to the questions."""
    problem: str = ""
    """Why the report is unreadable, or an empty string."""

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


def _ignore(_name: str) -> None:
    """Ignore a repeated report."""


def refuse_host_options(options: HostOptions) -> None:
    """Reject options that name one host together with a fleet; raises UsageError."""
    if options != HostOptions():
        raise UsageError(
            "`--against` names the hosts, so `--host-report` and `--assume-...` have no effect",
            hint="leave out one of them",
        )


def check_fleet(
    context: Context,
    name: str | None,
    pytorch: str,
    path: Path,
    options: HostOptions,
    repeated: Callable[[str], None] = _ignore,
) -> Iterator[MachineVerdicts[Verdicts]]:
    """Yield the verdicts for each host of a fleet, on a target or on every readable target.

    Args:
        context: Where things are found.
        name: The target.
        pytorch: The PyTorch to build, as `find_source` takes it.
        path: A file or a folder of host reports, or `STDIN`.
        options: Host options, which must name no other host.
        repeated: As in `ask_each`.

    Raises:
        UsageError: There is no such target, PyTorch or report, or the options name another host.
    """
    refuse_host_options(options)
    facts = context.facts()
    source = find_source(pytorch, facts)
    archs = context.environ.get(VARIABLE, "")
    switches, targets = exported_switches(facts, context.environ), find_targets(context, name)
    judges = [Judge(one, source, facts, arch_list=archs, exported=switches) for one in targets]
    return ask_each(path, _Judges(judges), repeated)


class _Judges:
    """Several targets, judged on one host after the other."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self._judges = judges
        self._of_kind = lru_cache(maxsize=_KINDS)(self._judge_kind)

    def __call__(self, host: HostReport) -> tuple[Verdicts, ...]:
        kinds = self._of_kind(replace(host, **dict.fromkeys(UNSHARED, _UNASKED)))
        return tuple(self._on(judge, host, *kind) for judge, kind in zip(self._judges, kinds, strict=True))

    def _judge_kind(self, host: HostReport) -> tuple[tuple[Answers, Verdicts], ...]:
        every = [(judge, judge.ask(host)) for judge in self._judges]
        return tuple((asked, judge.conclude(asked)) for judge, asked in every)

    @staticmethod
    def _on(judge: Judge, host: HostReport, asked: Answers, verdicts: Verdicts) -> Verdicts:
        """Return the verdicts on a host from the findings about its kind."""
        case = judge.case(host)
        own = {rule: found for rule in MACHINE_RULES if (found := tuple(rule(case)))}
        return judge.conclude(replace(asked, found={**asked.found, **own})) if own else verdicts


def ask_each(
    path: Path, question: Callable[[HostReport], Sequence[T]], repeated: Callable[[str], None] = _ignore
) -> Iterator[MachineVerdicts[T]]:
    """Yield the answers about each host, in the order of the files.

    Args:
        path: A folder with one file per host, or a file with one report, a list of reports or one report per line. A
            report is the output of ``tenv host --json`` or ``--compact``, or one pasted text per file. A ``.txt`` in a
            folder that is not a report is skipped. `STDIN` is a file, too.
        question: Answers the questions about a host.
        repeated: Receives the name of a host for each further equal report of it in one file, which is left out: a
            program that starts tenv in several places of a machine gathers several.

    Raises:
        UsageError: There is no such file or folder, or it has no report.
    """
    folder, names = _find_files(path)
    items = (row for name in names for row in _read_items(folder, name))
    return (_about(source, item, question) for source, item in (items if folder else _once(items, repeated)))


def _once(
    items: "Iterator[tuple[str, object | HostReportError]]", repeated: Callable[[str], None]
) -> "Iterator[tuple[str, object | HostReportError]]":
    """Yield the reports of a file without those that equal an earlier one of the same host."""
    seen = set[int]()
    for source, item in items:
        host = item
        if not isinstance(item, HostReport | HostReportError):
            try:
                host = from_json(item, source)
            except HostReportError as error:
                host = error
        if isinstance(host, HostReport) and isinstance(host.hostname, Fact):
            digest = hash(replace(host, memory=_UNASKED, disk=_UNASKED))  # memory and disk change meanwhile
            if digest in seen:
                repeated(host.hostname.value)
                continue
            seen.add(digest)
        yield source, host


def _about(
    source: str, item: "object | HostReportError", question: Callable[[HostReport], Sequence[T]]
) -> MachineVerdicts[T]:
    """Return the answers about a host from the content of its file."""
    try:
        if isinstance(item, HostReportError):
            raise item
        host = item if isinstance(item, HostReport) else from_json(item, source)
    except HostReportError as error:
        return MachineVerdicts(source, source, {}, (), (), problem=error.message.removeprefix(f"{source}: "))
    gpus = () if isinstance(host.gpus, Missing) else tuple(gpu.name or gpu.pci_id for gpu in host.gpus.value)
    if isinstance(host.amd_gpus, Fact):
        gpus += tuple(gpu.name or gpu.gfx for gpu in host.amd_gpus.value)
    name = _line(host.hostname.value) if isinstance(host.hostname, Fact) else source
    return MachineVerdicts(name, source, fact_to_json(host.driver), tuple(map(_line, gpus)), tuple(question(host)))


def _line(text: str) -> str:
    """Return a text of a report on one line, so that it adds none to a table."""
    return text if text.isprintable() else " ".join(text.split())  # machines share the text of a GPU


def _find_files(path: Path) -> tuple[str, list[str]]:
    """Return the folder of a fleet and the names of the files in it with reports; the folder is empty for one file.

    Raises:
        UsageError: There is no such file or folder, or it has no report.
    """
    try:
        if path == STDIN:
            return "", [str(path)]
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


def _read_items(folder: str, name: str) -> Iterator[tuple[str, "object | HostReportError"]]:
    """Yield the content of each report of a file, with its origin.

    Args:
        folder: The folder of the fleet; empty for one file. Of a folder, a ``.txt`` with other content is skipped.
        name: The file's name there.

    Yields:
        A JSON value, the `HostReport` of a pasted text, or the error in its place.
    """
    if not folder:
        shown = "standard input" if Path(name) == STDIN else name
        return _every(name, _suffix(Path(name).name), shown)
    suffix = _suffix(name)
    file = Path(folder, name)
    found = _every(str(file), suffix, name)
    if suffix != _TEXT or (file.is_file() and file.stat().st_size == 0):  # an empty one was to be a report
        return found
    return (row for row in found if not isinstance(row[1], HostReportError))


def _every(file: str, suffix: str, shown: str) -> Iterator[tuple[str, "object | HostReportError"]]:
    """Yield the content of each report of a file, or the error in its place."""
    try:
        with _opened(file) as text:
            named = suffix in (".json", ".jsonl", ".ndjson")
            if _is_labelled(text):
                yield from _lines(text, shown)
            elif not named and not is_json(_first(text, 1)):
                yield shown, _pasted(Path(file), text, shown)
            elif _is_lines(suffix, text):
                yield from _lines(text, shown)
            elif _first(text, 1).startswith("["):
                yield from _list(text, shown)
            else:
                yield shown, _parsed(text.read(), shown)
    except OSError as error:
        yield shown, HostReportError(f"{shown}: can't be read: {error.strerror or error}")


def _opened(file: str) -> TextIO:
    """Return a file as text that can be rewound; a small one is read at once."""
    if Path(file) == STDIN:
        return io.StringIO(standard_input(most=_MOST_PIPED), newline=None)
    info = os.stat(file)  # noqa: PTH116 (no object for each file)
    if stat.S_ISFIFO(info.st_mode):  # it is read once
        return io.StringIO(read_given(Path(file), _MOST_PIPED).decode("utf-8-sig", "replace"))
    if stat.S_ISREG(info.st_mode) and info.st_size < _CHUNK:
        with open(file, "rb", buffering=0) as raw:  # noqa: PTH123
            return io.StringIO(raw.readall().decode("utf-8-sig", "replace"), newline=None)
    _require_size(Path(file))
    return Path(file).open(encoding="utf-8-sig", errors="replace")


def _require_size(file: Path) -> None:
    """Raise OSError for anything but a readable regular file of a sensible size or a pipe."""
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


def _parsed(text: str, source: str) -> "object | HostReportError":
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError) as error:
        return HostReportError(f"{source}: not JSON: {error}")


def _is_labelled(text: TextIO) -> bool:
    """Return whether a line has a label before its report, or a report follows other words; rewinds the file."""
    labels = [match.group().partition("{")[0].strip(" \t,[]}") for match in _LABELLED.finditer(text.read(_CHUNK))]
    text.seek(0)
    return any(labels) or (bool(labels) and not is_json(_first(text, 1)))


class _Pieces:
    """Reports that come in several lines with one label.

    Slurm passes a line on in pieces of 1,024 characters (22.05); with `srun -l`, each is a line with the label.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._begun: dict[str, tuple[int, str]] = {}
        self._counts: Counter[str] = Counter()
        self._lengths: set[int] = set()  # of all labels so far: thousands of nodes have labels of a few lengths

    def begin(self, label: str, number: int, text: str) -> Iterator[tuple[str, "object | HostReportError"]]:
        """Yield the report that begins in a line, or the unfinished one of this label that it ends."""
        yield from self._broken(label)
        source = f"{self._shown}:{number}"
        found = _parsed(text, source)
        if isinstance(found, HostReportError) and text.count(_SCHEMA) > 1:
            yield source, HostReportError(f"{source}: pieces of several reports are mixed: `srun -l` labels each piece")
        elif label.strip() and isinstance(found, HostReportError):
            self._begun[label] = (number, text)
            self._counts[label] = 0
            self._lengths.add(len(label))
        else:
            yield source, found

    def go_on(self, line: str) -> "tuple[str, object] | str":
        """Return the report that a line completes, else the label whose report it continues; empty for none."""
        label = next((line[:length] for length in self._lengths if line[:length] in self._begun), "")
        if not label:
            return ""
        number, before = self._begun[label]
        self._counts[label] += 1
        if self._counts[label] > _MOST_PIECES or len(before) >= _LONGEST:
            return label
        whole = before + line.removeprefix(label)
        self._begun[label] = (number, whole[:_LONGEST])
        found = _parsed(whole, label) if whole.endswith("}") and len(whole) < _LONGEST else HostReportError(label)
        if isinstance(found, HostReportError):
            return label
        del self._begun[label]
        return f"{self._shown}:{number}", found

    def end(self) -> Iterator[tuple[str, "object | HostReportError"]]:
        """Yield the errors of the reports that no line completed."""
        for label in list(self._begun):
            yield from self._broken(label)

    def _broken(self, label: str) -> Iterator[tuple[str, "object | HostReportError"]]:
        if label in self._begun:
            number, text = self._begun.pop(label)
            yield (source := f"{self._shown}:{number}"), _parsed(text, source)


def _lines(text: TextIO, shown: str) -> Iterator[tuple[str, "object | HostReportError"]]:
    """Yield the report of each line, without the label that `srun -l`, pdsh, mpirun, Ansible or kubectl put there."""
    pieces, ruled = _Pieces(shown), 0
    for number, row in enumerate(text, start=1):
        line = row.rstrip("\r\n")
        if not line.strip() or _HEADER.fullmatch(line):
            continue
        if _RULE.fullmatch(line) or (ruled == 1 and "{" not in line):  # one line of names stands between two rules
            ruled = (ruled + 1) % 3
            continue
        ruled = 0
        source = f"{shown}:{number}"
        if found := _LABELLED.match(line):
            at = line.index("{", 0, found.end())
            yield from pieces.begin(line[:at], number, line[at:])
        elif line.lstrip().startswith(("{", "[{")):
            yield source, _parsed(line, source)
        elif found_rest := pieces.go_on(line):
            if isinstance(found_rest, tuple):
                yield found_rest
        else:
            quoted = line if len(line) <= _SHOWN else f"{line[:_SHOWN]} …"
            yield source, HostReportError(f"{source}: no report: `{quoted}`")
    yield from pieces.end()


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
