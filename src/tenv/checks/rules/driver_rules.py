"""The catalogue's rules about the driver: `tenv.checks.rules.driver` applied to a case."""

from collections.abc import Iterator

from tenv.checks.rules.common import cuda_of, identify
from tenv.checks.rules.driver import DriverSurroundings, DriverVerdict, Verdict, judge
from tenv.checks.rules.driver_findings import CODES
from tenv.checks.rules.interface import Case, Finding
from tenv.checks.rules.judged_driver import USELESS, driver_of, of_windows, offered_cuda, on_jetson, useless_override
from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.host.interface import Fact, Missing
from tenv.host.report import HostReport
from tenv.targets.manifest import Manifest

__all__ = ["CODES", "USELESS", "driver_rule", "override_rule", "stand"]


def stand(cuda: Version | None, host: HostReport, facts: Facts, manifest: Manifest | None = None) -> DriverVerdict:
    """Return how a host's driver supports a toolkit.

    Args:
        cuda: The version of the toolkit; None if the target has none.
        host: The host.
        facts: The tables.
        manifest: The target's manifest; None to judge only a toolkit.
    """
    if cuda is None:
        return DriverVerdict(Verdict.NATIVE, None, None)
    driver, table = driver_of(host, facts), facts.cuda_driver
    around = DriverSurroundings(
        windows=of_windows(host),
        jetson=on_jetson(host, facts),
        container=host.container.value if isinstance(host.container, Fact) else "",
        offered=offered_cuda(host),
        compat=host.compat,
        brings_compat=manifest is not None and _brings_compat(manifest),
        module=host.module,
    )
    judged = judge(cuda, driver, table, around)
    if judged.verdict is Verdict.NATIVE or isinstance(host.gpus, Missing) or not host.gpus.value:
        return judged  # the GPU tables stay unread
    gpus = [identify(gpu, facts) for gpu in host.gpus.value]
    return judge(cuda, driver, table, around, gpus, facts.cuda_gpu_arch, facts.gpu_driver)


def _brings_compat(manifest: Manifest) -> bool:
    """Return whether a target brings a cuda-compat, which activation puts first if the driver needs it."""
    return any(name.startswith("cuda-compat") for name in (*manifest.dependencies, *manifest.archives))


def driver_rule(case: Case) -> Iterator[Finding]:
    """Yield the finding about the host's driver and the target's CUDA."""
    judged = stand(cuda_of(case), case.host, case.facts, case.manifest)
    if judged.finding is not None:
        yield judged.finding


def override_rule(case: Case) -> Iterator[Finding]:
    """Yield a warning if ``CONDA_OVERRIDE_CUDA`` is unusable."""
    if (finding := useless_override(case.host, case.facts)) is not None:
        yield finding
