"""The files of NVIDIA's redist archives by name, for archives of a test's own making.

Names of libraries are those in NVIDIA's wheels (``nvidia-*-cu12`` for win_amd64 and manylinux) and of CMake's
FindCUDAToolkit; folders are those of the redist: ``lib`` on Linux, x86-64 and aarch64 servers alike, ``bin`` and
``lib/x64`` on Windows. One file of each kind stands for all of it.
"""

import json
from collections.abc import Iterator, Mapping

from tenv.locks.lock import Archive
from tests.support.redist import Member, folder, link, pack, regular

__all__ = ["archive_of", "names_of"]

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "cuda_cudart": ("cudart",),
    "cuda_cupti": ("cupti",),
    "cuda_nvrtc": ("nvrtc", "nvrtc-builtins"),
    "cudnn": ("cudnn", "cudnn_ops"),
    "cusparselt": ("cusparseLt",),
    "libcublas": ("cublas", "cublasLt", "nvblas"),
    "libcufft": ("cufft", "cufftw"),
    "libcufile": ("cufile",),
    "libcurand": ("curand",),
    "libcusolver": ("cusolver", "cusolverMg"),
    "libcusparse": ("cusparse",),
    "libnvfatbin": ("nvfatbin",),
    "libnvjitlink": ("nvJitLink",),
    "libnvjpeg": ("nvjpeg",),
}
STATIC = {"cuda_cuxxfilt": "cufilt", "cuda_nvcc": "nvptxcompiler_static", "cuda_culibos": "culibos"}
PROGRAMS = {
    "cuda_cuobjdump": ("cuobjdump",),
    "cuda_cuxxfilt": ("cu++filt",),
    "cuda_nvcc": ("bin2c", "cudafe++", "fatbinary", "nvcc", "nvlink", "ptxas"),
    "cuda_nvdisasm": ("nvdisasm",),
    "cuda_nvprune": ("nvprune",),
}
HEADERS = {
    "cuda_cccl": ("cub/cub.cuh", "thrust/version.h", "cuda/std/version"),
    "cuda_cudart": ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "crt/host_defines_cudart.h"),
    "cuda_cupti": ("cupti.h",),
    "cuda_nvcc": ("crt/host_config.h", "fatbinary_section.h"),
    "cuda_nvml_dev": ("nvml.h",),
    "cuda_nvprof": ("cuda_profiler_api.h",),
    "cuda_nvtx": ("nvtx3/nvToolsExt.h",),
    "cuda_profiler_api": ("cuda_profiler_api.h",),
    "cudnn": ("cudnn.h", "cudnn_version.h"),
    "cusparselt": ("cusparseLt.h",),
}
OTHERS = {"cuda_nvcc": ("bin/nvcc.profile", "bin/crt/link.stub", "nvvm/libdevice/libdevice.10.bc")}
WINDOWS_ALONE = {"nsight_nvtx": ("NvToolsExt/include/nvToolsExt.h", "NvToolsExt/lib/x64/nvToolsExt64_1.lib")}
"""A component of CUDA up to 11.8: the folder that an installer puts beside the toolkit."""


def names_of(component: str, *, windows: bool, major: int) -> Iterator[str]:
    """Yield the files of a component; a linker's name for a library is a link on Linux."""
    headers = HEADERS.get(component, tuple(f"{name}.h" for name in LIBRARIES.get(component, ())))
    yield from (f"include/{name}" for name in headers)
    yield from OTHERS.get(component, ())
    yield from (f"bin/{name}{'.exe' if windows else ''}" for name in PROGRAMS.get(component, ()))
    if component == "cuda_nvcc":
        yield f"nvvm/bin/cicc{'.exe' if windows else ''}"
    flat = "lib" if component == "cusparselt" else "lib/x64"  # cuSPARSELt has a `lib` on Windows too
    for name in LIBRARIES.get(component, ()):
        if windows:
            yield from (f"bin/{name}64_{major}.dll", f"{flat}/{name}.lib")
        else:
            yield from (f"lib/lib{name}.so.{major}", f"lib/lib{name}_static.a")
    if static := STATIC.get(component):
        yield f"lib/x64/{static}.lib" if windows else f"lib/lib{static}.a"
    stub = {"cuda_cudart": "cuda", "cuda_nvml_dev": "nvidia-ml"}.get(component)
    if stub:
        yield f"lib/x64/{stub.replace('nvidia-ml', 'nvml')}.lib" if windows else f"lib/stubs/lib{stub}.so"
    yield from WINDOWS_ALONE.get(component, ()) if windows else ()


def archive_of(row: Archive, *, windows: bool) -> bytes:
    """Return an archive that has the folders and names of the one in a lock."""
    top = row.url.rpartition("/")[2].removesuffix(f".{row.kind}")
    major = int(row.version.partition(".")[0])
    members: list[Member] = [folder(top), regular(f"{top}/LICENSE", b"the license of NVIDIA\n")]
    for name in names_of(row.name, windows=windows, major=major):
        text = json.dumps([row.name, row.version, name]).encode()
        if name.endswith("cuda_runtime_api.h"):
            release = row.release.split(".")
            text = f"#define CUDART_VERSION {int(release[0]) * 1000 + int(release[1]) * 10}\n".encode()
        members.append(regular(f"{top}/{name}", text, 0o755 if name.startswith(("bin/", "nvvm/bin/")) else 0o644))
        stem, dot, _ = name.partition(".so.")
        if dot:
            members.append(link(f"{top}/{stem}.so", name.rpartition("/")[2]))
    return pack(row.kind, members)
