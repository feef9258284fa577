"""The files that the wheels of a lock bring, from the wheels themselves, fetched again."""

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.errors import NetworkError
from tenv.core.names import is_dist_info, normalize
from tenv.core.versions import Version
from tenv.environment.installed_files import BYTECODE, Expected
from tenv.locks.lock import Wheel
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.interface import Access
from tenv.sources.wheels.urls import find_wheels
from tenv.toolchain.discover import site_packages

__all__ = ["wheel_contents"]


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
