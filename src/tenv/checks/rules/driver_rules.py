"""The rules about the driver as the catalogue has them: `tenv.checks.rules.driver` asked about a case."""

from collections.abc import Iterator
from dataclasses import replace

from tenv.checks.rules.common import cuda_of, known_gpus, on_windows
from tenv.checks.rules.driver import (
    FORWARD,
    LIMITED,
    TOO_OLD,
    UNLISTED,
    UNREAD,
    USELESS,
    Verdict,
    driver_of,
    judge,
    of_windows,
    useless_override,
)
from tenv.checks.rules.interface import Case, Finding
from tenv.host.interface import Missing
from tenv.host.report import LibcudaKind

__all__ = ["CODES", "USELESS", "driver_rule", "override_rule"]

CODES = (UNREAD, LIMITED, TOO_OLD, UNLISTED, FORWARD)
"""What `driver_rule` may yield: one of them, since a driver stands to a CUDA in one way."""


def driver_rule(case: Case) -> Iterator[Finding]:
    """Yield what there is to say about the machine's driver and the target's CUDA."""
    table, windows = case.facts.cuda_driver, _windows(case)
    gpus, driver = known_gpus(case), driver_of(case.host, table, windows)
    judged = judge(cuda_of(case), driver, table, windows, gpus, case.facts.cuda_gpu_arch if gpus else None)
    if judged.finding is None:
        return
    yield _in_place(case, judged.finding) if judged.verdict is Verdict.FORWARD else judged.finding


def override_rule(case: Case) -> Iterator[Finding]:
    """Yield a warning where ``CONDA_OVERRIDE_CUDA`` says nothing that can be used."""
    if (finding := useless_override(case.host, case.facts.cuda_driver, _windows(case))) is not None:
        yield finding


def _windows(case: Case) -> bool:
    return on_windows(case) or of_windows(case.host)


def _in_place(case: Case, finding: Finding) -> Finding:
    """Return what is said of forward compatibility where a cuda-compat that offers the target's CUDA comes first."""
    compat, cuda = case.host.compat, cuda_of(case)
    first = case.facts.cuda_driver.native(cuda, windows=False) if cuda else None
    if isinstance(compat, Missing) or first is None or compat.value.kind is not LibcudaKind.CUDA_COMPAT:
        return finding
    if compat.value.version < first.driver:
        return finding
    return replace(
        finding,
        evidence=f"{finding.evidence}; cuda-compat of driver {compat.value.version}: {compat.value.path}",
        fix="nothing: such a cuda-compat comes first here already",
    )
