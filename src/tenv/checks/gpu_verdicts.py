"""Give the verdicts for each GPU of a host that has several kinds.

What holds for a host with several GPUs need not hold for each: nvcc compiles for some of them, or the driver has
dropped one. Each kind of GPU is judged by the rules about GPUs as if it were the host's only one, and by the findings
of all other rules about the host.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tenv.checks.rules.common import identify
from tenv.checks.rules.driver_family import GPU_RULES
from tenv.checks.rules.gpu_range import is_covered, listed_archs
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, decide
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.host.report import Gpu, HostReport

if TYPE_CHECKING:
    from tenv.checks.rules.common import KnownGpu

__all__ = ["GpuFindings", "GpuVerdict", "about_gpus", "per_gpu", "settled"]


@dataclass(frozen=True, slots=True)
class GpuVerdict:
    """The verdicts on a target for one kind of GPU.

    Attributes:
        name: Its name.
        capability: Its compute capability; None if unknown.
        count: How many of them the host has.
        build: Whether the target can be built on the host with code for it; None if unknown.
        run: Whether what is built runs on it; None if unknown.
    """

    name: str
    capability: Version | None
    count: int
    build: bool | None
    run: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return the verdicts as JSON values."""
        return {
            "name": self.name,
            "compute_capability": str(self.capability or ""),
            "count": self.count,
            "build": self.build,
            "run": self.run,
        }


@dataclass(frozen=True, slots=True)
class GpuFindings:
    """One kind of GPU with the findings of the rules about GPUs that a host with it alone would have.

    Attributes:
        gpu: The GPU.
        count: How many of them the host has.
        found: The findings, each with the verdict that its rule decides; None if all GPUs are of this kind, so that
            they are those about the host.
    """

    gpu: "KnownGpu"
    count: int
    found: tuple[tuple[Scope, Finding], ...] | None


class _WithGpu:
    """A host report with one of its GPUs; every other value is that of the report."""

    def __init__(self, host: HostReport, gpu: Gpu) -> None:
        self._host = host
        gpus = host.gpus
        self.gpus = gpus if isinstance(gpus, Missing) else replace(gpus, value=(gpu,))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


def about_gpus(case: Case) -> tuple[GpuFindings, ...]:
    """Return the findings for each kind of GPU, in the order of the report; empty without a GPU."""
    if isinstance(case.host.gpus, Missing):
        return ()
    kinds: dict[KnownGpu, list[Gpu]] = {}
    for gpu in case.host.gpus.value:
        kinds.setdefault(identify(gpu, case.facts), []).append(gpu)
    if len(kinds) == 1:
        return tuple(GpuFindings(kind, len(gpus), None) for kind, gpus in kinds.items())
    return tuple(GpuFindings(kind, len(gpus), _alone(case, kind, gpus[0])) for kind, gpus in kinds.items())


def _alone(case: Case, kind: "KnownGpu", gpu: Gpu) -> tuple[tuple[Scope, Finding], ...]:
    """Return the findings of a host with one GPU, which the list that activation sets for all of them may cover."""
    alone = replace(case, host=cast("HostReport", _WithGpu(case.host, gpu)))
    cases = [alone]
    if listed := listed_archs(case):
        beside = replace(alone, arch_list=";".join(map(str, listed)))
        cases = [beside] if is_covered(kind, listed) else [alone, beside]
    found = [(rule.scope, one) for each in cases for rule in GPU_RULES for one in rule(each)]
    return tuple(dict.fromkeys(found))


def per_gpu(
    kinds: Iterable[GpuFindings], found: Iterable[tuple[Scope, Finding]], common: Iterable[tuple[Scope, Finding]]
) -> tuple[GpuVerdict, ...]:
    """Return the verdicts for each kind of GPU.

    Args:
        kinds: What `about_gpus` returns.
        found: All findings about the host.
        common: Those of them that are not of a rule about GPUs.
    """
    every, shared = tuple(found), tuple(common)

    def of(kind: GpuFindings) -> GpuVerdict:
        own = every if kind.found is None else (*shared, *kind.found)
        build, run = decide(Scope.BUILD, own), decide(Scope.RUN, own)
        return GpuVerdict(kind.gpu.name, kind.gpu.capability, kind.count, build, run)

    return tuple(map(of, kinds))


def settled(found: Iterable[tuple[Scope, Finding]], kinds: Iterable[GpuFindings]) -> tuple[tuple[Scope, Finding], ...]:
    """Return the findings about driver, loader and GPUs; a warning is an error if no GPU is left that runs.

    Two rules may each warn of one GPU since the other GPU remains. If each GPU has an error of its own, none remains.
    """
    every = tuple(found)
    own = [kind.found for kind in kinds if kind.found is not None]
    if not own or decide(Scope.RUN, every) is False or any(decide(Scope.RUN, one) is not False for one in own):
        return every
    errors = {
        finding.code
        for one in own
        for scope, finding in one
        if finding.severity is Severity.ERROR and scope is not Scope.BUILD
    }
    return tuple(
        (scope, replace(one, severity=Severity.ERROR))
        if one.code in errors and one.severity is Severity.WARNING
        else (scope, one)
        for scope, one in every
    )
