"""All shipped targets, each with the newest PyTorch that it is for, on one machine after the other."""

from tenv.checks.judge import Judge, Verdicts
from tenv.checks.judge_targets import find_targets
from tenv.checks.pytorch_source import find_source
from tenv.facts.tables import load_facts
from tenv.host.report import HostReport
from tenv.project.context import Context
from tenv.targets.search import Target

__all__ = ["Shipped", "row"]


class Shipped:
    """The shipped targets; made once for many machines."""

    def __init__(self) -> None:
        self.facts = load_facts()
        self.targets: dict[str, Target] = {target.name: target for target in find_targets(Context(), None)}
        self._judges = [self._judge(target) for target in self.targets.values()]

    def __call__(self, host: HostReport) -> dict[str, Verdicts]:
        """Return the verdicts on each target on a machine."""
        return dict(zip(self.targets, (judge(host) for judge in self._judges), strict=True))

    def _judge(self, target: Target) -> Judge:
        wanted, releases = target.manifest.pytorch, self.facts.pytorch_build.releases
        fitting = [str(row.version) for row in releases if wanted and str(row.version) in wanted]
        return Judge(target, find_source(fitting[-1], self.facts) if fitting else None, self.facts)


def row(verdicts: Verdicts) -> str:
    """Return verdicts on one line: both answers, the driver's verdict, and each finding's code and severity."""
    codes = (f"{finding.code}:{finding.severity}" for finding in verdicts.findings)
    words = {True: "", False: "no ", None: "unknown "}
    answers = (f"{words[verdicts.build]}build", f"{words[verdicts.run]}run", str(verdicts.driver.verdict))
    return " ".join([", ".join(answers), *codes])
