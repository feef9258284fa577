"""The URLs and the metadata of a lock's wheels on the indexes in use.

A lock has no URLs of wheels; formats of other tools have. So an export queries the indexes; tenv never stores the URLs.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError
from tenv.core.names import file_at
from tenv.core.progress import Progress
from tenv.core.size_text import some_of
from tenv.core.versions import Version
from tenv.core.wheel_platforms import DEFAULT_GLIBC
from tenv.locks.lock import Wheel
from tenv.sources.wheels.choose import uv_platforms
from tenv.sources.wheels.connections import bare_url
from tenv.sources.wheels.metadata import from_file, from_index, note_requirements, noted_requirements
from tenv.sources.wheels.uv import Uv

_CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class FoundWheel:
    """A wheel on an index."""

    url: str
    """Its URL, without credentials."""
    requires_dist: tuple[str, ...]
    """Its requirements; empty for none or if unknown."""
    requires_python: str
    """Its Python versions; empty if unknown."""
    known: bool = True
    """Whether its requirements could be read."""


def find_wheels(
    uv: Uv, wheels: Mapping[str, Iterable[Wheel]], glibc: Version | None, progress: Progress, *, metadata: bool
) -> tuple[dict[str, FoundWheel], tuple[str, ...]]:
    """Find wheels on the indexes in use.

    Args:
        uv: uv with the user's settings.
        wheels: The wheels of each platform.
        glibc: The glibc of the lock; None for the oldest.
        progress: Receives progress.
        metadata: Also read the requirements.

    Returns:
        The wheels by sha256, and the URLs of the indexes without credentials, the main one first.

    Raises:
        NetworkError: An index does not respond, or a file is on no index.
    """
    wanted = {wheel.sha256: wheel for rows in wheels.values() for wheel in rows}
    if not wanted:
        return {}, ()
    progress.step("querying the indexes", len(wanted))
    urls = _ask(uv, wanted.values(), "")
    for platform, rows in wheels.items():  # a small index in front hides the files of the others
        hidden = [wheel for wheel in rows if wheel.sha256 not in urls]
        if hidden:
            urls |= _ask(uv, hidden, uv_platforms(platform, glibc or DEFAULT_GLIBC)[-1])
    if missing := sorted(wheel.file for digest, wheel in wanted.items() if digest not in urls):
        raise NetworkError(
            f"the indexes in use do not have the locked {some_of(missing, 3)}",
            hint="correct UV_DEFAULT_INDEX, pip.conf or their credentials",
        )
    found = _metadata(uv, {digest: urls[digest] for digest in wanted}, progress if metadata else None)
    plain = next((wheel for wheel in wanted.values() if not wheel.origin), None)
    in_use = uv.index_urls(f"{plain.name}=={plain.version}", min(plain.python, key=Version)) if plain else ()
    own = sorted({wheel.index.address for wheel in wanted.values() if wheel.index})
    return found, tuple(dict.fromkeys((*map(bare_url, in_use), *own)))


def requirements_at(uv: Uv, urls: Mapping[str, str], progress: Progress) -> dict[str, tuple[str, ...] | None]:
    """Return the requirements of wheels by sha256; None if they can't be read.

    Args:
        uv: uv with the user's settings.
        urls: The URL of each wheel.
        progress: Receives progress.
    """
    noted = {digest: noted_requirements(bare_url(url), digest) for digest, url in urls.items()}
    found = _metadata(uv, {digest: url for digest, url in urls.items() if noted[digest] is None}, progress)
    for digest, row in found.items():
        if row.known:
            note_requirements(row.url, digest, row.requires_dist)
    return {**noted, **{digest: row.requires_dist if row.known else None for digest, row in found.items()}}


def wheel_urls(uv: Uv, wheels: Iterable[Wheel]) -> dict[str, str]:
    """Return the URLs to fetch wheels from by sha256, without those that no index in front has.

    Raises:
        NetworkError: An index does not respond, or lacks a release.
    """
    return {digest: uv.users.fetched(url) for digest, url in _ask(uv, wheels, "").items()}


def _ask(uv: Uv, wheels: Iterable[Wheel], platform: str) -> dict[str, str]:
    """Return the URLs of the wheels on the indexes, by sha256."""
    urls: dict[str, str] = {}
    rows = list(wheels)
    for (minor, _), group in _runs(wheel for wheel in rows if not wheel.url and not wheel.path).items():
        pins = sorted({f"{wheel.name}=={wheel.version}" for wheel in group})
        indexes = {wheel.name: wheel.index for wheel in group if wheel.index}
        named = {unquote(wheel.file): wheel.sha256 for wheel in group}
        for row in uv.releases(pins, minor, platform, indexes):
            for file in row.get("wheels", []):
                url = _url(file)
                # An index without digests has a file by its name; who fetches it compares its digest.
                digest = file.get("hashes", {}).get("sha256") or named.get(file_at(url), "")
                urls[digest] = url
    for wheel in rows:
        if wheel.url or wheel.path:
            urls[wheel.sha256] = wheel.url or Path(wheel.path).absolute().as_uri()
    return urls


def _runs(wheels: Iterable[Wheel]) -> dict[tuple[str, int], list[Wheel]]:
    """Group wheels so that no group has two versions or two indexes of one name; each group is one query."""
    runs: dict[tuple[str, int], list[Wheel]] = {}
    for wheel in wheels:
        minor = min(wheel.python, key=Version)
        number = 0
        while any(_clash(wheel, other) for other in runs.get((minor, number), [])):
            number += 1
        runs.setdefault((minor, number), []).append(wheel)
    return runs


def _clash(one: Wheel, other: Wheel) -> bool:
    return one.name == other.name and (one.version, one.index) != (other.version, other.index)


def _url(file: Mapping[str, Any]) -> str:
    return str(file["url"]) if "url" in file else Path(file["path"]).absolute().as_uri()


def _metadata(uv: Uv, urls: Mapping[str, str], progress: Progress | None) -> dict[str, FoundWheel]:
    """Return the wheels at URLs by sha256; without `progress`, their requirements are not read."""
    if progress is None:
        return {digest: FoundWheel(bare_url(url), (), "") for digest, url in urls.items()}

    def read(url: str) -> FoundWheel:
        if urlsplit(url).scheme == "file":
            data = from_file(url)
        else:
            data = None if uv.offline else from_index(uv.http, url, uv.bare_servers)
        wheel = _parse(bare_url(url), data)
        progress.advance()
        return wheel

    pool = ThreadPoolExecutor(_CONNECTIONS)
    try:
        return dict(zip(urls, pool.map(read, urls.values()), strict=True))
    finally:
        pool.shutdown(cancel_futures=True)


def _parse(url: str, data: bytes | None) -> FoundWheel:
    from packaging.metadata import parse_email

    raw, _ = parse_email(data or b"")
    requires = tuple(raw.get("requires_dist", []))
    return FoundWheel(url, requires, str(raw.get("requires_python", "")), known=data is not None)
