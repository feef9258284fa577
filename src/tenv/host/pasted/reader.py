"""Read a pasted text with every layout, resolve contradictions, and convert it to a host report."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import HostReportError
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind, fact_to_json
from tenv.host.nvidia import pci_address
from tenv.host.pasted.clean_text import lines
from tenv.host.pasted.drivers import (
    AMD_SMI,
    COLLECTED_AMD,
    DEVICE_QUERY,
    INXI,
    LSHW,
    LSPCI,
    MODINFO,
    MODULE_LINE,
    PNP_DEVICES,
    ROCM_SMI,
    ROCMINFO,
    SMI_LIST,
    SMI_QUERY,
    SMI_ROWS,
    SMI_TABLE,
    STARTED,
)
from tenv.host.pasted.environments import (
    COLLECT_ENV,
    CONDA_INFO,
    DEEPSPEED,
    DETECTRON2,
    JETSON,
    LIGHTNING,
    MMCV,
    PIP_LIST,
)
from tenv.host.pasted.free_text import COMPILER_OUTPUT, FREE_LIST, GPU_WARNING, OLD_DRIVER, PROMPT, SENTENCES
from tenv.host.pasted.values import MUSL, Item, PastedEntry, PastedGpu, Value
from tenv.host.report import AmdGpu, Compiler, FabricState, FoundBy, Gpu, HostReport, Lead, Rocm, Toolkit

LAYOUTS = (
    MODULE_LINE,  # the kernel module itself
    MODINFO,
    SMI_QUERY,
    SMI_ROWS,
    SMI_TABLE,
    SMI_LIST,
    ROCMINFO,
    AMD_SMI,
    ROCM_SMI,
    COMPILER_OUTPUT,  # a program's own answer, before reports about it
    DEVICE_QUERY,
    STARTED,
    GPU_WARNING,
    OLD_DRIVER,
    COLLECT_ENV,
    COLLECTED_AMD,
    DETECTRON2,
    MMCV,
    LIGHTNING,
    DEEPSPEED,
    JETSON,
    CONDA_INFO,
    PROMPT,
    PIP_LIST,
    LSPCI,  # names of the PCI database, after those of the driver
    LSHW,
    INXI,
    PNP_DEVICES,
    FREE_LIST,
    SENTENCES,
)
"""The supported layouts in the order of trust: if two disagree, the first one counts."""

_Gpus = tuple[PastedGpu, ...]


def complete(lists: Sequence[_Gpus]) -> _Gpus:
    """Return the first list, completed from lists of the same GPUs.

    Args:
        lists: The lists of a text, most trusted first.
    """
    taken = lists[0]
    for other in lists[1:]:
        if len(other) == len(taken) and agree(taken, other):
            taken = tuple(_completed(gpu, more) for gpu, more in zip(taken, other, strict=True))
        else:
            taken = tuple(_named(gpu, other) for gpu in taken)
    return taken


def agree(one: _Gpus, other: _Gpus) -> bool:
    """Return whether two lists can describe the same GPUs."""
    return len(one) == len(other) and all(_fits(first, second) for first, second in zip(one, other, strict=True))


def contradict(one: _Gpus, other: _Gpus) -> bool:
    """Return whether a list has a GPU that contradicts the other; a shorter list may omit some."""
    return not all(any(_fits(gpu, known) for known in one) for gpu in other)


def _fits(one: PastedGpu, other: PastedGpu) -> bool:
    if not one.name or not other.name:
        return True
    first, second = (_plain(gpu.name) for gpu in (one, other))
    if one.cut or other.cut:
        begin = min(len(first) if one.cut else 999, len(second) if other.cut else 999)
        return first[:begin] == second[:begin]
    return first in second or second in first


def _plain(name: str) -> str:
    return " ".join(name.removesuffix("...").removeprefix("NVIDIA ").strip().lower().split())


def _completed(gpu: PastedGpu, more: PastedGpu) -> PastedGpu:
    name = more.name if not gpu.name or (gpu.cut and more.name and not more.cut) else gpu.name
    return PastedGpu(
        name,
        gpu.memory if gpu.memory is not None else more.memory,
        gpu.capability or more.capability,
        gpu.address or more.address,
        gpu.mig if gpu.mig is not None else more.mig,
        gpu.instances or more.instances,
        gpu.pci_id or more.pci_id,
        gpu.fabric or more.fabric,
    )


def _named(gpu: PastedGpu, others: _Gpus) -> PastedGpu:
    """Return a GPU with the only complete name that another list has for it."""
    if gpu.name and not gpu.cut:
        return gpu
    names = {other.name for other in others if other.name and not other.cut and _fits(gpu, other)}
    return replace(gpu, name=names.pop()) if len(names) == 1 else gpu


_Entries = list[tuple[str, PastedEntry]]
_HINT = (
    "paste what `python -m torch.utils.collect_env`, `nvidia-smi`, `nvcc --version`, `pip list`, `lspci -nn`, "
    "`rocminfo`, `amd-smi` or `conda info` prints, or use the report of `tenv host --json`"
)


@dataclass(frozen=True, slots=True)
class Clash:
    """Two places of a text that contradict each other."""

    item: Item
    """The item that both describe."""
    taken: str
    """The place that counts, with its value."""
    left: str
    """The other one."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """The description of a machine in a pasted text."""

    source: str
    """Where it was read."""
    layouts: tuple[str, ...]
    """The layouts in it, in the order of trust."""
    answers: dict[Item, Fact[Any] | Missing]
    """The value of each item with its place, or why there is none."""
    clashes: tuple[Clash, ...]
    """Where places contradict each other."""

    def value(self, item: Item) -> Any:
        """Return the value of an item; None if there is none."""
        answer = self.answers[item]
        return answer.value if isinstance(answer, Fact) else None

    def origin(self, *items: Item) -> str:
        """Return the places of the given items that have a value, each once."""
        facts = (self.answers[item] for item in items)
        return "; ".join(dict.fromkeys(fact.origin for fact in facts if isinstance(fact, Fact)))


def read(text: str, source: str = "the text") -> Pasted:
    """Return the description in a pasted text.

    Args:
        text: The text.
        source: Where it was read, for messages.

    Raises:
        HostReportError: It does not describe a machine.
    """
    found = lines(text)
    entries: dict[Item, _Entries] = {item: [] for item in Item if item is not Item.OTHER}
    layouts: list[str] = []
    for layout in LAYOUTS:
        # Later layouts skip a line that a layout has read.
        lines_read = {item: {known.line for _, known in all_of} for item, all_of in entries.items()}
        new = [one for one in layout.read(found) if one.line not in lines_read[one.item]]
        layouts += [layout.name] if new else []
        for one in new:
            entries[one.item].append((layout.name, one))
    if not any(entry.value is not None for all_of in entries.values() for _, entry in all_of):
        raise _nothing(text, source)
    answers: dict[Item, Fact[Any] | Missing] = {}
    clashes: list[Clash] = []
    for item, all_of in entries.items():
        answers[item] = _answer(item, all_of, clashes)
    answers[Item.PYTORCH_CUDA] = _built_with(answers[Item.PYTORCH_CUDA], answers[Item.PYTORCH])
    return Pasted(source, tuple(layouts), answers, tuple(clashes))


def _built_with(cuda: Fact[Any] | Missing, pytorch: Fact[Any] | Missing) -> Fact[Any] | Missing:
    """Return the CUDA that PyTorch was built with, from its local version (``+cu121``) if no line names it."""
    match = re.search(r"\+cu(\d{1,2})(\d)\b", pytorch.value) if isinstance(pytorch, Fact) else None
    if isinstance(cuda, Fact) or match is None or isinstance(pytorch, Missing):
        return cuda
    return Fact(f"{match[1]}.{match[2]}", pytorch.origin, OriginKind.DERIVED)


def _nothing(text: str, source: str) -> HostReportError:
    head = text[:4000].lower()
    if "dxdiag" in head or ("system information" in head and "directx" in head):
        return HostReportError(f"{source}: is a dxdiag report, which tenv does not read", hint=_HINT)
    what = "it is empty" if not text.strip() else "it names no driver, GPU, CUDA or compiler"
    return HostReportError(f"{source}: is neither JSON nor a pasted report: {what}", hint=_HINT)


def _answer(item: Item, entries: _Entries, clashes: list[Clash]) -> Fact[Any] | Missing:
    known = [(layout, entry) for layout, entry in entries if entry.value is not None]
    if not known:
        if entries:
            layout, entry = entries[0]
            return Missing(f"`{entry.words}`, {_place(layout, entry)}", ReasonKind.NOT_COLLECTED)
        return Missing(f"not in the text: {item.text}", ReasonKind.UNREPORTED)
    layout, taken = known[0]
    value, places = taken.value, [_place(layout, taken)]
    if item in (Item.GPUS, Item.AMD_GPUS):
        lists = [entry.value for _, entry in known if isinstance(entry.value, tuple)]
        value = complete(lists)
        places += [_place(name, entry) for name, entry in known[1:] if _adds(entry.value, taken.value, value)]
    for name, entry in known[1:]:
        if not _agree(value, entry.value):
            left = f"{_words(entry.value)}, {_place(name, entry)}"
            clashes.append(Clash(item, f"{_words(value)}, {_place(layout, taken)}", left))
    return Fact(value, "; ".join(dict.fromkeys(places)), OriginKind.PASTED)


def _place(layout: str, entry: PastedEntry) -> str:
    return f"line {entry.line}, {layout}"


def _adds(other: Value, taken: Value, value: Value) -> bool:
    return isinstance(other, tuple) and isinstance(taken, tuple) and taken != value and agree(taken, other)


def _agree(one: Value, other: Value) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return not contradict(one, other)
    if isinstance(one, str) and isinstance(other, str):
        first, second = one.lower().replace(".", " ").split(), other.lower().replace(".", " ").split()
        length = min(len(first), len(second))
        return first[:length] == second[:length]
    return one == other


def _words(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(gpu.name or gpu.pci_id or gpu.address for gpu in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_MIB = 1 << 20
_OF_MUSL = re.compile(r"(alpine|postmarketos|chimera linux|adelie)\b", re.IGNORECASE)
"""Distributions with musl."""


def to_report(pasted: Pasted) -> HostReport:
    """Return the host report. Values that the text does not have are missing, with that as the reason."""
    answers = pasted.answers
    return replace(
        HostReport.unknown(),
        platform=answers[Item.PLATFORM],
        driver=_each(answers[Item.DRIVER], Version),
        cuda=_each(answers[Item.CUDA], Version),
        gpus=_each(answers[Item.GPUS], lambda gpus: tuple(map(_host_gpu, gpus))),
        toolkits=_toolkits(pasted),
        amd_driver=_each(answers[Item.AMD_DRIVER], Version),
        amd_gpus=_each(answers[Item.AMD_GPUS], lambda gpus: tuple(AmdGpu(gpu.name, gpu.capability) for gpu in gpus)),
        rocms=_each(answers[Item.ROCM], _rocms),
        compilers=_compilers(pasted),
        libc=_libc(answers),
        cores=_each(answers[Item.CORES], int),
        wsl=answers[Item.WSL],
    )


def _libc(answers: Mapping[Item, Fact[Any] | Missing]) -> Fact[Version] | Missing:
    """Return the version of glibc; missing for musl, which Python often does not name."""
    libc, system = answers[Item.GLIBC], answers[Item.OS]
    if isinstance(libc, Fact) and libc.value == MUSL:
        return Missing(f"the C library is musl, {libc.origin}", ReasonKind.NOT_GLIBC)
    if isinstance(libc, Missing) and isinstance(system, Fact) and _OF_MUSL.match(system.value):
        return Missing(f"the C library of {system.value} is musl, {system.origin}", ReasonKind.NOT_GLIBC)
    found: Fact[Version] | Missing = _each(libc, Version)
    return found


def _each(answer: Fact[Any] | Missing, make: Any) -> Any:
    """Return an answer with another form of its value; one that the text spells wrongly is missing."""
    if isinstance(answer, Missing):
        return answer
    try:
        return replace(answer, value=make(answer.value))
    except ValueError as error:
        return Missing(f"{answer.origin}: {error}", ReasonKind.NOT_COLLECTED)


def _host_gpu(gpu: PastedGpu) -> Gpu:
    return Gpu(
        name=gpu.name,
        compute_capability=Version(gpu.capability) if gpu.capability else None,
        memory=gpu.memory * _MIB if gpu.memory is not None else None,
        pci_address=pci_address(gpu.address),
        mig=bool(gpu.mig),
        pci_id=gpu.pci_id,
        fabric=FabricState.read(gpu.fabric) if gpu.fabric else None,
    )


def _rocms(release: str) -> tuple[Rocm, ...]:
    return (Rocm("", (FoundBy(Lead.OTHER, "amd-smi version"),), Version(release)),)


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
            str(item): {**fact_to_json(found, _json_value), "kind": str(found.kind)}
            for item, found in pasted.answers.items()
        },
    }


def _json_value(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return [
        {
            "name": gpu.name,
            "cut": gpu.cut,
            "memory_mib": gpu.memory,
            "capability": gpu.capability or None,
            "pci_address": gpu.address or None,
            "pci_id": gpu.pci_id or None,
            "mig": list(gpu.instances) or gpu.mig,
        }
        for gpu in value
    ]
