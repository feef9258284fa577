"""Resolves the host compiler: gcc and g++ on Linux, Microsoft's compiler on Windows.

gcc is searched on PATH and in the folders of distributions and environment modules; Microsoft's among the toolsets of
Visual Studio and its Build Tools, which their installer lists.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tenv.core.versions import Version
from tenv.host import compilers
from tenv.host.choice import GccPair, choose_gcc
from tenv.host.interface import Missing
from tenv.host.msvc import LOOKED_AT, cl_of, parse_toolset, toolsets
from tenv.host.places import Places, environment_of
from tenv.host.report import Lead
from tenv.sources.system.interface import Lack, Tool, ToolRequest, patterns

_VARIABLES = ("EBROOTGCC", "EBROOTGCCCORE", "GCC_ROOT", "GCC_HOME", "GCC_DIR")
_USUAL = ("usr/bin", "usr/local/bin", "opt/rh/gcc-toolset-*/root/usr/bin", "opt/rh/devtoolset-*/root/usr/bin")
_MORE = ("opt/gcc*/bin", "usr/local/gcc*/bin")
_PROGRAMS = ("cc1", "cc1plus", "collect2")
_MSVC_FILES = ("cl.exe", "c1.dll", "c1xx.dll", "c2.dll", "link.exe")


def find_gcc(wanted: ToolRequest) -> Tool | Lack:
    """Return the best gcc and g++ that the CUDA toolkit of the system accepts."""
    toolkit = wanted.others.get("cuda-toolkit")
    most = wanted.most(toolkit.version) if toolkit else None
    found = [c for c in compilers.probe(_wider(wanted.places)).value if not environment_of(Path(c.path))]
    choice = choose_gcc(found, wanted.accepted, most, wanted.kept)
    pair = choice.taken
    refused = list(choice.refused)
    if pair is not None:
        programs = {name: _asked(wanted.places, pair.gxx, f"-print-prog-name={name}") for name in _PROGRAMS}
        if programs["cc1plus"]:
            return _tool(wanted, pair, [Path(path) for path in programs.values() if path])
        refused.append(f"{pair.gxx}: it has no cc1plus, so it can't compile C++ (a package of it is missing)")
    looked = f"PATH, CC, CXX, /usr/bin, /opt/rh, /opt/gcc*, {', '.join(_VARIABLES)}"
    return wanted.lack(refused, looked, _install(wanted, most))


def _wider(places: Places) -> Places:
    """Return the places with more folders after those of PATH."""
    return replace(places, path=os.pathsep.join(dict.fromkeys(map(str, _folders(places)))))


def _folders(places: Places) -> Iterator[Path]:
    yield from places.folders()
    for variable in _VARIABLES:
        if value := places.environ.get(variable):
            yield Path(value) / "bin"
    for pattern in (*_USUAL, *_MORE):
        yield from (path for path in sorted(places.root.glob(pattern), reverse=True) if path.is_dir())


def _asked(places: Places, program: str, option: str) -> str:
    """Return the absolute path of a part of a compiler, which the compiler prints; empty without one."""
    done = places.run(program, option, LC_ALL="C")
    printed = "" if isinstance(done, Missing) else done.stdout.strip()
    return printed if Path(printed).is_absolute() and Path(printed).is_file() else ""


def _tool(wanted: ToolRequest, pair: GccPair, programs: list[Path]) -> Tool:
    drivers = (Path(pair.gcc), Path(pair.gxx))
    library = _asked(wanted.places, pair.gxx, "-print-file-name=libstdc++.so")
    more = [Path(os.path.realpath(library))] if library else []
    return wanted.tool(
        drivers[1],
        pair.version,
        pair.found_by,
        roles={"gcc": pair.gcc, "g++": pair.gxx},
        files=(*drivers, *programs, *more),
        watched=(*drivers, *(path for path in programs if path.name == "cc1plus")),
    )


def _install(wanted: ToolRequest, most: int | None) -> str:
    """Return the command that installs the newest matching gcc."""
    newest = 15
    for major in range(min(newest, most or newest), 4, -1):
        if any(Version(f"{major}.{minor}.0") in wanted.accepted for minor in range(6)):
            return f"apt install gcc-{major} g++-{major} (Debian, Ubuntu) or dnf install gcc-toolset-{major}"
    return "set CC and CXX to a matching gcc and g++"


def find_msvc(wanted: ToolRequest) -> Tool | Lack:
    """Return the newest matching toolset; that of a developer prompt comes first."""
    refused: list[str] = []
    found: list[tuple[bool, Version, str, Path]] = []
    for toolset in toolsets(wanted.places, refused):
        way, folder = toolset.found_by, toolset.folder
        version = Version(folder.name) if parse_toolset(folder.name) else None
        if version is None:
            refused.append(f"{folder}: its name is not a toolset version (14.NN)")
        elif not cl_of(folder).is_file():
            refused.append(f"{folder}: has no {cl_of(folder).relative_to(folder)}")
        elif version not in wanted.accepted:
            refused.append(f"{folder}: {version} is not {wanted.accepted}")
        else:
            found.append((way.kind is Lead.PROMPT, version, way.text, folder))
    if not found:
        install = "winget install Microsoft.VisualStudio.2022.BuildTools, with the C++ workload"
        return wanted.lack(refused, LOOKED_AT, install)
    _, version, found_by, folder = max(found)
    programs = patterns(cl_of(folder).parent, *_MSVC_FILES)
    return wanted.tool(
        folder,
        version,
        found_by,
        roles={"cl": str(cl_of(folder))},
        files=tuple(programs),
        watched=(cl_of(folder),),
    )
