"""A value that could not be had, and why."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tenv.core.worded import Worded

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Missing", "ReasonKind"]


class ReasonKind(Worded):
    """Why a value is missing."""

    NONE = "none", "tenv looked for it, and there is none"
    FAILED = "failed", "the tool, library or file that reports it exists and failed"
    TIMEOUT = "timeout", "the tool or library that reports it gave no answer in time"
    UNREADABLE = "unreadable", "the tool, library or file that reports it says something that tenv does not understand"
    HIDDEN = "hidden", "the system does not show it"
    UNREPORTED = "unreported", "the report does not say"
    NOT_COLLECTED = "not-collected", "the report says that it could not be read"
    ASSUMED = "assumed", "an assumption replaces it"
    NO_CUDA = "no-cuda", "CONDA_OVERRIDE_CUDA is empty, which means no CUDA"
    NO_VERSION = "no-version", "CONDA_OVERRIDE_CUDA holds no version"
    JETSON = "jetson", "the host is a Jetson, whose driver has no version of its own"
    DRIVERS_OWN = "drivers-own", "the first libcuda is the driver's own"
    NOT_GLIBC = "not-glibc", "the C library is not glibc"
    OTHER = "other", "none of these"


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that could not be had, and why.

    Attributes:
        reason: One sentence for people; nothing is decided by it.
        kind: What decisions go by.
    """

    reason: str
    kind: ReasonKind = ReasonKind.OTHER

    @classmethod
    def because(cls, kind: ReasonKind) -> Self:
        """Return a missing value with the text of its kind as the reason."""
        return cls(kind.text, kind)

    @classmethod
    def by_all(cls, asked: "Iterable[tuple[str, Missing]]") -> Self:
        """Return what none of several could report: the reason of each, and the first kind that is not `NONE`.

        Args:
            asked: The name of each that was asked, with its answer.
        """
        answers = tuple(asked)
        kinds = (answer.kind for _, answer in answers if answer.kind is not ReasonKind.NONE)
        reasons = (f"{name}: {answer.reason}" for name, answer in answers)
        return cls("; ".join(reasons), next(kinds, ReasonKind.NONE))
