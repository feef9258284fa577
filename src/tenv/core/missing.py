"""A value that could not be had, and why."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tenv.core.worded import Worded

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Missing", "ReasonKind"]


class ReasonKind(Worded):
    """Why a value is missing."""

    NONE = "none", "it was looked for, and there is none"
    FAILED = "failed", "what should tell it is there and failed"
    TIMEOUT = "timeout", "what should tell it gave no answer in time"
    UNREADABLE = "unreadable", "what should tell it says something that is not understood"
    HIDDEN = "hidden", "the system does not show it"
    UNREPORTED = "unreported", "the report does not say"
    ASSUMED = "assumed", "what was assumed stands in its place"
    NO_CUDA = "no-cuda", "CONDA_OVERRIDE_CUDA is empty, which means no CUDA"
    NO_VERSION = "no-version", "CONDA_OVERRIDE_CUDA holds no version"
    JETSON = "jetson", "the machine is a Jetson, whose driver has no number of its own"
    DRIVERS_OWN = "drivers-own", "the libcuda that comes first is the driver's own"
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
        """Return what is missing for a reason that needs no detail."""
        return cls(kind.text, kind)

    @classmethod
    def by_all(cls, asked: "Iterable[tuple[str, Missing]]") -> Self:
        """Return what none of several could tell: the reason of each, and the first kind that is more than an absence.

        Args:
            asked: The name of each that was asked, with its answer.
        """
        answers = tuple(asked)
        kinds = (answer.kind for _, answer in answers if answer.kind is not ReasonKind.NONE)
        reasons = (f"{name}: {answer.reason}" for name, answer in answers)
        return cls("; ".join(reasons), next(kinds, ReasonKind.NONE))
