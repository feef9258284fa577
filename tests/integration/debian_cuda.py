"""CUDA 11.8 as Debian packages it, laid out as NVIDIA's redist archives are: one folder for each component of a lock.

What is not NVIDIA's archive, byte for byte:

- Every archive is packed anew, so its sha256 and size are its own. Files are Debian's copies of NVIDIA's files, with
  Debian's few patches of headers; `nvcc.profile` is written here, since Debian's names Debian's folders.
- Of a file above `WHOLE` bytes (libcublasLt_static.a, libcusparse_static.a, libcusolver_static.a, libcufft_static.a and
  libcufft_static_nocallback.a) the first MiB is taken: 2.2 GB that nothing here links.
- The shared libraries of `STUBS` are NVIDIA's stub libraries of the same name, which are made to be linked: those of
  Debian are 460 MB to fetch.
- cuDNN and cuSPARSELt are the headers and the first MiB of the libraries of wheels of other versions: no package of
  Debian has them.
- `LICENSE` is one line.
"""

import re
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.integration import debian

__all__ = ["COMPILER", "LEFT_OUT", "MAGMA", "PACKAGES", "Toolkit", "lay_out"]

PACKAGES = (
    "nvidia-cuda-dev",
    "nvidia-cuda-toolkit",
    "libcu++-dev",
    "libcub-dev",
    "libthrust-dev",
    "libcublas11",
    "libcudart11.0",
    "libcufile0",
    "libcupti-dev",
    "libcupti11.8",
    "libcurand10",
    "libnvblas11",
    "libnvjpeg11",
    "libnvrtc-builtins11.8",
    "libnvrtc11.2",
    "libnvtoolsext1",
    "libnvvm4",
)
COMPILER = ("cpp-11", "g++-11", "gcc-11", "libgcc-11-dev", "libstdc++-11-dev")
"""The newest compiler that nvcc 11.8 takes, which can be run from any folder."""
MAGMA = ("libmagma-dev",)
LEFT_OUT = "npp"
"""What the names of the libraries begin with that Debian's toolkit has and the target leaves out: libnpp."""

WHOLE = 128 << 20
STUBS = {
    "libcublasLt": "11.11.3.6",
    "libcufft": "10.9.0.58",
    "libcufftw": "10.9.0.58",
    "libcusolver": "11.4.1.48",
    "libcusolverMg": "11.4.1.48",
    "libcusparse": "11.7.5.86",
}
_LIBRARIES = PurePosixPath("usr/lib/x86_64-linux-gnu")
_INNER = PurePosixPath("usr/lib/nvidia-cuda-toolkit")
_PROFILE = """\
TOP              = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/$(_NVVM_BRANCH_)/libdevice
PATH            += $(TOP)/$(_NVVM_BRANCH_)/bin:$(_HERE_):
INCLUDES        += "-I$(TOP)/$(_TARGET_DIR_)/include" $(_SPACE_)
LIBRARIES       =+ $(_SPACE_) "-L$(TOP)/$(_TARGET_DIR_)/lib$(_TARGET_SIZE_)/stubs" "-L$(TOP)/lib"
"""
_PROGRAMS = {"cuobjdump": "cuda_cuobjdump", "cu++filt": "cuda_cuxxfilt", "nvdisasm": "cuda_nvdisasm",
             "nvprune": "cuda_nvprune"} | dict.fromkeys(
    ("__nvcc_device_query", "bin2c", "cudafe++", "fatbinary", "nvlink", "ptxas"), "cuda_nvcc"
)  # fmt: skip
# By the name of a header, of a library without `lib`, or of a stub; the first that matches counts.
_COMPONENTS = (
    (r"npp.*", ""),
    (r"cudacore.*|accinj64.*|cuinj64.*", ""),  # of the debugger and the profilers
    (r"crt/.*|fatbinary_section\.h|nvPTXCompiler\.h|nvptxcompiler_static.*", "cuda_nvcc"),
    (r"nv_decode\.h|cufilt.*", "cuda_cuxxfilt"),
    (r"nvrtc.*", "cuda_nvrtc"),
    (r"nvToolsExt.*|nvtx3/.*", "cuda_nvtx"),
    (r"cudaProfiler\.h|cuda_profiler_api\.h", "cuda_profiler_api"),
    (r"nvidia-ml.*|nvml\.h", "cuda_nvml_dev"),
    (r"cublas.*|nvblas.*", "libcublas"),
    (r"cufft.*|cudalibxt\.h", "libcufft"),
    (r"cufile.*", "libcufile"),
    (r"curand.*", "libcurand"),
    (r"cusolver.*|lapack_static.*|metis_static.*", "libcusolver"),
    (r"cusparse.*", "libcusparse"),
    (r"nvjpeg.*", "libnvjpeg"),
    (r"cuda-gdb/.*", ""),
    (r"checkpoint.*|nvperf.*|pcsamplingutil.*|cupti.*|Openacc/.*|Openmp/.*|cuda_stdint\.h", "cuda_cupti"),
)
_BY_PACKAGE = {"libcu++-dev": "cuda_cccl", "libcub-dev": "cuda_cccl", "libthrust-dev": "cuda_cccl"}


@dataclass(frozen=True)
class Toolkit:
    """What `lay_out` makes.

    Attributes:
        components: The folder with a folder for each component, as NVIDIA lays it out.
        debian: A root in Debian's layout, with every file name of Debian's toolkit; its libraries have no content.
    """

    components: Path
    debian: Path


def lay_out(debs: dict[str, Path], folder: Path) -> Toolkit:
    """Lay packages out as components, and as the root of a Debian.

    Args:
        debs: The packages, by name; those of `PACKAGES`.
        folder: Where the two folders go.
    """
    made = Toolkit(folder / "components", folder / "debian")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: _take(name, debs[name], made), PACKAGES))
    for name, version in STUBS.items():
        library = made.components / _component(name.removeprefix("lib")) / "lib" / f"{name}.so"
        full = library.with_name(f"{name}.so.{version}")
        full.write_bytes((library.parent / "stubs" / library.name).read_bytes())
        soname = library.readlink()
        library.with_name(str(soname)).symlink_to(full.name)
    (made.components / "cuda_nvcc" / "bin" / "nvcc.profile").write_text(_PROFILE)
    own = made.debian / _LIBRARIES
    for link in [path for path in own.rglob("*") if path.is_symlink() and not path.exists()]:
        link.with_name(link.readlink().name).touch()  # of a package that was not fetched
    nvcc = made.debian / _INNER / "bin" / "nvcc"
    (made.debian / "usr/bin/nvcc").write_text(f'#!/bin/sh\nexec {nvcc} "$@"\n')
    profile = nvcc.with_name("nvcc.profile")
    profile.unlink()
    text = (made.debian / "etc/nvcc.profile").read_text()
    profile.write_text(text.replace(" /usr/", f" {made.debian}/usr/").replace("-L/usr/", f"-L{made.debian}/usr/"))
    return made


def _take(package: str, deb: Path, made: Toolkit) -> None:
    """Put the files of one package where they belong in both layouts."""
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as child,
        tarfile.open(fileobj=child.stdout, mode="r|", bufsize=1 << 20) as file,
    ):
        for entry in file:
            path = PurePosixPath(entry.name)
            if entry.isdir() or "/share/" in entry.name:
                continue
            library = path.is_relative_to(_LIBRARIES)
            targets = [] if library and not entry.issym() else [made.debian / path]
            if library and not entry.issym():
                (made.debian / path).parent.mkdir(parents=True, exist_ok=True)
                (made.debian / path).touch()
            component, place = _place(package, path)
            if component:
                targets.append(made.components / component / place)
            _write(file, entry, targets)
    assert child.returncode == 0, deb


def _write(file: tarfile.TarFile, entry: tarfile.TarInfo, targets: Sequence[Path]) -> None:
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
    if entry.issym():
        for target in targets:
            target.symlink_to(entry.linkname)
    elif targets and (content := file.extractfile(entry)):
        data = content.read(entry.size if entry.size <= WHOLE else 1 << 20)
        for target in targets:
            target.write_bytes(data)
            target.chmod(entry.mode)


def _place(package: str, path: PurePosixPath) -> tuple[str, str]:
    """Return the component of a file of a package, and its place there; an empty component for what it leaves out."""
    parts, component, place = path.parts, "", ""
    name = "/".join(parts[3:])
    if parts[:2] == ("usr", "include"):
        name = "/".join(parts[2:])
        component, place = _BY_PACKAGE.get(package) or _component(name), f"include/{name}"
        if name == "nvvm.h":
            component, place = "cuda_nvcc", f"nvvm/{place}"
    elif path.is_relative_to(_LIBRARIES) and path.name.startswith("libnvvm"):
        component, place = "cuda_nvcc", f"nvvm/lib64/{name}"
    elif path.is_relative_to(_LIBRARIES) and path.suffix != ".pc":
        component, place = _component(name.removeprefix("stubs/").removeprefix("lib")), f"lib/{name}"
    elif parts[:2] == ("usr", "bin"):
        component, place = _PROGRAMS.get(path.name, ""), f"bin/{path.name}"
    elif path.is_relative_to(_INNER) and name.startswith(("bin/nvcc", "bin/crt/")) and path.suffix != ".profile":
        component, place = "cuda_nvcc", name
    elif path.is_relative_to(_INNER) and name.startswith(("bin/cicc", "libdevice/")):
        component, place = "cuda_nvcc", f"nvvm/{name}"
    return component, place


def _component(name: str) -> str:
    """Return the component that has a header, or a library without `lib`; cuda_cudart has what no other has."""
    return next((component for pattern, component in _COMPONENTS if re.fullmatch(pattern, name)), "cuda_cudart")


def fetch(folder: Path, check: Callable[..., str]) -> dict[str, Path]:
    """Fetch all packages, and return where each lies, by its name."""
    folder.mkdir(parents=True)
    names = (*PACKAGES, *COMPILER, *MAGMA)
    debian.list_binaries(names, folder, check)
    return debian.fetch_binaries(names, folder, check)
