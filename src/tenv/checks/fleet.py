"""Answer questions about many hosts from their reports, one report after the other.

An unreadable report is an answer of its own, so that one broken host does not hide the others. At most one report is
in memory at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tenv.checks.fleet_files import find_files, read_items
from tenv.checks.host_options import HostOptions
from tenv.core.dataclass import dataclass
from tenv.core.errors import HostReportError, UsageError
from tenv.host.interface import Fact, Missing, fact_to_json
from tenv.host.report import HostReport
from tenv.host.report_json import from_json
from tenv.host.report_members import MemberReader, Members, to_report

if TYPE_CHECKING:
    from tenv.checks.memos import Memos

__all__ = ["MachineVerdicts", "ask", "refuse_host_options"]

T = TypeVar("T")

_REMEMBERED = 1 << 14
_SHOWN = ("driver", "gpus")
"""The fields whose values stand beside the answers."""


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


def ask(
    path: Path, question: Callable[[HostReport], Sequence[T]], memos: "Memos[Any] | None" = None
) -> Iterator[MachineVerdicts[T]]:
    """Yield the answers about each host, in the order of the files.

    Args:
        path: A folder with one file per host, or a file with one report, a list of reports or one report per line. A
            report is what ``tenv host --json`` prints, or one pasted text per file. A ``.txt`` in a folder that is not
            a report is skipped.
        question: Answers the questions about a host.
        memos: What `question` asks; it is then asked once about hosts that these do not tell apart. None to ask it
            about each host.

    Raises:
        UsageError: There is no such file or folder, or it has no report.
    """
    folder, names = find_files(path)
    hosts = _Hosts(question, memos)
    return (hosts.about(source, item) for name in names for source, item in read_items(folder, name, hosts.reader))


class _Hosts(Generic[T]):
    """Hosts whose reports are read one after the other.

    Attributes:
        reader: Reads those that are plain.
    """

    def __init__(self, question: Callable[[HostReport], Sequence[T]], memos: "Memos[Any] | None") -> None:
        self._question = question
        self._memos = memos
        self._generation = memos.generation if memos else 0
        self._alike: dict[tuple[int, ...], tuple[dict[str, str], tuple[str, ...], tuple[T, ...]]] = {}
        self.reader = MemberReader(self._number if memos else lambda _name, _fact: 0)

    def _number(self, name: str, fact: Fact[Any] | Missing) -> int:
        """Return a number for a value; those that are shown differ even if no question reads them."""
        assert self._memos is not None  # noqa: S101 (only then it is called)
        return self._memos.number(name, fact, shown=name in _SHOWN)

    def about(self, source: str, item: "object | HostReportError") -> MachineVerdicts[T]:
        """Return the answers about a host from what its file holds."""
        try:
            if isinstance(item, Members):
                return self._about_members(source, item)
            if isinstance(item, HostReportError):
                raise item
            report = item if isinstance(item, HostReport) else from_json(item, source)
        except HostReportError as error:
            return MachineVerdicts(source, source, {}, (), (), problem=error.message.removeprefix(f"{source}: "))
        return MachineVerdicts(_name(report.hostname, source), source, *self._answers(report))

    def _about_members(self, source: str, members: Members) -> MachineVerdicts[T]:
        key = tuple([member.number for member in members])
        found = self._alike.get(key) if self._memos else None
        if found is None:
            report = to_report(members)
            if report is None:
                return self.about(source, members.value())
            found = self._answers(report)
            self._remember(key, found)
        named = [member.fact for member in members if member.name == "hostname"]
        return MachineVerdicts(_name(named[-1] if named else None, source), source, *found)

    def _answers(self, report: HostReport) -> tuple[dict[str, str], tuple[str, ...], tuple[T, ...]]:
        gpus = () if isinstance(report.gpus, Missing) else tuple(gpu.name or gpu.pci_id for gpu in report.gpus.value)
        return fact_to_json(report.driver), gpus, tuple(self._question(report))

    def _remember(self, key: tuple[int, ...], found: tuple[dict[str, str], tuple[str, ...], tuple[T, ...]]) -> None:
        """Keep the answers for hosts with the same numbers, unless the questions have begun to number otherwise."""
        if self._memos and self._memos.generation != self._generation:
            self._generation = self._memos.generation
            self._alike.clear()
            self.reader.forget()
            return
        if len(self._alike) >= _REMEMBERED:
            self._alike.clear()
        self._alike[key] = found


def _name(hostname: "Fact[str] | Missing | None", source: str) -> str:
    return hostname.value if isinstance(hostname, Fact) else source
