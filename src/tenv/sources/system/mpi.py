"""Resolves MPI from the system by its compiler wrappers, which print its headers and libraries."""

import re
from collections.abc import Iterator
from pathlib import Path

from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.host.places import environment_of
from tenv.sources.system.interface import Lack, Tool, ToolRequest, named_folders, patterns

_VARIABLES = ("MPI_HOME", "MPI_ROOT", "OPENMPI_ROOT", "MPICH_ROOT", "EBROOTOPENMPI", "EBROOTMPICH", "I_MPI_ROOT")
_USUAL = ("opt/openmpi*", "opt/mpich*", "usr/lib64/openmpi", "usr/lib64/mpich", "opt/intel/oneapi/mpi/*", "usr/local")
_PROGRAMS = ("bin/mpicc*", "bin/mpicxx*", "bin/mpirun*", "bin/mpiexec*", "bin/opal_wrapper", "bin/orterun")
_LIBRARIES = tuple(f"{folder}/libmpi.so.*" for folder in ("lib", "lib64", "lib/release", "lib/*-linux-gnu"))
_SAID = re.compile(
    r"\(Open MPI\) (?P<open>\d[\d.]*\d)"
    r"|^[ \t]*Version:\s+(?P<mpich>\d[\d.]*\d)"
    r"|MPI Library.*Version (?P<intel>\d[\d.]*\d)",
    re.MULTILINE,
)


def parse_version(text: str) -> Version | None:
    """Return the version in the output of ``mpirun --version`` of Open MPI, MPICH or Intel MPI."""
    match = _SAID.search(text)
    return Version(match[match.lastgroup or 0]) if match else None


def find_mpi(wanted: ToolRequest) -> Tool | Lack:
    """Return a matching MPI, searched in variables, the present environment, PATH and default folders."""
    refused = []
    for way, root in _roots(wanted):
        found = _inspect(wanted, way, root)
        if isinstance(found, Tool):
            return found
        if found:
            refused.append(found)
    looked = ", ".join([*_VARIABLES, "mpicc on PATH", *(f"/{path}" for path in _USUAL)])
    install = "apt install libopenmpi-dev openmpi-bin (Debian, Ubuntu) or dnf install openmpi-devel"
    return wanted.lack(refused, looked, install)


def _roots(wanted: ToolRequest) -> Iterator[tuple[str, Path]]:
    places = wanted.places
    yield from named_folders(places, _VARIABLES, ())
    if wanted.kept:
        yield "in use already", Path(wanted.kept)
    for folder in places.folders():
        if (folder / "mpicc").is_file():
            yield "mpicc on PATH", folder.parent
    yield from named_folders(places, (), _USUAL)


def _inspect(wanted: ToolRequest, way: str, root: Path) -> Tool | str:
    """Return the MPI in a folder, or why it does not match; empty for a default folder without MPI."""
    if environment_of(root):
        return f"{root}: belongs to an environment of tenv"
    if not (root / "bin" / "mpicc").is_file():
        return f"{root} ({way}): has no bin/mpicc" if way in _VARIABLES else ""
    runner = next((path for name in ("mpirun", "mpiexec") if (path := root / "bin" / name).is_file()), None)
    if runner is None:
        return f"{root}: has no bin/mpirun"
    done = wanted.places.run(str(runner), "--version", LC_ALL="C")
    version = None if isinstance(done, Missing) else parse_version(done.stdout + done.stderr)
    if version is None:
        reason = done.reason if isinstance(done, Missing) else f"`{runner} --version` prints no version"
        return f"{root}: {reason}"
    if version not in wanted.accepted:
        return f"{root}: {version} is not {wanted.accepted}"
    programs = patterns(root, *_PROGRAMS)
    return wanted.tool(
        root,
        version,
        way,
        roles={"home": str(root), "mpicc": str(root / "bin" / "mpicc")},
        files=(*programs, *patterns(root, "include/mpi.h"), *patterns(root, *_LIBRARIES)),
        watched=(root / "bin" / "mpicc",),
    )
