"""What a probe answers: a fact with its origin, or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tenv.core.process import Missing

__all__ = ["Fact", "Missing", "fact_to_json"]

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


def fact_to_json(answer: Fact[T] | Missing, value: Callable[[T], Any] = str) -> dict[str, Any]:
    """Return an answer as plain values: ``{"value": …, "origin": …}`` or ``{"missing": reason}``.

    Args:
        answer: What a probe answered.
        value: What makes plain values of its value.
    """
    if isinstance(answer, Missing):
        return {"missing": answer.reason}
    return {"value": value(answer.value), "origin": answer.origin}
