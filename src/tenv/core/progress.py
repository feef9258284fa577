"""What the providers share: progress, and the choice of going on the network or not."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Bytes", "Joined", "Progress", "Silent", "Transfer"]


class Bytes(int):
    """A number of bytes, as against a number of items: what a step is counted in."""

    __slots__ = ()


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

    def phase(self, name: str) -> None:
        """Begin a named step of the command; what takes long in it are steps with a size."""

    def step(self, title: str, total: int | None = None) -> None:
        """Begin a step; `total` is its size, `Bytes` or a number of items, None if it is not known."""

    def advance(self, count: int = 1) -> None:
        """Count finished items of the step."""

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Tell how far the downloads are that are under way or ended in this step."""

    def say(self, sentence: str) -> None:
        """Tell something that a person should know now."""


class Silent:
    """Progress that nobody watches."""

    def phase(self, name: str) -> None:
        """Ignore the named step."""

    def step(self, title: str, total: int | None = None) -> None:
        """Ignore the step."""

    def advance(self, count: int = 1) -> None:
        """Ignore the items."""

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Ignore the downloads."""

    def say(self, sentence: str) -> None:
        """Ignore the sentence."""


class Joined:
    """Progress of the work at hand with that of downloads in the background in it.

    Attributes:
        expected: The bytes that the background is to bring.
    """

    def __init__(self, progress: Progress, expected: int = 0) -> None:
        self.expected = expected
        self._progress = progress
        self._lock = threading.Lock()
        self._front: Mapping[str, Transfer] = {}
        self._back: dict[str, Transfer] = {}

    def phase(self, name: str) -> None:
        """Begin a named step."""
        with self._lock:
            self._progress.phase(name)

    def step(self, title: str, total: int | None = None) -> None:
        """Begin a step; of one that is counted in bytes those of the background are a part."""
        with self._lock:
            self._front = {}
            self._progress.step(title, Bytes(total + self.expected) if isinstance(total, Bytes) else total)

    def advance(self, count: int = 1) -> None:
        """Count finished items of the step."""
        with self._lock:
            self._progress.advance(count)

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Tell how far the downloads of the work at hand are."""
        with self._lock:
            self._front = running
            self._progress.transfers({**self._back, **self._front})

    def background(self, transfer: Transfer) -> None:
        """Tell how far a download in the background is."""
        with self._lock:
            self._back[transfer.name] = transfer
            self._progress.transfers({**self._back, **self._front})

    def say(self, sentence: str) -> None:
        """Tell something that a person should know now."""
        with self._lock:
            self._progress.say(sentence)
