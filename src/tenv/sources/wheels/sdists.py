"""Source archives of an index as rows of a lock: their requirements, and the wheels that their build needs.

Where the archive's ``PKG-INFO`` holds its requirements (Metadata 2.2, PEP 643), no code runs before ``tenv create``;
else the archive is built once when it is locked, which the manifest permits by name.
"""

import hashlib
import io
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.errors import NoSolutionError
from tenv.core.names import is_wheel, normalize
from tenv.core.versions import Range, Version
from tenv.core.wheel_platforms import marker_values
from tenv.host.machine import current_platform
from tenv.locks.lock import LockedTree, Wheel
from tenv.locks.wheel_requirement import requirement_of
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.interface import Problem
from tenv.sources.wheels.project_metadata import build_system, parse_core_metadata
from tenv.sources.wheels.sdist_builds import build_sdist
from tenv.targets.manifest import Manifest, WheelRequest

__all__ = ["locked_sdists"]

Choices = list[dict[str, tuple[Wheel, str]]]

_UNREAD: tuple[type[Exception], ...] = (tarfile.TarError, EOFError, OSError, *DAMAGED_ZIP)
_MOST = 1 << 28
"""The most bytes of a file in an archive that is read into memory."""


def locked_sdists(problem: Problem, resolved: Mapping[str, Choices]) -> dict[str, tuple[LockedTree, ...]]:
    """Return the rows of the source archives among selected files, by platform.

    Raises:
        NoSolutionError: An archive can't be read, or what its build needs has no solution.
        NetworkError: An archive can't be fetched.
        EnvironmentBrokenError: An archive that has to be built for its requirements can't be built.
    """
    reader = _Reader(problem)
    return {platform: tuple(reader.rows(platform, choices)) for platform, choices in resolved.items()}


class _Reader:
    """Reads source archives, each once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._files: dict[str, bytes] = {}
        self._requires: dict[str, tuple[str, ...]] = {}

    def rows(self, platform: str, choices: Choices) -> Iterator[LockedTree]:
        """Yield the rows of a platform; Pythons for which the build needs the same wheels share one."""
        found: dict[tuple[str, str, tuple[str, ...]], LockedTree] = {}
        for choice in choices:
            for archive, url in choice.values():
                if is_wheel(archive.file):
                    continue
                row = self._row(archive, url, platform)
                key = (row.name, row.file, row.build)
                minors = {*row.python, *(found[key].python if key in found else ())}
                found[key] = replace(row, python=tuple(sorted(minors, key=Version)))
        yield from (found[key] for key in sorted(found))

    def _row(self, archive: Wheel, url: str, platform: str) -> LockedTree:
        raw = self._fetched(archive, url)
        row = LockedTree(
            archive.name,
            archive.version,
            archive.python,
            (),
            file=archive.file,
            digest=archive.sha256,
            length=len(raw),
            index=archive.index,
            build=self._pins(raw, archive.file, platform, archive.python[0]),
        )
        if row.digest not in self._requires:
            self._requires[row.digest] = self._metadata(row, raw)
        return replace(row, requires=self._requires[row.digest])

    def _fetched(self, archive: Wheel, url: str) -> bytes:
        if archive.sha256 not in self._files:
            access = self._problem.access
            access.progress.step(f"reading {archive.file}")
            fetcher = Fetcher(access.settings(), access.uv().http, offline=access.offline)
            with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
                path = Path(folder) / "archive"
                fetcher.file(RemoteFile(archive.file, url, archive.sha256, archive.size), path)
                self._files[archive.sha256] = path.read_bytes()
        return self._files[archive.sha256]

    def _pins(self, raw: bytes, file: str, platform: str, minor: str) -> tuple[str, ...]:
        """Return the wheels that the build backend of an archive needs on a platform."""
        requires, *_ = build_system(_member(raw, file, "pyproject.toml"), file)
        values, asked = marker_values(platform, minor), dict[str, WheelRequest]()
        for text in requires:
            found = requirement_of(text)
            if found is None or "@" in text.partition(";")[0]:
                raise NoSolutionError(f"{file}: its build needs `{text}`, which is no request for a release")
            if found.holds(values, ""):
                asked[found.name] = WheelRequest(Range(str(found.specifier) or "*"), found.extras)
        manifest = self._problem.manifest.on(platform)
        backend = Manifest(f"the build of {file}", file, wheels=asked, requirements=manifest.requirements)
        newest = self._problem.limits.exclude_newer
        rows = self._problem.access.uv().resolve(backend, platform, minor, (), None, None, newest) if asked else {}
        return tuple(sorted(f"{name}=={row.version} sha256:{row.sha256}" for name, (row, _) in rows.items()))

    def _metadata(self, row: LockedTree, raw: bytes) -> tuple[str, ...]:
        """Return the requirements of an archive: its own, the old lock's, or those of the wheel that it becomes."""
        info = _member(raw, row.file, "PKG-INFO")
        if info and _is_static(info):
            return parse_core_metadata(info, row.file).requires
        old = self._problem.old
        for known in (known for trees in old.trees.values() for known in trees) if old else ():
            if known.digest == row.digest:
                return known.requires
        access, minor = self._problem.access, row.python[0]
        access.progress.say(f"{row.file} is built now, since only its build backend has its requirements")
        python = next((one.path for one in access.uv().interpreters([minor])), Path(sys.executable))
        here = replace(row, build=self._pins(raw, row.file, current_platform(), minor))
        wheel = build_sdist(access, access.uv(), python, here, lambda path: path.write_bytes(raw))
        with zipfile.ZipFile(wheel.path) as built:
            name = next(name for name in built.namelist() if name.endswith(".dist-info/METADATA"))
            return parse_core_metadata(built.read(name), row.file).requires


def _is_static(info: bytes) -> bool:
    """Return whether a ``PKG-INFO`` holds the requirements of every wheel that is built (PEP 643)."""
    from packaging.metadata import parse_email  # late: only here

    found, _ = parse_email(info)
    dynamic = {normalize(word) for word in found.get("dynamic", [])}
    version = found.get("metadata_version", "1.0")
    return Version(version) >= Version("2.2") and dynamic.isdisjoint(("requires-dist", "provides-extra"))


def _member(raw: bytes, file: str, name: str) -> bytes | None:
    """Return a file in the top folder of an archive; None if it is not there.

    Raises:
        NoSolutionError: The archive can't be read.
    """
    try:
        if file.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                found = [one for one in archive.infolist() if _is_at_top(one.filename, name)]
                return archive.read(found[0]) if found and found[0].file_size < _MOST else None
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            for member in tar:
                if _is_at_top(member.name, name) and member.isreg() and member.size < _MOST:
                    opened = tar.extractfile(member)
                    return opened.read() if opened else None
    except _UNREAD as error:
        raise NoSolutionError(f"{file} ({hashlib.sha256(raw).hexdigest()[:12]}) can't be read: {error}") from error
    return None


def _is_at_top(path: str, name: str) -> bool:
    return path.removeprefix("./").split("/")[1:] == [name]
