"""Whether the libcuda that programs load fits the kernel's driver.

A libcuda that is older than the driver (a cuda-compat package that outlived it, or what another driver left) does not
speak to it: CUDA ends with error 803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH. A newer one that is cuda-compat's refuses
GeForce GPUs with error 804.
"""

from collections.abc import Iterator

from tenv.checks.rules.common import cuda_of, known_gpus
from tenv.checks.rules.driver import of_windows
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import GpuClass
from tenv.host.interface import Fact, Missing
from tenv.host.report import Compat, LibcudaKind

__all__ = ["OLDER", "older_library"]

OLDER = "TE106"


def older_library(case: Case) -> Iterator[Finding]:
    """Yield a warning where the libcuda that comes first is older than the driver, or refuses a GPU as cuda-compat."""
    compat, driver = case.host.compat, case.host.driver
    if cuda_of(case) is None or isinstance(compat, Missing):
        return
    library = compat.value
    if of_windows(case.host):
        if library.kind is not LibcudaKind.WSL:
            message = "comes before the one in /usr/lib/wsl/lib, which alone leads to the driver of Windows"
            yield _finding(case, compat, message)
        return
    if not isinstance(driver, Fact):
        return
    if library.version >= driver.value:
        yield from _closed(case, compat, driver.value)
        return
    message = (
        f"is of driver {library.version} and comes before that of driver {driver.value}: an old libcuda does not work "
        "with a newer driver (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)"
    )
    yield _finding(case, compat, message)


def _closed(case: Case, compat: Fact[Compat], driver: Version) -> Iterator[Finding]:
    """Yield a warning where a cuda-compat newer than the driver comes first, and a GPU is one that it refuses."""
    refused = [gpu.name for gpu in known_gpus(case) if gpu.kind is GpuClass.GEFORCE]
    library = compat.value
    if library.version > driver and library.kind is LibcudaKind.CUDA_COMPAT and refused:
        message = (
            f"is of driver {library.version} and comes before that of driver {driver}: forward compatibility is closed "
            f"to GeForce GPUs ({refused[0]}), where programs of any CUDA then end "
            "(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)"
        )
        yield _finding(case, compat, message)


def _finding(case: Case, compat: Fact[Compat], message: str) -> Finding:
    library, driver = compat.value, case.host.driver
    fix = f"remove what is left of the other driver ({library.path}), then `ldconfig`"
    if library.kind is LibcudaKind.CUDA_COMPAT:
        folder = library.path.rpartition("/")[0]
        fix = f"take {folder} out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, or remove its cuda-compat package"
    told = f"driver {driver.value if isinstance(driver, Fact) else 'not read'}"
    return Finding(
        code=OLDER,
        severity=Severity.WARNING,
        subject=library.path,
        message=message,
        evidence=f"{library.path} ({compat.origin}); {told}",
        source="docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
        fix=fix,
    )
