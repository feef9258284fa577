"""Find the GPU of a name from the driver, ``lspci`` or a user, also if old nvidia-smi truncated it."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import GpuClass, class_of
from tenv.facts.interface import Basis

if TYPE_CHECKING:
    from tenv.facts.tables import Facts

_BRANDS = ("nvidia", "geforce", "tesla", "corporation")
_CUT = re.compile(r"\s*(\.{2,}|…)\s*$")
_MEMORY = re.compile(r"[ -]\d+G?B?$", re.IGNORECASE)
"""The begin of a memory size, at which a long name was cut: ``NVIDIA H100 80G``."""
_PLACE = re.compile(r"( Generation)? (Laptop|Embedded) GPU\b| \d+GB( PCIe)?$")
"""The words of pci.ids that people and NVIDIA's list leave out of a name."""
_VGPU = re.compile(r"(-\d)?-\d{1,3}[ABCQ](ME)?$")
_BESIDE = re.compile(
    r"laptop|mobile|gpu|max|q|with|design|embedded|module|developer|kit|workstation|server|edition|generation|active|oem|fe"
    r"|founders|mig|\dg|\dc|sxm\d?|pcie|nvl\d*|hbm\d?e?|fhhl|ls|h|ac|lc|\d+(g|gb|gib)|pg\d+|\de|grid|dgx|hgx|quadro|superchip"
    r"|(ad|ga|gb|gf|gh|gk|gm|gp|gr|gv|tu)\d\w{1,3}[a-z]{0,2}"
)
"""The words that drivers, lspci and people put beside a GPU's name; any other word makes it the name of another GPU."""
_PARTS = re.compile(r"(?<=\d)(?=ti\b|super\b)")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class NamedGpu:
    """The GPU of a name or a PCI id."""

    name: str
    """Its marketing name; for a truncated name with several matches, their common part."""
    capability: Version
    """Its compute capability."""
    kind: GpuClass | None
    """Its product class; None if a truncated name matches several classes."""
    pci_id: str
    """Its PCI id, or an empty string."""
    basis: Basis
    """How certain this is."""


def find_by_name(name: str, facts: "Facts") -> NamedGpu | None:
    """Return the GPU of a name; None if the tables have none.

    Brands do not count (``NVIDIA GeForce GTX 1660 Ti``, ``gtx 1660 ti`` and ``GTX1660Ti`` are one), nor do words that
    follow the name (``Laptop GPU``, ``SXM4-40GB``) or the profile of a vGPU (``A40-48C``). The longest name that it
    contains as whole words counts, and the other words must be of these kinds: ``RTX 5090 FOO`` is no known GPU. A
    truncated name matches if all its candidates have one compute capability.
    """
    answers = facts.gpu_answers
    if name not in answers:
        cut = _CUT.search(name)
        answers[name] = _cut(name[: cut.start()], facts) if cut else _whole(name, facts)
    return answers[name]


def is_vgpu(name: str) -> bool:
    """Return whether a name has the profile of a vGPU, such as ``A10-24Q``."""
    return _VGPU.search(name.strip()) is not None


def find_by_id(pci_id: str, facts: "Facts") -> NamedGpu | None:
    """Return the GPU of a PCI id such as ``10de:2182``, None if the table has none."""
    device = facts.gpu_pci.device(pci_id)
    if device is None:
        return None
    return NamedGpu(device.name, device.capability, class_of(device.kind, device.name), device.pci_id, device.basis)


def _whole(name: str, facts: "Facts") -> NamedGpu | None:
    """Return the GPU of a complete name; None if it was sold with several chips."""
    asked = _words(_VGPU.sub("", name.strip()))
    letters = "".join(asked)
    best: list[NamedGpu] = []
    length = 0
    for row in _names_of(facts, lambda text: _may_hold(text, letters)):
        words = _words(row.name)
        if len(words) >= max(length, 1) and _stands_in(words, asked):
            best = [row] if len(words) > length else [*best, row]
            length = len(words)
    alike = not best or not best[0].pci_id or len({row.capability for row in best}) == 1
    return best[0] if best and alike and _is_all(_words(best[0].name), asked) else None


def _cut(begin: str, facts: "Facts") -> NamedGpu | None:
    asked = "".join(_words(begin))
    found = [row for row in _names_of(facts) if asked and "".join(_words(row.name)).startswith(asked)]
    if not found and (shorter := _MEMORY.sub("", begin)) != begin:
        return _whole(shorter, facts)
    if not found or len({row.capability for row in found}) > 1:
        return None
    kinds = {row.kind for row in found}
    first = found[0]
    return NamedGpu(f"{begin}…", first.capability, first.kind if len(kinds) == 1 else None, "", first.basis)


def _stands_in(words: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    if not words:
        return False
    starts = range(len(asked) - len(words) + 1)
    return any(asked[start : start + len(words)] == words for start in starts) or "".join(words) == "".join(asked)


def _is_all(words: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    """Return whether the words beside a name are none that another GPU's name has."""
    if "".join(words) == "".join(asked):
        return True
    starts = (start for start in range(len(asked)) if asked[start : start + len(words)] == words)
    for start in starts:
        rest = (*asked[:start], *asked[start + len(words) :])
        board = any(word.startswith("pg") for word in (*words, *rest))  # PG509-200 is a board and its variant
        if all(_BESIDE.fullmatch(word) or (board and word.isdigit()) for word in rest):
            return True
    return False


def _names_of(facts: "Facts", may_hold: Callable[[str], bool] = lambda _: True) -> Iterator[NamedGpu]:
    """Yield the GPUs of both tables, those with a row of their own first; a name of the bus may stand for several.

    Args:
        facts: The tables.
        may_hold: Whether a text may hold a name that is wanted. To read all thousand names takes longer than all else
            that a short command does.
    """
    for row in facts.cuda_gpu_arch.gpus:
        if may_hold(row.name):
            yield NamedGpu(row.name, row.capability, row.gpu_class, "", row.basis)
    for device in facts.gpu_pci.devices:
        if may_hold(device.name):
            kind = class_of(device.kind, device.name)
            for name in _names(device.name):
                yield NamedGpu(name, device.capability, kind, device.pci_id, device.basis)


def _may_hold(text: str, letters: str) -> bool:
    """Return whether a text may hold a name whose words stand in `letters`: at least one of its numbers must."""
    numbers = _numbers(text)
    return not numbers or any(number in letters for number in numbers)


@lru_cache(maxsize=4096)
def _numbers(text: str) -> list[str]:
    """Return the numbers of a name; none if it has a bracket, since words in brackets do not count."""
    return [] if "(" in text else _DIGITS.findall(text)


def _names(joined: str) -> list[str]:
    """Return the names in a name of pci.ids: ``A2 / A16`` are two, ``RTX 2000 / 2000E Ada Generation`` is one."""
    first, *others = re.sub(r" (Max-Q / Mobile|Max-Q|Mobile)\b", "", joined).split(" / ")
    names = [first, *(name for name in others if any(map(str.isdigit, name)))]
    if others and others[0][:1].isdigit():
        names = [f"{first} {others[0].partition(' ')[2]}"]
    return list(dict.fromkeys(form.strip() for name in names for form in (name, _PLACE.sub("", name))))


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    plain = _PARTS.sub(" ", re.sub(r"\(.*?\)", "", name.lower()))
    return tuple(word for word in re.findall(r"[a-z0-9]+", plain) if word not in _BRANDS)
