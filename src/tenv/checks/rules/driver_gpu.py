"""Check whether the driver supports the GPUs: by its branch, its kind of kernel module and its purpose.

``tenv/facts/data/gpu_driver.toml`` lists branches and modules. No fix advises a driver that drops a GPU.
"""

import re
from collections.abc import Callable, Iterator

from tenv.checks.rules.common import KnownGpu, cuda_of, doubt, known_gpus
from tenv.checks.rules.gpu import is_served
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.checks.rules.judged_driver import driver_of, of_windows, under_wsl
from tenv.core.versions import Version
from tenv.facts.gpu_driver import Generation, NeededModule
from tenv.host.interface import Fact, Missing, OriginKind
from tenv.host.report import DriverKind, FabricState, Gpu, ModuleKind

BRANCH = "TE108"
MODULE = "TE109"
WSL = "TE110"
VGPU = "TE111"
LICENSE = "TE114"
FABRIC = "TE115"

_ON_NVSWITCH = re.compile(r"\b(A100|A800|H100|H800|H200|H20|B200|B300)\b")
_ALONE = re.compile(r"PCI|NVL|Active", re.IGNORECASE)
_WITHOUT = 4
"""The GPUs of the largest board without NVSwitch."""
_UNREADY = (FabricState.NOT_STARTED, FabricState.IN_PROGRESS)

_Driven = list[tuple[KnownGpu, Generation]]


def driver_branch(case: Case) -> Iterator[Finding]:
    """Yield an error if the driver supports none of the GPUs, a warning if it supports only some."""
    driver, windows = driver_of(case.host, case.facts), of_windows(case.host)
    if cuda_of(case) is None or isinstance(driver, Missing) or driver.kind is OriginKind.DERIVED:
        return
    number = driver.value
    ended, _ = _parted(case, lambda row: row.has_ended(number, windows))
    early, _ = _parted(case, lambda row: not windows and row.first_linux is not None and number < row.first_linux)
    undriven = [gpu for gpu, _ in (*ended, *early)]
    others = [gpu for gpu in known_gpus(case) if gpu not in undriven and is_served(case, gpu)]
    for gpus in (ended, early):
        if not gpus:
            continue
        row, names = gpus[0][1], _names(gpus)
        what = f"does not support {names} yet: {row.name} support starts with driver {row.first_linux}"
        fix = f"install driver {row.first_linux} or newer"
        if gpus is ended:
            last = row.ends(windows)
            what = f"no longer supports {names}: {row.name} support ends before branch {last}"
            fix = f"install the newest driver that is older than {last}"
        yield Finding(
            code=BRANCH,
            severity=Severity.WARNING if others else Severity.ERROR,
            subject=f"driver {number}",
            message=f"{what}{doubt(row.basis)}",
            evidence=f"driver {number} ({driver.origin}); {_capabilities(gpus)}",
            source=row.basis.source,
            fix=fix,
        )


def kernel_module(case: Case) -> Iterator[Finding]:
    """Yield an error if the kind of the loaded kernel module supports none of the GPUs."""
    module, driver = case.host.module, case.host.driver
    if cuda_of(case) is None or isinstance(module, Missing) or module.value is ModuleKind.OTHER:
        return
    number = driver.value if isinstance(driver, Fact) else None
    gpus, others = _parted(case, lambda row: _refuses(row, module.value, number))
    if not gpus:
        return
    row, names = gpus[0][1], _names(gpus)
    needed = NeededModule.OPEN if module.value is ModuleKind.PROPRIETARY else NeededModule.PROPRIETARY
    fix = f"install the driver with its {needed} kernel modules (`nvidia-open` or `nvidia-driver-…-open`)"
    if needed is NeededModule.PROPRIETARY:
        until = f", of a branch before {row.ends_linux}" if row.ends_linux else ""
        fix = f"install the driver with its {needed} kernel modules{until}"
    yield Finding(
        code=MODULE,
        severity=Severity.WARNING if others else Severity.ERROR,
        subject=f"the {module.value} kernel module",
        message=f"does not support {names}: {row.name} needs the {needed} module{doubt(row.basis)}",
        evidence=f"{module.value} ({module.origin}); {_capabilities(gpus)}",
        source=row.basis.source,
        fix=fix,
    )


def wsl_driver(case: Case) -> Iterator[Finding]:
    """Yield an error if the Windows driver is too old for programs under WSL."""
    driver = case.host.driver
    if cuda_of(case) is None or isinstance(driver, Missing) or not under_wsl(case.host):
        return
    for row in case.facts.gpu_driver.wsl:
        if driver.value < row.since:
            yield Finding(
                code=WSL,
                severity=Severity.ERROR,
                subject=f"driver {driver.value}",
                message=(f"does not support CUDA under WSL: Windows drivers do since {row.since}{doubt(row.basis)}"),
                evidence=f"driver {driver.value} ({driver.origin})",
                source=row.basis.source,
                fix="install a newer NVIDIA driver on Windows, not inside WSL",
            )


def vgpu_host(case: Case) -> Iterator[Finding]:
    """Yield an error if the driver is a vGPU host driver, which has no CUDA."""
    kind = case.host.driver_kind
    if cuda_of(case) is None or isinstance(kind, Missing) or kind.value is not DriverKind.VGPU_HOST:
        return
    yield Finding(
        code=VGPU,
        severity=Severity.ERROR,
        subject="the driver",
        message="is a vGPU host driver, which has no CUDA: guests need the guest driver (`…-grid`)",
        evidence=f"{kind.value} ({kind.origin})",
        source="docs.nvidia.com/vgpu: the Virtual GPU Manager and the guest drivers are packages of their own",
        fix="run the programs in a guest, with the guest driver of the host's vGPU release",
    )


def vgpu_license(case: Case) -> Iterator[Finding]:
    """Yield a note about vGPUs: without a license their guest driver ends CUDA some time after its start."""
    from tenv.facts.gpu_names import is_vgpu  # late: few hosts have a vGPU

    names = list(dict.fromkeys(gpu.name for gpu in known_gpus(case) if is_vgpu(gpu.name)))
    if cuda_of(case) is None or not names:
        return
    yield Finding(
        code=LICENSE,
        severity=Severity.NOTE,
        subject=", ".join(names),
        message=(
            "is a vGPU: without a license its guest driver ends CUDA after a while, and programs find the device busy "
            "or unavailable (CUDA_ERROR_DEVICES_UNAVAILABLE, 46)"
        ),
        evidence=f"the profile in its name: {names[0]}",
        source="docs.nvidia.com/vgpu: Virtual GPU Client Licensing User Guide; github.com/Azure/AKS/issues/4869",
        fix="look with `nvidia-smi -q | grep -i license`, and give the guest a license (`nvidia-gridd`)",
    )


def fabric_manager(case: Case) -> Iterator[Finding]:
    """Yield a note about the GPUs of an HGX board: CUDA starts only once the fabric manager has set up NVSwitch.

    It is a warning that leaves running open where the driver reports that a GPU is not registered yet: programs found
    such GPUs and did not find them (github.com/huggingface/huggingface_hub/issues/4128).
    """
    gpus = () if isinstance(case.host.gpus, Missing) else case.host.gpus.value
    joined = [gpu.name for gpu in gpus if _ON_NVSWITCH.search(gpu.name) and not _ALONE.search(gpu.name)]
    unready = [gpu for gpu in gpus if gpu.fabric in _UNREADY]
    registered = all(gpu.fabric is FabricState.COMPLETED for gpu in gpus)
    if cuda_of(case) is None or not (unready or (len(joined) > _WITHOUT and not registered)):
        return
    names = [gpu.name for gpu in unready] or joined
    message = (
        "are joined by NVSwitch on an HGX board: CUDA starts only while nvidia-fabricmanager of exactly the "
        "driver's version runs (CUDA_ERROR_SYSTEM_NOT_READY, 802)"
    )
    if unready:
        message = (
            f"not registered with NVSwitch ({unready[0].fabric}): CUDA starts only once nvidia-fabricmanager of "
            "exactly the driver's version has set it up (CUDA_ERROR_SYSTEM_NOT_READY, 802)"
        )
    yield Finding(
        code=FABRIC,
        severity=Severity.WARNING if unready else Severity.NOTE,
        subject=f"{len(names)} {names[0]}",
        message=message,
        evidence=f"{_fabric(unready)} ({_origin(case)})" if unready else f"{len(joined)} GPUs of one board",
        source="docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide; github.com/wilicc/gpu-burn/issues/92",
        fix="look with `systemctl status nvidia-fabricmanager`, and install the version of the driver",
        unknown=Unknown(Scope.RUN, "fabric") if unready else None,
    )


def _fabric(gpus: list[Gpu]) -> str:
    return "; ".join(dict.fromkeys(f"{gpu.name}: fabric {gpu.fabric}" for gpu in gpus))


def _origin(case: Case) -> str:
    return "" if isinstance(case.host.gpus, Missing) else case.host.gpus.origin


def _refuses(row: Generation, kind: ModuleKind, driver: Version | None) -> bool:
    if kind is ModuleKind.OPEN:
        return row.module is NeededModule.PROPRIETARY
    if row.module is not NeededModule.OPEN:
        return False
    return row.proprietary_before is None or (driver is not None and driver >= row.proprietary_before)


def _driven(case: Case) -> _Driven:
    """Return the GPUs whose drivers are in the table, each with its row."""
    rows = case.facts.gpu_driver
    return [
        (gpu, row)
        for gpu in known_gpus(case)
        if gpu.capability is not None and (row := rows.generation(gpu.capability)) is not None
    ]


def _parted(case: Case, test: Callable[[Generation], bool]) -> tuple[_Driven, list[KnownGpu]]:
    """Return the GPUs that fail a test and the others, which include GPUs without a row."""
    failing = [(gpu, row) for gpu, row in _driven(case) if test(row)]
    named = [gpu for gpu, _ in failing]
    return failing, [gpu for gpu in known_gpus(case) if gpu not in named and is_served(case, gpu)]


def _names(gpus: _Driven) -> str:
    return ", ".join(dict.fromkeys(gpu.name for gpu, _ in gpus))


def _capabilities(gpus: _Driven) -> str:
    return "; ".join(dict.fromkeys(f"{gpu.name}: compute capability {gpu.capability}" for gpu, _ in gpus))
