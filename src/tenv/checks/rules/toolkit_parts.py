"""Check that a CUDA toolkit of conda packages has the parts that PyTorch needs to compile."""

from collections.abc import Iterator

from tenv.checks.rules.interface import Case, Finding, Severity

__all__ = ["NVRTC", "without_nvrtc"]

NVRTC = "TE310"

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
