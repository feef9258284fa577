"""The conda packages of a new environment, linked by a copy of this process, while that asks the rules.

rattler can't be stopped at work, but a process can.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.files import device_of
from tenv.core.link_mode import LinkMode
from tenv.core.progress import Bytes, Joined, Progress, Transfer
from tenv.core.twin import Twin, TwinLine
from tenv.locks.lock import CondaPackage
from tenv.rattler_api.network import cache_folder
from tenv.sources.interface import Access

__all__ = ["INSTALLING", "EarlyLink", "Linked", "Unsaid"]

INSTALLING = "installing conda packages"
"""The step of the progress."""


@dataclass(frozen=True, slots=True)
class Linked:
    """What was linked.

    Attributes:
        count: The number of packages.
        notes: Notes for the user.
        sizes: The sizes in bytes of files that are links to those of the cache, by path relative to the prefix. No two
            of them are one file.
    """

    count: int
    notes: tuple[str, ...]
    sizes: dict[str, int]


class EarlyLink:
    """A process that fetches and links the packages of a lock into a new prefix, once it may.

    Attributes:
        said: The steps of the progress that were said.
    """

    def __init__(self, lock: bytes, target: str, platform: str, prefix: Path, context: Access) -> None:
        """Begin to read the lock and the cache; nothing is written or fetched yet."""

        def work(line: TwinLine) -> bytes:
            from tenv.sources.conda.linking_twin import link_early  # late: in the copy alone; loads rattler

            return link_early(lock, target, platform, prefix, context, line)

        self._twin = Twin(work)
        self.said: set[str] = set()

    @staticmethod
    def suits(prefix: Path, mode: LinkMode) -> bool:
        """Return whether the packages of a new prefix can be linked without a check that they still need.

        Copies are left to the time after the rules, one of which asks for the free space.
        """
        if not Twin.is_possible() or mode is LinkMode.COPY or any(map(str.isspace, str(prefix))):
            return False
        try:
            return device_of(cache_folder()) == device_of(prefix)
        except OSError:
            return False

    def go(self, packages: Sequence[CondaPackage]) -> None:
        """Let it fetch and link the packages of the lock, into a prefix that this process has locked."""
        from tenv.sources.conda.staging import rows_digest  # late: only for a first environment

        self._twin.go(rows_digest(packages))

    def result(self, progress: Progress) -> Linked | None:
        """Wait, and return what was linked.

        None if that was not possible; the prefix may have some of it then. The steps after the rules find out why.
        """
        running: dict[str, Transfer] = {}

        def hear(message: bytes) -> None:
            told: dict[str, Any] = json.loads(message)
            if "step" in told:
                title, total = told["step"]
                self.said.add(title)
                progress.step(title, total if title == INSTALLING else Bytes(total))
            else:
                running.update({name: Transfer(name, done, total) for name, done, total in told["transfers"]})
                progress.transfers(running)

        answer = self._twin.answer(hear)
        if answer is None:
            return None
        told: dict[str, Any] = json.loads(answer)
        sizes = dict(zip(told["names"].split("\n"), told["sizes"], strict=False))
        return Linked(told["count"], tuple(told["notes"]), sizes)

    def close(self) -> None:
        """End it, if it still works, and remove what it has fetched in part."""
        if self._twin.close():
            from tenv.rattler_api.fetch import drop_partial  # late: mostly, it has ended

            drop_partial(self._twin.process)


class Unsaid(Joined):
    """Progress that leaves out steps which were said before."""

    def __init__(self, progress: Progress, said: set[str]) -> None:
        super().__init__(progress)
        self._said = said

    def step(self, title: str, total: int | None = None) -> None:
        """Begin a step, if it was not said before."""
        if title not in self._said:
            super().step(title, total)
