"""What a rule answers."""

from dataclasses import asdict, dataclass
from enum import StrEnum

__all__ = ["Finding", "Severity"]


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
