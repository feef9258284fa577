"""What links the conda packages of a new environment in a process of its own (`tenv.sources.conda.early_link`)."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.core.prefix import require_inside
from tenv.core.progress import Silent, Transfer
from tenv.core.twin import TwinLine
from tenv.rattler_api.cache import NotedPackage, noted_packages, read_cache
from tenv.rattler_api.install import link
from tenv.rattler_api.lockfile import read_records
from tenv.rattler_api.records import Record
from tenv.sources.conda.early_link import INSTALLING
from tenv.sources.conda.installed import CondaPackages
from tenv.sources.conda.staging import leaving_links, rows_digest, stage_contents, stage_fetched
from tenv.sources.interface import Access

__all__ = ["link_early"]


_ROWS = 10
"""The most downloads that are reported at once."""
_MOST = 1 << 28
"""The bytes of packages that may be fetched before the rules have an answer; with more, their time does not count."""


def link_early(read: bytes, target: str, platform: str, prefix: Path, context: Access, line: TwinLine) -> bytes:
    """Link the packages of a lock, and fetch before what the cache lacks; raises an error where that is not possible.

    Args:
        read: The bytes of the lock.
        target: The target's name.
        platform: The platform.
        prefix: The new prefix.
        context: The settings of the user.
        line: Says the digest of the packages in the lock when the prefix may be changed (`rows_digest`), and takes
            the progress.

    Returns:
        What was linked, as JSON.
    """
    records = [Record.of(raw) for raw in read_records(read, target, platform)]
    if any(record.fault(platform) for record in records):
        raise LookupError("a package that no lock can hold")
    packages = noted_packages(records)
    cached = _CachedFiles(packages or ())
    staged = stage_contents([package.content for package in packages]) if packages else None
    found, damaged = ({}, ()) if packages else read_cache(records)
    size = sum(_MOST if record.size is None else record.size for record in records if record.url not in found)
    if not packages and (damaged or size > _MOST):
        raise LookupError("the cache lacks too much")
    if line.wait() != rows_digest(records):
        raise LookupError("the lock can be read in two ways")
    if staged is None:
        network, limits = context.network(), context.unpack_limits()
        staged = stage_fetched(records, found, (), network, _Told(line), limits, tries=1)
    require_inside(prefix, staged.files, "a conda package")
    _Told(line).step(INSTALLING, len(records))
    # The files are looked at while rattler links them: what was changed then goes again.
    link(staged.records, prefix, platform, staged.archives, beside=cached.look)
    wanted = {record.name: (record.version, record.build) for record in records}
    if not CondaPackages(prefix).hold(wanted):
        raise LookupError("a package was not linked")
    told = {"count": len(records), "notes": [*staged.notes, *leaving_links(prefix, staged)], **cached.linked()}
    return json.dumps(told).encode()


class _Told(Silent):
    """Progress that the original reports."""

    def __init__(self, line: TwinLine) -> None:
        self._line = line
        self._before: dict[str, Transfer] = {}

    def step(self, title: str, total: int | None = None) -> None:
        """Tell the step."""
        self._line.tell(json.dumps({"step": [title, total]}).encode())

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Tell the downloads that went on, if that needs no wait."""
        rows = [[row.name, row.done, row.total] for name, row in running.items() if self._before.get(name) != row]
        if self._line.is_free():
            self._line.tell(json.dumps({"transfers": rows[-_ROWS:]}).encode())
            self._before |= running


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
