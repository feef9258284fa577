"""Search for CUDA toolkits: variables, PATH, and the folders that installers and administrators use."""

import os
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.files import open_regular
from tenv.host.interface import Missing
from tenv.host.places import Places, exists, is_file, is_folder, is_link, read
from tenv.host.report import Lead

VARIABLES = ("CUDA_HOME", "CUDA_PATH")
"""The variables that builds read: the host's own selection of a toolkit."""

PROGRAMS = ("nvcc", "nvcc.exe")
"""The compiler's names."""

_MODULES = (
    *("CUDA_ROOT", "CUDAToolkit_ROOT", "CUDA_TOOLKIT_ROOT_DIR", "CUDATOOLKIT_HOME", "CUDATOOLKIT_ROOT", "CUDA_DIR"),
    *("CUDA_INSTALL_PATH", "EBROOTCUDA", "NVHPC_CUDA_HOME"),
)
"""Variables of environment modules and CMake users, including Cray, EasyBuild, Spack and NVIDIA's HPC SDK."""

_HPC_SDK = ("NVHPC", "NVHPC_ROOT", "EBROOTNVHPC")
_FOLDERS = (
    "usr/local/cuda*",
    "opt/cuda*",
    "opt/nvidia/cuda*",
    "opt/nvidia/hpc_sdk/*/*/cuda/[0-9]*",
    "usr/lib/nvidia-cuda-toolkit",  # Debian's and Ubuntu's own package
    "etc/alternatives/cuda*",  # update-alternatives, from NVIDIA's packages
)
_KNOWN = {"/usr/local/cuda": Lead.DEFAULT_FOLDER, "/etc/alternatives/cuda": Lead.ALTERNATIVE}
_WINDOWS = "NVIDIA GPU Computing Toolkit/CUDA/v*"
_TOP = re.compile(r"^#\$ TOP=(?P<top>.+)$", re.MULTILINE)
# A script that only starts another nvcc, as images and modules put on PATH.
_STARTS = re.compile(r"""#!\S+\n(?:[ \t]*(?:\#.*)?\n)*[ \t]*exec[ \t]+"?(?P<nvcc>/[^\s"'$`\\]+/nvcc)"?[ \t]+"\$@"\s*""")
_HERE = re.compile(r"^#\$ _HERE_=(?P<top>.+)/bin/?$", re.MULTILINE)

LOOKED_AT = (
    f"{', '.join(VARIABLES)} and the variables of environment modules, nvcc on PATH, /usr/local/cuda*, /opt, "
    "/usr/lib/nvidia-cuda-toolkit, /etc/alternatives"
)
"""Where `ways` searches, for messages."""


@dataclass(frozen=True, slots=True)
class ToolkitCandidate:
    """A way to a toolkit."""

    name: str
    """Such as ``CUDA_HOME``."""
    path: Path
    """The toolkit's folder; if unknown, the program that should have named it."""
    kind: Lead
    """The kind of the way. A folder without a toolkit is reported only if a variable that builds read names it."""
    fault: str = ""
    """Why the folder is unknown, or an empty string."""


def parse_dryrun(text: str) -> str | None:
    """Return the toolkit's folder from the output of ``nvcc --dryrun``; Debian's has no TOP, but _HERE_."""
    match = _TOP.search(text) or _HERE.search(text)
    return match["top"].strip() if match else None


def ways(places: Places) -> Iterator[ToolkitCandidate]:
    """Yield the ways to toolkits in the order in which builds search: variables, PATH, the usual folders."""
    yield from _of_variables(places)
    seen: set[str] = set()
    for folder in places.folders():
        for nvcc in (folder / name for name in PROGRAMS):
            real = os.path.realpath(nvcc)
            if is_file(nvcc) and os.access(nvcc, os.X_OK) and real not in seen:
                behind = bool(seen)
                name = "nvcc on PATH, behind another" if behind else "nvcc on PATH"
                yield _of_nvcc(nvcc, name, Lead.PATH_BEHIND if behind else Lead.PATH, places)
                seen.add(real)
    for pattern in _FOLDERS:
        for path in sorted(places.root.glob(pattern)):
            if is_link(path) or is_folder(path):
                name = places.named(path)
                yield ToolkitCandidate(name, path, _KNOWN.get(name, Lead.FOLDER))


def _named(variable: str, places: Places) -> str:
    """Return a variable with the loaded module that set it, where its modulefile holds the value or the name shows it.

    EasyBuild names a variable by the module: EBROOTCUDA is of CUDA/12.6.0. LOADEDMODULES and _LMFILES_ are lists of
    Environment Modules and Lmod, in one order.
    """
    value = places.environ[variable].rstrip("/")
    loaded = (places.environ.get(name, "").split(":") for name in ("LOADEDMODULES", "_LMFILES_"))
    for module, file in zip_longest(*loaded, fillvalue=""):
        text = read(places.at(file)) if file and value else ""
        holds = isinstance(text, str) and re.search(rf"{re.escape(value)}(?![\w.-])", text) if value else None
        by_name = f"EBROOT{re.sub(r'[^A-Z0-9]', '', module.partition('/')[0].upper())}"
        if module and (holds or variable == by_name):
            return f"{variable} of module {module}"
    return variable


def _of_variables(places: Places) -> Iterator[ToolkitCandidate]:
    for variable in (*VARIABLES, *_MODULES):
        if value := places.environ.get(variable):
            kind = Lead.CUDA_VARIABLE if variable in VARIABLES else Lead.MODULE_VARIABLE
            yield ToolkitCandidate(_named(variable, places), Path(value), kind)
    for variable in sorted(places.environ):
        if re.fullmatch(r"CUDA_PATH_V\d+_\d+", variable):  # set by NVIDIA's installer for Windows
            yield ToolkitCandidate(variable, Path(places.environ[variable]), Lead.MODULE_VARIABLE)
    for variable in _HPC_SDK:
        if value := places.environ.get(variable):
            for path in sorted([*Path(value).glob("cuda/[0-9]*"), *Path(value).glob("*/*/cuda/[0-9]*")]):
                yield ToolkitCandidate(_named(variable, places), path, Lead.MODULE_VARIABLE)
    if programs := places.variable("ProgramFiles"):
        yield from (ToolkitCandidate(str(path), path, Lead.FOLDER) for path in sorted(Path(programs).glob(_WINDOWS)))


def _of_nvcc(nvcc: Path, name: str, kind: Lead, places: Places) -> ToolkitCandidate:
    """Return the way to the toolkit of an nvcc; the one on PATH may be a script that calls it."""
    real = Path(os.path.realpath(nvcc))
    # This is the slowest step here: nvcc starts the host's compiler.
    program = _started(real)
    if program.parent.name == "bin" and exists(program.parent / "nvcc.profile"):
        return ToolkitCandidate(name, program.parent.parent, kind)
    done = places.run(str(nvcc), "--dryrun", "tenv.cu")
    if isinstance(done, Missing):
        return ToolkitCandidate(name, real, kind, fault=f"{name} does not name its toolkit: {done.reason}")
    if top := parse_dryrun(done.stderr + done.stdout):
        return ToolkitCandidate(name, Path(top), kind)
    fault = f"{name} does not name its toolkit: `{nvcc} --dryrun` prints neither TOP nor _HERE_"
    return ToolkitCandidate(name, real, kind, fault)


def _started(program: Path) -> Path:
    """Return the program that a script starts if it does nothing else; otherwise the program itself."""
    try:
        with open_regular(program) as file:
            text = file.read(512)
    except OSError:
        return program
    match = _STARTS.fullmatch(text.decode("utf-8", "replace")) if text.startswith(b"#!") else None
    return Path(os.path.realpath(match["nvcc"])) if match else program
