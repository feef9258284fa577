"""A short program that tests a part of a toolchain, as a value."""

from collections.abc import Mapping
from dataclasses import field

from tenv.core.dataclass import dataclass

__all__ = ["Probe"]


@dataclass(frozen=True, slots=True)
class Probe:
    """A short program.

    Attributes:
        name: Its subject, in one word.
        files: Its files.
        commands: The commands to run in the folder of the files, in order; each must succeed.
        lacks: The missing requirement of the program; empty if there is none.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = ()
    lacks: str = ""
