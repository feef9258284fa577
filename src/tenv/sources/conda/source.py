"""Conda packages as a source: solved by rattler, linked from its package cache with a record in ``conda-meta``."""

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from tenv.core.errors import EnvironmentBrokenError, ForeignFolderError, UsageError
from tenv.core.files import empty_folder, storage_errors
from tenv.core.link_mode import LinkMode
from tenv.core.names import CondaFile, normalize
from tenv.core.prefix import require_inside
from tenv.core.user_folders import user_data
from tenv.environment.installed_files import BYTECODE, FOLDER, TEXT, Expected, Records, listed, read_note
from tenv.environment.state import Environment, State, Status
from tenv.locks.lock import CondaPackage, Lock, LockedFile
from tenv.sources.access import Access
from tenv.sources.interface import CarriedFile, Chosen, NeededFile, Problem, Source, SourceCache, Work, section_of
from tenv.sources.owners import claimed_twice
from tenv.targets.manifest import Manifest

if TYPE_CHECKING:
    from tenv.rattler_api.records import Record
    from tenv.sources.archives.store import Store
    from tenv.sources.conda.staging import Staged
    from tenv.sources.job import Job

_KEY = "conda"


class CondaPackages(Records):
    """The conda packages of a prefix."""

    __slots__ = ()

    def names(self) -> Collection[str]:
        """Return the names of the installed packages."""
        return self.notes().keys()

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files in the records of packages, and the records."""
        known = self.notes()
        for name in names:
            for note in known.get(name, ()):
                yield os.path.relpath(note, self.prefix)
                yield from listed(read_note(note), "files")

    def claims(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Return the paths that packages claim, by name: those of their files before rattler put any aside."""
        known = self.notes()
        found: dict[str, set[str]] = {}
        for name in names:
            for note in known.get(name, ()):
                record = read_note(note)
                paths = found.setdefault(name, set())
                for row in rows_of(record):
                    claimed = row.get("original_path") or row.get("_path")
                    if isinstance(claimed, str):
                        paths.add(os.path.normpath(claimed))
                paths |= {*map(os.path.normpath, listed(record, "files"))}
        return found

    def named(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the names in both lists of every record in the prefix, since rattler reads all records."""
        known = self.notes()
        yield from self.files(known)
        for note in (note for notes in known.values() for note in notes):
            if note.is_symlink():
                yield f"{note}"  # absolute, so rattler would write outside the prefix
            for row in rows_of(read_note(note)):
                if isinstance(name := row.get("_path"), str):
                    yield name

    def own_files(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the note of each package."""
        known = self.notes()
        for name in packages:
            yield from (os.path.relpath(note, self.prefix) for note in known.get(name, ()))

    def hold(self, packages: Mapping[str, tuple[str, ...]]) -> bool:
        """Return whether packages are installed in their versions and builds, by the names of their records alone."""
        if not packages:
            return True
        notes = {note.name for notes in self.notes().values() for note in notes}
        return all(CondaFile(name, version, build).note in notes for name, (version, build, *_) in packages.items())

    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:
        """Yield the files of packages, with the digests in their records."""
        notes = {note.name: note for notes in self.notes().values() for note in notes}
        for name, (version, build, *_) in packages.items():
            note = notes.get(CondaFile(name, version, build).note)
            if note is None:
                yield Expected(f"{name} {version}", name)
                continue
            file = os.path.relpath(note, self.prefix)
            try:
                rows = read_note(note)["paths_data"]["paths"]
                files = [_of_note(row, name) for row in rows if BYTECODE not in row["_path"]]
            except (KeyError, TypeError):
                yield Expected(file, name, "sha256:unreadable")
            else:
                yield from (Expected(file, name), *files)

    def notes(self) -> dict[str, list[Path]]:
        """Return the files in ``conda-meta``, by package."""
        found: dict[str, list[Path]] = {}
        folder = self.prefix / "conda-meta"
        for note in sorted(folder.iterdir()) if folder.is_dir() else ():
            if note.name.endswith(".json") and (file := CondaFile.parse(note.name)):
                found.setdefault(file.name, []).append(note)
        return found

    def without_note(self, names: Iterable[str]) -> set[str]:
        """Return the packages whose record can't be read."""
        known = self.notes()

        def is_read(name: str) -> bool:
            return any(isinstance(read_note(note).get("files"), list) for note in known.get(name, ()))

        return {name for name in names if not is_read(name)}


def rows_of(note: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the files in the record of a conda package, without those that are none."""
    data = note.get("paths_data")
    rows = data.get("paths") if isinstance(data, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _of_note(row: Mapping[str, Any], owner: str) -> Expected:
    """Return a file of a conda package. A file that holds the prefix has a digest of its own.

    Of a link, py-rattler 0.28 notes the sha256 of its target.
    """
    kind, in_prefix = row.get("path_type", "hardlink"), row.get("sha256_in_prefix") or ""
    name, sha256 = os.path.normpath(row["_path"]), in_prefix or row.get("sha256")
    if kind == "softlink":
        return Expected(name, owner, f"{TEXT}{in_prefix}")
    if kind == "directory":
        return Expected(name, owner, FOLDER)
    return Expected(name, owner, f"sha256:{sha256}" if sha256 else "")


def unlink(packages: CondaPackages, names: Collection[str]) -> None:
    """Remove packages from a prefix: their files, the folders that become empty, and their records.

    Raises:
        EnvironmentBrokenError: A record names a file outside the prefix.
        StorageError: A file can't be removed.
    """
    prefix, notes = packages.prefix, packages.notes()
    files = [*packages.files(names)]
    require_inside(prefix, files, "a record of a conda package")
    ours = {os.path.relpath(note, prefix) for name in names for note in notes.get(name, ())}
    with storage_errors(f"can't remove packages from {prefix}"):
        for file in files:
            if file not in ours:
                _remove(prefix / file)
        folders = {parent for file in files if file not in ours for parent in PurePosixPath(file).parents[:-1]}
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            with contextlib.suppress(OSError):  # it holds other files
                (prefix / folder).rmdir()
        for note in ours:  # last, so that an interrupted removal can be repeated
            (prefix / note).unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(NotADirectoryError):  # a folder above is a file now
            path.unlink(missing_ok=True)


class CondaSource(Source):
    """Packages of conda channels."""

    section = section_of(_KEY)

    def choose(self, problem: Problem, chosen: Chosen) -> None:
        """Select packages, or keep those of the old lock if the requests are unchanged."""
        from tenv.sources.conda.choose import to_package  # late: most locks are up to date

        records = _choose_records(problem) if problem.wants(_KEY) else {}
        chosen.files[_KEY] = {platform: tuple(map(to_package, found)) for platform, found in records.items()}
        chosen.records |= {platform: [record.raw for record in found] for platform, found in records.items()}

    def differences(self, lock: Lock, manifest: Manifest, platform: str) -> list[str]:
        """Return why the conda packages of a lock do not satisfy a manifest."""
        from tenv.locks.satisfaction import conda_differences  # late: only for a lock whose manifest changed

        return conda_differences(lock, manifest, platform)

    def note(self, file: LockedFile) -> tuple[str, ...]:
        """Return the version, the build string and the digest."""
        package = cast("CondaPackage", file)
        return package.version, package.build, package.sha256 or package.md5

    def records(self, prefix: Path) -> CondaPackages:
        """Return the records in ``conda-meta``."""
        return CondaPackages(prefix)

    def contents(self, access: Access, lock: Lock, environment: Environment, state: State) -> Iterator[Expected]:
        """Yield the files of the packages; raises the errors of `conda_contents`."""
        from tenv.sources.conda.contents import conda_contents  # late: only for `tenv verify --deep`

        return conda_contents(access, lock, state.platform, environment.prefix)

    def carried(self, lock: Lock, platform: str, minor: str) -> Iterator[CarriedFile]:
        """Yield the packages of a platform.

        Raises:
            UsageError: The channel of one has published no sha256.
        """
        for row in lock.conda.get(platform, ()):
            if not row.sha256:
                raise UsageError(f"{row.url} has no sha256 in the lock, only an MD5: no bundle and no mirror has it")
            yield CarriedFile(_KEY, row.file, row.sha256, row.size, (platform,), row.url)

    def collect(
        self, access: Access, store: "Store", lock: Lock, manifest: Manifest, platforms: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Fetch the packages of some platforms."""
        from tenv.sources.conda.staging import collect_packages  # late: loads rattler

        collect_packages(lock, platforms, access.network(), access.progress, store)
        return {}

    def caches(self, access: Access) -> Iterator[SourceCache]:
        """Yield rattler's caches of packages and of package lists, and the partial downloads."""
        from tenv.rattler_api.cache import (  # late: only for `tenv clean`
            cache_folder,
            downloads_folder,
            is_cached_package,
            is_package_list,
            lists_folder,
        )

        for name, path, is_ours, leftover in (
            ("conda packages", cache_folder(), is_cached_package, False),
            ("conda package lists", lists_folder(), is_package_list, False),
            ("partial conda downloads", downloads_folder(), lambda _: True, True),  # a name of tenv's own
        ):
            yield SourceCache(name, path, partial(empty_folder, path, is_ours), leftover)

    def work(self, job: "Job") -> "CondaWork":
        """Return the work that links packages."""
        return CondaWork(job, self)


SOURCE: Source = CondaSource()


def _choose_records(problem: Problem) -> "dict[str, list[Record]]":
    from tenv.locks.satisfaction import conda_satisfies
    from tenv.sources.conda.choose import Conda

    manifest, old, upgrade, limits = problem.manifest, problem.old, problem.upgrade, problem.limits
    kept = _locked_records(old, manifest) if old and upgrade is not None else {}
    names = {normalize(record.name) for records in kept.values() for record in records}
    if not limits.afresh and kept and old and names.isdisjoint(upgrade or ()) and conda_satisfies(old, manifest):
        return kept
    fixed = {
        platform: [record for record in records if normalize(record.name) not in (upgrade or ())]
        for platform, records in kept.items()
    }
    conda = Conda(problem.access.network(), limits.seconds, limits.exclude_newer)
    return conda.resolve(manifest, fixed, problem.access.progress)


def _locked_records(lock: Lock, manifest: Manifest) -> "dict[str, list[Record]]":
    from tenv.rattler_api.lockfile import read_records
    from tenv.rattler_api.records import Record

    return {
        platform: [Record.of(raw) for raw in read_records(lock.text, lock.target, platform)]
        for platform in manifest.platforms
        if lock.conda.get(platform)
    }


class CondaWork(Work):
    """Links packages into an environment."""

    _staged: "Staged | None" = None
    _kept: tuple[str, ...] = ()

    @property
    def _changes(self) -> bool:
        return _KEY in self.job.plan.changed

    def needs(self) -> Iterator[NeededFile]:
        """Yield the packages to link; one that is in the cache is not downloaded."""
        if not self._changes:
            return
        from tenv.sources.conda.staging import cached_urls  # late: loads rattler

        job = self.job
        new = [row for row in job.lock.conda.get(job.platform, ()) if not job.plan.keeps(_KEY, row.name)]
        cached = cached_urls(job.lock, job.platform) if new else frozenset()
        for row in new:
            yield NeededFile(row.name, row.version, self.source.section.kind, row.size, row.channel, row.url in cached)

    def stage(self) -> Collection[str]:
        """Fetch the packages into the cache, and check that none overwrites an unmanaged file.

        Raises:
            ForeignFolderError: A package has a file that is an unmanaged file in the prefix.
            UsageError: The prefix has a space in it.
        """
        if not self._changes:
            return ()
        self._refuse_space()
        from tenv.sources.conda.staging import stage  # late: loads rattler

        job, plan = self.job, self.job.plan
        thorough = job.exact or bool(plan.broken(_KEY))
        context = job.context
        self._staged = stage(
            job.lock, job.platform, context.network(), context.progress, context.unpack_limits(), thorough=thorough
        )
        if not job.exact:
            self._kept = tuple(name for name in CondaPackages(job.prefix).names() if name not in plan.ours(_KEY))
        self._check_unmanaged(self._staged)
        if not plan.scratch and claimed_twice(job.prefix, {**plan.had, _KEY: ()}, {_KEY: self._staged.files}):
            job.plan = plan.anew()
        return [name for name in plan.unmanaged if name in self._staged.files]

    def _refuse_space(self) -> None:
        """Refuse a prefix that compilers, link scripts and the first lines of programs take for two words."""
        job = self.job
        if not re.search(r"\s", str(job.prefix)) or not job.lock.conda.get(job.platform):
            return
        places = (user_data() / "envs", Path("/var/tmp/tenv"))  # noqa: S108 (named to the user alone)
        free = next(place for place in places if not re.search(r"\s", str(place)))
        name = job.lock.target
        raise UsageError(
            f"the path of this environment has a space in it, and conda packages work in none: {job.prefix}",
            hint=f"tenv create {name} --prefix {free / name}",
        )

    def _check_unmanaged(self, staged: "Staged") -> None:
        job, plan, old = self.job, self.job.plan, self.job.old
        if old is None or old.status is Status.BROKEN:  # a broken state has no owners
            return
        certain = set(plan.unmanaged if old.status is Status.READY else old.foreign) & set(plan.unmanaged)
        # A package without a record owns no files, but a package in the state is tenv's.
        same = (name for name, row in plan.wanted[_KEY].items() if old.of(_KEY).get(name) == row)
        lost = CondaPackages(job.prefix).without_note(same)
        taken = sorted(name for name in certain & staged.files.keys() if staged.files[name] not in lost)
        if taken:
            raise ForeignFolderError(
                f"{staged.files[taken[0]]} has the file `{taken[0]}`, which is an unmanaged file in {job.prefix}"
                + (f" (and {len(taken) - 1} more files)" if len(taken) > 1 else ""),
                hint="move the file away; `--exact` removes all unmanaged files",
            )

    def put(self) -> None:
        """Link the packages of the lock, and remove the others."""
        if self._staged is None:
            return
        from tenv.rattler_api.install import link  # late: loads rattler

        job, plan, staged = self.job, self.job.plan, self._staged
        job.context.progress.step("installing conda packages", len(staged.records))
        packages, wanted = CondaPackages(job.prefix), plan.wanted[_KEY]
        for name in packages.without_note(wanted):
            for note in packages.notes().get(name, ()):  # rattler stops at a record that it can't read
                note.unlink()
        require_inside(job.prefix, staged.files, "a conda package")
        self._remove_sharing(packages, staged)
        link(
            staged.records,
            job.prefix,
            job.platform,
            staged.archives,
            kept=self._kept,
            again=sorted({*plan.other_files(_KEY), *plan.broken(_KEY)}),
            # Staging has verified the cache as far as requested; rattler replaces damaged packages in it.
            thorough=bool(staged.damaged),
            copies=job.context.link_mode() is LinkMode.COPY,
            on_linked=job.context.progress.advance,
        )
        if not packages.hold(wanted):
            missing = sorted(wanted.keys() - packages.names())
            raise EnvironmentBrokenError(f"{job.prefix}: {', '.join(missing)} differ from the lock after installing")

    def _remove_sharing(self, packages: CondaPackages, staged: "Staged") -> None:
        """Remove the packages that share a path with another one, so that they are linked as in a fresh create."""
        from tenv.sources.conda.staging import sharing  # late: as above

        there = {*packages.names()} - {*self._kept}
        unlink(packages, sharing(packages.claims(there), staged.claims) & there)

    def notes(self) -> Iterator[str]:
        """Yield notes about problematic files of packages."""
        if self._staged is not None:
            from tenv.sources.conda.staging import leaving_links  # late: as above

            yield from self._staged.notes
            yield from leaving_links(self.job.prefix, self._staged)
