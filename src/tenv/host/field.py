"""A field of the host report: how its value is probed, read from JSON, shown and documented."""

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
    """When a value is probed: slow programs run concurrently."""

    HERE = "here"
    """Sequentially, with the other probes that only read files."""
    DRIVER = "driver"
    """Concurrently with the other lanes, sequentially within: the driver's own tools, which several values share."""
    ALONE = "alone"
    """In its own thread: it starts programs."""


def plain(value: object) -> Any:
    """Return the JSON of a value: a version is a string, a dataclass an object of its fields."""
    if isinstance(value, Version | Worded):
        return str(value)
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class HostField(Generic[T]):
    """One field of the host report; its name is the name of its line in `tenv.host.report.HostReport`.

    Attributes:
        label: Its name in the output of ``tenv host``.
        meaning: Its description in the table of ``docs/host.md``.
        form: Its form in JSON, for the same table.
        probe: Reads it from the machine.
        read: Reads it from JSON: from an object, by a key. The getters of `Values` are such functions.
        read_plain: Returns it from a JSON value without a fault as `read` would, and None where it is not sure: for a
            value that differs on each host of a fleet, where the getters take too long.
        show: Its lines in the output of ``tenv host``; none if there is nothing to show.
        write: Converts it to JSON values.
        lane: When it is probed.
    """

    label: str
    meaning: str
    form: str
    probe: "Callable[[Scan], Fact[T] | Missing]"
    read: "Callable[[Values, str], T]"
    show: Callable[[T], list[str]]
    write: Callable[[T], Any] = plain
    read_plain: Callable[[object], T | None] | None = None
    lane: Lane = Lane.HERE
