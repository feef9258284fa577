"""The CUDA toolkit that a build of an extension takes: by torch's own order and by CMake's.

``torch.utils.cpp_extension`` (``_find_cuda_home``, torch 1.13 to 2.15): ``CUDA_HOME``, ``CUDA_PATH``, the folder above
the folder of the ``nvcc`` on PATH, ``/usr/local/cuda``. It compiles with ``bin/nvcc`` of that folder, links included,
whatever else the folder holds. An empty ``CUDA_PATH`` ends the search without a toolkit.

CMake's ``find_package(Torch)`` asks ``FindCUDA.cmake`` of torch for the folder (``CUDA_TOOLKIT_ROOT``, ``CUDA_PATH``,
``CUDA_BIN_PATH``, PATH, ``/usr/local/cuda``, ``/opt/cuda``), and CMake itself for the compiler (``CUDACXX``, PATH,
``CUDA_PATH``: ``CMakeDetermineCUDACompiler.cmake`` of CMake 3.31 and 4.4). ``CUDA_HOME`` has no effect on either.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing
from tenv.host.places import Places, exists, is_file
from tenv.host.report import HostReport, Lead, Toolkit
from tenv.host.toolkits import parse_nvcc

_DEFAULT = "usr/local/cuda"
_INCLUDED = ("cuda_runtime_api.h", "cusparse.h", "cublas_v2.h", "cublasLt.h", "cusolverDn.h")
"""The headers of a toolkit that ``ATen/cuda/CUDAContext.h`` includes (torch 2.0 to 2.15), and so most extensions."""


@dataclass(frozen=True, slots=True)
class TakenToolkit:
    """The toolkit that one tool takes."""

    by: str
    """``torch`` or ``CMake``."""
    folder: str
    """Its folder; empty where the tool finds none."""
    way: str
    """How it is found: ``CUDA_HOME``, ``nvcc on PATH``."""
    nvcc: str = ""
    """Its compiler; empty where there is none."""
    version: Version | None = None
    """The release that this compiler reports; None where it reports none."""
    absent: tuple[str, ...] = ()
    """The headers that torch's own include, and that the folder lacks."""


def taken_toolkits(places: Places) -> tuple[TakenToolkit, ...]:
    """Return the toolkits that torch and CMake take on this machine."""
    named, way = _of_torch(places)
    by_torch = _asked("torch", named, way, "", places)
    folder, way = _of_cmake(places)
    compiler, how = _compiler_of_cmake(places)
    by_cmake = _asked("CMake", folder, way, compiler, places)
    if compiler and how != way:
        by_cmake = TakenToolkit(
            by_cmake.by, folder, f"{way}, its nvcc by {how}", compiler, by_cmake.version, by_cmake.absent
        )
    return by_torch, by_cmake


def _of_torch(places: Places) -> tuple[str, str]:
    """Return the folder that ``_find_cuda_home`` returns, and the way to it."""
    environ = places.environ
    home = environ.get("CUDA_HOME") or environ.get("CUDA_PATH")
    if home is not None:
        return home, "CUDA_HOME" if environ.get("CUDA_HOME") else "CUDA_PATH"
    if nvcc := places.find("nvcc"):
        return str(Path(nvcc).parent.parent), "nvcc on PATH"
    default = places.root / _DEFAULT
    return (str(default), "the default folder") if exists(default) else ("", "")


def _of_cmake(places: Places) -> tuple[str, str]:
    """Return the folder that torch's ``FindCUDA.cmake`` takes, and the way to it."""
    for variable in ("CUDA_TOOLKIT_ROOT", "CUDA_PATH", "CUDA_BIN_PATH"):
        if value := places.environ.get(variable):
            for folder in (Path(value) / "bin", Path(value) / "bin64", Path(value)):
                if is_file(folder / "nvcc"):
                    return str(folder.parent if folder.name.startswith("bin") else folder), variable
    if nvcc := places.find("nvcc"):
        return str(Path(nvcc).parent.parent), "nvcc on PATH"
    for default in (places.root / _DEFAULT, places.root / "opt/cuda"):
        if is_file(default / "bin/nvcc"):
            return str(default), "the default folder"
    return "", ""


def _compiler_of_cmake(places: Places) -> tuple[str, str]:
    """Return the nvcc that CMake takes for the language CUDA, and the way to it; two empty texts for none."""
    if named := places.environ.get("CUDACXX", "").split(" ")[0]:
        return places.find(named) or named, "CUDACXX"
    if nvcc := places.find("nvcc"):
        return nvcc, "nvcc on PATH"
    path = places.environ.get("CUDA_PATH")
    return (f"{path}/bin/nvcc", "CUDA_PATH") if path and is_file(Path(path) / "bin/nvcc") else ("", "")


def _asked(by: str, folder: str, way: str, compiler: str, places: Places) -> TakenToolkit:
    """Return a tool's toolkit with the release that its compiler reports: torch asks ``bin/nvcc`` of the folder."""
    program = compiler or (f"{folder}/bin/nvcc" if folder else "")
    if not program or not is_file(Path(program)):
        return TakenToolkit(by, folder, way)
    done = places.run(program, "--version")
    found = None if isinstance(done, Missing) else parse_nvcc(done.stdout) or _release(done.stdout)
    release = found if isinstance(found, Version) or found is None else found.release
    return TakenToolkit(by, folder, way, program, release, _absent(Path(folder)) if folder else ())


def _absent(folder: Path) -> tuple[str, ...]:
    """Return the headers that a toolkit lacks: torch's helper adds ``include`` of the folder, nvcc those of targets."""
    places = (folder / "include", *folder.glob("targets/*/include"))
    return tuple(name for name in _INCLUDED if not any(is_file(place / name) for place in places))


def _release(text: str) -> Version | None:
    """Return the release as torch reads it, of a compiler that reports no build."""
    match = re.search(r"release (\d{1,3}\.\d{1,3})", text, re.ASCII)
    return Version(match[1]) if match else None


def reported_toolkits(report: HostReport) -> tuple[TakenToolkit, ...]:
    """Return the toolkits that torch and CMake take on a reported machine, by the ways in the report."""
    if not isinstance(report.toolkits, Fact):
        return ()
    found = report.toolkits.value
    named = {"torch": (Lead.CUDA_VARIABLE, Lead.PATH), "CMake": (Lead.PATH, Lead.CUDA_VARIABLE)}
    last = (Lead.DEFAULT_FOLDER, Lead.OTHER)  # a pasted text has the release of an nvcc alone
    return tuple(next(_led(by, found, (*order, *last)), TakenToolkit(by, "", "")) for by, order in named.items())


def _led(by: str, toolkits: tuple[Toolkit, ...], order: tuple[Lead, ...]) -> Iterator[TakenToolkit]:
    for kind in order:
        for toolkit in toolkits:
            for way in toolkit.found_by:
                if way.kind is kind:
                    folder = toolkit.path or "a folder that the report does not name"
                    nvcc = f"{toolkit.path}/bin/nvcc" if toolkit.path else "nvcc"
                    yield TakenToolkit(by, folder, way.text, nvcc * toolkit.compiles, toolkit.version)
