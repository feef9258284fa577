"""Check whether the libcuda that programs load first matches the kernel's driver and the GPUs.

A libcuda of another driver does not work with the kernel module: CUDA fails with error 803,
CUDA_ERROR_SYSTEM_DRIVER_MISMATCH. Only cuda-compat may be newer. It rejects GeForce GPUs with error 804, finds no GPU
that its own driver branch has dropped, and works on the driver branches that NVIDIA lists.
"""

from collections.abc import Iterator

from tenv.checks.rules.common import KnownGpu, cuda_of, doubt, known_gpus
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.checks.rules.judged_driver import driver_of, of_windows, on_jetson
from tenv.core.versions import Version
from tenv.facts.forward_compat import ForwardVerdict
from tenv.facts.tables import Facts
from tenv.host.interface import Fact, Missing
from tenv.host.report import Compat, LibcudaKind, ModuleKind

__all__ = ["OTHER", "other_library"]

OTHER = "TE106"

_SOURCE = "docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html"


def other_library(case: Case) -> Iterator[Finding]:
    """Yield an error if the first libcuda does not work with the kernel's driver or the GPUs."""
    compat = case.host.compat
    if cuda_of(case) is None or isinstance(compat, Missing):
        return
    library = compat.value
    if of_windows(case.host):
        if library.kind is not LibcudaKind.WSL:
            yield _finding(
                case, compat, "hides the one in /usr/lib/wsl/lib, the only one that reaches the Windows driver"
            )
    elif library.kind is not LibcudaKind.CUDA_COMPAT:
        yield from _mismatch(case, compat)
    elif (found := _unfit(case, compat)) is not None:
        message, source = found
        yield _finding(case, compat, message, source)


def _mismatch(case: Case, compat: Fact[Compat]) -> Iterator[Finding]:
    """Yield an error if the libcuda is from another driver, even one patch apart."""
    driver, library = case.host.driver, compat.value
    if isinstance(driver, Missing) or library.version == driver.value or len(str(driver.value).split(".")) == 1:
        return
    message = (
        f"is of driver {library.version}, and the kernel module is of driver {driver.value}: the two versions "
        "must be equal (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)"
    )
    yield _finding(case, compat, message, "the driver: `API mismatch` in the kernel log")


def _unfit(case: Case, compat: Fact[Compat]) -> tuple[str, str] | None:
    """Return why the first cuda-compat does not work here, with the source; None if it works."""
    library, driver, facts = compat.value, driver_of(case.host, case.facts), case.facts
    gpus = known_gpus(case)
    begin = f"is of driver {library.version} and is loaded before that of driver "
    if on_jetson(case.host, facts):
        return _unfit_on_jetson(case, library, gpus)
    if isinstance(driver, Fact):
        if library.version == driver.value:
            return None
        branch_alone = "." not in str(driver.value) and library.version.major == driver.value.major
        if library.version < driver.value and not branch_alone:
            return (
                f"{begin}{driver.value}: an old libcuda does not work with a newer driver "
                "(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)"
            ), _SOURCE
        begin = f"{begin}{driver.value}: "
    else:
        begin = f"is of driver {library.version} and is loaded first: "
    from tenv.facts.cuda_gpu_arch import GpuClass  # late: few hosts load a cuda-compat first

    refused = [gpu.name for gpu in gpus if gpu.kind is GpuClass.GEFORCE]
    if refused:
        return (
            f"{begin}GeForce GPUs ({refused[0]}) do not support forward compatibility, and every CUDA program "
            "fails (CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)"
        ), _SOURCE
    if (dropped := _dropped(library, gpus, facts)) is not None:
        return f"{begin}{dropped[0]}", dropped[1]
    return _branch(case, library, driver, begin)


def _dropped(library: Compat, gpus: tuple[KnownGpu, ...], facts: Facts) -> tuple[str, str] | None:
    """Return why a cuda-compat finds no GPU: its branch has dropped all of them."""
    rows = [facts.gpu_driver.generation(gpu.capability) for gpu in gpus if gpu.capability is not None]
    if not rows or len(rows) < len(gpus) or not all(row is not None and row.has_ended(library.version) for row in rows):
        return None
    row = rows[0]
    assert row is not None  # noqa: S101 (the line above ensures it)
    return (
        f"its branch no longer supports the {gpus[0].name} ({row.name} support ends before {row.ends_linux}), so "
        f"programs find no GPU{doubt(row.basis)}"
    ), row.basis.source


def _branch(case: Case, library: Compat, driver: Fact[Version] | Missing, begin: str) -> tuple[str, str] | None:
    """Return why a cuda-compat does not work on a driver branch."""
    cuda = _cuda_of(library, case.facts)
    if isinstance(driver, Missing) or cuda is None or library.version.major == driver.value.major:
        return None
    module = case.host.module
    opened = isinstance(module, Fact) and module.value is ModuleKind.OPEN
    row = case.facts.cuda_driver.forward.find(cuda, driver.value, opened)
    if row is None:
        return f"{begin}no NVIDIA table accepts a driver this old for CUDA {cuda.major_minor}", _SOURCE
    if row.verdict is not ForwardVerdict.EXCLUDED:
        return None
    kind = " with the open kernel module" if opened else ""
    message = f"{begin}{row.package} is not for driver branch {row.branch}{kind}{doubt(row.basis)}"
    return message, row.basis.source


def _unfit_on_jetson(case: Case, library: Compat, gpus: tuple[KnownGpu, ...]) -> tuple[str, str] | None:
    """Return why a cuda-compat does not work on a Jetson: the driver offers as much, or the package is for desktops."""
    cuda, driver = _cuda_of(library, case.facts), driver_of(case.host, case.facts)
    if cuda is None:
        return None
    native = None
    if isinstance(driver, Fact):
        offered = case.facts.cuda_driver.native(cuda, windows=False)
        native = offered is not None and driver.value >= offered.driver
    else:
        known = [case.facts.gpu_driver.releases(gpu.capability) for gpu in gpus if gpu.capability is not None]
        oldest = [min(release.cuda for release in rows) for rows in known if rows]
        native = bool(oldest) and all(cuda <= one for one in oldest)
    if not native:
        return None
    return (
        f"brings CUDA {cuda.major_minor}, which the driver of this Jetson offers itself: a cuda-compat does not "
        "work with a driver of the same CUDA (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)"
    ), "github.com/NVIDIA/nvidia-container-toolkit/pull/1679"


def _cuda_of(library: Compat, facts: Facts) -> Version | None:
    """Return the CUDA that a cuda-compat brings, from its driver version; None for an unknown branch."""
    table = facts.cuda_driver
    for row in table.toolkits:  # newest first
        native = table.native(Version(row.major_minor), windows=False)
        if native is not None and native.driver.major <= library.version.major:
            return Version(row.major_minor) if native.driver.major == library.version.major else None
    return None


def _finding(case: Case, compat: Fact[Compat], message: str, source: str = _SOURCE) -> Finding:
    library, driver = compat.value, case.host.driver
    fix = f"remove the leftover library of the other driver ({library.path}), then run `ldconfig`"
    if isinstance(driver, Fact) and library.version > driver.value:
        fix = "reboot to load the kernel module of the installed driver"
    if library.kind is LibcudaKind.CUDA_COMPAT:
        folder = library.path.rpartition("/")[0]
        fix = f"remove {folder} from LD_LIBRARY_PATH and /etc/ld.so.conf.d, or remove its cuda-compat package"
    elif of_windows(case.host):
        fix = f"remove the Linux driver package that owns {library.path}, then run `ldconfig`"
    kernel = f"driver {driver.value if isinstance(driver, Fact) else 'not detected'}"
    return Finding(
        code=OTHER,
        severity=Severity.ERROR,
        subject=library.path,
        message=message,
        evidence=f"{library.path} ({compat.origin}); {kernel}",
        source=source,
        fix=fix,
    )
