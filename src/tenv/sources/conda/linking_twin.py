"""What links the conda packages of a new environment in a process of its own (`tenv.sources.conda.early_link`)."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from tenv.core.prefix import require_inside
from tenv.rattler_api.cache import NotedPackage, noted_packages
from tenv.rattler_api.install import link
from tenv.rattler_api.lockfile import read_records
from tenv.rattler_api.records import Record
from tenv.sources.conda.installed import CondaPackages
from tenv.sources.conda.staging import leaving_links, rows_digest, stage_contents

__all__ = ["link_cached"]


def link_cached(read: bytes, target: str, platform: str, prefix: Path, wait: Callable[[], bytes]) -> bytes:
    """Link the packages of a lock; raises an error where that is not possible from the cache alone.

    Args:
        read: The bytes of the lock.
        target: The target's name.
        platform: The platform.
        prefix: The new prefix.
        wait: Returns the digest of the packages in the lock when the prefix may be changed (`rows_digest`).

    Returns:
        What was linked, as JSON.
    """
    records = [Record.of(raw) for raw in read_records(read, target, platform)]
    if any(record.fault(platform) for record in records):
        raise LookupError("a package that no lock can hold")
    packages = noted_packages(records)
    if packages is None:
        raise LookupError("a package is not in the cache")
    staged = stage_contents([package.content for package in packages])
    cached = _CachedFiles(packages)
    if wait() != rows_digest(records):
        raise LookupError("the lock can be read in two ways")
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
