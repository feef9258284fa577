"""What a rule answers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tenv.core.errors import BugError

if TYPE_CHECKING:
    from tenv.checks.pytorch_source import SourceTree
    from tenv.facts.tables import Facts
    from tenv.host.report import HostReport
    from tenv.locks.lock import Lock
    from tenv.targets.manifest import Manifest

__all__ = ["Case", "Finding", "Rule", "Scope", "Severity", "Unknown", "decide"]


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Scope(StrEnum):
    """Which verdict something decides."""

    BUILD = "build"
    RUN = "run"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Unknown:
    """An answer that stays open.

    Attributes:
        scope: Which verdict is not known; it does not count as a yes.
        needs: What it would take: a value of the host report by its name, or a table of facts.
    """

    scope: Scope
    needs: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict of one rule.

    Attributes:
        code: The rule's code, ``TE101``; it has a page in ``docs/rules``.
        severity: How much it matters; an error decides a command's exit status.
        subject: What it is about.
        message: What is wrong, and what follows from it.
        evidence: What was found, and where.
        source: Where the requirement is written.
        fix: The one command or edit that puts it right.
        unknown: The answer that it leaves open; None where it leaves none open.
    """

    code: str
    severity: Severity
    subject: str
    message: str
    evidence: str
    source: str
    fix: str
    unknown: Unknown | None = None

    def to_json(self) -> dict[str, str]:
        """Return the finding as it stands in the JSON envelope."""
        return {name: str(getattr(self, name)) for name in self.__slots__ if name != "unknown"}


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule looks at.

    Attributes:
        manifest: The target as it reads on `platform`.
        platform: The platform that is asked about.
        lock: What was chosen for the target; None when there is no lock.
        host: The machine.
        source: The PyTorch checkout or release that shall be built; None when none is named.
        facts: The compatibility tables.
        arch_list: What TORCH_CUDA_ARCH_LIST says where it is built; an empty string where it is not set.
        activated: The variables that activating the target's environment sets; None where there is no environment.
    """

    manifest: "Manifest"
    platform: str
    lock: "Lock | None"
    host: "HostReport"
    source: "SourceTree | None"
    facts: "Facts"
    arch_list: str = ""
    activated: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        find: Yields what it has to say about a case; pure.
        codes: The codes that it may yield, ``TE201``; each has a page in ``docs/rules``.
        title: What it is about, in a few words.
        scope: Which verdict its errors decide.
    """

    find: Callable[[Case], Iterable[Finding]]
    codes: tuple[str, ...]
    title: str
    scope: Scope

    def __call__(self, case: Case) -> Iterator[Finding]:
        """Yield what it has to say about a case; raises BugError for a code that it does not declare."""
        for finding in self.find(case):
            if finding.code not in self.codes:
                raise BugError(f"the rule about {self.title} yields {finding.code}, which the catalogue does not say")
            yield finding


def decide(scope: Scope, found: Iterable[tuple[Scope, Finding]]) -> bool | None:
    """Return the verdict of a scope, building or running: no by an error, else None where a finding leaves it open.

    Args:
        scope: Which verdict.
        found: What was found, each with the scope that its rule decides.
    """
    open_ = False
    for decides, finding in found:
        if finding.severity is Severity.ERROR and decides in (scope, Scope.BOTH):
            return False
        open_ = open_ or (finding.unknown is not None and finding.unknown.scope in (scope, Scope.BOTH))
    return None if open_ else True
