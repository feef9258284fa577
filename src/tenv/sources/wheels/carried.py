"""The wheels and source archives that a bundle carries, and their download."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tenv.core.errors import NetworkError, UsageError
from tenv.core.names import file_at
from tenv.core.versions import Version
from tenv.locks.lock import Lock, LockedTree, Wheel
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.archives.gathering import fetch_files
from tenv.sources.interface import Access, CarriedFile
from tenv.sources.wheels.index_requests import located, located_sdist
from tenv.sources.wheels.sdist_builds import pinned_wheels
from tenv.sources.wheels.urls import find_wheels, wheel_urls
from tenv.targets.manifest import Manifest, with_features

if TYPE_CHECKING:
    from tenv.sources.archives.store import Store

__all__ = ["carried_wheels", "collect_wheels"]

_KEY = "wheels"


def carried_wheels(lock: Lock, platform: str, minor: str) -> Iterator[CarriedFile]:
    """Yield the wheels and source archives of a platform, and the wheels that builds of the latter need.

    Raises:
        UsageError: A package is built from a source tree, which is no file.
    """
    for wheel in _wheels(lock, platform, minor):
        yield CarriedFile(_KEY, unquote(wheel.file), wheel.sha256, wheel.size, (platform,))
    for tree in _sdists(lock, platform, minor):
        yield CarriedFile(_KEY, unquote(tree.file), tree.digest, tree.length, (platform,))
        for wheel in pinned_wheels(tree):
            yield CarriedFile(_KEY, "", wheel.sha256, None, (platform,))


def _wheels(lock: Lock, platform: str, minor: str) -> list[Wheel]:
    return [row for row in lock.wheels.get(platform, ()) if not minor or minor in row.python]


def _sdists(lock: Lock, platform: str, minor: str) -> list[LockedTree]:
    rows = [row for row in lock.trees.get(platform, ()) if not minor or minor in row.python]
    for row in rows:
        if not row.file:
            raise UsageError(
                f"{row.name} is built from {row.request}, so no bundle can carry it: a bundle holds files",
                hint=f"build a wheel of it and request its `path`; `tenv drop TARGET {row.name}` leaves it out",
            )
    return rows


def collect_wheels(
    access: Access, store: "Store", lock: Lock, manifest: Manifest, platforms: Mapping[str, str]
) -> Mapping[str, str]:
    """Fetch wheels and source archives into a store.

    Returns:
        The name of each file that the lock has no name of, by sha256.

    Raises:
        NetworkError: An index does not respond, or lacks a file.
    """
    whole, uv = with_features(manifest), access.uv()
    rows, sdists = defaultdict[str, list[Wheel]](list), dict[str, LockedTree]()
    for platform, minor in platforms.items():
        here = whole.on(platform)
        new = [row for row in _wheels(lock, platform, minor) if not store.file(row.sha256).is_file()]
        rows[platform] = [*located(new, here)]
        sdists |= {row.digest: located_sdist(row, here) for row in _sdists(lock, platform, minor)}
    glibc = lock.requirements.get("glibc")
    found, _ = find_wheels(uv, rows, Version(glibc) if glibc else None, access.progress, metadata=False)
    wheels = {row.sha256: row for here in rows.values() for row in here}
    wanted = [RemoteFile(unquote(row.file), found[key].url, key, row.size) for key, row in wheels.items()]
    absent = [row for row in sdists.values() if not store.file(row.digest).is_file()]
    urls = uv.sdist_urls(absent) if absent else {}
    wanted += [RemoteFile(unquote(row.file), urls[row.digest], row.digest, row.length) for row in absent]
    needed = {wheel.sha256: wheel for row in sdists.values() for wheel in pinned_wheels(row)}
    builds = wheel_urls(uv, needed.values()) if needed else {}
    if lacking := [wheel for wheel in needed.values() if wheel.sha256 not in builds]:
        wheel = lacking[0]
        raise NetworkError(f"no index in use has the locked wheel of {wheel.name} {wheel.version}, which a build needs")
    wanted += [RemoteFile(file_at(builds[key]), builds[key], key) for key in needed]
    fetch_files(access, store, Fetcher(access.settings(), uv.http, offline=access.offline), wanted)
    return {key: unquote(file_at(builds[key])) for key in needed}
