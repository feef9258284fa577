"""Check whether nvcc of the target's toolkit compiles for the host's GPUs, and whether that code runs there.

``tenv/facts/data/cuda_gpu_arch.toml`` has the architectures of toolkits and the compute capabilities of GPUs. A GPU
that only the PCI bus shows is looked up by its id. Code for a GPU runs on later minors of the same major compute
capability, and PTX on everything later (CUDA C++ Programming Guide, binary and PTX compatibility). If
`TORCH_CUDA_ARCH_LIST` is not set, a build targets the GPUs that it detects, and nvcc rejects architectures that it
does not support.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from tenv.checks.rules.common import KnownGpu, compiled_for, cuda_of, doubt, known_gpus
from tenv.checks.rules.driver import judge_on_host
from tenv.checks.rules.driver_findings import LIMITED
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.targets.manifest import Manifest

if TYPE_CHECKING:
    from tenv.facts.cuda_gpu_arch import ToolkitArchs

TOO_OLD = "TE201"
TOO_NEW = "TE202"
MIXED = "TE203"
DROPPED = "TE204"
REFUSED = "TE205"
UNSERVED = "TE206"
UNKNOWN = "TE207"
VARIABLE = "TORCH_CUDA_ARCH_LIST"

_NAMES = {
    "kepler": "3.5 3.7",
    "kepler+tesla": "3.7",
    "kepler+tegra": "3.2",
    "maxwell": "5.0 5.2+PTX",
    "maxwell+tegra": "5.3",
    "pascal": "6.0 6.1+PTX",
    "volta": "7.0+PTX",
    "turing": "7.5+PTX",
    "ampere": "8.0 8.6+PTX",
    "ada": "8.9+PTX",
    "hopper": "9.0+PTX",
    "blackwell": "10.0 10.3 12.0 12.1+PTX",
    "blackwell+tegra": "11.0",
    "rubin": "10.7+PTX",
}
"""The names of architectures: ``named_arches`` in torch/utils/cpp_extension.py of 2.9; Rubin is in
``select_compute_arch.cmake`` of 2.14."""

_ARCH = re.compile(r"(?P<capability>\d{1,2}\.\d)(?P<variant>[af]?)(\(\d{1,2}\.\d\))?(?P<ptx>\+PTX)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Arch:
    """An architecture to compile for."""

    capability: Version
    """The compute capability."""
    variant: str
    """``a`` for code that runs only on this architecture, ``f`` for its family, otherwise empty."""
    ptx: bool
    """Whether PTX is built too, which newer drivers compile for newer GPUs."""

    @property
    def text(self) -> str:
        """The architecture as the list spells it."""
        return f"{self.capability}{self.variant}{'+PTX' if self.ptx else ''}"


def arch_list(text: str) -> tuple[Arch, ...] | None:
    """Return the architectures of a list; None if it is empty or only PyTorch can expand it (``Auto``)."""
    found = []
    for word in re.split(r"[;\s]+", text.strip()):
        for one in _NAMES.get(word.lower(), word).split():
            match = _ARCH.fullmatch(one)
            if match is None:
                return None
            found.append(Arch(Version(match["capability"]), match["variant"], bool(match["ptx"])))
    return tuple(found) or None


def named_archs(manifest: Manifest, exported: str) -> str:
    """Return the list that a build gets: the manifest's, which activation sets, else the caller's variable."""
    request = manifest.environment.get(VARIABLE)
    return (request.text or "") if request else exported


def runs_on(arch: Arch, capability: Version) -> bool:
    """Return whether the binary code of an architecture, without its PTX, runs on a GPU.

    Code runs on later minors of the same major (CUDA C++ Programming Guide, binary compatibility). ``a`` code does not.
    """
    if arch.variant == "a":
        return arch.capability == capability
    return arch.capability.major == capability.major and arch.capability <= capability


def in_range(gpus: Iterable[KnownGpu], archs: "ToolkitArchs | None") -> tuple[list[Version], list[KnownGpu]]:
    """Return the compute capabilities that a toolkit compiles for, rising, and the GPUs that it does not compile for.

    Args:
        gpus: The GPUs; those without a known compute capability are in neither list.
        archs: The toolkit's architectures; None if unknown, which yields two empty lists.
    """
    known = [(gpu, gpu.capability) for gpu in gpus if gpu.capability is not None] if archs else []
    inside = sorted({one for _, one in known if archs and archs.supports(one)})
    return inside, list(dict.fromkeys(gpu for gpu, one in known if one not in inside))


def listed_archs(case: "Case") -> tuple[Version, ...]:
    """Return the list that activation sets in TORCH_CUDA_ARCH_LIST: nvcc or PyTorch's detection fails for a GPU.

    Empty if neither does, if nvcc compiles for none, or if the manifest or the user sets the variable.
    """
    cuda = cuda_of(case)
    if cuda is None or arch_list(case.arch_list) is not None:
        return ()
    gpus = known_gpus(case)
    inside, outside = in_range(gpus, case.facts.cuda_gpu_arch.archs(cuda) if gpus else None)
    return tuple(inside) if outside or misread(inside) else ()


def misread(capabilities: Iterable[Version]) -> list[Version]:
    """Return the compute capabilities that PyTorch's own detection gets wrong.

    ``select_compute_arch.cmake`` replaces "2.1" by "2.1(2.0)" for Fermi, also within "12.1", so that nvcc is asked for
    compute_20: github.com/pytorch/pytorch/pull/174065, github.com/vllm-project/vllm/pull/49904, the wheels of 2.10 to
    2.15.
    """
    return [one for one in capabilities if "2.1" in str(one) and one != Version("2.1")]


def is_covered(gpu: KnownGpu, listed: Iterable[Version]) -> bool:
    """Return whether code for one of the listed compute capabilities runs on a GPU."""
    return gpu.capability is not None and any(runs_on(Arch(one, "", ptx=False), gpu.capability) for one in listed)


def gpu_too_old(case: Case) -> Iterator[Finding]:
    """Yield the GPUs that the toolkit no longer supports: an error if it supports no GPU here, else a warning."""
    yield from _outside(case, newer=False)


def gpu_too_new(case: Case) -> Iterator[Finding]:
    """Yield the GPUs newer than the toolkit: an error if it supports no GPU here, else a warning."""
    yield from _outside(case, newer=True)


def _outside(case: Case, *, newer: bool) -> Iterator[Finding]:
    """Yield a finding for the GPUs on one side of the toolkit's range if no list names the architectures."""
    judged = list(_judged(case))
    gpus = [row for row in judged if (_is_foreign(*row[1:]) if newer else row[2].has_dropped(row[1]))]
    if not gpus or arch_list(case.arch_list) is not None:
        return
    archs = gpus[0][2]
    names = ", ".join(dict.fromkeys(gpu.name for gpu, _, _ in gpus))
    others = ", ".join(
        dict.fromkeys(gpu.name for gpu, one, row in judged if not row.has_dropped(one) and not _is_foreign(one, row))
    )
    found = ", ".join(dict.fromkeys(str(one) for _, one, _ in gpus))
    asked = " ".join(dict.fromkeys(f"compute_{_digits(one)}" for _, one, _ in gpus))
    bound = f"supports at most {_capability(archs.max)}" if newer else f"supports {_capability(archs.min)} and newer"
    rest = f"; it supports {others}" if others else f"; a build that detects the GPUs requests {asked}"
    if listed := listed_archs(case):
        rest += f", and activation lists {_listed(listed)}"
    last = [case.facts.cuda_gpu_arch.range(one) for _, one, _ in gpus]
    side = [row[0] if newer else row[1] for row in last if row]
    way = f"CUDA {side[0].major_minor}{doubt(side[0].basis)}" if side else f"{'a newer' if newer else 'an older'} CUDA"
    avoid = "hide it from programs (CUDA_VISIBLE_DEVICES lists the GPUs that they may use)"
    yield Finding(
        code=TOO_NEW if newer else TOO_OLD,
        severity=Severity.WARNING if others else Severity.ERROR,
        subject=names,
        message=(
            f"has compute capability {found}; nvcc of CUDA {archs.major_minor} {bound}, so nothing that it builds "
            f"runs there{rest}{doubt(archs.basis)}"
        ),
        evidence="; ".join(dict.fromkeys(_evidence(gpu, case) for gpu, _, _ in gpus)),
        source=archs.basis.source,
        fix=(
            f"choose a target with {way} or {'newer' if newer else 'older'}, or "
            f"{avoid if others else 'run the programs on a supported GPU'}"
        ),
    )


def arch_refused(case: Case) -> Iterator[Finding]:
    """Yield an error if a build requests an architecture that nvcc lacks, a warning beside a supported GPU."""
    named = arch_list(case.arch_list)
    cuda = cuda_of(case)
    archs = case.facts.cuda_gpu_arch.archs(cuda) if cuda and (named or known_gpus(case)) else None
    if archs is None:
        return
    if named is not None:
        unknown = [arch.text for arch in named if not archs.supports(arch.capability)]
        if unknown:
            yield Finding(
                code=REFUSED,
                severity=Severity.ERROR,
                subject=VARIABLE,
                message=(
                    f"contains {', '.join(unknown)}, which nvcc of CUDA {archs.major_minor} does not support"
                    f"{doubt(archs.basis)}"
                ),
                evidence=f"{VARIABLE}={case.arch_list}",
                source=archs.basis.source,
                fix=f"use architectures from {_capability(archs.min)} to {_capability(archs.max)}",
            )
        return
    yield from _between(case, archs)


def _between(case: Case, archs: "ToolkitArchs") -> Iterator[Finding]:
    """Yield the GPUs of a supported major that nvcc does not support: an error if it supports no GPU here."""
    unknown_gpus = [
        row
        for row in _judged(case)
        if not archs.supports(row[1]) and not archs.has_dropped(row[1]) and not _is_foreign(row[1], archs)
    ]
    if not unknown_gpus:
        return
    first, listed = unknown_gpus[0][1], listed_archs(case)
    older = [_capability(sm) for sm in archs.sm if sm // 10 == first.major and sm < int(_digits(first))]
    asked = " ".join(dict.fromkeys(f"compute_{_digits(one)}" for _, one, _ in unknown_gpus))
    runs = f"; code for {older[-1]} would run there" if older else ""
    fix = f'export {VARIABLE}="{older[-1]}", or choose' if older else "choose"
    what = f", and a build that detects the GPU requests {asked}{runs}"
    if listed:
        covered = all(is_covered(gpu, listed) for gpu, _, _ in unknown_gpus)
        what = f"; activation lists {_listed(listed)}, whose code {'runs' if covered else 'does not run'} there"
    yield Finding(
        code=REFUSED,
        severity=Severity.WARNING if listed else Severity.ERROR,
        subject=", ".join(dict.fromkeys(gpu.name for gpu, _, _ in unknown_gpus)),
        message=(
            f"has compute capability {first}, which nvcc of CUDA {archs.major_minor} does not support"
            f"{what}{doubt(archs.basis)}"
        ),
        evidence="; ".join(dict.fromkeys(_evidence(gpu, case) for gpu, _, _ in unknown_gpus)),
        source=archs.basis.source,
        fix=f"{fix} a target with a CUDA that supports the GPU",
    )


def gpu_unserved(case: Case) -> Iterator[Finding]:
    """Yield the GPUs that no entry of TORCH_CUDA_ARCH_LIST covers: an error if none covers any GPU."""
    named = arch_list(case.arch_list)
    gpus = [(gpu, gpu.capability) for gpu in dict.fromkeys(known_gpus(case)) if gpu.capability is not None]
    cuda = cuda_of(case)
    if named is None or cuda is None or not gpus:
        return
    archs = case.facts.cuda_gpu_arch.archs(cuda)
    built = [arch for arch in named if archs is None or archs.supports(arch.capability)]
    by_code = [gpu for gpu, one in gpus if any(runs_on(arch, one) for arch in built)]
    by_ptx = [(gpu, one) for gpu, one in gpus if gpu not in by_code and any(map(_ptx_for(one), built))]
    compiles = bool(by_ptx) and not _is_limited(judge_on_host(cuda, case.host, case.facts, case.manifest))
    without = [gpu for gpu, _ in gpus if gpu not in by_code and (not compiles or gpu not in [g for g, _ in by_ptx])]
    slow = [gpu for gpu, _ in by_ptx] if compiles else []
    served = len(gpus) > len(without)
    for found, what in (
        (
            without,
            "gets no code"
            + (f", and its driver can't compile the PTX of CUDA {cuda.major_minor}" if by_ptx and not compiles else ""),
        ),
        (slow, "gets only PTX, which the driver compiles at the first start"),
    ):
        if found:
            own = ";".join(dict.fromkeys(str(gpu.capability) for gpu in found))
            yield Finding(
                code=UNSERVED,
                severity=Severity.WARNING if served else Severity.ERROR,
                subject=", ".join(dict.fromkeys(gpu.name for gpu in found)),
                message=f"{what}: {VARIABLE} is {', '.join(arch.text for arch in named)}",
                evidence="; ".join(dict.fromkeys(_evidence(gpu, case) for gpu in found)),
                source="CUDA C++ Programming Guide, binary compatibility and PTX compatibility",
                fix=f'export {VARIABLE}="{own}" if nvcc supports it, or unset it',
            )


def _is_limited(finding: Finding | None) -> bool:
    """Return whether the driver can't compile the PTX of the toolkit."""
    return finding is not None and finding.code == LIMITED


def _ptx_for(capability: Version) -> Callable[[Arch], bool]:
    return lambda arch: arch.ptx and arch.variant == "" and arch.capability <= capability


def gpu_unknown(case: Case) -> Iterator[Finding]:
    """Yield a warning about GPUs whose compute capability is unknown; the answer is open if no other GPU is served."""
    gpus, cuda = dict.fromkeys(known_gpus(case)), cuda_of(case)
    unknown = [gpu for gpu in gpus if gpu.capability is None]
    if cuda is None or not unknown:
        return
    others = [gpu for gpu in gpus if gpu.capability is not None and is_served(case, gpu)]
    detected = arch_list(case.arch_list) is None
    yield Finding(
        code=UNKNOWN,
        severity=Severity.WARNING,
        subject=", ".join(gpu.name for gpu in unknown),
        message=(
            "has no known compute capability: the driver reports none and the tables have no GPU of that name, so "
            f"whether nvcc of CUDA {cuda.major_minor} compiles for it is open"
        ),
        evidence=_source_of(case),
        source="tenv/facts/data/cuda_gpu_arch.toml, gpu_pci.toml",
        fix="look with `nvidia-smi --query-gpu=name,compute_cap --format=csv`, and assume it: `--assume-gpu 12.0`",
        unknown=None if others else Unknown(Scope.BOTH if detected else Scope.RUN, "gpus"),
    )


def _source_of(case: Case) -> str:
    return case.host.gpus.reason if isinstance(case.host.gpus, Missing) else case.host.gpus.origin


def is_served(case: Case, gpu: KnownGpu) -> bool:
    """Return whether a toolkit has code for a GPU; True if unknown, or if a list names the code (TE206 judges it)."""
    cuda = cuda_of(case)
    archs = case.facts.cuda_gpu_arch.archs(cuda) if cuda else None
    if archs is None or gpu.capability is None or arch_list(case.arch_list) is not None:
        return True
    return not archs.has_dropped(gpu.capability) and not _is_foreign(gpu.capability, archs)


def _is_foreign(capability: Version, archs: "ToolkitArchs") -> bool:
    """Return whether a GPU's major is newer than all majors of the toolkit, so that none of its code runs there."""
    return capability.major > archs.max // 10


def _listed(listed: tuple[Version, ...]) -> str:
    return f"{VARIABLE}={';'.join(map(str, listed))}"


def _digits(capability: Version) -> str:
    return str(capability).replace(".", "")


def gpu_mixed(case: Case) -> Iterator[Finding]:
    """Yield a note on a host whose GPUs have different compute capabilities."""
    gpus, cuda = known_gpus(case), cuda_of(case)
    capabilities = sorted({gpu.capability for gpu in gpus if gpu.capability is not None})
    if cuda is None or len(capabilities) < 2 or isinstance(case.host.gpus, Missing):  # noqa: PLR2004 (two)
        return
    built = compiled_for(gpus, cuda, case.facts.cuda_gpu_arch)
    if not built or arch_list(case.arch_list) is not None:
        return  # TE201, TE202 and TE206 cover it
    which = "of them" if built == capabilities else f"that nvcc of CUDA {cuda.major_minor} supports"
    unknown = [gpu.name for gpu in gpus if gpu.capability is None]
    rest = f"; unknown for {', '.join(unknown)}" if unknown else ""
    evidence = dict.fromkeys(f"{gpu.name}: {gpu.capability}" for gpu in gpus if gpu.capability is not None)
    yield Finding(
        code=MIXED,
        severity=Severity.NOTE,
        subject="the GPUs",
        message=(
            f"have different compute capabilities ({', '.join(map(str, capabilities))}){rest}: a build for one of them "
            f"may not run on the others{doubt(*(gpu.basis for gpu in gpus))}"
        ),
        evidence=f"{'; '.join(evidence)} ({case.host.gpus.origin})",
        source="CUDA C++ Programming Guide, binary compatibility",
        fix=f'build for all {which}: TORCH_CUDA_ARCH_LIST="{";".join(map(str, built))}"',
    )


def gpu_dropped(case: Case) -> Iterator[Finding]:
    """Yield the GPUs that the toolkit still supports but PyTorch's own builds of the revision do not."""
    cuda, machine = cuda_of(case), "aarch64" if case.platform.endswith("aarch64") else "x86_64"
    if case.source is None or cuda is None:
        return
    built = case.facts.pytorch_build.wheel_archs(case.source.version.value, cuda, machine)
    if built is None:
        return
    archs, basis = built
    oldest = min(Version(arch.removesuffix("+PTX")) for arch in archs)
    from tenv.facts.cuda_gpu_arch import sm_of  # late: few commands judge a revision

    for gpu, capability, toolkit in _judged(case):
        if toolkit.min <= sm_of(capability) < sm_of(oldest):
            yield Finding(
                code=DROPPED,
                severity=Severity.WARNING,
                subject=gpu.name,
                message=(
                    f"has compute capability {capability}; PyTorch {case.source.version.value} is built and tested for "
                    f"{oldest} and up with CUDA {cuda.major_minor} on {machine}: builds for older GPUs are untested"
                    f"{doubt(basis)}"
                ),
                evidence=_evidence(gpu, case),
                source=f"{basis.source}: {' '.join(archs)}",
                fix=f'build for it anyway: TORCH_CUDA_ARCH_LIST="{capability}", or use an older revision',
            )


def _judged(case: Case) -> "Iterator[tuple[KnownGpu, Version, ToolkitArchs]]":
    """Yield each kind of GPU once if its compute capability and the toolkit's architectures are known."""
    cuda, gpus = cuda_of(case), dict.fromkeys(known_gpus(case))
    archs = case.facts.cuda_gpu_arch.archs(cuda) if cuda and gpus else None
    if archs is None:
        return
    for gpu in gpus:
        if gpu.capability is not None:
            yield gpu, gpu.capability, archs


def _capability(sm: int) -> str:
    return f"{sm // 10}.{sm % 10}"


def _evidence(gpu: KnownGpu, case: Case) -> str:
    origin = _source_of(case)
    basis = f"by {gpu.origin} in cuda_gpu_arch.toml{doubt(gpu.basis)}; " if gpu.origin else ""
    return f"compute capability {gpu.capability} ({basis}{origin})"
