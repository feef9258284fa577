"""Markers of PEP 508: on which platforms and Pythons a line about a wheel counts.

Their variables are those of https://packaging.python.org/en/latest/specifications/dependency-specifiers/.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tenv.core.versions import Range
from tenv.core.wheel_platforms import marker_values
from tenv.interop.requests import wheel_request
from tenv.targets.manifest import PLATFORMS, WheelRequest

if TYPE_CHECKING:
    from packaging.markers import Marker

__all__ = ["PLATFORM_MARKERS", "add_line", "add_wheel", "holds", "platforms_of"]

PLATFORM_MARKERS = {
    "linux-64": 'sys_platform == "linux" and platform_machine == "x86_64"',
    "linux-aarch64": 'sys_platform == "linux" and platform_machine == "aarch64"',
    "win-64": 'sys_platform == "win32" and platform_machine == "AMD64"',
}
"""The marker that holds on one platform only."""

_OF_THE_MACHINE = re.compile(r"\b(platform_release|platform_version|implementation_version)\b")
_OF_PYTHON = re.compile(r"\bpython_(full_)?version\b")


def holds(marker: "Marker | None", platform: str, minor: str) -> bool | None:
    """Return whether a marker holds on a platform; None if that depends on what is not known.

    Args:
        marker: The marker; None holds everywhere.
        platform: The platform.
        minor: The Python minor, or an empty string when there may be several.
    """
    if marker is None:
        return True
    text = str(marker)
    if _OF_THE_MACHINE.search(text):
        return None
    minors = (minor,) if minor or not _OF_PYTHON.search(text) else tuple(f"3.{number}" for number in range(6, 20))
    answers = {marker.evaluate(marker_values(platform, one or "3.12")) for one in minors}
    return answers.pop() if len(answers) == 1 else None


def platforms_of(markers: "list[Marker]") -> tuple[str, ...]:
    """Return the platforms on which one of some markers may hold."""
    return tuple(name for name in PLATFORMS if any(holds(marker, name, "") is not False for marker in markers))


def add_line(
    tables: Mapping[str, dict[str, WheelRequest]],
    line: str,
    platforms: tuple[str, ...],
    minor: str,
    lost: list[str],
) -> None:
    """Add what a PEP 508 line asks for to the tables of the platforms on which it counts.

    Args:
        tables: The requests by platform and name.
        line: The line.
        platforms: The platforms for which it stands in its file.
        minor: The Python minor, or an empty string when there may be several.
        lost: Told what of it a manifest can't say.

    Raises:
        ValueError: It is no such line.
    """
    found = wheel_request(line)
    if found.rest:
        lost.append(f"of `{found.name}` tenv can't ask for {found.rest}")
    for platform in platforms:
        counts = holds(found.marker, platform, minor)
        if counts is None:
            lost.append(f"of `{found.name}` tenv can't ask for its marker `{found.marker}`")
        if counts is not False:
            add_wheel(tables[platform], found.name, found.request, lost)


def add_wheel(table: dict[str, WheelRequest], name: str, request: WheelRequest, lost: list[str]) -> None:
    """Add a request; where another one of that name is there, a manifest has room for what both accept only."""
    before = table.setdefault(name, request)
    if before.version != request.version:
        lost.append(f"`{name}` is asked for in several versions, by Python or otherwise: any will do now")
        request = replace(request, version=Range("*"))
    table[name] = replace(request, extras=tuple(sorted({*before.extras, *request.extras})))
