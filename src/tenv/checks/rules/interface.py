"""What a rule answers."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenv.checks.pytorch_source import SourceTree
    from tenv.facts.tables import Facts
    from tenv.host.report import HostReport
    from tenv.locks.lock import Lock
    from tenv.targets.manifest import Manifest

__all__ = ["Case", "Finding", "Rule", "Scope", "Severity"]


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


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
    """

    code: str
    severity: Severity
    subject: str
    message: str
    evidence: str
    source: str
    fix: str

    def to_json(self) -> dict[str, str]:
        """Return the finding as it stands in the JSON envelope."""
        return {key: str(value) for key, value in asdict(self).items()}


class Scope(StrEnum):
    """Which verdict an error of a rule decides."""

    BUILD = "build"
    RUN = "run"
    BOTH = "both"


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
    """

    manifest: "Manifest"
    platform: str
    lock: "Lock | None"
    host: "HostReport"
    source: "SourceTree | None"
    facts: "Facts"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: Its code, ``TE201``; it has a page in ``docs/rules``.
        title: What it is about, in a few words.
        scope: Which verdict its errors decide.
        find: Yields what it has to say about a case; pure.
    """

    code: str
    title: str
    scope: Scope
    find: Callable[[Case], Iterable[Finding]]
