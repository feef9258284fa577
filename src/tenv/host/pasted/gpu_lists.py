"""Merge the lists of GPUs in a text: complete names from one list, memory and addresses from another."""

from collections.abc import Sequence
from dataclasses import replace

from tenv.host.pasted.interface import PastedGpu

__all__ = ["agree", "complete", "contradict"]

_Gpus = tuple[PastedGpu, ...]


def complete(lists: Sequence[_Gpus]) -> _Gpus:
    """Return the first list, completed from lists of the same GPUs.

    Args:
        lists: The lists of a text, most trusted first.
    """
    taken = lists[0]
    for other in lists[1:]:
        if len(other) == len(taken) and agree(taken, other):
            taken = tuple(_with(gpu, more) for gpu, more in zip(taken, other, strict=True))
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


def _with(gpu: PastedGpu, more: PastedGpu) -> PastedGpu:
    name = more.name if not gpu.name or (gpu.cut and more.name and not more.cut) else gpu.name
    return PastedGpu(
        name,
        gpu.memory if gpu.memory is not None else more.memory,
        gpu.capability or more.capability,
        gpu.address or more.address,
        gpu.mig if gpu.mig is not None else more.mig,
        gpu.instances or more.instances,
    )


def _named(gpu: PastedGpu, others: _Gpus) -> PastedGpu:
    """Return a GPU with the only complete name that another list has for it."""
    if gpu.name and not gpu.cut:
        return gpu
    names = {other.name for other in others if other.name and not other.cut and _fits(gpu, other)}
    return replace(gpu, name=names.pop()) if len(names) == 1 else gpu
