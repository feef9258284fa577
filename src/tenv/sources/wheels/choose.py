"""Which wheel of a release a platform and a Python take."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.core.errors import NoSolutionError
from tenv.core.names import WheelFile, normalize
from tenv.core.versions import Version
from tenv.locks.lock import Wheel

__all__ = ["OLDEST_GLIBC", "accepted_tags", "choose_wheel", "join", "uv_platform"]

_MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "win-64": "amd64"}
OLDEST_GLIBC = Version("2.17")
_OLDEST_X86_GLIBC_MINOR = 5  # manylinux1, the first of all (PEP 513)


def uv_platform(platform: str, glibc: Version) -> str:
    """Return a platform by the name that uv has for it."""
    if platform == "win-64":
        return "x86_64-pc-windows-msvc"
    # uv knows manylinux of each minor from 2.17 on.
    return f"{_MACHINES[platform]}-manylinux_{glibc.major}_{glibc.minor}"


def accepted_tags(platform: str, python: str, glibc: Version) -> dict[Any, int]:
    """Return the tags of wheels that run on a platform, each with its rank (0 is the most specific)."""
    from packaging.tags import compatible_tags, cpython_tags  # noqa: PLC0415 (late)

    minor = Version(python)
    version = (minor.major, minor.minor)
    if platform == "win-64":
        platforms = ["win_amd64"]
    else:
        machine = _MACHINES[platform]
        oldest = _OLDEST_X86_GLIBC_MINOR if machine == "x86_64" else OLDEST_GLIBC.minor
        legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # PEP 600's names for these
        platforms = [
            f"{name}_{machine}"
            for number in range(glibc.minor, oldest - 1, -1)
            for name in (f"manylinux_2_{number}", *([legacy[number]] if number in legacy else []))
        ] + [f"linux_{machine}"]
    abi = f"cp{minor.major}{minor.minor}"
    tags = [*cpython_tags(version, [abi], platforms), *compatible_tags(version, abi, platforms)]
    return {tag: rank for rank, tag in enumerate(tags)}


def choose_wheel(package: Mapping[str, Any], tags: Mapping[Any, int], python: str) -> tuple[str, tuple[Wheel, str]]:
    """Return a package's name with the file that fits best and its URL."""
    name = normalize(package["name"])
    ranked = []
    for row in package.get("wheels", []):
        url = row.get("url") or Path(row["path"]).absolute().as_uri()
        file = WheelFile.parse(url)
        if file is None or "sha256" not in row.get("hashes", {}):
            continue
        rank = min((tags[tag] for tag in file.all_tags() if tag in tags), default=None)
        if rank is not None:
            wheel = Wheel(name, package["version"], file.file, row["hashes"]["sha256"], row.get("size"), (python,))
            ranked.append((rank, file.file, wheel, url))
    if not ranked:
        raise NoSolutionError(f"{name} {package.get('version', '')}: the index has no wheel that fits, with its sha256")
    _, _, wheel, url = min(ranked, key=lambda row: row[:2])
    return name, (wheel, url)


def join(resolved: Iterable[dict[str, tuple[Wheel, str]]], sizes: Mapping[str, int]) -> tuple[Wheel, ...]:
    """Join the choices for each Python minor into the wheels of a platform: one row a file, in a stable order.

    Args:
        resolved: The choice for each minor.
        sizes: Sizes in bytes, by sha256.
    """
    rows: dict[tuple[str, str, str], Wheel] = {}
    for choice in resolved:
        for wheel, _ in choice.values():
            key = (wheel.name, wheel.version, wheel.file)
            have = rows.get(key)
            minors = {*(have.python if have else ()), *wheel.python}
            size = wheel.size if wheel.size is not None else sizes.get(wheel.sha256)
            rows[key] = replace(wheel, size=size, python=tuple(sorted(minors, key=Version)))
    return tuple(rows[key] for key in sorted(rows))
