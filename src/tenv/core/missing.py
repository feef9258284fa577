"""A missing value and the reason."""

from typing import TYPE_CHECKING, Self

from tenv.core.dataclass import dataclass
from tenv.core.worded import Worded

if TYPE_CHECKING:
    from collections.abc import Iterable


class ReasonKind(Worded):
    """Why a value is missing."""

    NONE = "none", "tenv searched for it, and there is none"
    FAILED = "failed", "the tool, library or file that reports it exists but failed"
    TIMEOUT = "timeout", "the tool or library that reports it timed out"
    UNREADABLE = "unreadable", "tenv does not understand the output of the tool, library or file that reports it"
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
    """A missing value and the reason."""

    reason: str
    """One sentence for users. No decision uses it."""
    kind: ReasonKind = ReasonKind.OTHER
    """The kind of the reason, for decisions."""

    @classmethod
    def because(cls, kind: ReasonKind) -> Self:
        """Return a missing value whose reason is the text of its kind."""
        return cls(kind.text, kind)

    @classmethod
    def by_all(cls, asked: "Iterable[tuple[str, Missing]]") -> Self:
        """Return a value that several sources lack: the reason of each, and the first kind that is not `NONE`.

        Args:
            asked: The name of each source with its answer.
        """
        answers = tuple(asked)
        kinds = (answer.kind for _, answer in answers if answer.kind is not ReasonKind.NONE)
        reasons = (f"{name}: {answer.reason}" for name, answer in answers)
        return cls("; ".join(reasons), next(kinds, ReasonKind.NONE))
