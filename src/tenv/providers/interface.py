"""What the providers share: progress, and the choice of going on the network or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Progress", "Silent", "Transfer"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """How far one download is.

    Attributes:
        name: What is being fetched.
        done: Bytes so far.
        total: Bytes in all.
    """

    name: str
    done: int
    total: int


class Progress(Protocol):
    """What a long step tells while it goes on; the command line draws it."""

    def step(self, title: str, total: int | None = None) -> None:
        """Begin a step; `total` is its size in bytes or items, None when it is not known."""

    def advance(self, count: int = 1) -> None:
        """Count finished items of the step."""

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Tell how far the downloads are that are under way or ended in this step."""

    def say(self, sentence: str) -> None:
        """Tell something that a person should know now."""


class Silent:
    """Progress that nobody watches."""

    def step(self, title: str, total: int | None = None) -> None:
        """Ignore the step."""

    def advance(self, count: int = 1) -> None:
        """Ignore the items."""

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Ignore the downloads."""

    def say(self, sentence: str) -> None:
        """Ignore the sentence."""
