"""The input and output of rules."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import BugError

if TYPE_CHECKING:
    from tenv.checks.pytorch_source import SourceTree
    from tenv.facts.tables import Facts
    from tenv.host.report import HostReport
    from tenv.locks.lock import Lock
    from tenv.targets.manifest import Manifest


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Scope(StrEnum):
    """The verdict that a rule or a finding is about."""

    BUILD = "build"
    RUN = "run"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A verdict that stays unknown.

    Attributes:
        scope: The unknown verdict. It does not count as "yes".
        needs: The missing input: a value of the host report by its name, or a table of facts.
    """

    scope: Scope
    needs: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of one rule.

    Attributes:
        code: The rule's code, ``TE101``; it has a page in ``docs/rules``.
        severity: The severity. An error decides a command's exit status.
        subject: The thing at fault.
        message: The fault and its consequence.
        evidence: The detected value and its origin.
        source: The document of the requirement.
        fix: The command or edit that fixes it.
        unknown: The verdict that it leaves unknown; None if it leaves none.
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
        """Return the finding as JSON values."""
        return {name: str(getattr(self, name)) for name in self.__slots__ if name != "unknown"}


@dataclass(frozen=True, slots=True)
class Case:
    """The input of a rule.

    Attributes:
        manifest: The target's manifest for `platform`.
        platform: The platform to judge.
        lock: The target's lock; None if there is none.
        host: The host.
        source: The PyTorch checkout or release to build; None if none is named.
        facts: The compatibility tables.
        arch_list: The value of `TORCH_CUDA_ARCH_LIST`; an empty string if it is not set.
        activated: The variables that activating the target's environment sets; None if there is no environment.
        there: The digests of the packages that the target's environment holds already.
        exported: The build switches of PyTorch and the flags of nvcc in the caller's environment.
    """

    manifest: "Manifest"
    platform: str
    lock: "Lock | None"
    host: "HostReport"
    source: "SourceTree | None"
    facts: "Facts"
    arch_list: str = ""
    activated: Mapping[str, str] | None = None
    there: frozenset[str] = frozenset()
    exported: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        find: Yields the findings about a case; pure.
        codes: The codes that it may yield, ``TE201``; each has a page in ``docs/rules``.
        title: Its topic, in a few words.
        scope: The verdict that its errors decide.
    """

    find: Callable[[Case], Iterable[Finding]]
    codes: tuple[str, ...]
    title: str
    scope: Scope

    def __call__(self, case: Case) -> Iterator[Finding]:
        """Yield the findings about a case; raises BugError for a code that the rule does not declare."""
        for finding in self.find(case):
            if finding.code not in self.codes:
                raise BugError(f"the rule about {self.title} yields {finding.code}, which it does not declare")
            yield finding


def decide(scope: Scope, found: Iterable[tuple[Scope, Finding]]) -> bool | None:
    """Return the verdict of a scope: False if an error decides it, else None if a finding leaves it unknown.

    Args:
        scope: The verdict to derive.
        found: The findings, each with the scope of its rule.
    """
    open_ = False
    for decides, finding in found:
        if finding.severity is Severity.ERROR and decides in (scope, Scope.BOTH):
            return False
        open_ = open_ or (finding.unknown is not None and finding.unknown.scope in (scope, Scope.BOTH))
    return None if open_ else True
