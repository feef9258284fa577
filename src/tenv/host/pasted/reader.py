"""Read a pasted text with every layout and resolve contradictions."""

import re
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import HostReportError
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.pasted.clean_text import lines
from tenv.host.pasted.gpu_lists import agree, complete, contradict
from tenv.host.pasted.interface import Item, Said, Value
from tenv.host.pasted.layouts import LAYOUTS

__all__ = ["Clash", "Pasted", "read"]

_Sayings = list[tuple[str, Said]]
_HINT = (
    "paste what `python -m torch.utils.collect_env`, `nvidia-smi`, `nvidia-smi -q`, `nvcc --version` or `conda info` "
    "prints, or use the report of `tenv host --json`"
)


@dataclass(frozen=True, slots=True)
class Clash:
    """Two places of a text that contradict each other.

    Attributes:
        item: The item that both describe.
        taken: The place that counts, with its value.
        left: The other one.
    """

    item: Item
    taken: str
    left: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """The description of a machine in a pasted text.

    Attributes:
        source: Where it was read.
        layouts: The layouts in it, in the order of trust.
        answers: The value of each item with its place, or why there is none.
        clashes: Where places contradict each other.
    """

    source: str
    layouts: tuple[str, ...]
    answers: dict[Item, Fact[Any] | Missing]
    clashes: tuple[Clash, ...]

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
    sayings: dict[Item, _Sayings] = {item: [] for item in Item if item is not Item.OTHER}
    layouts: list[str] = []
    for layout in LAYOUTS:
        # Later layouts skip a line that a layout has read.
        lines_read = {item: {known.line for _, known in all_of} for item, all_of in sayings.items()}
        new = [one for one in layout.read(found) if one.line not in lines_read[one.item]]
        layouts += [layout.name] if new else []
        for one in new:
            sayings[one.item].append((layout.name, one))
    if not any(said.value is not None for all_of in sayings.values() for _, said in all_of):
        raise _nothing(text, source)
    answers: dict[Item, Fact[Any] | Missing] = {}
    clashes: list[Clash] = []
    for item, all_of in sayings.items():
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


def _answer(item: Item, sayings: _Sayings, clashes: list[Clash]) -> Fact[Any] | Missing:
    known = [(layout, said) for layout, said in sayings if said.value is not None]
    if not known:
        if sayings:
            layout, said = sayings[0]
            return Missing(f"`{said.words}`, {_place(layout, said)}", ReasonKind.NOT_COLLECTED)
        return Missing(f"not in the text: {item.text}", ReasonKind.UNREPORTED)
    layout, taken = known[0]
    value, places = taken.value, [_place(layout, taken)]
    if item is Item.GPUS:
        lists = [said.value for _, said in known if isinstance(said.value, tuple)]
        value = complete(lists)
        places += [_place(name, said) for name, said in known[1:] if _adds(said.value, taken.value, value)]
    for name, said in known[1:]:
        if not _agree(value, said.value):
            left = f"{_words(said.value)}, {_place(name, said)}"
            clashes.append(Clash(item, f"{_words(value)}, {_place(layout, taken)}", left))
    return Fact(value, "; ".join(dict.fromkeys(places)), OriginKind.PASTED)


def _place(layout: str, said: Said) -> str:
    return f"line {said.line}, {layout}"


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
        return ", ".join(gpu.name or gpu.address for gpu in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
