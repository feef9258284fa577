"""Whether nvcc of the target's toolkit compiles for the GPUs of the machine.

The architectures of a toolkit and the compute capabilities of GPUs are those of ``tenv/facts/data/cuda_gpu_arch.toml``;
a GPU that only the PCI bus shows is looked up by its id. Code for a GPU runs on later minors of the same major compute
capability, and PTX on everything later (CUDA C++ Programming Guide, binary and PTX compatibility).
"""

from collections.abc import Iterator

from tenv.checks.rules.common import KnownGpu, compiled_for, cuda_of, doubt, known_gpus
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import ToolkitArchs, sm_of
from tenv.host.interface import Missing

__all__ = ["DROPPED", "MIXED", "TOO_NEW", "TOO_OLD", "gpu_dropped", "gpu_mixed", "gpu_too_new", "gpu_too_old"]

TOO_OLD = "TE201"
TOO_NEW = "TE202"
MIXED = "TE203"
DROPPED = "TE204"


def gpu_too_old(case: Case) -> Iterator[Finding]:
    """Yield the GPUs that the toolkit has dropped: an error, or a warning where it serves another of the machine."""
    judged = list(_judged(case))
    others = ", ".join(
        dict.fromkeys(gpu.name for gpu, capability, archs in judged if not archs.has_dropped(capability))
    )
    runs = f", while it runs on {others}" if others else ""
    avoid = "keep programs off it (CUDA_VISIBLE_DEVICES names those that they may use)"
    for gpu, capability, archs in judged:
        if archs.has_dropped(capability):
            served = case.facts.cuda_gpu_arch.range(capability)
            last = f"CUDA {served[1].major_minor}{doubt(served[1].basis)}" if served else "an older CUDA"
            yield Finding(
                code=TOO_OLD,
                severity=Severity.WARNING if others else Severity.ERROR,
                subject=gpu.name,
                message=(
                    f"has compute capability {capability}; nvcc of CUDA {archs.major_minor} compiles for "
                    f"{_capability(archs.min)} and up, so nothing that it builds runs on this GPU{runs}"
                    f"{doubt(archs.basis)}"
                ),
                evidence=_evidence(gpu, case),
                source=archs.basis.source,
                fix=(
                    f"choose a target with {last} or older, or {avoid if others else 'run the programs on a newer GPU'}"
                ),
            )


def gpu_too_new(case: Case) -> Iterator[Finding]:
    """Yield the GPUs that are newer than what the toolkit knows."""
    for gpu, capability, archs in _judged(case):
        if archs.is_older_than(capability):
            served = case.facts.cuda_gpu_arch.range(capability)
            first = f"CUDA {served[0].major_minor}{doubt(served[0].basis)}" if served else "a newer CUDA"
            newest = _capability(archs.max)
            how = f"code for {newest} runs, though it is not made for this GPU"
            if capability.major != archs.max // 10:
                how = "only PTX runs, which the driver compiles at the first start"
            yield Finding(
                code=TOO_NEW,
                severity=Severity.WARNING,
                subject=gpu.name,
                message=(
                    f"has compute capability {capability}; nvcc of CUDA {archs.major_minor} knows {newest} at most: "
                    f"{how}{doubt(archs.basis)}"
                ),
                evidence=_evidence(gpu, case),
                source=archs.basis.source,
                fix=f'choose a target with {first} or newer, or set TORCH_CUDA_ARCH_LIST="{newest}+PTX"',
            )


def gpu_mixed(case: Case) -> Iterator[Finding]:
    """Yield a note on a machine whose GPUs are of several compute capabilities."""
    gpus, cuda = known_gpus(case), cuda_of(case)
    capabilities = sorted({gpu.capability for gpu in gpus if gpu.capability is not None})
    if cuda is None or len(capabilities) < 2 or isinstance(case.host.gpus, Missing):  # noqa: PLR2004 (two)
        return
    built = compiled_for(gpus, cuda, case.facts.cuda_gpu_arch)
    if not built:
        return  # TE201 and TE202 tell all there is
    which = "of them" if built == capabilities else f"that nvcc of CUDA {cuda.major_minor} knows"
    unknown = [gpu.name for gpu in gpus if gpu.capability is None]
    rest = f"; not known for {', '.join(unknown)}" if unknown else ""
    told = dict.fromkeys(f"{gpu.name}: {gpu.capability}" for gpu in gpus if gpu.capability is not None)
    yield Finding(
        code=MIXED,
        severity=Severity.NOTE,
        subject="the GPUs",
        message=(
            f"are of several compute capabilities ({', '.join(map(str, capabilities))}){rest}: a build for one of them "
            f"need not run on the others{doubt(*(gpu.basis for gpu in gpus))}"
        ),
        evidence=f"{'; '.join(told)} ({case.host.gpus.origin})",
        source="CUDA C++ Programming Guide, binary compatibility",
        fix=f'build for all {which}: TORCH_CUDA_ARCH_LIST="{";".join(map(str, built))}"',
    )


def gpu_dropped(case: Case) -> Iterator[Finding]:
    """Yield the GPUs that the toolkit still knows, but for which PyTorch's own builds of the revision have no code."""
    cuda, machine = cuda_of(case), "aarch64" if case.platform.endswith("aarch64") else "x86_64"
    if case.source is None or cuda is None:
        return
    told = case.facts.pytorch_build.wheel_archs(case.source.version.value, cuda, machine)
    if told is None:
        return
    archs, basis = told
    oldest = min(Version(arch.removesuffix("+PTX")) for arch in archs)
    for gpu, capability, toolkit in _judged(case):
        if toolkit.min <= sm_of(capability) < sm_of(oldest):
            yield Finding(
                code=DROPPED,
                severity=Severity.WARNING,
                subject=gpu.name,
                message=(
                    f"has compute capability {capability}; PyTorch {case.source.version.value} is built and tested for "
                    f"{oldest} and up with CUDA {cuda.major_minor} on {machine}: a build for older GPUs is on its own"
                    f"{doubt(basis)}"
                ),
                evidence=_evidence(gpu, case),
                source=f"{basis.source}: {' '.join(archs)}",
                fix=f'build for it all the same: TORCH_CUDA_ARCH_LIST="{capability}", or take an older revision',
            )


def _judged(case: Case) -> Iterator[tuple[KnownGpu, Version, ToolkitArchs]]:
    """Yield each kind of GPU once, where both its compute capability and the toolkit's architectures are known."""
    cuda = cuda_of(case)
    archs = case.facts.cuda_gpu_arch.archs(cuda) if cuda else None
    if archs is None:
        return
    for gpu in dict.fromkeys(known_gpus(case)):
        if gpu.capability is not None:
            yield gpu, gpu.capability, archs


def _capability(sm: int) -> str:
    return f"{sm // 10}.{sm % 10}"


def _evidence(gpu: KnownGpu, case: Case) -> str:
    origin = case.host.gpus.reason if isinstance(case.host.gpus, Missing) else case.host.gpus.origin
    told = f"by {gpu.origin} in cuda_gpu_arch.toml{doubt(gpu.basis)}; " if gpu.origin else ""
    return f"compute capability {gpu.capability} ({told}{origin})"
