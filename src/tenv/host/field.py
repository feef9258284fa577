"""What a value of the host report is to the program: how it is probed, read from JSON, shown and explained."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tenv.core.versions import Version
from tenv.core.worded import Worded

if TYPE_CHECKING:
    from tenv.core.json_reader import Values
    from tenv.host.interface import Fact, Missing
    from tenv.host.scan import Scan

__all__ = ["HostField", "Lane", "plain"]

T = TypeVar("T")


class Lane(StrEnum):
    """When a value is probed: programs that take time are waited for at once."""

    HERE = "here"
    """With the others that only read files, one after the other."""
    DRIVER = "driver"
    """Beside the others, one after the other: the driver's own tools, which several values share."""
    ALONE = "alone"
    """Beside the others, in a thread of its own: it starts programs."""


def plain(value: object) -> Any:
    """Return the plain values of JSON for a value: a version is a text, a dataclass an object of its fields."""
    if isinstance(value, Version | Worded):
        return str(value)
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class HostField(Generic[T]):
    """One value of the host report; its name is that of its line in `tenv.host.report.HostReport`.

    Attributes:
        label: Its name in the text of ``tenv host``.
        meaning: What it is, for the table in ``docs/host.md``.
        form: Its form in JSON, for the same table.
        probe: Asks the machine.
        read: Reads the value from JSON: from an object, by a key. The getters of `Values` are such functions.
        show: Its lines in the text of ``tenv host``; none where there is nothing.
        write: Makes plain values of it.
        lane: When it is probed.
    """

    label: str
    meaning: str
    form: str
    probe: "Callable[[Scan], Fact[T] | Missing]"
    read: "Callable[[Values, str], T]"
    show: Callable[[T], list[str]]
    write: Callable[[T], Any] = plain
    lane: Lane = Lane.HERE
