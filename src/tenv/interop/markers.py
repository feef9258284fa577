"""Evaluate PEP 508 markers: the platforms and Pythons that a line about a wheel applies to.

Their variables are those of https://packaging.python.org/en/latest/specifications/dependency-specifiers/.
"""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tenv.core.versions import Range
from tenv.core.wheel_platforms import evaluated, marker_values
from tenv.interop.requests import wheel_request
from tenv.targets.manifest import PLATFORMS, WheelRequest
from tenv.targets.tree_request import WHY, git_line, names_source

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
    """Return whether a marker holds on a platform; None if it depends on unknown values.

    Args:
        marker: The marker; None holds everywhere.
        platform: The platform.
        minor: The Python minor, or an empty string if there may be several.
    """
    if marker is None:
        return True
    text = str(marker)
    if _OF_THE_MACHINE.search(text):
        return None
    minors = (minor,) if minor or not _OF_PYTHON.search(text) else tuple(f"3.{number}" for number in range(6, 20))
    answers = {evaluated(marker, marker_values(platform, one or "3.12")) for one in minors}
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
    """Add the request of a PEP 508 line to the tables of the platforms that it applies to.

    A line with an address or a folder is not added, but that of a git repository without a marker.

    Args:
        tables: The requests by platform and name.
        line: The line.
        platforms: The platforms of the line in its file.
        minor: The Python minor, or an empty string if there may be several.
        lost: Receives what a manifest can't express.

    Raises:
        ValueError: The line is invalid.
    """
    with contextlib.suppress(ValueError):
        if tree := git_line(line):
            for platform in platforms:
                tables[platform][tree[0]] = WheelRequest(Range("*"), tree[1], tree[2])
            return
    if names_source(line):  # the index may have another package of that name
        lost.append(f"`{line[:100]}`: {WHY}")
        return
    found = wheel_request(line)
    for platform in platforms:
        counts = holds(found.marker, platform, minor)
        if counts is None:
            lost.append(f"of `{found.name}` tenv can't express its marker `{found.marker}`")
        if counts is not False:
            add_wheel(tables[platform], found.name, found.request, lost)


def add_wheel(table: dict[str, WheelRequest], name: str, request: WheelRequest, lost: list[str]) -> None:
    """Add a request; a second one of the same name can be added only if both are equal."""
    before = table.setdefault(name, request)
    if before.version != request.version:
        lost.append(f"`{name}` is requested in several versions: any version is accepted now")
        request = replace(request, version=Range("*"))
    table[name] = replace(request, extras=tuple(sorted({*before.extras, *request.extras})))
