"""The wheel tags and the marker environment of a platform and a Python minor."""

import functools
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tenv.core.names import WheelFile
from tenv.core.versions import Version

if TYPE_CHECKING:
    from packaging.markers import Marker

MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "win-64": "amd64"}
DEFAULT_GLIBC = Version("2.28")
"""The glibc to assume if a manifest names none: that of RHEL 8, the default of conda-forge since 2025 and of pixi, and
the platform of today's wheels (manylinux_2_28)."""
_OLDEST_GLIBC_MINOR = 17  # manylinux2014, the first for aarch64 (PEP 599)
_FIRST_WITHOUT_PYMALLOC_FLAG = (3, 8)  # older release builds are cp36m, cp37m (bpo-36707)
_OLDEST_X86_GLIBC_MINOR = 5  # manylinux1, the first of all (PEP 513)


@functools.cache  # half a millisecond, asked for each Python minor of each platform, several times by one command
def accepted_tags(platform: str, python: str, glibc: Version) -> Mapping[Any, int]:
    """Return the wheel tags of a platform, each with its rank (0 is the most specific)."""
    from packaging.tags import compatible_tags, cpython_tags

    minor = Version(python)
    version = (minor.major, minor.minor)
    if platform == "win-64":
        platforms = ["win_amd64"]
    else:
        machine = MACHINES[platform]
        oldest = _OLDEST_X86_GLIBC_MINOR if machine == "x86_64" else _OLDEST_GLIBC_MINOR
        legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # PEP 600's names for these
        platforms = [
            f"{name}_{machine}"
            for number in range(glibc.minor, oldest - 1, -1)
            for name in (f"manylinux_2_{number}", *([legacy[number]] if number in legacy else []))
        ] + [f"linux_{machine}"]
    interpreter = f"cp{minor.major}{minor.minor}"
    abi = f"{interpreter}m" if version < _FIRST_WITHOUT_PYMALLOC_FLAG else interpreter
    tags = [*cpython_tags(version, [abi], platforms), *compatible_tags(version, interpreter, platforms)]
    return MappingProxyType({tag: rank for rank, tag in enumerate(tags)})


def marker_values(platform: str, minor: str) -> dict[str, str]:
    """Return the marker environment (PEP 508) of a platform and the first patch release of a minor, without extras."""
    windows = platform.startswith("win")
    machine = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}.get(platform, "AMD64")
    return {
        "extra": "",
        "implementation_name": "cpython",
        "os_name": "nt" if windows else "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Windows" if windows else "Linux",
        "python_full_version": f"{minor}.0",
        "python_version": minor,
        "sys_platform": "win32" if windows else "linux",
    }


def evaluated(marker: "Marker", values: Mapping[str, str]) -> bool:
    """Return whether a marker is true; a comparison that can't be made hides no requirement, so it counts as true."""
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName  # late: loaded with the marker

    try:
        return marker.evaluate(dict(values))
    except (UndefinedComparison, UndefinedEnvironmentName, ValueError):  # ValueError: a number of over 4,300 digits
        return True


def evaluated_for_patches(marker: "Marker", values: Mapping[str, str]) -> bool:
    """Return whether a marker is true for the first or the last patch release of a Python minor.

    A lock serves all of them: `async-timeout; python_full_version < "3.11.3"` is for Debian 12's Python, 3.11.2.
    """
    return any(evaluated(marker, one) for one in at_patches(values))


def at_patches(values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return a marker environment with the first and with the last patch release of its Python minor."""
    first, last = (f"{values['python_version']}.{patch}" for patch in (0, 99))
    return {**values, "python_full_version": first}, {**values, "python_full_version": last}


_OLD_NAMES = {"manylinux2014": "2.17", "manylinux2010": "2.12", "manylinux1": "2.5"}
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_|(manylinux(?:1|2010|2014))_")


def glibc_of(file: str) -> Version | None:
    """Return the oldest glibc that a wheel runs on, by its name; None for a wheel without such a tag."""
    found = [
        Version(_OLD_NAMES[match[3]] if match[3] else f"{match[1]}.{match[2]}") for match in _MANYLINUX.finditer(file)
    ]
    return min(found, default=None)


def platforms_of(files: Iterable[WheelFile]) -> list[str]:
    """Return the platforms that wheels are for: those that tenv has, ``any`` and ``macOS``."""
    found: set[str] = set()
    for file in files:
        for tag in file.tags.rsplit("-", 1)[-1].split("."):
            if tag == "any" or tag.startswith("macosx"):
                found.add("any" if tag == "any" else "macOS")
            elif "manylinux" in tag or tag.startswith(("linux_", "win_")):
                system = "win_" if tag.startswith("win_") else "linux"
                found |= {p for p, machine in MACHINES.items() if tag.endswith(f"_{machine}") and p[:3] == system[:3]}
    order = ["any", *MACHINES, "macOS"]
    return sorted(found, key=order.index)
