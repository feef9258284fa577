"""Source archives of an index as rows of a lock: their requirements, and the wheels that their build needs.

Where the archive's ``PKG-INFO`` holds its requirements (Metadata 2.2, PEP 643), no code runs before ``tenv create``;
else the archive is built once when it is locked, which the manifest permits by name.
"""

import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tenv.core.names import METADATA, is_wheel, normalize
from tenv.core.versions import Version
from tenv.core.wheel_platforms import marker_values
from tenv.host.machine import current_platform
from tenv.locks.lock import LockedTree, Wheel
from tenv.sources.archives.download import RemoteFile
from tenv.sources.archives.store import default_store
from tenv.sources.interface import Problem
from tenv.sources.wheels.project_metadata import noted_requirements, parse_core_metadata
from tenv.sources.wheels.sdist_builds import NOTED, asked_by_build, build_sdist, member, stored_sdist
from tenv.targets.manifest import Manifest, WheelRequest

Choices = list[dict[str, tuple[Wheel, str]]]


def locked_sdists(problem: Problem, resolved: Mapping[str, Choices]) -> dict[str, tuple[LockedTree, ...]]:
    """Return the rows of the source archives among selected files, by platform.

    Raises:
        NoSolutionError: An archive can't be read, or its build requirements have no solution.
        NetworkError: An archive can't be fetched.
        EnvironmentBrokenError: An archive that has to be built for its requirements can't be built.
    """
    reader = _Reader(problem)
    return {platform: tuple(reader.rows(platform, choices)) for platform, choices in resolved.items()}


def read_sdist(problem: Problem, platform: str, row: LockedTree, *, known: bool) -> list[LockedTree]:
    """Return the rows of a source archive that another tool has locked, with the wheels that its build needs.

    Args:
        problem: The problem.
        platform: The platform.
        row: The archive, with its index; no address of it counts.
        known: Whether it has its requirements.

    Raises:
        NoSolutionError: The archive can't be read, or its build requirements have no solution.
        NetworkError: No index in use has it.
    """
    problem.access.progress.step(f"querying the indexes for {row.file}")
    url = problem.access.uv().sdist_urls([row])[row.digest]
    archive = Wheel(row.name, row.version, row.file, row.digest, row.length, row.python, index=row.index)
    choices = [{row.name: (replace(archive, python=(minor,)), url)} for minor in row.python]
    found = _Reader(problem).rows(platform, choices)
    return [replace(one, requires=row.requires) if known else one for one in found]


def fetched(problem: Problem, archive: Wheel, url: str) -> bytes:
    """Return the bytes of a source archive, which have its digest; raises NetworkError."""
    problem.access.progress.step(f"reading {archive.file}")
    file = RemoteFile(archive.file, url, archive.sha256, archive.size)
    return stored_sdist(problem.access, problem.access.uv(), file).read_bytes()


def pins_of_build(
    problem: Problem,
    asked: Mapping[str, WheelRequest],
    file: str,
    platform: str,
    minor: str,
    there: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the wheels that a build needs beside the packages that are there, as a row locks them."""
    if not asked:
        return ()
    requirements, newest = problem.manifest.on(platform).requirements, problem.limits.exclude_newer
    backend = Manifest(f"the build of {file}", file, wheels=asked, requirements=requirements)
    rows = problem.access.uv().resolve(backend, platform, minor, (), None, there, newest)
    return tuple(sorted(f"{name}=={row.version} sha256:{row.sha256}" for name, (row, _) in rows.items()))


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

    def _kept(self, archive: Wheel, platform: str) -> LockedTree | None:
        """Return the row of the old lock for an archive that is not to be selected anew."""
        problem, minor = self._problem, archive.python[0]
        if problem.old is None or problem.upgrade is None or archive.name in problem.upgrade:
            return None
        rows = problem.old.trees.get(platform, ())
        return next((row for row in rows if row.digest == archive.sha256 and minor in row.python), None)

    def _row(self, archive: Wheel, url: str, platform: str) -> LockedTree:
        if kept := self._kept(archive, platform):
            return replace(kept, python=archive.python, features=(), index=archive.index)
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
            self._files[archive.sha256] = fetched(self._problem, archive, url)
        return self._files[archive.sha256]

    def _pins(self, raw: bytes, file: str, platform: str, minor: str) -> tuple[str, ...]:
        """Return the wheels that the build backend of an archive needs on a platform."""
        asked = asked_by_build(raw, file, marker_values(platform, minor))
        return pins_of_build(self._problem, asked, file, platform, minor)

    def _metadata(self, row: LockedTree, raw: bytes) -> tuple[str, ...]:
        """Return the requirements of an archive: its own, the old lock's, or those of the wheel that it becomes.

        A command that runs no build backend takes those that setuptools noted when it packed the archive. `create`
        compares them with the wheel.
        """
        info, problem = member(raw, row.file, "PKG-INFO"), self._problem
        if info and is_static(info):
            return parse_core_metadata(info, row.file).requires
        old = problem.old if problem.upgrade is not None and row.name not in problem.upgrade else None
        for known in (known for trees in old.trees.values() for known in trees) if old else ():
            if known.digest == row.digest:
                return known.requires
        if not problem.limits.ask_backends:
            return noted_requirements(member(raw, row.file, NOTED), row.file)
        access, minor = self._problem.access, row.python[0]
        access.progress.say(f"{row.file} is built now, since only its build backend has its requirements")
        python = next((one.path for one in access.uv().interpreters([minor])), Path(sys.executable))
        here = replace(row, build=self._pins(raw, row.file, current_platform(), minor))
        kept = default_store().file(row.digest)
        wheel = build_sdist(access, access.uv(), python, here, lambda: kept, problem.manifest.name)
        with zipfile.ZipFile(wheel.path) as built:
            name = next(name for name in built.namelist() if name.endswith(METADATA))
            return parse_core_metadata(built.read(name), row.file).requires


def is_static(info: bytes) -> bool:
    """Return whether a ``PKG-INFO`` holds the requirements of every wheel that is built (PEP 643)."""
    from packaging.metadata import parse_email  # late: only here

    found, _ = parse_email(info)
    dynamic = {normalize(word) for word in found.get("dynamic", [])}
    version = found.get("metadata_version", "1.0")
    return Version(version) >= Version("2.2") and dynamic.isdisjoint(("requires-dist", "provides-extra"))
