"""Check that the CUDA toolkit in a lock has the parts that PyTorch needs to compile."""

from collections.abc import Iterator

from tenv.checks.rules.interface import Case, Finding, Severity

__all__ = ["NVCC", "NVRTC", "without_nvcc", "without_nvrtc"]

NVRTC = "TE310"
NVCC = "TE312"

_SOURCE = "aten/src/ATen/cuda/nvrtc_stub/ATenNVRTC.h of github.com/pytorch/pytorch includes nvrtc.h"


def without_nvrtc(case: Case) -> Iterator[Finding]:
    """Yield a finding where conda-forge's nvcc comes without the header of NVRTC.

    conda-forge has each part of the toolkit in its own packages, the header in ``cuda-nvrtc-dev``. Other channels and
    wheels have other layouts and are not judged.
    """
    packages = case.lock.conda.get(case.platform, ()) if case.lock else ()
    names = {package.name for package in packages}
    nvcc = next((package for package in packages if package.name.startswith("cuda-nvcc_")), None)
    archives = case.lock.archives.get(case.platform, ()) if case.lock else ()
    if nvcc is None or "cuda-nvrtc-dev" in names or any("nvrtc" in archive.url for archive in archives):
        return
    yield Finding(
        code=NVRTC,
        severity=Severity.ERROR,
        subject="cuda-nvrtc-dev",
        message=(
            "is not in the lock: PyTorch does not compile without the NVRTC header; extensions that do not "
            "include it compile"
        ),
        evidence=nvcc.url,
        source=_SOURCE,
        fix=f'add it to [dependencies] and lock again: cuda-nvrtc-dev = "{".".join(nvcc.version.split(".")[:2])}.*"',
    )


_RUNTIMES = ("nvidia-cuda-runtime", "cuda-cudart", "cudatoolkit", "cuda_cudart")
"""How the CUDA runtime's files are named: as wheel, as conda package (before CUDA 11.5 the second) and as archive."""
_COMPILERS = ("cuda-nvcc", "cuda-nvcc-impl", "cuda-nvcc-tools", "nvidia-cuda-nvcc", "cuda_nvcc")
_FIRST_WHOLE_WHEELS = 13
"""The first CUDA major whose wheels hold nvcc itself: nvidia-cuda-nvcc-cu12 has ptxas and no compiler driver."""


def without_nvcc(case: Case) -> Iterator[Finding]:
    """Yield a finding where a target with CUDA locks the CUDA runtime and no nvcc, from whatever source.

    Targets that take the toolkit from the host are not judged by their lock.
    """
    cuda = case.manifest.requirements.cuda
    if case.lock is None or cuda is None or "cuda-toolkit" in case.manifest.system:
        return
    conda = case.lock.conda.get(case.platform, ())
    wheels, archives = case.lock.wheels.get(case.platform, ()), case.lock.archives.get(case.platform, ())
    names = [*(one.name for one in conda), *(one.name for one in wheels), *(one.name for one in archives)]
    runtime = next((name for name in names if name.startswith(_RUNTIMES)), None)
    nvcc = any(name in _COMPILERS or name.startswith("cuda-nvcc_") for name in names)
    if runtime is None or nvcc or any("cuda_nvcc" in archive.url for archive in archives):
        return
    release = ".".join(str(cuda).split(".")[:2])
    if any(package.name == runtime for package in conda):
        fix = f'add it to [dependencies] and lock again: cuda-nvcc = "{release}.*"'
    elif int(release.split(".")[0]) >= _FIRST_WHOLE_WHEELS and any(wheel.name == runtime for wheel in wheels):
        fix = f'add it to [pypi-dependencies] and lock again: nvidia-cuda-nvcc = "{release}.*"'
    else:
        fix = f'take the toolkit from [archives] and lock again: cuda = "{release}.*"'
    yield Finding(
        code=NVCC,
        severity=Severity.ERROR,
        subject="nvcc",
        message=f"is not in the lock: it holds the runtime of CUDA {release} and no compiler, so no CUDA code compiles",
        evidence=f"{runtime} in the lock for {case.platform}",
        source="https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/",
        fix=fix,
    )
