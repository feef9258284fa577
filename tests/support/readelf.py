"""What readelf shows of a library: the other opinion on what an audit reads."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Shown", "as_readelf_shows"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a library asks of the loader.

    Attributes:
        needed: The libraries that it needs, in order.
        rpath: The folders of DT_RPATH.
        runpath: The folders of DT_RUNPATH.
        soname: Its own name; empty for none.
        versions: The symbol versions that it requires, by library, sorted; weak ones are left out.
    """

    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    soname: str
    versions: dict[str, list[str]]


def as_readelf_shows(path: Path) -> Shown:
    """Return what readelf shows of a library."""
    dynamic = _said("-d", path)

    def all_of(tag: str) -> list[str]:
        return re.findall(rf"\({tag}\).*\[(.*)\]", dynamic)

    shown: dict[str, list[str]] = {}
    for row in _said("-V", path).partition(".gnu.version_r")[2].splitlines():
        if file := re.search(r"File: (\S+)", row):
            current = shown.setdefault(file[1], [])
        elif (name := re.search(r"Name: (\S+)\s+Flags: (\S+)", row)) and name[2] != "WEAK":
            current.append(name[1])
    return Shown(
        needed=tuple(all_of("NEEDED")),
        rpath=tuple(folder for text in all_of("RPATH") for folder in text.split(":")),
        runpath=tuple(folder for text in all_of("RUNPATH") for folder in text.split(":")),
        soname="".join(all_of("SONAME")),
        versions={name: sorted(rows) for name, rows in shown.items()},
    )


def _said(option: str, path: Path) -> str:
    environ = {**os.environ, "LC_ALL": "C"}
    words = ["readelf", "-W", option, str(path)]
    return subprocess.run(words, capture_output=True, text=True, env=environ, check=True).stdout
