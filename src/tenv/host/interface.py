"""What a probe answers: a fact with its origin, or why there is none."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from tenv.process import Missing

__all__ = ["Fact", "Missing"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value that was read from this machine.

    Attributes:
        value: The value.
        origin: The probe that gave it, in words that a person can follow up (``nvidia-smi``, a path).
    """

    value: T
    origin: str
