"""The wheels and source archives of a bundle or a mirror, their download, and the files that wheels bring."""

import hashlib
import os
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.errors import NetworkError, UsageError
from tenv.core.names import file_at, is_dist_info, normalize
from tenv.core.versions import Version
from tenv.environment.installed_files import BYTECODE, Expected
from tenv.locks.lock import Lock, LockedTree, Wheel
from tenv.sources.access import Access
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.archives.gathering import fetch_files
from tenv.sources.archives.store import Store
from tenv.sources.interface import CarriedFile
from tenv.sources.wheels.index_requests import located, located_sdist
from tenv.sources.wheels.sdist_builds import pinned_wheels
from tenv.sources.wheels.urls import find_wheels, wheel_urls
from tenv.targets.manifest import Manifest, with_features
from tenv.toolchain.discover import site_packages

_KEY = "wheels"


def carried_wheels(lock: Lock, platform: str, minor: str) -> Iterator[CarriedFile]:
    """Yield the wheels and source archives of a platform, and the wheels that builds of the latter need.

    Raises:
        UsageError: A package is built from a source tree, which is no file.
    """
    for wheel in _wheels(lock, platform, minor):
        yield CarriedFile(_KEY, unquote(wheel.file), wheel.sha256, wheel.size, (platform,), wheel.url)
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
                f"{row.name} is built from {row.request}, which is no file: no bundle and no mirror has it",
                hint=f"build a wheel of it and request its `path`; `tenv drop {lock.target} {row.name}` leaves it out",
            )
    return rows


def collect_wheels(
    access: Access, store: Store, lock: Lock, manifest: Manifest, platforms: Mapping[str, str]
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


def wheel_contents(
    access: Access, wheels: Sequence[Wheel], platform: str, glibc: str, prefix: Path
) -> Iterator[Expected]:
    """Yield the files of wheels, with the digests of the wheels themselves.

    The files that an installer writes itself (``RECORD``, programs of entry points) are left out.

    Raises:
        NetworkError: A wheel can't be fetched.
        HashMismatchError: Its bytes are not those of the lock.
    """
    found, _ = find_wheels(
        access.uv(), {platform: wheels}, Version(glibc) if glibc else None, access.progress, metadata=False
    )
    fetcher = Fetcher(access.settings(), access.uv().http, offline=access.offline)
    access.progress.step("fetching wheels to compare", len(wheels))
    site = os.path.relpath(site_packages(prefix), prefix)
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        for wheel in wheels:
            path = Path(folder) / wheel.file
            fetcher.file(RemoteFile(wheel.file, found[wheel.sha256].url, wheel.sha256, wheel.size), path)
            yield from _files(path, wheel, site)
            path.unlink()
            access.progress.advance()


def _files(path: Path, wheel: Wheel, site: str) -> Iterator[Expected]:
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = _place(member.filename, site)
                if member.is_dir() or not name or BYTECODE in name:
                    continue
                script = name.startswith("bin/") and member.filename.partition("/")[2].startswith("scripts/")
                executable = script or (
                    member.create_system == _UNIX and bool(member.external_attr >> 16 & _EXECUTABLE)
                )
                with archive.open(member) as file:
                    start = file.read(len(_SHEBANG))
                    if start == _SHEBANG and script:  # an installer writes another first line
                        yield Expected(name, normalize(wheel.name), "", executable)
                        continue
                    digest = hashlib.sha256(start)
                    while data := file.read(1 << 20):
                        digest.update(data)
                yield Expected(name, normalize(wheel.name), f"sha256:{digest.hexdigest()}", executable)
    except DAMAGED_ZIP as error:
        raise NetworkError(f"{wheel.file}: is not a wheel: {error}") from error


_SHEBANG = b"#!python"
_UNIX, _EXECUTABLE = 3, 0o111
"""The system of a zip whose members have modes, and the bits of which any makes uv 0.13 unpack a file as executable."""


def _place(name: str, site: str) -> str:
    """Return the place of a member of a wheel, relative to the prefix; empty for a file that an installer writes."""
    first, _, rest = name.partition("/")
    if is_dist_info(first) and rest in ("RECORD", "RECORD.jws", "RECORD.p7s"):
        return ""
    if not first.endswith(".data"):
        return os.path.normpath(f"{site}/{name}")
    kind, _, below = rest.partition("/")
    home = {"purelib": f"{site}/", "platlib": f"{site}/", "scripts": "bin/", "data": ""}.get(kind)
    return os.path.normpath(f"{home}{below}") if home is not None and below else ""
