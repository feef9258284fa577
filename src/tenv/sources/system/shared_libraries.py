"""Resolves libraries from the system: cuDNN, cuSPARSELt, NCCL and MKL by a versioned header, MPI by its wrappers."""

import re
from collections.abc import Iterator
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.host.places import Places, environment_of
from tenv.sources.system.interface import Lack, Tool, ToolRequest, macros, named_folders, patterns


@dataclass(frozen=True, slots=True)
class _Library:
    """How to find a library."""

    headers: tuple[str, ...]
    """The headers that may define its version, the newest name first."""
    macros: tuple[str, ...]
    """The macros of the version, from major to patch."""
    files: tuple[str, ...]
    """Patterns for its libraries."""
    variables: tuple[str, ...]
    """The variables that name its folder."""
    usual: tuple[str, ...]
    """Patterns for its default folders."""
    install: str
    """The command that installs it."""


_SYSTEM = ("usr", "usr/local")

LIBRARIES = {
    "cudnn": _Library(
        headers=("cudnn_version.h", "cudnn_version_v9.h", "cudnn.h"),
        macros=("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"),
        files=("libcudnn.so*", "libcudnn_*.so.*", "cudnn*.lib"),
        variables=("CUDNN_ROOT", "CUDNN_HOME", "CUDNN_PATH", "CUDNN_ROOT_DIR", "EBROOTCUDNN"),
        usual=("usr/local/cudnn*", "opt/cudnn*", "opt/nvidia/cudnn*", *_SYSTEM),
        install="apt install cudnn9-cuda-12 (NVIDIA's repository), or name its folder in CUDNN_ROOT",
    ),
    "cusparselt": _Library(
        headers=("cusparseLt.h",),
        macros=("CUSPARSELT_VER_MAJOR", "CUSPARSELT_VER_MINOR", "CUSPARSELT_VER_PATCH"),
        files=("libcusparseLt.so*", "libcusparseLt_static.a", "cusparseLt.lib"),
        variables=("CUSPARSELT_ROOT", "CUSPARSELT_HOME", "EBROOTCUSPARSELT"),
        usual=("usr/local/cusparselt*", "opt/cusparselt*", *_SYSTEM),
        install="apt install libcusparselt-dev (NVIDIA's repository), or name its folder in CUSPARSELT_ROOT",
    ),
    "nccl": _Library(
        headers=("nccl.h",),
        macros=("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH"),
        files=("libnccl.so*", "libnccl_static.a"),
        variables=("NCCL_ROOT", "NCCL_HOME", "NCCL_ROOT_DIR", "EBROOTNCCL"),
        usual=("usr/local/nccl*", "opt/nccl*", "opt/nvidia/nccl*", *_SYSTEM),
        install="apt install libnccl-dev (NVIDIA's repository), or name its folder in NCCL_ROOT",
    ),
    "mkl": _Library(
        headers=("mkl_version.h",),
        macros=("__INTEL_MKL__", "__INTEL_MKL_MINOR__", "__INTEL_MKL_UPDATE__"),
        files=("libmkl_core.a", "libmkl_core.so*", "mkl_core.lib"),
        variables=("MKLROOT", "MKL_ROOT", "INTEL_MKL_DIR", "EBROOTIMKL"),
        usual=("opt/intel/oneapi/mkl/*", "opt/intel/mkl", *_SYSTEM),
        install="apt install intel-oneapi-mkl-devel (Intel's repository), or name its folder in MKLROOT",
    ),
}
"""The libraries, by their key in ``[system]``."""


def find_library(wanted: ToolRequest) -> Tool | Lack:
    """Return a matching library, searched in variables, the present environment and the toolkit."""
    library = LIBRARIES[wanted.name]
    refused = []
    for way, folder in _folders(wanted, library):
        found = _inspect(wanted, library, way, folder)
        if isinstance(found, Tool):
            return found
        if found:
            refused.append(found)
    looked = ", ".join([*library.variables, "the CUDA toolkit", *(f"/{path}" for path in library.usual)])
    return wanted.lack(refused, looked, library.install)


def _folders(wanted: ToolRequest, library: _Library) -> Iterator[tuple[str, Path]]:
    yield from named_folders(wanted.places, library.variables, ())
    if wanted.kept:
        yield "in use already", Path(wanted.kept)
    if toolkit := wanted.others.get("cuda-toolkit"):
        yield "the CUDA toolkit", Path(toolkit.roles["home"])
    yield from named_folders(wanted.places, (), library.usual)


def _inspect(wanted: ToolRequest, library: _Library, way: str, folder: Path) -> Tool | str:
    """Return the library in a folder, or why it does not match; empty for a default folder without it."""
    named = way in library.variables
    headers = [path for name in library.headers for path in _headers(folder, name)]
    if environment_of(folder):
        return f"{folder}: belongs to an environment of tenv"
    if not headers:
        there = f"has no {library.headers[0]}" if folder.is_dir() else "does not exist"
        return f"{folder} ({way}): {there}" if named else ""
    numbers = next((found for path in headers if (found := macros(path, *library.macros))), None)
    if numbers is None:
        return f"{headers[0]}: does not define {library.macros[0]}"
    return _tool(wanted, library, way, folder, headers, Version(".".join(numbers)))


def _tool(
    wanted: ToolRequest, library: _Library, way: str, folder: Path, headers: list[Path], version: Version
) -> Tool | str:
    if version not in wanted.accepted:
        return f"{folder}: {version} is not {wanted.accepted}"
    files = [path for place in _library_folders(folder, wanted.places) for path in patterns(place, *library.files)]
    if not files:
        return f"{folder}: has {headers[0].name} of {version}, but no {library.files[0].rstrip('*')} to link"
    return wanted.tool(
        folder,
        version,
        way,
        roles={"home": str(folder), "include": str(headers[0].parent), "lib": str(files[0].parent)},
        files=tuple(headers),
        large=tuple(dict.fromkeys(files)),
        watched=(headers[0], files[0]),
    )


def _headers(folder: Path, name: str) -> list[Path]:
    """Return a header in a folder; Debian has a separate folder per architecture."""
    return patterns(folder, f"include/{name}", f"include/*-linux-gnu/{name}", f"targets/*/include/{name}")


def _library_folders(folder: Path, places: Places) -> list[Path]:
    machine = places.machine
    names = ("lib64", "lib", f"lib/{machine}-linux-gnu", "lib/intel64", f"targets/{machine}-linux/lib", "lib/x64")
    return [folder / name for name in names if (folder / name).is_dir()]


_MPI_VARIABLES = ("MPI_HOME", "MPI_ROOT", "OPENMPI_ROOT", "MPICH_ROOT", "EBROOTOPENMPI", "EBROOTMPICH", "I_MPI_ROOT")
_MPI_FOLDERS = (
    "opt/openmpi*",
    "opt/mpich*",
    "usr/lib64/openmpi",
    "usr/lib64/mpich",
    "opt/intel/oneapi/mpi/*",
    "usr/local",
)
_MPI_PROGRAMS = ("bin/mpicc*", "bin/mpicxx*", "bin/mpirun*", "bin/mpiexec*", "bin/opal_wrapper", "bin/orterun")
_MPI_LIBRARIES = tuple(f"{folder}/libmpi.so.*" for folder in ("lib", "lib64", "lib/release", "lib/*-linux-gnu"))
_MPI_SAID = re.compile(
    r"\(Open MPI\) (?P<open>\d[\d.]*\d)"
    r"|^[ \t]*Version:\s+(?P<mpich>\d[\d.]*\d)"
    r"|MPI Library.*Version (?P<intel>\d[\d.]*\d)",
    re.MULTILINE,
)


def parse_version(text: str) -> Version | None:
    """Return the version in the output of ``mpirun --version`` of Open MPI, MPICH or Intel MPI."""
    match = _MPI_SAID.search(text)
    return Version(match[match.lastgroup or 0]) if match else None


def find_mpi(wanted: ToolRequest) -> Tool | Lack:
    """Return a matching MPI, searched in variables, the present environment, PATH and default folders."""
    refused = []
    for way, root in _mpi_roots(wanted):
        found = _inspect_mpi(wanted, way, root)
        if isinstance(found, Tool):
            return found
        if found:
            refused.append(found)
    looked = ", ".join([*_MPI_VARIABLES, "mpicc on PATH", *(f"/{path}" for path in _MPI_FOLDERS)])
    install = "apt install libopenmpi-dev openmpi-bin (Debian, Ubuntu) or dnf install openmpi-devel"
    return wanted.lack(refused, looked, install)


def _mpi_roots(wanted: ToolRequest) -> Iterator[tuple[str, Path]]:
    places = wanted.places
    yield from named_folders(places, _MPI_VARIABLES, ())
    if wanted.kept:
        yield "in use already", Path(wanted.kept)
    for folder in places.folders():
        if (folder / "mpicc").is_file():
            yield "mpicc on PATH", folder.parent
    yield from named_folders(places, (), _MPI_FOLDERS)


def _inspect_mpi(wanted: ToolRequest, way: str, root: Path) -> Tool | str:
    """Return the MPI in a folder, or why it does not match; empty for a default folder without MPI."""
    if environment_of(root):
        return f"{root}: belongs to an environment of tenv"
    if not (root / "bin" / "mpicc").is_file():
        return f"{root} ({way}): has no bin/mpicc" if way in _MPI_VARIABLES else ""
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
    programs = patterns(root, *_MPI_PROGRAMS)
    return wanted.tool(
        root,
        version,
        way,
        roles={"home": str(root), "mpicc": str(root / "bin" / "mpicc")},
        files=(*programs, *patterns(root, "include/mpi.h"), *patterns(root, *_MPI_LIBRARIES)),
        watched=(root / "bin" / "mpicc",),
    )
