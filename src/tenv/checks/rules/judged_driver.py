"""The driver by which a machine is judged: the one that was read, or one that another value of the report tells of."""

from tenv.checks.rules.interface import Finding, Severity
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable
from tenv.facts.tables import Facts
from tenv.host.cuda_api import OVERRIDE
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import HostReport, LibcudaKind

__all__ = [
    "USELESS",
    "compat_first",
    "driver_of",
    "of_windows",
    "offered_cuda",
    "on_jetson",
    "under_wsl",
    "useless_override",
]

USELESS = "TE107"


def of_windows(host: HostReport) -> bool:
    """Tell whether a machine's driver is one for Windows, as it is under WSL too."""
    windows = isinstance(host.platform, Fact) and host.platform.value.startswith("win-")
    return windows or under_wsl(host)


def under_wsl(host: HostReport) -> bool:
    """Tell whether a machine is Linux under Windows."""
    return isinstance(host.wsl, Fact) and host.wsl.value


def on_jetson(host: HostReport, facts: Facts) -> bool:
    """Tell whether a machine is a Jetson: by its Jetson Linux, or by a GPU that only a Jetson has."""
    if isinstance(host.l4t, Fact) or (isinstance(host.driver, Missing) and host.driver.kind is ReasonKind.JETSON):
        return True
    if isinstance(host.gpus, Missing) or not host.gpus.value:
        return False
    from tenv.checks.rules.common import identify  # late: the tables of GPUs are read

    capabilities = [identify(gpu, facts).capability for gpu in host.gpus.value]
    return all(one is not None and facts.gpu_driver.releases(one) for one in capabilities)


def compat_first(host: HostReport) -> bool:
    """Tell whether a cuda-compat is known to stand before the driver's own library."""
    return isinstance(host.compat, Fact) and host.compat.value.kind is LibcudaKind.CUDA_COMPAT


def driver_of(host: HostReport, facts: Facts) -> Fact[Version] | Missing:
    """Return the driver by which a machine is judged.

    A driver that was read is stronger than a version. Where none could be read, it is the oldest driver that offers the
    CUDA that ``CONDA_OVERRIDE_CUDA`` says, or that libcuda does; where no toolkit has that number (drivers of branch
    565 say 12.7), the oldest that offers the toolkit before it. The drivers of a Jetson have numbers of their own, or
    none: what counts there is the CUDA that its Jetson Linux offers. The variable set to nothing says that there is
    none.
    """
    if isinstance(host.cuda, Missing) and host.cuda.kind is ReasonKind.NO_CUDA:
        return host.cuda
    if (jetson := _of_jetson(host, facts)) is not None:
        return jetson
    if isinstance(host.driver, Fact):
        return host.driver
    if isinstance(host.cuda, Missing) or compat_first(host):
        return host.driver
    told = f"{OVERRIDE} says" if host.cuda.kind is OriginKind.OVERRIDE else f"{host.cuda.origin} tells"
    return _first(host.cuda.value, told, facts.cuda_driver, of_windows(host)) or host.driver


def offered_cuda(host: HostReport) -> Version | None:
    """Return the CUDA that the driver's own library says it offers; None where it was not asked or is not first."""
    if isinstance(host.cuda, Missing) or isinstance(host.compat, Fact):
        return None
    return host.cuda.value if host.cuda.kind is not OriginKind.OVERRIDE else None


def useless_override(host: HostReport, facts: Facts) -> Finding | None:
    """Return what there is to say about a ``CONDA_OVERRIDE_CUDA`` that is left aside, None where it is not.

    It is left aside where it is no version, and where it should stand for a driver that could not be read and is a
    version of which the table knows no driver.
    """
    table = facts.cuda_driver
    if isinstance(host.cuda, Missing):
        if host.cuda.kind is not ReasonKind.NO_VERSION:
            return None
        message, evidence = "is no version of CUDA, so nothing follows from it", host.cuda.reason
    else:
        if host.cuda.kind is not OriginKind.OVERRIDE or isinstance(driver_of(host, facts), Fact):
            return None
        newest, oldest = table.toolkits[0].major_minor, table.toolkits[-1].major_minor
        message = f"stands for no driver that is known: the table of drivers goes from CUDA {oldest} to {newest}"
        evidence = f"{OVERRIDE} is {host.cuda.value}"
    return Finding(
        code=USELESS,
        severity=Severity.WARNING,
        subject=OVERRIDE,
        message=message,
        evidence=evidence,
        source="docs/host.md: it means what it means to conda and pixi, the CUDA version that the driver offers",
        fix=(
            f"export {OVERRIDE}=12.4 (the CUDA version at the head of what nvidia-smi prints), or set it to nothing "
            "for a machine without CUDA, or unset it"
        ),
    )


def _of_jetson(host: HostReport, facts: Facts) -> Fact[Version] | None:
    """Return a desktop driver that offers the same CUDA as a Jetson's; None where it is none, or nothing tells.

    Its library's own word counts first, then the release of Jetson Linux, then the number that nvidia-smi shows.
    """
    assumed = isinstance(host.driver, Fact) and host.driver.kind is OriginKind.ASSUMED
    if assumed or not on_jetson(host, facts):
        return None
    offered = offered_cuda(host)
    if offered is not None and isinstance(host.cuda, Fact):
        return _first(offered, f"{host.cuda.origin} tells", facts.cuda_driver, windows=False)
    table = facts.gpu_driver
    # In a container without the GPU its Jetson Linux says nothing of a driver that programs would find.
    alone = isinstance(host.container, Fact) and isinstance(host.gpus, Missing)
    if isinstance(host.l4t, Fact) and not alone and (release := table.release(host.l4t.value)) is not None:
        told = f"Jetson Linux {host.l4t.value} ({host.l4t.origin}) tells"
        return _first(release.cuda, told, facts.cuda_driver, windows=False)
    if isinstance(host.driver, Fact):
        from tenv.checks.rules.common import identify  # late: the tables of GPUs are read

        number = host.driver.value
        rows = [row for row in table.jetson if row.driver is not None and row.driver.major == number.major]
        known = {identify(gpu, facts).capability for gpu in host.gpus.value} if isinstance(host.gpus, Fact) else set()
        rows = [row for row in rows if known <= set(row.capabilities)]
        found = next((row for row in reversed(rows) if row.driver is not None and row.driver <= number), None)
        if found is not None:
            told = f"driver {number} of a Jetson ({host.driver.origin}) tells"
            return _first(found.cuda, told, facts.cuda_driver, windows=False)
    return None


def _first(said: Version, told: str, table: CudaDriverTable, windows: bool) -> Fact[Version] | None:
    """Return the first driver that offers a CUDA, None where the table knows none."""
    for row in table.toolkits:  # newest first
        offered = Version(row.major_minor)
        if offered.major == said.major and offered <= Version(said.major_minor):
            first = table.native(offered, windows)
            if first is not None:
                words = f"which {told}" if offered == said else f"and {told} {said}"
                return Fact(first.driver, f"the first that offers CUDA {offered}, {words}", OriginKind.DERIVED)
    return None
