"""Detect Microsoft's compiler: the toolsets of Visual Studio and its Build Tools, from their installer and the prompt.

A toolset 14.NN brings cl.exe 19.NN, whose ``_MSC_VER`` is 1900 + NN (Microsoft's list of ``_MSC_VER`` by product): the
folder's name has the version, so no compiler is run. vswhere.exe has a fixed place below Program Files.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.host.interface import Missing, ReasonKind
from tenv.host.places import Places, is_file, read
from tenv.host.report import Compiler, FoundBy, Lead

LOOKED_AT = "the developer's prompt, vswhere.exe"
"""Where `toolsets` searches, for messages."""

_INSTALLER = "Microsoft Visual Studio/Installer/vswhere.exe"
_COMPONENT = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"
_OPTIONS = ("-products", "*", "-requires", _COMPONENT, "-format", "json", "-utf8")
_PROMPT = ("VCToolsInstallDir", "VCToolsVersion", "VSINSTALLDIR")
_TOOLSETS = "VC/Tools/MSVC"
_DEFAULT = "VC/Auxiliary/Build/Microsoft.VCToolsVersion.default.txt"
_TOOLSET = re.compile(r"14\.(\d{1,3})(?:\.(\d+))?(\.\d+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Studio:
    """A Visual Studio, or its Build Tools."""

    folder: Path
    """Where it is installed."""
    version: Version | None
    """Its own version (17.14 for Visual Studio 2022), which selects the newest; None if unknown."""


@dataclass(frozen=True, slots=True)
class Toolset:
    """A possible folder of a toolset."""

    folder: Path
    """The folder, named by the toolset's version."""
    found_by: FoundBy
    """A variable of the developer's prompt, or ``vswhere``."""
    default: bool
    """Whether a build uses it."""


def parse_vswhere(text: str) -> tuple[Studio, ...] | Missing:
    """Return the installations in vswhere's JSON, newest first, without incomplete ones."""
    try:
        rows: Any = json.loads(text.removeprefix("\ufeff") or "[]")
    except (ValueError, RecursionError) as error:
        return Missing(f"vswhere.exe printed no JSON: {error}", ReasonKind.UNREADABLE)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Missing("vswhere.exe printed no list of installations", ReasonKind.UNREADABLE)
    found = [
        Studio(Path(folder), Version.find(str(row.get("installationVersion", ""))))
        for row in rows
        if isinstance(folder := row.get("installationPath"), str) and folder and row.get("isComplete") is not False
    ]
    return tuple(sorted(found, key=lambda studio: studio.version or Version("0"), reverse=True))


def parse_toolset(name: str) -> Version | None:
    """Return the version of a toolset's cl.exe (19.44.35207 for 14.44.35207); None for other names."""
    match = _TOOLSET.fullmatch(name.strip())
    return Version(f"19.{match[1]}.{match[2] or 0}") if match else None


def cl_of(toolset: Path) -> Path:
    """Return the path of a toolset's compiler that runs on x86-64 and compiles for it."""
    return toolset / "bin" / "Hostx64" / "x64" / "cl.exe"


def is_cl(program: str) -> bool:
    """Return whether a program is cl.exe, by its name or path in Windows form."""
    return PureWindowsPath(program).stem.lower() == "cl"


def is_asked(places: Places) -> bool:
    """Return whether to search: on Windows, or in a prompt of Visual Studio."""
    return sys.platform == "win32" or any(map(places.variable, _PROMPT))


def toolsets(places: Places, problems: list[str]) -> Iterator[Toolset]:
    """Yield the toolsets: the developer prompt's, then each Visual Studio's, newest first.

    The default is the prompt's, else the default of the newest Visual Studio.

    Args:
        places: Where to look.
        problems: Receives why an installation could not be read.
    """
    prompt = _of_prompt(places)
    if prompt is not None:
        yield prompt
    taken = prompt is not None
    for studio in _studios(places, problems):
        own = _default_of(studio.folder)
        for folder in sorted((studio.folder / _TOOLSETS).glob("*")):
            if prompt is None or folder != prompt.folder:
                default = not taken and folder.name == own
                taken = taken or default
                yield Toolset(folder, FoundBy(Lead.VSWHERE, "vswhere"), default)


def compilers(places: Places, problems: list[str]) -> list[Compiler]:
    """Return the cl.exe of each toolset, in the form of `tenv.host.compilers.probe`."""
    found = []
    for toolset in toolsets(places, problems):
        version, program = parse_toolset(toolset.folder.name), cl_of(toolset.folder)
        if version is None:
            problems.append(f"{toolset.folder} is skipped: its name is not a toolset version (14.NN)")
        elif not is_file(program):
            problems.append(f"{toolset.folder} is skipped: it has no cl.exe for x64")
        else:
            found.append(Compiler("msvc", str(program), version, toolset.default, (toolset.found_by,)))
    return found


def _of_prompt(places: Places) -> Toolset | None:
    """Return the toolset from the variables of a developer prompt."""
    if folder := places.variable("VCToolsInstallDir"):
        return Toolset(Path(folder), FoundBy(Lead.PROMPT, "VCToolsInstallDir"), default=True)
    if studio := places.variable("VSINSTALLDIR"):
        version = places.variable("VCToolsVersion").strip()
        name = version or _default_of(Path(studio))
        found_by = FoundBy(Lead.PROMPT, "VSINSTALLDIR, VCToolsVersion" if version else "VSINSTALLDIR")
        return Toolset(Path(studio) / _TOOLSETS / name, found_by, default=True) if name else None
    return None


def _default_of(studio: Path) -> str:
    """Return the default toolset of a Visual Studio; an empty string if it names none."""
    text = read(studio / _DEFAULT)
    return "" if isinstance(text, Missing) else text.strip()


def _studios(places: Places, problems: list[str]) -> tuple[Studio, ...]:
    for variable in ("ProgramFiles(x86)", "ProgramFiles"):
        installer = Path(places.variable(variable)) / _INSTALLER
        if not places.variable(variable) or not is_file(installer):
            continue
        done = places.run(str(installer), *_OPTIONS)
        if not isinstance(done, Missing) and done.status:
            done = Missing(f"{installer} failed with status {done.status}", ReasonKind.FAILED)
        answer = done if isinstance(done, Missing) else parse_vswhere(done.stdout)
        if not isinstance(answer, Missing):
            return answer
        problems.append(answer.reason)
    return ()
