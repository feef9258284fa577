"""Numbers of a host report that questions only compare: bytes of memory and of a disk, which differ on each host.

A question is asked about a number that records with which limits it is compared. Its answer holds for every number
between the same two limits. A question that does anything else with the number, such as printing it, is asked about the
number itself.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from tenv.core.dataclass import dataclass
from tenv.host.interface import Fact
from tenv.host.report import Disk

__all__ = ["MEASURES", "ComparedNumber", "Measure", "ReadWholeError"]


class ReadWholeError(Exception):
    """A question needs a number itself.

    Attributes:
        name: The field of the report.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class Measure:
    """Where the number of a field is.

    Attributes:
        get: Returns the number of a value.
        put: Returns the value with another number.
    """

    get: Callable[[Fact[Any]], int]
    put: Callable[[Fact[Any], Any], Fact[Any]]


def _with_free(disk: Fact[Disk], free: int) -> Fact[Disk]:
    return replace(disk, value=replace(disk.value, free=free))


MEASURES = {
    "memory": Measure(lambda found: cast("int", found.value), lambda found, number: replace(found, value=number)),
    "disk": Measure(lambda found: cast("int", found.value.free), _with_free),
}
"""The fields with a number that nearly each host of a fleet has for itself."""


class ComparedNumber:
    """A number that can be compared with whole numbers, also after a division by one, and nothing else.

    Each comparison notes the lowest number for which its outcome is the other one. Everything else raises
    `ReadWholeError`.
    """

    __slots__ = ("_divisor", "_limits", "_name", "_number")

    def __init__(self, name: str, number: int, limits: set[int], divisor: int = 1) -> None:
        self._name = name
        self._number = number
        self._limits = limits
        self._divisor = divisor

    def _is_below(self, other: object, more: int) -> bool:
        """Return whether the number is below `other` plus `more`."""
        if type(other) is not int:
            raise ReadWholeError(self._name)
        limit = (other + more) * self._divisor
        self._limits.add(limit)
        return self._number < limit

    def __lt__(self, other: object) -> bool:
        return self._is_below(other, 0)

    def __le__(self, other: object) -> bool:
        return self._is_below(other, 1)

    def __gt__(self, other: object) -> bool:
        return not self._is_below(other, 1)

    def __ge__(self, other: object) -> bool:
        return not self._is_below(other, 0)

    def __floordiv__(self, other: object) -> "ComparedNumber":
        if type(other) is not int or other < 1:
            raise ReadWholeError(self._name)
        return ComparedNumber(self._name, self._number, self._limits, self._divisor * other)

    def _read(self, *_: object) -> Any:
        raise ReadWholeError(self._name)

    __eq__ = __ne__ = __hash__ = __bool__ = __int__ = __index__ = __float__ = __complex__ = _read
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _read
    __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _read
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = _read
    __xor__ = __rxor__ = __neg__ = __pos__ = __abs__ = __invert__ = __round__ = __trunc__ = _read
    __floor__ = __ceil__ = __str__ = __repr__ = __format__ = __reduce_ex__ = __getattr__ = _read
