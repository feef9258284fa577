"""Progress of long commands: the interface, and progress with background downloads."""

import threading
from collections.abc import Mapping

from tenv.core.dataclass import dataclass


class Bytes(int):
    """A number of bytes, in contrast to a number of items."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """The progress of one download."""

    name: str
    """The fetched file."""
    done: int
    """Bytes so far."""
    total: int
    """Bytes in all."""


class Progress:
    """Receives the progress of a long command and shows nothing; the command line draws it."""

    def phase(self, name: str) -> None:
        """Begin a named step of the command; its long parts are steps with a size."""

    def step(self, title: str, total: int | None = None) -> None:
        """Begin a step; `total` is its size, `Bytes` or a number of items; None if unknown."""

    def resize(self, total: int) -> None:
        """Set the number of items of the step, of which none is finished; a program may find out late."""

    def advance(self, count: int = 1) -> None:
        """Count finished items of the step."""

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Report the progress of running and ended downloads of this step."""

    def say(self, sentence: str) -> None:
        """Report a message to the user."""


Silent = Progress
"""Progress that is not shown."""


class Joined(Progress):
    """Progress of the current step that includes background downloads.

    Attributes:
        expected: The bytes of the background downloads.
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
        """Begin a step; its bytes include those of the background."""
        with self._lock:
            self._front = {}
            self._progress.step(title, Bytes(total + self.expected) if isinstance(total, Bytes) else total)

    def resize(self, total: int) -> None:
        """Set the number of items of the step."""
        with self._lock:
            self._progress.resize(total)

    def advance(self, count: int = 1) -> None:
        """Count finished items of the step."""
        with self._lock:
            self._progress.advance(count)

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Report the progress of the current step's downloads."""
        with self._lock:
            self._front = running
            self._progress.transfers({**self._back, **self._front})

    def background(self, transfer: Transfer) -> None:
        """Report the progress of a background download."""
        with self._lock:
            self._back[transfer.name] = transfer
            self._progress.transfers({**self._back, **self._front})

    def say(self, sentence: str) -> None:
        """Report a message to the user."""
        with self._lock:
            self._progress.say(sentence)
