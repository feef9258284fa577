"""Conda packages as a source: solved by rattler, linked from its package cache."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tenv.core.errors import EnvironmentBrokenError, ForeignFolderError, UsageError
from tenv.core.files import empty_folder
from tenv.core.link_mode import LinkMode
from tenv.core.names import normalize
from tenv.core.prefix import require_inside
from tenv.core.user_folders import user_data
from tenv.environment.installed_files import Expected
from tenv.environment.state import Environment, State, Status
from tenv.locks.lock import CondaPackage, Lock, LockedFile
from tenv.sources.conda.installed import CondaPackages, unlink
from tenv.sources.interface import (
    Access,
    CarriedFile,
    Chosen,
    NeededFile,
    Problem,
    Source,
    SourceCache,
    Work,
    section_of,
)
from tenv.sources.owners import claimed_twice
from tenv.targets.manifest import Manifest

if TYPE_CHECKING:
    from tenv.rattler_api.records import Record
    from tenv.sources.archives.store import Store
    from tenv.sources.conda.staging import Staged
    from tenv.sources.job import Job

_KEY = "conda"


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

    def carried(self, lock: Lock, platform: str, minor: str) -> Iterator[CarriedFile]:  # noqa: ARG002
        """Yield the packages of a platform.

        Raises:
            UsageError: The channel of one has published no sha256.
        """
        for row in lock.conda.get(platform, ()):
            if not row.sha256:
                raise UsageError(f"{row.url} has no sha256 in the lock, only an MD5: no bundle and no mirror has it")
            yield CarriedFile(_KEY, row.file, row.sha256, row.size, (platform,), row.url)

    def collect(
        self,
        access: Access,
        store: "Store",
        lock: Lock,
        manifest: Manifest,  # noqa: ARG002
        platforms: Mapping[str, str],
    ) -> Mapping[str, str]:
        """Fetch the packages of some platforms."""
        from tenv.sources.conda.staging import collect_packages  # late: loads rattler

        collect_packages(lock, platforms, access.network(), access.progress, store)
        return {}

    def caches(self, access: Access) -> Iterator[SourceCache]:  # noqa: ARG002
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
