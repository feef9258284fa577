"""The conda packages of a new environment, linked from the cache by a copy of this process, while that asks the rules.

rattler can't be stopped at work, but a process can.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.link_mode import LinkMode
from tenv.core.prefix import require_inside
from tenv.core.twin import Twin
from tenv.locks.lock import Lock
from tenv.rattler_api.cache import NotedPackage, cache_folder, noted_packages
from tenv.rattler_api.install import link
from tenv.sources.conda.installed import CondaPackages
from tenv.sources.conda.staging import leaving_links, locked_records, stage_contents

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

    def __init__(self, lock: Lock, platform: str, prefix: Path) -> None:
        """Begin to read the cache; nothing is written yet."""
        self._twin = Twin(partial(_link, lock, platform, prefix))

    @staticmethod
    def suits(prefix: Path, mode: LinkMode) -> bool:
        """Return whether the packages of a new prefix can be linked without a check that they still need.

        Copies are left to the time after the rules, one of which asks for the free space.
        """
        if not Twin.is_possible() or mode is LinkMode.COPY or any(map(str.isspace, str(prefix))):
            return False
        try:
            return cache_folder().stat().st_dev == prefix.parent.stat().st_dev
        except OSError:
            return False

    def go(self) -> None:
        """Let it link, into a prefix that this process has locked."""
        self._twin.go()

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


def _link(lock: Lock, platform: str, prefix: Path, wait: Callable[[], None]) -> bytes:
    """Link the packages of a lock; raises an error where that is not possible from the cache alone."""
    records = locked_records(lock, platform)
    packages = noted_packages(records)
    if packages is None:
        raise LookupError("a package is not in the cache")
    staged = stage_contents([package.content for package in packages])
    cached = _CachedFiles(packages)
    wait()
    require_inside(prefix, staged.files, "a conda package")
    # The files are looked at while rattler links them: what was changed then goes again.
    link(staged.records, prefix, platform, {}, beside=cached.look)
    wanted = {record.name: (record.version, record.build) for record in records}
    if not CondaPackages(prefix).hold(wanted):
        raise LookupError("a package was not linked")
    told = {"count": len(records), "notes": [*staged.notes, *leaving_links(prefix, staged)], **cached.linked()}
    return json.dumps(told).encode()


class _CachedFiles:
    """The files of packages in the cache."""

    def __init__(self, packages: Sequence[NotedPackage]) -> None:
        self._packages = packages
        self._inodes: set[int] = set()
        self._sizes: dict[str, int] = {}

    def look(self) -> None:
        """Look at each file; raises LookupError where one is not as noted."""
        for package in self._packages:
            found = package.inodes()
            if found is None:
                raise LookupError(f"{package.folder} was changed")
            self._inodes |= found
            self._sizes |= package.linked()

    def linked(self) -> dict[str, object]:
        """Return the names and sizes of linked files; none where two of them are one file, which counts once."""
        names = [name for name in self._sizes if "\n" not in name]
        if len(self._inodes) < sum(len(package.note.names) for package in self._packages):
            names = []
        return {"names": "\n".join(names), "sizes": [self._sizes[name] for name in names]}
