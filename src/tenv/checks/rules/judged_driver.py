"""The driver that a host is judged by: the detected one, or one derived from another value of the report."""

from tenv.checks.rules.interface import Finding, Severity
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable
from tenv.facts.tables import Facts
from tenv.host.cuda_api import OVERRIDE
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import HostReport, LibcudaKind

USELESS = "TE107"


def of_windows(host: HostReport) -> bool:
    """Return whether a host's driver is a Windows driver, as it is under WSL too."""
    windows = isinstance(host.platform, Fact) and host.platform.value.startswith("win-")
    return windows or under_wsl(host)


def under_wsl(host: HostReport) -> bool:
    """Return whether a host is Linux under Windows (WSL)."""
    return isinstance(host.wsl, Fact) and host.wsl.value


def on_jetson(host: HostReport, facts: Facts) -> bool:
    """Return whether a host is a Jetson: by its Jetson Linux, or by a GPU that only Jetsons have."""
    if isinstance(host.l4t, Fact) or (isinstance(host.driver, Missing) and host.driver.kind is ReasonKind.JETSON):
        return True
    if isinstance(host.every_gpu, Missing) or not host.every_gpu.value:
        return False
    from tenv.checks.rules.common import identify  # late: it reads the GPU tables

    capabilities = [identify(gpu, facts).capability for gpu in host.every_gpu.value]
    return all(one is not None and facts.gpu_driver.releases(one) for one in capabilities)


def compat_first(host: HostReport) -> bool:
    """Return whether a cuda-compat is known to be loaded before the driver's own library."""
    return isinstance(host.compat, Fact) and host.compat.value.kind is LibcudaKind.CUDA_COMPAT


def driver_of(host: HostReport, facts: Facts) -> Fact[Version] | Missing:
    """Return the driver that a host is judged by.

    A detected driver takes precedence. Without one, it is the oldest driver that offers the CUDA in
    ``CONDA_OVERRIDE_CUDA``, or the CUDA that libcuda reports; if no toolkit has that number (drivers of branch 565
    report 12.7), the oldest driver that offers the toolkit before it. Jetson drivers have their own numbers or none,
    so the CUDA of their Jetson Linux counts. An empty variable means that there is no driver.
    """
    if isinstance(host.cuda, Missing) and host.cuda.kind is ReasonKind.NO_CUDA:
        return host.cuda
    if (jetson := _of_jetson(host, facts)) is not None:
        return jetson
    if isinstance(host.driver, Fact):
        return host.driver
    if isinstance(host.cuda, Missing) or compat_first(host):
        return host.driver
    origin = OVERRIDE if host.cuda.kind is OriginKind.OVERRIDE else host.cuda.origin
    return _first(host.cuda.value, origin, facts.cuda_driver, of_windows(host)) or host.driver


def offered_cuda(host: HostReport) -> Version | None:
    """Return the CUDA that the driver's own library reports; None if it was not asked or is not loaded first."""
    if isinstance(host.cuda, Missing) or isinstance(host.compat, Fact):
        return None
    return host.cuda.value if host.cuda.kind is not OriginKind.OVERRIDE else None


def useless_override(host: HostReport, facts: Facts) -> Finding | None:
    """Return the finding about an ignored ``CONDA_OVERRIDE_CUDA``; None if it is used or unset.

    It is ignored if it is not a version, or if it replaces an undetected driver and the table has no driver for the
    version.
    """
    table = facts.cuda_driver
    if isinstance(host.cuda, Missing):
        if host.cuda.kind is not ReasonKind.NO_VERSION:
            return None
        message, evidence = "is not a CUDA version, so it is ignored", host.cuda.reason
    else:
        if host.cuda.kind is not OriginKind.OVERRIDE or isinstance(driver_of(host, facts), Fact):
            return None
        newest, oldest = table.toolkits[0].major_minor, table.toolkits[-1].major_minor
        message = f"matches no known driver: the table of drivers goes from CUDA {oldest} to {newest}"
        evidence = f"{OVERRIDE} is {host.cuda.value}"
    return Finding(
        code=USELESS,
        severity=Severity.WARNING,
        subject=OVERRIDE,
        message=message,
        evidence=evidence,
        source="docs/host.md: as in conda and pixi, it is the CUDA version that the driver offers",
        fix=(
            f"export {OVERRIDE}=12.4 (the CUDA version in the header of nvidia-smi), or set it to nothing for a "
            "host without CUDA, or unset it"
        ),
    )


def _of_jetson(host: HostReport, facts: Facts) -> Fact[Version] | None:
    """Return a desktop driver with the CUDA of a Jetson's driver; None if not a Jetson or its CUDA is unknown.

    The CUDA comes from its library, else from the release of Jetson Linux, else from the version that nvidia-smi
    prints.
    """
    assumed = isinstance(host.driver, Fact) and host.driver.kind is OriginKind.ASSUMED
    if assumed or not on_jetson(host, facts):
        return None
    offered = offered_cuda(host)
    if offered is not None and isinstance(host.cuda, Fact):
        return _first(offered, f"{host.cuda.origin} tells", facts.cuda_driver, windows=False)
    table = facts.gpu_driver
    # In a container without the GPU, Jetson Linux does not imply a driver.
    alone = isinstance(host.container, Fact) and isinstance(host.gpus, Missing)
    if isinstance(host.l4t, Fact) and not alone and (release := table.release(host.l4t.value)) is not None:
        origin = f"Jetson Linux {host.l4t.value} ({host.l4t.origin})"
        return _first(release.cuda, origin, facts.cuda_driver, windows=False)
    if isinstance(host.driver, Fact):
        from tenv.checks.rules.common import identify  # late: it reads the GPU tables

        number = host.driver.value
        rows = [row for row in table.jetson if row.driver is not None and row.driver.major == number.major]
        known = {identify(gpu, facts).capability for gpu in host.gpus.value} if isinstance(host.gpus, Fact) else set()
        rows = [row for row in rows if known <= set(row.capabilities)]
        found = next((row for row in reversed(rows) if row.driver is not None and row.driver <= number), None)
        if found is not None:
            origin = f"driver {number} of a Jetson ({host.driver.origin})"
            return _first(found.cuda, origin, facts.cuda_driver, windows=False)
    return None


def _first(reported: Version, origin: str, table: CudaDriverTable, windows: bool) -> Fact[Version] | None:
    """Return the first driver that offers a CUDA; None if the table has none."""
    for row in table.toolkits:  # newest first
        offered = Version(row.major_minor)
        if offered.major == reported.major and offered <= Version(reported.major_minor):
            first = table.native(offered, windows)
            if first is not None:
                words = f"which {origin} reports" if offered == reported else f"and {origin} reports {reported}"
                return Fact(first.driver, f"the first that offers CUDA {offered}, {words}", OriginKind.DERIVED)
    return None
