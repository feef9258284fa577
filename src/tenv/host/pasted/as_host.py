"""Convert a pasted text to a host report."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tenv.core.missing import ReasonKind
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing, OriginKind, fact_to_json
from tenv.host.nvidia import pci_address
from tenv.host.pasted.interface import Item, PastedGpu
from tenv.host.pasted.reader import Pasted
from tenv.host.report import Compiler, FoundBy, Gpu, HostReport, Lead, Toolkit

__all__ = ["to_json", "to_report"]


_MIB = 1 << 20


def to_report(pasted: Pasted) -> HostReport:
    """Return the host report. Values that the text does not have are missing, with that as the reason."""
    answers = pasted.answers
    return replace(
        HostReport.unknown(),
        platform=answers[Item.PLATFORM],
        driver=_each(answers[Item.DRIVER], Version),
        cuda=_each(answers[Item.CUDA], Version),
        gpus=_each(answers[Item.GPUS], lambda gpus: tuple(map(_gpu, gpus))),
        toolkits=_toolkits(pasted),
        compilers=_compilers(pasted),
        libc=_each(answers[Item.GLIBC], Version),
        cores=_each(answers[Item.CORES], int),
        wsl=answers[Item.WSL],
    )


def _each(answer: Fact[Any] | Missing, make: Any) -> Any:
    """Return an answer with another form of its value; one that the text spells wrongly is missing."""
    if isinstance(answer, Missing):
        return answer
    try:
        return replace(answer, value=make(answer.value))
    except ValueError as error:
        return Missing(f"{answer.origin}: {error}", ReasonKind.NOT_COLLECTED)


def _gpu(gpu: PastedGpu) -> Gpu:
    return Gpu(
        name=gpu.name,
        compute_capability=Version(gpu.capability) if gpu.capability else None,
        memory=gpu.memory * _MIB if gpu.memory is not None else None,
        pci_address=pci_address(gpu.address),
        mig=bool(gpu.mig),
    )


def _toolkits(pasted: Pasted) -> Fact[tuple[Toolkit, ...]] | Missing:
    answer = pasted.answers[Item.TOOLKIT]
    if isinstance(answer, Missing):
        return answer
    build, path = Version(answer.value), pasted.value(Item.TOOLKIT_PATH)
    lead = FoundBy(Lead.CUDA_VARIABLE, "CUDA_HOME") if path else FoundBy(Lead.PATH, "nvcc --version")
    components = (("cuda_nvcc", str(build)),) if answer.value.count(".") > 1 else ()
    toolkit = Toolkit(path or "", (lead,), Version(build.major_minor), components)
    return Fact((toolkit,), pasted.origin(Item.TOOLKIT, Item.TOOLKIT_PATH), OriginKind.PASTED)


def _compilers(pasted: Pasted) -> Fact[tuple[Compiler, ...]] | Missing:
    found = tuple(_found(pasted))
    if not found:
        return pasted.answers[Item.GCC]
    return Fact(found, pasted.origin(Item.GCC, Item.CLANG), OriginKind.PASTED)


def _found(pasted: Pasted) -> Iterator[Compiler]:
    """Yield the compilers. A text names only gcc; the g++ next to it has the same version."""
    first = True
    for item, kinds in ((Item.GCC, ("gcc", "g++")), (Item.CLANG, ("clang", "clang++"))):
        answer = pasted.answers[item]
        if isinstance(answer, Missing):
            continue
        for kind in kinds:
            yield Compiler(kind, kind, Version(answer.value), first, (FoundBy(Lead.PATH, answer.origin),))
        first = False


def to_json(pasted: Pasted) -> dict[str, Any]:
    """Return all values of a text as JSON values, each with its place or the reason why it is missing."""
    return {
        "source": pasted.source,
        "layouts": list(pasted.layouts),
        "contradictions": [
            {"item": str(clash.item), "taken": clash.taken, "left": clash.left} for clash in pasted.clashes
        ],
        **{
            str(item): {**fact_to_json(found, _plain), "kind": str(found.kind)}
            for item, found in pasted.answers.items()
        },
    }


def _plain(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return [
        {
            "name": gpu.name,
            "cut": gpu.cut,
            "memory_mib": gpu.memory,
            "capability": gpu.capability or None,
            "pci_address": gpu.address or None,
            "mig": list(gpu.instances) or gpu.mig,
        }
        for gpu in value
    ]
