"""Find the file that the system's loader selects for a library."""

import os
import re
import sys
from functools import cached_property
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.elf import ElfFaultError, open_elf
from tenv.host.interface import Missing, ReasonKind
from tenv.host.places import WSL_LIBRARIES, Places, exists, is_file

_LINE = re.compile(r"\s+(?P<name>\S+) \((?P<attributes>[^)]*)\) => (?P<path>/.*)")
# By `uname -m`: the family's name in `ldconfig -p`, and its folder on Debian.
_FAMILIES = {
    "x86_64": ("x86-64", "x86_64-linux-gnu"),
    "aarch64": ("AArch64", "aarch64-linux-gnu"),
    "ppc64le": ("64bit", "powerpc64le-linux-gnu"),
}


@dataclass(frozen=True, slots=True)
class Library:
    """A library that was found."""

    path: Path
    """The file as found, with links not resolved."""
    origin: str
    """Where it was found: ``LD_LIBRARY_PATH``, ``ldconfig -p`` or its folder."""
    known: bool
    """Whether the loader finds it by its name."""

    def ask(self, places: Places, *arguments: str, **changes: str) -> str | Missing:
        """Return the output of a Python child that loads the library, or why there is none.

        Args:
            places: Where it runs.
            arguments: The arguments of Python. The child starts without `site`, which is faster.
            changes: Environment variables that differ from this process.
        """
        done = places.run(sys.executable, "-I", "-S", *arguments, **changes)
        if isinstance(done, Missing):
            return Missing(f"asking {self.path}: {done.reason}", done.kind)
        if done.status < 0:
            return Missing(f"{self.path} crashed (signal {-done.status})", ReasonKind.FAILED)
        if done.status > 0:
            said = (done.stderr.strip().splitlines() or [f"exit status {done.status}"])[-1]
            return Missing(said, ReasonKind.FAILED)
        return done.stdout


def parse_cache(text: str, machine: str) -> dict[str, tuple[str, ...]]:
    """Return the files that ``ldconfig -p`` lists for a processor family by library name, in the loader's order."""
    word = _FAMILIES.get(machine, (machine, ""))[0]
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match and word in [attribute.strip() for attribute in match["attributes"].split(",")]:
            found[match["name"]] = (*found.get(match["name"], ()), match["path"].strip())
    return found


class Loader:
    """The search of ld.so(8) without the run paths of programs: LD_LIBRARY_PATH, the cache, the default folders."""

    def __init__(self, places: Places) -> None:
        self.places = places

    @cached_property
    def cache(self) -> dict[str, tuple[str, ...]]:
        """The loader's cache; empty if there is no ldconfig (musl, NixOS)."""
        # On some distributions, only root has these folders on PATH.
        known = [str(self.places.at(path)) for path in ("/sbin/ldconfig", "/usr/sbin/ldconfig")]
        program = next((path for path in known if os.access(path, os.X_OK)), self.places.find("ldconfig"))
        done = self.places.run(program, "-p", LC_ALL="C") if program else Missing("no ldconfig", ReasonKind.NONE)
        return {} if isinstance(done, Missing) else parse_cache(done.stdout, self.places.machine)

    def find(self, name: str) -> Library | Missing:
        """Return the file that the loader selects for a library.

        Args:
            name: Its name (``libcuda.so.1``), or the path of a file.
        """
        if "/" in name:
            there = exists(Path(name))
            return (
                Library(Path(name), name, known=False) if there else Missing(f"{name} does not exist", ReasonKind.NONE)
            )
        for library in self._candidates(name):
            if is_file(library.path) and self._fits(library.path):
                return library
        return Missing(f"the loader finds no {name}", ReasonKind.NONE)

    def _candidates(self, name: str) -> list[Library]:
        places = self.places
        set_ = re.split("[:;]", places.environ.get("LD_LIBRARY_PATH", ""))
        triplet = _FAMILIES.get(places.machine, ("", places.machine))[1]
        defaults = [f"lib/{triplet}", f"usr/lib/{triplet}", "lib64", "usr/lib64", "lib", "usr/lib"]
        outside = [WSL_LIBRARIES, "run/opengl-driver/lib"]  # the latter is NixOS's
        return [
            *(Library(Path(folder) / name, "LD_LIBRARY_PATH", known=True) for folder in set_ if folder),
            *(Library(places.at(path), "ldconfig -p", known=True) for path in self.cache.get(name, ())),
            *(Library(places.root / folder / name, f"/{folder}", known=True) for folder in defaults),
            *(Library(places.root / folder / name, f"/{folder}", known=False) for folder in outside),
        ]

    def _fits(self, path: Path) -> bool:
        """Return whether a file is for this processor; the loader skips others, but not files with other faults."""
        machine = self.places.machine
        try:
            with open_elf(path) as elf:
                return machine not in _FAMILIES or (elf.wide and elf.order == "<" and elf.machine == machine)
        except ElfFaultError:
            return True
        except OSError:
            return False
