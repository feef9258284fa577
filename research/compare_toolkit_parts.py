"""Compare tenv's verdict on an incomplete CUDA toolkit with what PyTorch's own CMake files say of it.

    python research/compare_toolkit_parts.py TOOLKIT PYTORCH [PART …] [--version 2.13.0] [--cmake CMAKE]
    python research/compare_toolkit_parts.py TOOLKIT PYTORCH --whole -D Python_EXECUTABLE=… [-D USE_NCCL=0 …]

TOOLKIT is a whole toolkit, such as ``.tenv/envs/cuda130/cuda``; PYTORCH is a checkout. Each part in turn is left out of
a copy of the toolkit, which consists of hard links. Then CMake configures what decides in a configuration of PyTorch:
the checkout's own ``cmake/public/cuda.cmake`` with all that it includes, the section about CUDA of
``cmake/Dependencies.cmake``, the section of ``aten/src/ATen/CMakeLists.txt`` that names the libraries, and a library
that links the same targets as ``c10_cuda``, ``caffe2_nvrtc``, ``torch_cuda`` and ``torch_cuda_linalg``. A part takes
3 s of CPU. With ``--whole`` it configures the checkout itself, with its submodules: 15 to 40 s of CPU a part.

``tenv check --build-only`` judges the copy as the toolkit of the system. The status is 1 if one says yes where the
other says no. Folders with an nvcc or ptxas of their own are taken off PATH, since nvcc would call the ptxas there.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_CUDA = re.compile(r"^# ---\[ CUDA\n(.*?)^# ---\[ ", re.DOTALL | re.MULTILINE)
_ATEN = re.compile(r"^if\(USE_CUDA AND NOT USE_ROCM\)\n.*?^endif\(\)", re.DOTALL | re.MULTILINE)
_ERROR = re.compile(r"CMake Error[^\n]*:\n(.*?)(?:\n\n\n|\nCall Stack|\Z)", re.DOTALL)
_LIBRARY = re.compile(r"lib([A-Za-z]+)[\w.-]*\.(so|a)[\d.]*$")
_FILES = {
    "cuBLAS": ("libcublas.", "libcublasLt", "cublas"),
    "cuFFT": ("libcufft.", "libcufft_", "cufft"),
    "cuRAND": ("libcurand", "curand"),
    "cuSPARSE": ("libcusparse.", "libcusparse_", "cusparse"),
    "cuSOLVER": ("libcusolver.", "libcusolver_", "libcusolverMg", "cusolver"),
    "NVRTC": ("libnvrtc", "nvrtc"),
    "the stub of libcuda": ("stubs/libcuda.so",),
    "cuFile": ("libcufile", "cufile"),
    "libcudart": ("libcudart.",),
    "libcudart_static": ("libcudart_static",),
    "libcudadevrt": ("libcudadevrt",),
    "cuda_runtime.h": ("/cuda_runtime.h",),
    "cuda.h": ("/cuda.h",),
    "nvcc": ("bin/nvcc",),
    "nvcc's own headers": ("/crt/",),
    "ptxas": ("bin/ptxas",),
    "cicc": ("bin/cicc",),
    "libdevice": ("libdevice",),
    "CUPTI": ("libcupti", "cupti"),
    "NVML": ("libnvidia-ml", "nvml.h"),
    "NVTX 3": ("/nvtx3/", "libnvtx", "nvToolsExt"),
    "nvJitLink": ("libnvJitLink", "nvJitLink"),
    "nvperf": ("libnvperf", "nvperf"),
    "CCCL": ("/cccl/", "include/cuda/", "include/cub/", "include/thrust/"),
}
"""What is left out: every path of the toolkit that has one of these texts in it, or for a header begins with it."""

_PROJECT = """\
cmake_minimum_required(VERSION 3.27 FATAL_ERROR)
if(POLICY CMP0146)
  cmake_policy(SET CMP0146 OLD)  # keeps FindCUDA, as PyTorch does
endif()
project(Probe CXX C)
set(CMAKE_CXX_STANDARD 20)
set(_USE_CUDA_EXPLICITLY_SET TRUE)
set(USE_CUDA ON)
set(USE_NVRTC ON)
set(BUILD_LAZY_CUDA_LINALG ON)
list(APPEND CMAKE_MODULE_PATH "{tree}/cmake/Modules")
include("{tree}/cmake/public/utils.cmake")
set(CMAKE_CURRENT_LIST_DIR "{tree}/cmake")
{cuda}
{aten}
file(WRITE "${{CMAKE_BINARY_DIR}}/probe.cpp" "")
add_library(probe SHARED "${{CMAKE_BINARY_DIR}}/probe.cpp")
target_link_libraries(probe PRIVATE ${{Caffe2_CUDA_DEPENDENCY_LIBS}} ${{ATen_CUDA_DEPENDENCY_LIBS}}
  torch::cudart caffe2::nvrtc CUDA::cusolver)
"""

_WHOLE = ("CMAKE_BUILD_TYPE=Release", "USE_CUDA=ON", "BUILD_TEST=OFF")
"""What a whole configuration always gets; the caller names the rest (``-D USE_NCCL=0``)."""

_MANIFEST = """\
description = "A toolkit without a part"
platforms = ["linux-64", "linux-aarch64"]
[system]
cuda-toolkit = "*"
"""


@dataclass(frozen=True, slots=True)
class Tried:
    """What CMake and tenv say of a toolkit without a part.

    Attributes:
        part: The part.
        files: How many files were left out.
        configured: Whether CMake configured.
        build: tenv's verdict; None for unknown.
        error: CMake's error, in a line.
        finding: tenv's findings of errors, in a line.
    """

    part: str
    files: int
    configured: bool
    build: bool | None
    error: str
    finding: str

    @property
    def agrees(self) -> bool:
        """Whether both say the same."""
        return self.build is self.configured


def main() -> int:
    """Run the script and return its status."""
    options = _options().parse_args()
    toolkit, tree = options.toolkit.resolve(), options.pytorch.resolve()
    parts = dict(_parts(toolkit))
    differs = False
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        _project(Path(name), tree)
        copy = _copy(toolkit, Path(name) / "cuda")
        for part in ("", *(options.parts or parts)):
            tried = _try(part, parts.get(part, ()), copy, toolkit, options)
            differs |= not tried.agrees
            print(_row(tried), flush=True)
    return int(differs)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("toolkit", type=Path)
    parser.add_argument("pytorch", type=Path)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--version", default="2.13.0", help="the checkout's release")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--work", type=Path, help="a folder on the file system of TOOLKIT")
    parser.add_argument("--whole", action="store_true", help="configure the whole checkout, with its submodules")
    parser.add_argument("-D", dest="define", action="append", default=[], help="a cache entry of a whole configuration")
    parser.add_argument("--without-cufile", action="store_true", help="build with USE_CUFILE=0")
    return parser


def _parts(toolkit: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each part with the texts that its paths have: those of the table, then every other library by its name."""
    yield from _FILES.items()
    known = tuple(text for texts in _FILES.values() for text in texts)
    libraries = {match[1] for path in _walk(toolkit) if (match := _LIBRARY.match(path.name))}
    for name in sorted(libraries):
        if not any(f"lib{name}.".startswith(text) or f"lib{name}_".startswith(text) for text in known):
            yield f"lib{name}", (f"/lib{name}.", f"/lib{name}_")


def _walk(toolkit: Path) -> Iterator[Path]:
    """Yield the files of a toolkit below links to folders too, each folder once."""
    seen: set[Path] = set()
    waiting = [toolkit]
    while waiting:
        folder = waiting.pop()
        if folder.resolve() in seen:
            continue
        seen.add(folder.resolve())
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                waiting.append(path)
            elif path.exists():
                yield path


def _project(work: Path, tree: Path) -> None:
    """Write the CMake project and tenv's project, in one folder."""
    dependencies = (tree / "cmake" / "Dependencies.cmake").read_text(encoding="utf-8")
    aten = (tree / "aten" / "src" / "ATen" / "CMakeLists.txt").read_text(encoding="utf-8")
    sections = (_CUDA.search(dependencies), _ATEN.search(aten))
    if sections[0] is None or sections[1] is None:
        raise SystemExit(f"{tree}: no section about CUDA in cmake/Dependencies.cmake or aten/src/ATen/CMakeLists.txt")
    project = work / "project"
    (project / "manifests").mkdir(parents=True)
    text = _PROJECT.format(tree=tree, cuda=sections[0][1], aten=sections[1][0])
    (project / "CMakeLists.txt").write_text(text, encoding="utf-8")
    (project / "manifests" / "machine.toml").write_text(_MANIFEST, encoding="utf-8")


def _try(part: str, texts: tuple[str, ...], copy: Path, toolkit: Path, options: argparse.Namespace) -> Tried:
    project, build = copy.parent / "project", copy.parent / "build"
    shutil.rmtree(build, ignore_errors=True)
    gone = [path for path in _walk(copy) if _is_of(path, copy, texts)]
    for path in gone:
        path.unlink()
    environ = _environ(copy, options.without_cufile)
    cufile = "OFF" if options.without_cufile else "ON"
    named = [f"-D{text}" for text in (*_WHOLE, *options.define)] if options.whole else []
    tree = options.pytorch.resolve() if options.whole else project
    prefix = f"-DCMAKE_INSTALL_PREFIX={copy.parent / 'installed'}"
    words = (options.cmake, "-S", tree, "-B", build, f"-DUSE_CUFILE={cufile}", prefix, *named)
    cmake = _start(words, environ, project)
    asked = ("check", "machine", "--build-only", "--json", "--pytorch", options.version)
    judged = _start((sys.executable, "-m", "tenv", *asked), environ, project)
    answer = json.loads(judged.communicate()[0])
    error = _ERROR.search(cmake.communicate()[1])
    errors = (found["message"] for found in answer["findings"] if found["severity"] == "error")
    for path in gone:
        os.link((toolkit / path.relative_to(copy)).resolve(), path)
    said = " ".join(error[1].split()) if error else ""
    return Tried(part, len(gone), cmake.returncode == 0, answer["data"]["build"], said, "; ".join(errors))


def _start(words: tuple[str | Path, ...], environ: Mapping[str, str], folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(words, env=environ, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def _is_of(path: Path, toolkit: Path, texts: tuple[str, ...]) -> bool:
    name = f"/{path.relative_to(toolkit)}"
    return any(text in name or path.name.startswith(text) for text in texts)


def _copy(toolkit: Path, copy: Path) -> Path:
    """Copy a toolkit by hard links."""
    for path in _walk(toolkit):
        target = copy / path.relative_to(toolkit)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(path.resolve(), target)
    return copy


def _environ(copy: Path, without_cufile: bool) -> Mapping[str, str]:
    """Return the environment of a machine whose toolkit is the copy."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("CUDA", "CONDA", "TENV_", "USE_"))
    }
    switch = {"USE_CUFILE": "0"} if without_cufile else {}
    folders = [one for one in kept["PATH"].split(os.pathsep) if not _has_tools(Path(one))]
    path = os.pathsep.join([str(copy / "bin"), *folders])
    return {**kept, **switch, "PATH": path, "CUDA_HOME": str(copy), "TORCH_CUDA_ARCH_LIST": "8.0"}


def _has_tools(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("nvcc", "ptxas", "cicc"))


def _row(tried: Tried) -> str:
    words = {True: "yes", False: "no", None: "unknown"}
    mark = "   " if tried.agrees else "!! "
    said = tried.error or tried.finding
    return (
        f"{mark}{tried.part or 'the whole toolkit':<22}{tried.files:>6} files  CMake {words[tried.configured]:<4}"
        f"tenv {words[tried.build]:<8}{said[:150]}"
    )


if __name__ == "__main__":
    sys.exit(main())
