"""What ``fields/NAME.py`` says of a value of the host report: machines, and what is probed on each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tenv.host.interface import OriginKind, ReasonKind
from tenv.host.places import Places

__all__ = ["Absent", "Machine", "Patch", "Places", "Present", "Root"]

Root = Path
Patch = pytest.MonkeyPatch
Machine = Callable[[Root, Patch], Places]
"""Makes a machine below a folder; what the folder can't stand for is patched."""


@dataclass(frozen=True)
class Present:
    """A machine on which the value is there.

    Attributes:
        machine: The machine.
        value: The value in JSON; ``ROOT`` in a text stands for the machine's folder.
        kind: The kind of its origin.
        lines: How ``tenv host`` shows it.
    """

    machine: Machine
    value: Any
    kind: OriginKind
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Absent:
    """A machine on which the value is missing.

    Attributes:
        machine: The machine.
        kind: The kind of the reason.
        reason: A part of the reason.
    """

    machine: Machine
    kind: ReasonKind
    reason: str
