"""The conda packages of a new environment, linked from the cache by a copy of this process, while that asks the rules.

rattler can't be stopped at work, but a process can.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.link_mode import LinkMode
from tenv.core.twin import Twin
from tenv.locks.lock import CondaPackage
from tenv.rattler_api.network import cache_folder

__all__ = ["EarlyLink", "Linked"]


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
    """A process that links the packages of a lock into a new prefix, once it may."""

    def __init__(self, lock: bytes, target: str, platform: str, prefix: Path) -> None:
        """Begin to read the lock and the cache; nothing is written yet."""

        def work(wait: Callable[[], bytes]) -> bytes:
            from tenv.sources.conda.linking_twin import link_cached  # late: in the copy alone; loads rattler

            return link_cached(lock, target, platform, prefix, wait)

        self._twin = Twin(work)

    @staticmethod
    def suits(prefix: Path, mode: LinkMode) -> bool:
        """Return whether the packages of a new prefix can be linked without a check that they still need.

        Copies are left to the time after the rules, one of which asks for the free space.
        """
        if not Twin.is_possible() or mode is LinkMode.COPY or any(map(str.isspace, str(prefix))):
            return False
        above = next(folder for folder in prefix.parents if folder.is_dir())
        try:
            return cache_folder().stat().st_dev == above.stat().st_dev
        except OSError:
            return False

    def go(self, packages: Sequence[CondaPackage]) -> None:
        """Let it link the packages of the lock, into a prefix that this process has locked."""
        from tenv.sources.conda.staging import rows_digest  # late: only for a first environment

        self._twin.go(rows_digest(packages))

    def result(self) -> Linked | None:
        """Wait, and return what was linked.

        None if that was not possible from the cache alone; the prefix may have some of it then. The steps after the
        rules find out why.
        """
        answer = self._twin.answer()
        if answer is None:
            return None
        told: dict[str, Any] = json.loads(answer)
        sizes = dict(zip(told["names"].split("\n"), told["sizes"], strict=False))
        return Linked(told["count"], tuple(told["notes"]), sizes)

    def close(self) -> None:
        """End it, if it still works."""
        self._twin.close()
