"""All shipped targets, each with the newest PyTorch that it is for, on one machine after the other."""

from functools import partial
from itertools import islice
from typing import Any

from tenv.checks.driver_report import find_targets, judge_target
from tenv.checks.judge import Judge, Verdicts, find_source
from tenv.checks.memos import Memos
from tenv.checks.rules.driver import DriverVerdict
from tenv.facts.tables import load_facts
from tenv.host.interface import Missing
from tenv.host.machine import current_platform
from tenv.host.report import HostReport
from tenv.project.context import Context
from tenv.targets.search import Target

__all__ = ["Shipped", "row"]


class Shipped:
    """The shipped targets; made once for many machines, of which those that look alike are judged once."""

    def __init__(self) -> None:
        self.facts = load_facts()
        self.targets: dict[str, Target] = {target.name: target for target in find_targets(Context(), None)}
        self._judges = [self._judge(target) for target in self.targets.values()]
        self._memos: Memos[Any] = Memos(
            (
                *(question for judge in self._judges for question in judge.questions),
                *(partial(self._driver, target) for target in self.targets.values()),
            )
        )

    def __call__(self, host: HostReport) -> dict[str, tuple[Verdicts, DriverVerdict]]:
        """Return what is said of each target on a machine, and how the machine's driver stands to it."""
        answers = iter(self._memos(host))
        judged = [judge.conclude(host, list(islice(answers, len(judge.questions)))) for judge in self._judges]
        return dict(zip(self.targets, zip(judged, answers, strict=True), strict=True))

    def _driver(self, target: Target, host: HostReport) -> DriverVerdict:
        platform = current_platform() if isinstance(host.platform, Missing) else host.platform.value
        return judge_target(target.manifest.on(platform), host, self.facts)

    def _judge(self, target: Target) -> Judge:
        wanted, releases = target.manifest.pytorch, self.facts.pytorch_build.releases
        fitting = [str(row.version) for row in releases if wanted and str(row.version) in wanted]
        return Judge(target, find_source(fitting[-1], self.facts) if fitting else None, self.facts)


def row(verdicts: Verdicts, driver: DriverVerdict) -> str:
    """Return verdicts on one line: both answers, the driver's verdict, and each finding's code and severity."""
    codes = (f"{finding.code}:{finding.severity}" for finding in verdicts.findings)
    words = {True: "", False: "no ", None: "unknown "}
    answers = (f"{words[verdicts.build]}build", f"{words[verdicts.run]}run", str(driver.verdict))
    return " ".join([", ".join(answers), *codes])
