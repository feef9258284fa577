"""Judge targets on each host of a fleet by every rule."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tenv.checks.driver_report import find_targets
from tenv.checks.fleet import MachineVerdicts, ask, refuse_host_options
from tenv.checks.host_options import HostOptions
from tenv.checks.judge import Judge, Verdicts, find_source, platform_of
from tenv.checks.memos import Memos
from tenv.checks.rules.arch_list import VARIABLE
from tenv.checks.rules.whole_toolkit import exported_switches
from tenv.host.report import HostReport
from tenv.project.context import Context
from tenv.project.user_facts import user_facts

__all__ = ["check_fleet"]

_REMEMBERED = 1 << 14


class _Judges:
    """Several targets, judged on one host after the other.

    Attributes:
        memos: What is asked about a host.
    """

    def __init__(self, judges: Sequence[Judge]) -> None:
        self._judges = judges
        self.memos = Memos(question for judge in judges for question in judge.questions)
        self._each: dict[tuple[Any, ...], tuple[Any, Verdicts]] = {}
        self._known: dict[tuple[Any, ...], tuple[Any, tuple[Verdicts, ...]]] = {}

    def __call__(self, host: HostReport) -> tuple[Verdicts, ...]:
        parts = self.memos.parts(host)
        key = (platform_of(host), *map(id, parts))
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            answers = iter(self.memos.in_order(parts))
            verdicts = tuple(self._conclude(number, host, answers) for number in range(len(self._judges)))
            self._known[key] = (parts, verdicts)  # the parts are kept, so that no other has their identity
        return self._known[key][1]

    def _conclude(self, number: int, host: HostReport, answers: Iterator[Any]) -> Verdicts:
        """Return the verdicts on one target; the same for all hosts with the same answers."""
        judge = self._judges[number]
        own = tuple(islice(answers, len(judge.questions)))
        key = (number, platform_of(host), *map(id, own))
        if key not in self._each:
            if len(self._each) >= _REMEMBERED:
                self._each.clear()
            self._each[key] = (own, judge.conclude(host, own))  # kept, as above
        return self._each[key][1]


def check_fleet(
    context: Context, name: str | None, pytorch: str, path: Path, options: HostOptions
) -> Iterator[MachineVerdicts[Verdicts]]:
    """Yield the verdicts for each host of a fleet, on a target or on every readable target.

    Args:
        context: Where things are found.
        name: The target.
        pytorch: The PyTorch to build, as `find_source` takes it.
        path: A file or a folder of host reports.
        options: Host options, which must name no other host.

    Raises:
        UsageError: There is no such target, PyTorch or report, or the options name another host.
    """
    refuse_host_options(options)
    facts = user_facts(context)
    source = find_source(pytorch, facts)
    archs = context.environ.get(VARIABLE, "")
    switches, targets = exported_switches(facts, context.environ), find_targets(context, name)
    judges = _Judges([Judge(one, source, facts, arch_list=archs, exported=switches) for one in targets])
    return ask(path, judges, judges.memos)
