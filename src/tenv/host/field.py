"""The fields of the host report: how each value is probed, read from JSON, shown and documented."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_type_hints

from tenv.core.toml_reader import Table, getter_of
from tenv.core.versions import Version
from tenv.core.worded import Worded
from tenv.host.report import HostReport

if TYPE_CHECKING:
    from tenv.host.collect import Scan
    from tenv.host.interface import Fact, Missing

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
    """One field of the host report; its name is the name of its line in `tenv.host.report.HostReport`."""

    label: str
    """Its name in the output of ``tenv host``."""
    meaning: str
    """Its description in the table of ``docs/host.md``."""
    form: str
    """Its form in JSON, for the same table."""
    probe: "Callable[[Scan], Fact[T] | Missing]"
    """Reads it from the machine."""
    show: Callable[[T], list[str]] = lambda value: [str(value)]
    """Its lines in the output of ``tenv host``; none if there is nothing to show."""
    write: Callable[[T], Any] = plain
    """Converts it to JSON values."""
    lane: Lane = Lane.HERE
    """When it is probed."""
    read: Callable[[Table, str], Any] = Table.text
    """Reads it from JSON, from a table by a key; `host_fields` sets it by the type in the report."""


@cache
def host_fields() -> dict[str, HostField[Any]]:
    """Return the fields by name, in the order of the report.

    Their modules are loaded here and not with the report, since judging a driver needs only a few of them.
    """
    types = get_type_hints(HostReport, include_extras=True)
    return {line.name: _field(line.metadata["field"], types[line.name]) for line in fields(HostReport)}


def _field(where: str, kind: Any) -> HostField[Any]:
    module, _, name = where.partition(":")
    found: HostField[Any] = getattr(import_module(f"tenv.host.{module}"), name)
    fact, _ = get_args(kind)  # or `Missing`
    (value,) = get_args(fact)
    return replace(found, read=Table.text if value is str else getter_of(value))  # an empty text is a value here
