"""TE502: a glibc that is too old."""

from dataclasses import replace
from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.targets.manifest import Requirements
from tests.checks.rules.cases import wheel

UNNAMED = {"manifest": {"requirements": Requirements(Version("13.0"))}}


def wheels(*names: str, features: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the wheels of a lock by what their names end with, of a manifest that names no glibc."""
    rows = [replace(wheel(f"x{number}", "1.0"), file=f"x{number}-1.0-{name}.whl") for number, name in enumerate(names)]
    return {"wheels": tuple(replace(row, features=features) for row in rows), **UNNAMED}


NEWER, OLDER = "cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64", "py3-none-manylinux2014_x86_64"

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"libc": Version("2.27")}
SILENT: list[dict[str, Any]] = [
    {"libc": Version("2.28")},
    {"libc": Missing("no")},
    {"libc": Version("2.17"), **wheels(OLDER, "py3-none-any")},
    {"libc": Version("2.27"), **wheels(NEWER)},
    {"libc": Version("2.26"), **wheels(NEWER, features=("test",))},
]
ALSO: list[dict[str, Any]] = [{"libc": Version("2.26"), **wheels(OLDER, NEWER)}]
