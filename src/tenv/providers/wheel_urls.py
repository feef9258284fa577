"""Where the indexes in use have the wheels of a lock, and what those require.

A lock of tenv names no host; the formats of other tools do. So this is asked when a lock is exported, and never kept.
"""

import contextlib
import zipfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from tenv.errors import NetworkError
from tenv.lock import Wheel
from tenv.providers.interface import Progress
from tenv.providers.pypi import Uv
from tenv.versions import Version

__all__ = ["FoundWheel", "find_wheels"]

_TIMEOUT = 30.0
_CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class FoundWheel:
    """A wheel as an index has it.

    Attributes:
        url: Its URL, without credentials.
        requires_dist: What it requires; empty when nothing, or when the index does not tell.
        requires_python: The Pythons that it is for; empty when it or the index does not say.
    """

    url: str
    requires_dist: tuple[str, ...]
    requires_python: str


def find_wheels(uv: Uv, wheels: Iterable[Wheel], progress: Progress) -> tuple[dict[str, FoundWheel], tuple[str, ...]]:
    """Find wheels on the indexes in use.

    Args:
        uv: uv with the user's settings.
        wheels: The wheels.
        progress: Who watches.

    Returns:
        The wheels by sha256, and the indexes, the main one first, without credentials.

    Raises:
        NetworkError: An index does not answer, or none has one of the files.
    """
    wanted = {wheel.sha256: wheel for wheel in wheels}
    if not wanted:
        return {}, ()
    runs = _runs(wanted.values())
    progress.step("asking the indexes", len(runs) + len(wanted))
    urls: dict[str, str] = {}
    for (minor, _), group in runs.items():
        pins = sorted({f"{wheel.name}=={wheel.version}" for wheel in group})
        for row in uv.releases(pins, minor):
            urls |= {file["hashes"].get("sha256", ""): _url(file) for file in row.get("wheels", [])}
        progress.advance()
    if missing := sorted(wheel.file for digest, wheel in wanted.items() if digest not in urls):
        raise NetworkError(
            f"the indexes in use do not have the locked {', '.join(missing[:3])}"
            + (f" and {len(missing) - 3} more" if len(missing) > 3 else ""),  # noqa: PLR2004 (three are named)
            hint="check UV_DEFAULT_INDEX, pip.conf and their credentials",
        )
    found = _metadata(uv, {digest: urls[digest] for digest in wanted}, progress)
    (minor, _), group = next(iter(runs.items()))
    indexes = uv.index_urls(f"{group[0].name}=={group[0].version}", minor)
    return found, tuple(dict.fromkeys(_bare(url) for url in indexes))


def _runs(wheels: Iterable[Wheel]) -> dict[tuple[str, int], list[Wheel]]:
    """Group wheels so that no group has two versions of one name; each group is one question to the indexes."""
    runs: dict[tuple[str, int], list[Wheel]] = {}
    for wheel in wheels:
        minor = min(wheel.python, key=Version)
        number = 0
        while any(w.name == wheel.name and w.version != wheel.version for w in runs.get((minor, number), [])):
            number += 1
        runs.setdefault((minor, number), []).append(wheel)
    return runs


def _url(file: Mapping[str, Any]) -> str:
    return str(file["url"]) if "url" in file else Path(file["path"]).absolute().as_uri()


def _bare(url: str) -> str:
    """Return a URL without the credentials that may stand in it: an exported file is handed to others."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _metadata(uv: Uv, urls: Mapping[str, str], progress: Progress) -> dict[str, FoundWheel]:
    def ask(url: str) -> FoundWheel:
        data = _from_file(url) if urlsplit(url).scheme == "file" else None if uv.offline else _from_index(uv, url)
        progress.advance()
        return _parse(_bare(url), data)

    pool = ThreadPoolExecutor(_CONNECTIONS)
    try:
        return dict(zip(urls, pool.map(ask, urls.values()), strict=True))
    finally:
        pool.shutdown(cancel_futures=True)


def _from_file(url: str) -> bytes | None:
    with (
        contextlib.suppress(OSError, KeyError, zipfile.BadZipFile),
        zipfile.ZipFile(unquote(urlsplit(url).path)) as file,
    ):
        name = next(name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return file.read(name)
    return None


def _from_index(uv: Uv, url: str) -> bytes | None:
    """Return a wheel's metadata from beside it (PEP 658); None where the index does not have it there."""
    import requests  # noqa: PLC0415 (late: 82 ms)

    authorities = uv.environment.get("REQUESTS_CA_BUNDLE") or uv.environment.get("SSL_CERT_FILE") or True
    with contextlib.suppress(requests.RequestException):
        answer = requests.get(f"{url}.metadata", timeout=_TIMEOUT, verify=authorities)
        return answer.content if answer.ok else None
    return None


def _parse(url: str, data: bytes | None) -> FoundWheel:
    from packaging.metadata import parse_email  # noqa: PLC0415 (late)

    raw, _ = parse_email(data or b"")
    return FoundWheel(url, tuple(raw.get("requires_dist", [])), str(raw.get("requires_python", "")))
