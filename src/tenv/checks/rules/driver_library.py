"""Check whether the first libcuda matches the kernel's driver and the GPUs, and whether the driver reads nvcc's code.

A libcuda of another driver does not work with the kernel module: CUDA fails with error 803,
CUDA_ERROR_SYSTEM_DRIVER_MISMATCH. Only cuda-compat may be newer. It rejects GeForce GPUs with error 804, finds no GPU
that its own driver branch has dropped, and works on the driver branches that NVIDIA lists.

``-compress-mode=size`` and ``balance``, which nvcc has from 12.8 on, yield code that drivers before CUDA 12.4 do not
read: ``device kernel image is invalid``. A driver that old runs other code of CUDA 12.
"""

import re
from collections.abc import Iterator, Mapping

from tenv.checks.rules.common import KnownGpu, cuda_of, doubt, known_gpus
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.checks.rules.judged_driver import compat_first, driver_of, of_windows, on_jetson
from tenv.core.versions import Version
from tenv.facts.forward_compat import ForwardVerdict
from tenv.facts.tables import Facts
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import Compat, LibcudaKind, ModuleKind

OTHER = "TE106"
COMPRESSED = "TE112"
UNPROVEN = "TE113"

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


def unproven_library(case: Case) -> Iterator[Finding]:
    """Yield a warning if the loader finds no libcuda, or first a cuda-compat that no table lists: running is open."""
    compat, driver = case.host.compat, case.host.driver
    if cuda_of(case) is None or isinstance(driver, Missing) or driver.kind is OriginKind.ASSUMED:
        return
    if isinstance(compat, Missing):
        if compat.kind is ReasonKind.NONE and not case.platform.startswith("win"):
            yield Finding(
                code=UNPROVEN,
                severity=Severity.WARNING,
                subject="libcuda.so.1",
                message="was not found, though a driver is loaded: every program of CUDA loads it at its start",
                evidence=f"{compat.reason}; driver {driver.value} ({driver.origin})",
                source="docs.nvidia.com/cuda/cuda-driver-api: libcuda.so.1 comes with the driver, not with a toolkit",
                fix=(
                    "install the part of the driver with libcuda (`libcuda1`, `libnvidia-compute-NNN`), or start the "
                    "container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
                ),
                unknown=Unknown(Scope.RUN, "compat"),
            )
        return
    library = compat.value
    if library.kind is not LibcudaKind.CUDA_COMPAT or on_jetson(case.host, case.facts):
        return
    unlisted = _cuda_of(library, case.facts) is None and library.version.major != driver.value.major
    if unlisted and _unfit(case, compat) is None:
        yield Finding(
            code=UNPROVEN,
            severity=Severity.WARNING,
            subject=library.path,
            message=(
                f"is of driver branch {library.version.major}, and no table lists its CUDA and the drivers it is for"
            ),
            evidence=f"{library.path} ({compat.origin}); driver {driver.value} ({driver.origin})",
            source=_SOURCE,
            fix="take the cuda-compat of a listed CUDA, or install a newer tenv",
            unknown=Unknown(Scope.RUN, "cuda_driver"),
        )


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


_FIRST_READER = Version("12.4")
_VARIABLES = ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "TORCH_NVCC_FLAGS")
_UNREAD = ("size", "balance")
_MODE = re.compile(r"(?:^|\s)--?compress-mode(?:=|\s+)(\w+)(?=\s|$)")


def compressed_code(case: Case) -> Iterator[Finding]:
    """Yield an error if a variable asks nvcc for a compression that the driver does not read."""
    cuda, asked = cuda_of(case), _asked(case)
    if cuda is None or asked is None or on_jetson(case.host, case.facts):
        return
    reader = case.facts.cuda_driver.native(_FIRST_READER, of_windows(case.host))
    driver = driver_of(case.host, case.facts)
    if compat_first(case.host) and isinstance(case.host.compat, Fact):
        loaded, what = case.host.compat.value.version, f"cuda-compat {case.host.compat.value.version}"
    elif isinstance(driver, Missing):
        return
    else:
        loaded, what = driver.value, f"driver {driver.value} ({driver.origin})"
    if reader is None or loaded is None or loaded >= reader.driver:
        return
    variable, mode = asked
    yield Finding(
        code=COMPRESSED,
        severity=Severity.ERROR,
        subject=variable,
        message=(
            f"asks nvcc for -compress-mode={mode}, whose code needs NVIDIA driver {reader.driver} or newer (CUDA "
            f"{_FIRST_READER}): on an older one every kernel ends with `device kernel image is invalid`"
        ),
        evidence=what,
        source="docs.nvidia.com/cuda/cuda-compiler-driver-nvcc: --compress-mode; "
        "github.com/pytorch/pytorch/pull/161316",
        fix=f"remove it from {variable} (-compress-mode=speed is the default of CUDA 12), or install a newer driver",
    )


def nvcc_flags(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the caller that hold flags of nvcc."""
    return {name: environ[name] for name in _VARIABLES if name in environ}


def _asked(case: Case) -> tuple[str, str] | None:
    """Return the variable that names a mode which older drivers do not read, and the mode; None if none does."""
    own = {name: request.text or "" for name, request in case.manifest.environment.items()}
    environ = {**case.exported, **own}
    for name in _VARIABLES:
        modes = _MODE.findall(environ.get(name, ""))
        if modes:
            return (name, modes[-1]) if modes[-1] in _UNREAD else None
    return None
