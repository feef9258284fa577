"""Archives as a source: fetched and unpacked into a store, linked into environments, with a record in ``tenv-meta``."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from tenv.core.names import file_at, normalize
from tenv.core.prefix import ARCHIVES
from tenv.environment.installed_files import POINTER, Expected, Records, listed, read_note
from tenv.environment.state import Environment, State
from tenv.locks.lock import Archive, Lock, LockedFile
from tenv.sources.access import Access
from tenv.sources.interface import CarriedFile, Chosen, NeededFile, Problem, Source, SourceCache, Work, section_of
from tenv.targets.manifest import Manifest
from tenv.targets.search import settings_folder

if TYPE_CHECKING:
    from tenv.facts.tables import Facts
    from tenv.sources.archives.choose import Held
    from tenv.sources.archives.gathering import Gathering
    from tenv.sources.archives.store import Damage, Store
    from tenv.sources.job import Job

_KEY = "archives"


class InstalledArchives(Records):
    """The archives of a prefix, by their names in ``[archives]``."""

    __slots__ = ()
    SOLE = True

    def names(self) -> Collection[str]:
        """Return the names of the installed archives."""
        return self._records().keys()

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files and links in the records of archives; the records themselves are in ``tenv-meta``."""
        known = self._records()
        for name in names:
            yield from _placed(known.get(name, {}))

    def own_files(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the record of each archive."""
        known = self._records()
        yield from (f"{ARCHIVES}/{name}.json" for name in packages if name in known)

    def hold(self, packages: Mapping[str, tuple[str, ...]]) -> bool:
        """Return whether archives are installed, by their records and the names of their files."""
        if not packages:
            return True
        known = self._records()
        return all(
            name in known
            and known[name].get("sha256") == sha256
            and all(os.path.lexists(self.prefix / file) for file in _placed(known[name]))
            for name, (_, sha256) in packages.items()
        )

    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:
        """Yield the files and links of archives, with the digests and targets in their records."""
        known = self._records() if packages else {}
        for name, (version, sha256) in packages.items():
            record = known.get(name, {})
            files, links = record.get("files"), record.get("links")
            if record.get("sha256") != sha256 or not isinstance(files, dict) or not isinstance(links, dict):
                yield Expected(f"{name} {version}".rstrip(), name)
                continue
            yield Expected(f"{ARCHIVES}/{name}.json", name)
            yield from (Expected(file, name, f"sha256:{digest}") for file, digest in files.items())
            yield from (Expected(link, name, f"{POINTER}{target}") for link, target in links.items())

    def _records(self) -> dict[str, dict[str, Any]]:
        read = {path.stem: read_note(path) for path in sorted((self.prefix / ARCHIVES).glob("*.json"))}
        return {name: record for name, record in read.items() if record.get("name") == name}


def _placed(record: Mapping[str, Any]) -> Iterator[str]:
    yield from map(os.path.normpath, (*listed(record, "files"), *listed(record, "links")))


class ArchiveSource(Source):
    """Files by a version of a known product, or by URL."""

    section = section_of(_KEY)

    def choose(self, problem: Problem, chosen: Chosen) -> None:
        """Select the archives of every platform; raises the errors of `ArchiveChooser.lock`."""
        if not problem.wants(_KEY):
            return
        facts, manifest = problem.access.facts(), problem.manifest
        held = dict(_held(problem, facts))
        asked = sorted({name for on in manifest.platforms for name in manifest.on(on).archives} - held.keys())
        rows = self._selected(problem, facts, asked, held) if asked else _of_platforms(manifest, held)
        chosen.files[_KEY] = rows

    @staticmethod
    def _selected(problem: Problem, facts: "Facts", asked: list[str], held: "Held") -> "dict[str, tuple[Archive, ...]]":
        from tenv.sources.archives.choose import ArchiveChooser  # late: only to select archives
        from tenv.sources.archives.gathering import fetcher_of
        from tenv.sources.archives.store import default_store

        access = problem.access
        access.progress.step(f"looking up {', '.join(asked)}")
        trust, say = problem.limits.trust_first_use, access.progress.say
        store = default_store(say, access.unpack_limits())
        chooser = ArchiveChooser(facts, fetcher_of(access), store, trust, say)
        return chooser.lock(problem.manifest, problem.old, problem.upgrade, held)

    def differences(self, lock: Lock, manifest: Manifest, platform: str) -> list[str]:
        """Return why the archives of a lock do not satisfy a manifest."""
        if not manifest.archives and not lock.archives.get(platform):
            return []
        from tenv.facts.tables import default_overrides, load_facts  # late: most targets have no archives
        from tenv.sources.archives.answers import archive_faults

        facts = load_facts(default_overrides(os.environ, settings_folder()))
        return [f"{platform}: {fault}" for fault in archive_faults(lock, manifest, platform, facts)]

    def asked(self, request: Any) -> str:
        """Return the accepted versions of a request, or that it is optional."""
        return "optional" if request.optional else super().asked(request)

    def records(self, prefix: Path) -> InstalledArchives:
        """Return the records of archives in ``tenv-meta``."""
        return InstalledArchives(prefix)

    def work(self, job: "Job") -> "ArchiveWork":
        """Return the work that installs archives."""
        return ArchiveWork(job, self)

    def damages(self) -> "Iterable[Damage]":
        """Yield the damaged files in the store."""
        from tenv.sources.archives.store import default_store  # late: only for `verify --store`

        return default_store().damages()

    def caches(self, access: Access) -> Iterator[SourceCache]:
        """Yield the store, and the leftovers of bundles."""
        from tenv.sources.archives.store import (
            bundles_folder,
            clear_bundles,
            default_store,
        )  # late: only for `tenv clean`

        store, bundles = default_store(), bundles_folder()
        yield SourceCache("archives", store.folder, store.clear)
        yield SourceCache("parts of bundles", bundles, clear_bundles, leftover=True)

    def contents(self, access: Access, lock: Lock, environment: Environment, state: State) -> Iterator[Expected]:
        """Yield the files of archives, unpacked anew from downloads with the digests of the lock."""
        from tenv.sources.archives.gathering import archive_contents  # late: only for `tenv verify --deep`

        return archive_contents(access, lock.archives.get(state.platform, ()))

    def carried(self, lock: Lock, platform: str, minor: str) -> Iterator[CarriedFile]:
        """Yield the archives of a platform."""
        for row in lock.archives.get(platform, ()):
            yield CarriedFile(_KEY, file_at(row.url) or row.name, row.sha256, row.size, (platform,), row.url)

    def collect(
        self, access: Access, store: "Store", lock: Lock, manifest: Manifest, platforms: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Fetch the archives of some platforms."""
        from tenv.sources.archives.download import RemoteFile  # late: as below
        from tenv.sources.archives.gathering import fetch_files, fetcher_of  # late: loads the HTTP client

        rows = {row.sha256: row for platform in platforms for row in lock.archives.get(platform, ())}
        wanted = [RemoteFile(row.name, row.url, row.sha256, row.size) for row in rows.values()]
        fetch_files(access, store, fetcher_of(access), wanted)
        return {}

    def shown(self, file: LockedFile | None, prefix: Path) -> dict[str, Any]:
        """Return the version or file name, the size, the origin of the digest, and the license file."""
        if file is None:
            return {**super().shown(file, prefix), "licence": ""}
        from tenv.sources.archives.link import placed  # late: only for `tenv show`

        archive, record = cast("Archive", file), placed(prefix).get(file.name)
        locked = archive.version or archive.url.partition("?")[0].rpartition("/")[2]
        licence = record.licence if record else archive.licence
        return {"locked": locked, "size": archive.size, "trust": archive.trust, "licence": licence}


SOURCE: Source = ArchiveSource()


def _held(problem: Problem, facts: "Facts") -> Iterator[tuple[str, dict[str, tuple[Archive, ...]]]]:
    """Yield the archives that stay as locked, by request and platform: no server is asked about them.

    They are those of the old lock that satisfy the manifest on every platform. Their addresses and digests are in the
    lock. A request whose newest version is wanted is not among them.
    """
    from tenv.sources.archives.answers import archive_faults  # late: as above

    manifest, lock = problem.manifest, problem.old
    if lock is None or problem.upgrade is None or problem.limits.trust_first_use:
        return
    for name in sorted({name for on in manifest.platforms for name in manifest.on(on).archives}):
        rows: dict[str, tuple[Archive, ...]] = {}
        for on in manifest.platforms:
            here = manifest.on(on)
            alone = replace(here, archives={name: here.archives[name]} if name in here.archives else {})
            own = tuple(replace(row, features=()) for row in lock.archives.get(on, ()) if row.answers_for(name))
            if not alone.archives:
                continue
            if not own or any(archive_faults(replace(lock, archives={on: own}), alone, on, facts)):
                break
            rows[on] = own
        else:
            if normalize(name) not in problem.upgrade:
                yield name, rows


def _of_platforms(manifest: Manifest, held: "Held") -> "dict[str, tuple[Archive, ...]]":
    return {
        on: tuple(sorted((row for rows in held.values() for row in rows.get(on, ())), key=lambda row: row.name))
        for on in manifest.platforms
    }


class ArchiveWork(Work):
    """Installs archives into an environment; fetches them in the background."""

    _gathering: "Gathering | None" = None

    def _archives(self) -> "tuple[Archive, ...]":
        return self.job.lock.archives.get(self.job.platform, ())

    def needs(self) -> Iterator[NeededFile]:
        """Yield the archives to install; one that is in the store is not downloaded."""
        job = self.job
        if not self._archives():
            return
        from tenv.sources.archives.gathering import lacking  # late: loads the HTTP client
        from tenv.sources.archives.store import default_store

        store, windows = default_store(), sys.platform == "win32"
        for row in lacking(job.prefix, self._archives(), afresh=job.plan.scratch, damaged=job.plan.damaged):
            server, cached = urlsplit(row.url).netloc, store.keeps(row, windows=windows)
            yield NeededFile(row.name, row.version, self.source.section.kind, row.size, server, cached)

    def begin(self) -> None:
        """Start fetching and unpacking missing archives."""
        job, plan = self.job, self.job.plan
        if not self._archives() and not (job.prefix / ARCHIVES).is_dir():
            return
        from tenv.sources.archives.gathering import Gathering  # late: loads the HTTP client

        self.close()
        self._gathering = Gathering(
            job.context,
            job.prefix,
            self._archives(),
            afresh=plan.scratch,
            damaged=plan.damaged,
            thorough=job.repair,
        )
        self._gathering.start()

    def wait(self) -> None:
        """Wait until all are unpacked; raises NetworkError if one can't be fetched."""
        if self._gathering is not None:
            self._gathering.wait()

    def prepare(self) -> None:
        """Remove the archives that go, before another source puts files in their places."""
        if self._gathering is not None:
            self._gathering.remove_gone()

    def put(self) -> None:
        """Install the archives of the lock."""
        if self._gathering is not None:
            self._gathering.settle()

    def toolkit_parts(self) -> tuple[Path, ...]:
        """Return the folders of NVIDIA's archives, without the prefix itself."""
        rows = [row for row in self._archives() if row.to and row.version]
        return tuple(dict.fromkeys(self.job.prefix / row.to for row in rows))

    def close(self) -> None:
        """Stop background work. Partial downloads stay for the next command."""
        if self._gathering is not None:
            self._gathering.stop()
