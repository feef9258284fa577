"""Wheels as a source: resolved and installed by uv."""

import functools
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tenv.core.errors import EnvironmentBrokenError, NetworkError, TenvError
from tenv.core.progress import Bytes
from tenv.core.wheel_platforms import marker_values
from tenv.environment.installed_files import Expected
from tenv.environment.integrity import check
from tenv.environment.state import Environment, State
from tenv.locks.lock import Lock, LockedFile, LockedTree, Wheel, fits_note
from tenv.sources.access import Access
from tenv.sources.interface import CarriedFile, Chosen, NeededFile, Problem, Source, SourceCache, Work, section_of
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.unpacked_size import check_directories
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.tree_request import TreeRequest
from tenv.toolchain.discover import python_program, site_packages

if TYPE_CHECKING:
    from tenv.sources.archives.store import Store
    from tenv.sources.job import Job

_KEY = "wheels"
_PYTHON = "conda"
"""The source before this one, whose packages may include the Python of the wheels."""


class WheelSource(Source):
    """Packages of a package index."""

    section = section_of(_KEY)

    def choose(self, problem: Problem, chosen: Chosen) -> None:
        """Select wheels for each platform and each Python minor."""
        from tenv.sources.wheels.resolve import resolve_wheels  # late: most locks are up to date

        chosen.files[_KEY], chosen.files["trees"] = resolve_wheels(problem, chosen.files.get(_PYTHON, {}))

    def differences(self, lock: Lock, manifest: Manifest, platform: str) -> list[str]:
        """Return why the wheels of a lock do not satisfy a manifest."""
        from tenv.locks.satisfaction import wheel_differences  # late: only for a lock whose manifest changed

        found = wheel_differences(lock, manifest, platform)
        if lock.trees.get(platform) and not found:
            from tenv.sources.wheels.trees import folder_differences  # late: few targets have one

            found = [f"{platform}: {fault}" for fault in folder_differences(lock, manifest, platform)]
        return found

    def files(self, lock: Lock, platform: str, minor: str) -> Sequence[LockedFile]:
        """Return the wheels and the packages of source trees of one Python minor."""
        trees = lock.trees_for(platform, minor)
        if not all(tree.isolated for tree in trees):  # another torch compiles them again
            against = lock.compiled_against(platform, minor)
            trees = tuple(tree if tree.isolated else replace(tree, against=against) for tree in trees)
        return (*lock.wheels_for(platform, minor), *trees)

    def asked(self, request: Any) -> str:
        """Return the accepted versions of a wheel, with its index, or the request for a source tree or a file."""
        index = f" of {request.index}" if request.index else ""
        return f"{request.tree or request.file or request.version}{index}"

    def note(self, file: LockedFile) -> tuple[str, ...]:
        """Return the entry of a file in the state; that of a source tree has its origin, too."""
        return file.note if isinstance(file, LockedTree) else super().note(file)

    def records(self, prefix: Path) -> Wheels:
        """Return the ``.dist-info`` folders."""
        return Wheels(prefix)

    def contents(self, access: Access, lock: Lock, environment: Environment, state: State) -> Iterator[Expected]:
        """Yield the files of the wheels; raises the errors of `wheel_contents`."""
        from tenv.sources.wheels.carried import wheel_contents  # late: only for `tenv verify --deep`

        platform = state.platform
        if built := ", ".join(tree.name for tree in lock.trees_for(platform, state.python)):
            access.progress.say(
                f"not compared, since the lock has no digest of what is built from source trees: {built}"
            )
        wheels, glibc = lock.wheels_for(platform, state.python), str(lock.requirements.get("glibc") or "")
        return wheel_contents(access, wheels, platform, glibc, environment.prefix)

    def carried(self, lock: Lock, platform: str, minor: str) -> Iterator[CarriedFile]:
        """Yield the wheels and source archives of a platform, and the wheels that builds of the latter need.

        Raises:
            UsageError: A package is built from a source tree, which is no file.
        """
        from tenv.sources.wheels.carried import carried_wheels  # late: only for bundles

        return carried_wheels(lock, platform, minor)

    def collect(
        self, access: Access, store: "Store", lock: Lock, manifest: Manifest, platforms: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Fetch the wheels and source archives of some platforms."""
        from tenv.sources.wheels.carried import collect_wheels  # late: only for bundles

        return collect_wheels(access, store, lock, manifest, platforms)

    def caches(self, access: Access) -> Iterator[SourceCache]:
        """Yield uv's cache."""
        uv = access.uv()
        yield SourceCache("wheels (uv)", uv.folder("cache"), uv.clean_cache)
        from tenv.sources.wheels.sdist_builds import built_folder, forget_built  # late: only here

        if built_folder().is_dir():
            yield SourceCache("wheels that tenv built", built_folder(), forget_built)

    def work(self, job: "Job") -> "WheelWork":
        """Return the work that installs wheels."""
        return WheelWork(job, self)


SOURCE: Source = WheelSource()


class WheelWork(Work):
    """Installs wheels into an environment."""

    _before: Sequence[Expected] = ()
    """The files of the wheels that tenv had installed."""
    _located: Mapping[str, TreeRequest] = MappingProxyType({})
    """The requests of the source trees that are built, by name."""
    _to_build: Sequence[LockedTree] = ()
    """The source trees and archives that are built."""
    _built: Mapping[str, Wheel] = MappingProxyType({})
    """The wheels that they became, by name."""
    _folder: "tempfile.TemporaryDirectory[str] | None" = None
    """The wheels that are not kept, until they are installed."""

    def _folders(self) -> Manifest | None:
        """Return the requests of this platform if one is a folder, whose files change without the lock; else None."""
        here = with_features(self.job.target.manifest, self.job.features).on(self.job.platform)
        return here if any(request.tree and request.tree.path for request in here.wheels.values()) else None

    def is_current(self) -> bool:
        """Return whether the requested folders have the metadata of the lock.

        Raises:
            NoSolutionError: One is not there, or can't be read.
        """
        if (here := self._folders()) is None:
            return True
        from tenv.locks.lock_file import read_lock  # late: few targets have a folder
        from tenv.sources.wheels.trees import folder_differences, require_folders

        require_folders(here)
        try:
            lock = read_lock(self.job.target.lock_file, self.job.target.name)
        except TenvError:
            return True  # the lock is judged elsewhere
        return not [*folder_differences(lock, here, self.job.platform)]

    def _wheels(self) -> "tuple[Wheel, ...]":
        from tenv.sources.wheels.index_requests import located  # late: as above

        job = self.job
        wheels = job.lock.wheels_for(job.platform, job.plan.minor)
        if job.context.carried:  # each by its digest, wherever it came from
            return tuple(replace(wheel, index=None, url="", path="") for wheel in wheels)
        return located(wheels, with_features(job.target.manifest).on(job.platform))

    def _locate(self) -> Mapping[str, TreeRequest]:
        """Return the source trees to build: those that are new, changed or damaged."""
        job, plan = self.job, self.job.plan
        files = self.source.files(job.lock, job.platform, plan.minor) if _KEY in plan.changed and plan.python else ()
        trees = [file for file in files if isinstance(file, LockedTree)]
        if not trees:
            return {}
        had = {} if plan.scratch else plan.had.get(_KEY, {})
        there = {} if plan.scratch else Wheels(job.prefix).versions()
        broken = plan.broken(_KEY)
        new = [
            tree for tree in trees if had.get(tree.name) != tree.note or tree.name in broken or tree.name not in there
        ]
        self._to_build = [tree for tree in new if tree.isolated]
        job.compiled = [tree for tree in new if not tree.isolated]
        if all(tree.file for tree in new):
            return {}
        from tenv.sources.wheels.trees import locate  # late: few targets have one

        here = with_features(job.target.manifest).on(job.platform)
        return locate(job.context, here, [tree for tree in new if not tree.file])

    def needs(self) -> Iterator[NeededFile]:
        """Yield the wheels to install; one that is in uv's cache is not downloaded."""
        job, kind = self.job, self.source.section.kind
        if _KEY not in job.plan.changed or job.plan.python is None:
            return
        if not job.plan.python.path.is_absolute():  # one that uv downloads
            yield NeededFile(
                "python", str(job.plan.python.version), "python", None, "the server of uv's Pythons", cached=False
            )
        new = [wheel for wheel in self._wheels() if not job.plan.keeps(_KEY, wheel.name)]
        cached = job.uv.cached(new)
        for wheel in new:
            server, here = wheel.origin or "the index of wheels", wheel.sha256 in cached or bool(wheel.path)
            yield NeededFile(wheel.name, wheel.version, kind, wheel.size, server, here)

    def stage(self) -> Collection[str]:
        """Refuse wheels that unpack to more than the limits, and build source trees, while the prefix is unchanged.

        Raises:
            ArchiveRefusedError: A wheel does.
            EnvironmentBrokenError: A source tree can't be built.
        """
        job, plan = self.job, self.job.plan
        if _KEY in plan.changed and plan.python is not None:
            had = {} if plan.scratch else plan.had.get(_KEY, {})
            new = [wheel for wheel in self._wheels() if had.get(wheel.name) != self.source.note(wheel)]
            check_directories(job.uv, new, job.context.progress)
        self._located = job.requests = self._locate()
        if self._to_build and (python := self._builder()):
            self._build(python, ", and the environment is as it was" if job.ready else "")
        return ()

    def prepare(self) -> None:
        """Make a virtual environment if Python is not a conda package, and remove wheels that conda replaces."""
        job, plan = self.job, self.job.plan
        if _KEY in plan.changed and not plan.scratch:
            self._before = tuple(Wheels(job.prefix).expected(plan.had.get(_KEY, {})))
        made = (job.prefix / "pyvenv.cfg").exists()  # a prefix to fill again has been cleared
        if plan.scratch and plan.python and not plan.own_python and not made:
            job.uv.make_environment(job.prefix, plan.python.path, job.prefix.name)
        if _PYTHON in plan.changed:  # before a conda package of the same name is linked
            self._remove_gone()

    def put(self) -> None:
        """Install the wheels of the lock, and remove those of the old lock.

        Raises:
            NetworkError: A file can't be fetched; `untouched` is true if the prefix is unchanged.
        """
        from tenv.sources.wheels.after_install import record_stamps, remove_old_bytecode  # late: as below

        job, plan = self.job, self.job.plan
        if plan.python is None:
            return
        wheels, there = self._wheels(), Wheels(job.prefix)
        records = record_stamps(there)
        self._install_all(wheels, there)
        if self._to_build or job.built:
            self._put_built()
        # Only now, so a failed download leaves the environment intact.
        if _PYTHON not in plan.changed:
            self._remove_gone()
        files = self._replace_changed(wheels, records)
        self._settle_shared(wheels, files)
        remove_old_bytecode(job.prefix, self._before, files, job.context.environ.get("PYTHONPYCACHEPREFIX", ""))
        self._check_versions(wheels, there)

    def _install_all(self, wheels: Sequence[Wheel], there: Wheels) -> None:
        job, plan = self.job, self.job.plan
        before, damaged = there.versions(), plan.broken(_KEY)
        if wheels or not plan.own_python:
            size = sum(need.size or 0 for need in self.needs() if not need.cached)
            carried = job.context.carried is not None
            job.context.progress.step("installing wheels" if carried else "downloading and installing", Bytes(size))
        if damaged:
            job.uv.forget(damaged)
            for info in there.distributions():
                record = info / "RECORD"
                if os.path.relpath(record, job.prefix) in plan.faults.defects:  # uv would obey or refuse it
                    record.unlink(missing_ok=True)
        if not wheels:
            return
        try:
            self._install(wheels, (*plan.other_files(_KEY), *damaged))
        except NetworkError as error:
            # uv fetches every file before it removes the first old package.
            error.untouched = not plan.scratch and _PYTHON not in plan.changed and there.versions() == before
            raise

    def _install(self, wheels: Sequence[Wheel], again: Sequence[str]) -> None:
        from tenv.sources.wheels.after_install import (
            drop_cache_notes,
            own_files_guarded,
        )  # late: not for one that is up to date

        job = self.job
        with own_files_guarded(job.prefix):
            job.uv.install(python_program(job.prefix), wheels, again, job.context.progress)
        drop_cache_notes(Wheels(job.prefix), wheels)

    def _check_versions(self, wheels: Sequence[Wheel], there: Wheels) -> None:
        """Raise EnvironmentBrokenError for a package that is not as locked."""
        job, plan = self.job, self.job.plan
        installed, trees = there.versions(), job.lock.trees_for(job.platform, plan.minor)
        rows: tuple[Wheel | LockedTree, ...] = (*wheels, *trees)
        wrong = [row.name for row in rows if not fits_note(installed.get(row.name, ""), self.source.note(row))]
        if wrong:
            raise EnvironmentBrokenError(
                f"{job.prefix}: installed in another version than the lock has: {', '.join(wrong)}"
            )

    def _build(self, python: Path, so: str = "") -> None:
        """Build the source trees and archives, or take the wheels that were kept of them."""
        from tenv.sources.wheels.sdist_builds import build_sdist, locked_sdist  # late: few targets have one
        from tenv.sources.wheels.tree_builds import build_tree, require_as_locked

        job, built = self.job, dict[str, Wheel]()
        context, here = job.context, with_features(job.target.manifest).on(job.platform)
        self._folder = tempfile.TemporaryDirectory(prefix="tenv-")
        for row in self._to_build:
            if row.file:
                find = functools.partial(locked_sdist, context, job.uv, row, here)
                one = build_sdist(context, job.uv, python, row, find, job.target.name, so)
            else:
                out = Path(self._folder.name) / row.name
                one = build_tree(context, job.uv, python, row, self._located[row.name], out, so)
            require_as_locked(row, one, job.target.name, marker_values(job.platform, job.plan.minor))
            built[row.name] = replace(one, python=(job.plan.minor,))
        self._built = built

    def _put_built(self) -> None:
        """Install the wheels that source trees and archives became."""
        from tenv.sources.wheels.after_install import own_files_guarded  # late: as above
        from tenv.sources.wheels.tree_builds import note_origin

        job, python = self.job, python_program(self.job.prefix)
        if self._to_build and not self._built:  # there was no Python of this minor before
            self._build(python)
        with own_files_guarded(job.prefix):
            built = {**self._built, **job.built}
            job.uv.install(python, [*built.values()], [*built], job.context.progress)
            for row in (*self._to_build, *job.compiled):
                if row.name in self._located:
                    note_origin(Wheels(job.prefix), row, self._located[row.name])

    def close(self) -> None:
        """Remove the built wheels that are not kept."""
        if self._folder:
            self._folder.cleanup()

    def _builder(self) -> Path | None:
        """Return a Python that exists before the prefix changes; None if there is none of the minor."""
        job, plan = self.job, self.job.plan
        if plan.python and not plan.own_python:
            return plan.python.path
        if job.ready and job.ready.python == plan.minor:
            return python_program(job.prefix)
        return next((found.path for found in job.uv.interpreters([plan.minor])), None)

    def _replace_changed(self, wheels: Sequence[Wheel], records: Mapping[str, tuple[int, int]]) -> tuple[Expected, ...]:
        """Fetch the wheels again whose files in uv's cache were changed, by an edit in an environment for one.

        Returns:
            The files of all wheels.
        """
        from tenv.sources.wheels.after_install import changed_wheels  # late: as above

        job, wanted = self.job, self.job.plan.wanted[_KEY]
        there = Wheels(job.prefix)
        files = tuple(there.expected(wanted))
        if changed := changed_wheels(there, wheels, files, records):
            job.context.progress.say(f"uv's cache has changed files of {', '.join(changed)}, which are fetched again")
            job.uv.forget(changed)
            self._install(wheels, changed)
            files = tuple(there.expected(wanted))
            if still := changed_wheels(there, wheels, files, records):
                raise EnvironmentBrokenError(f"{job.prefix}: files of {', '.join(still)} differ from their RECORD")
        return files

    def _settle_shared(self, wheels: Sequence[Wheel], now: Sequence[Expected]) -> None:
        """Give each path that several wheels claim, before or after, to the last one of the lock.

        uv installs wheels in any order, and a wheel that goes takes its paths with it. A wheel that is installed again
        takes paths from later ones, which are looked at after it, so that one pass suffices.
        """
        job = self.job
        if _KEY not in job.plan.changed:
            return
        owners: dict[str, str] = {}
        shared = {row.name for row in (*self._before, *now) if owners.setdefault(row.name, row.owner) != row.owner}
        last = {row.name: row for row in now if row.name in shared}
        for wheel in wheels:
            mine = [row for row in last.values() if row.owner == wheel.name]
            faults = check(job.prefix, mine) if mine else None
            if faults and faults.owners:
                self._install([wheel], [wheel.name])

    def _remove_gone(self) -> None:
        """Remove the wheels of the old lock that the new lock lacks."""
        job, plan = self.job, self.job.plan
        gone = sorted(set(Wheels(job.prefix).names()) & (plan.ours(_KEY).keys() - plan.wanted[_KEY].keys()))
        if gone:
            job.uv.remove(python_program(job.prefix), gone)

    def toolkit_parts(self) -> tuple[Path, ...]:
        """Return the folders of NVIDIA's wheels."""
        nvidia = site_packages(self.job.prefix) / "nvidia"
        return Wheels(self.job.prefix).folders(self.job.plan.wanted[_KEY], nvidia)
