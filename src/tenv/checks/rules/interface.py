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
    """A verdict that stays unknown."""

    scope: Scope
    """The unknown verdict. It does not count as "yes"."""
    needs: str
    """The missing input: a value of the host report by its name, or a table of facts."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of one rule."""

    code: str
    """The rule's code, ``TE101``; it has a page in ``docs/rules``."""
    severity: Severity
    """The severity. An error decides a command's exit status."""
    subject: str
    """The thing at fault."""
    message: str
    """The fault and its consequence."""
    evidence: str
    """The detected value and its origin."""
    source: str
    """The document of the requirement."""
    fix: str
    """The command or edit that fixes it."""
    unknown: Unknown | None = None
    """The verdict that it leaves unknown; None if it leaves none."""

    def to_json(self) -> dict[str, str]:
        """Return the finding as JSON values."""
        return {name: str(getattr(self, name)) for name in self.__slots__ if name != "unknown"}


@dataclass(frozen=True, slots=True)
class Case:
    """The input of a rule."""

    manifest: "Manifest"
    """The target's manifest for `platform`."""
    platform: str
    """The platform to judge."""
    lock: "Lock | None"
    """The target's lock; None if there is none."""
    host: "HostReport"
    """The host."""
    source: "SourceTree | None"
    """The PyTorch checkout or release to build; None if none is named."""
    facts: "Facts"
    """The compatibility tables."""
    arch_list: str = ""
    """The value of `TORCH_CUDA_ARCH_LIST`; an empty string if it is not set."""
    activated: Mapping[str, str] | None = None
    """The variables that activating the target's environment sets; None if there is no environment."""
    there: frozenset[str] = frozenset()
    """The digests of the packages that the target's environment holds already."""
    exported: Mapping[str, str] = field(default_factory=dict)
    """The build switches of PyTorch and the flags of nvcc in the caller's environment."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    find: Callable[[Case], Iterable[Finding]]
    """Yields the findings about a case; pure."""
    codes: tuple[str, ...]
    """The codes that it may yield, ``TE201``; each has a page in ``docs/rules``."""
    title: str
    """Its topic, in a few words."""
    scope: Scope
    """The verdict that its errors decide."""

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
