"""Fetches and unpacks the archives of a lock in the background, then installs them into the prefix."""

import queue
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tenv.core.errors import NetworkError
from tenv.core.http import Http
from tenv.core.link_mode import LinkMode
from tenv.core.progress import Bytes, Joined, Transfer
from tenv.core.size_text import format_bytes
from tenv.environment.installed_files import POINTER, Expected
from tenv.locks.lock import Archive
from tenv.sources.access import Access
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.archives.link import Placed, describe, place, placed, remove
from tenv.sources.archives.redist import NVIDIA
from tenv.sources.archives.store import Sharing, Store, Tree, default_store
from tenv.sources.archives.unpack import unpack

_CONNECTIONS = 5
_WINDOWS = sys.platform == "win32"
_LICENSE = "https://docs.nvidia.com/cuda/eula/"


def fetcher_of(access: Access) -> Fetcher:
    """Return the downloader with the user's settings."""
    return Fetcher(access.settings(), Http(access.http()), offline=access.offline, carried=access.carried)


def fetch_files(access: Access, store: Store, fetcher: Fetcher, wanted: Sequence[RemoteFile]) -> None:
    """Download files into a store, several at once; those that it has are not compared again.

    Raises:
        NetworkError: A file can't be fetched.
    """
    new = [file for file in wanted if not store.file(file.sha256).is_file()]
    if not new:
        return
    running: dict[str, Transfer] = {}

    def report(name: str, done: int, total: int | None) -> None:
        running[name] = Transfer(name, done, total or done)
        access.progress.transfers(dict(running))

    access.progress.step("downloading", Bytes(sum(file.size or 0 for file in new)))
    fetcher.on_bytes = report
    pool = ThreadPoolExecutor(_CONNECTIONS)
    try:
        deque(pool.map(partial(store.fetch, fetcher), new), maxlen=0)
    except BaseException:
        fetcher.stopped.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class Gathering:
    """The archives that a prefix lacks, which background threads fetch and unpack.

    Attributes:
        archives: The archives to fetch and unpack.
    """

    def __init__(
        self,
        access: Access,
        prefix: Path,
        archives: Sequence[Archive],
        *,
        afresh: bool = False,
        damaged: Collection[str] = (),
        thorough: bool = False,
    ) -> None:
        """Find the archives that a prefix lacks.

        Args:
            access: The settings and services of the user.
            prefix: The prefix.
            archives: The archives of the lock.
            afresh: Whether the prefix is cleared first.
            damaged: The names of the archives to reinstall.
            thorough: Whether to verify every byte of unpacked trees.
        """
        self.archives = missing = lacking(prefix, archives, afresh=afresh, damaged=damaged)
        self._prefix, self._wanted, self._damaged, self._thorough = prefix, archives, damaged, thorough
        self._fetcher, progress = fetcher_of(access), access.progress
        self._store = default_store(progress.say, access.unpack_limits())
        self._how = Sharing.COPY if access.link_mode() is LinkMode.COPY else Sharing.CLONE
        self._waiting: queue.SimpleQueue[Archive] = queue.SimpleQueue()
        self._trees: dict[str, Tree] = {}
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        new = [archive for archive in missing if not self._store.keeps(archive, windows=_WINDOWS)]
        size = sum(archive.size or 0 for archive in new)
        if missing:
            noun = "archive" if len(missing) == 1 else "archives"
            if any(archive.url.startswith(NVIDIA) for archive in missing):
                terms = f"under its license ({_LICENSE}): `tenv show TARGET` names each license file"
                progress.say(f"files of NVIDIA, {terms}")
            source = f"({format_bytes(size)}) from their servers or the store" if new else "from the store"
            progress.step(f"fetching {len(missing)} {noun} {source}")
        if isinstance(progress, Joined):
            progress.expected = size
            on_bytes = progress.background
            self._fetcher.on_bytes = lambda name, done, total: on_bytes(Transfer(name, done, total or done))

    def start(self) -> None:
        """Start the threads."""
        for archive in sorted(self.archives, key=lambda archive: -(archive.size or 0)):
            self._waiting.put(archive)
        for _ in range(min(_CONNECTIONS, len(self.archives))):
            # Daemon threads, since a thread that waits for a server must not delay an interrupted command.
            thread = threading.Thread(target=self._work, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _work(self) -> None:
        while not self._fetcher.stopped.is_set():
            try:
                archive = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._trees[archive.name] = self._store.unpacked(
                    archive, partial(self._fetch, archive), windows=_WINDOWS, thorough=self._thorough
                )
            except BaseException as error:  # noqa: BLE001 (raised in the thread that calls `wait`)
                self._errors.append(error)
                self._fetcher.stopped.set()

    def _fetch(self, archive: Archive) -> Path:
        return self._store.fetch(
            self._fetcher, RemoteFile(archive.name, archive.url, archive.sha256, archive.size)
        ).path

    def wait(self) -> Mapping[str, Tree]:
        """Wait for all archives and return their trees by name.

        Raises:
            TenvError: An archive can't be fetched or unpacked.
        """
        for thread in self._threads:
            while thread.is_alive():
                thread.join(0.1)  # a timeout, so Ctrl-C is handled
        if self._errors:
            raise self._errors[0]
        return self._trees

    def stop(self) -> None:
        """Stop the threads. Partial downloads stay for the next command."""
        self._fetcher.stopped.set()

    def remove_gone(self) -> None:
        """Remove the archives that go or are replaced from the prefix.

        Raises:
            NetworkError: An archive that replaces one can't be fetched.
        """
        there = placed(self._prefix)
        if not there:
            return  # a new prefix: the others are installed while archives are fetched
        trees = self.wait()
        names = {archive.name for archive in self._wanted}
        for name, record in there.items():
            if name in trees or name not in names:
                remove(self._prefix, record)

    def settle(self) -> None:
        """Install the archives of the lock into the prefix.

        Raises:
            NetworkError: An archive can't be fetched.
            ForeignFolderError: An archive would overwrite a file that it does not own.
        """
        trees, prefix = self.wait(), self._prefix
        there = placed(prefix)
        for archive in self.archives:
            if archive.name in self._damaged and archive.name not in there:  # its record is missing
                remove(prefix, describe(archive, trees[archive.name]))
        for archive in self._wanted:
            if archive.name in trees:
                place(prefix, archive, trees[archive.name], self._how)
            elif not _is_whole(prefix, archive, there):  # removed since the plan
                message = f"{archive.name} was removed from {prefix} meanwhile"
                raise NetworkError(message, hint="run the same command again")


def lacking(
    prefix: Path, archives: Sequence[Archive], *, afresh: bool = False, damaged: Collection[str] = ()
) -> list[Archive]:
    """Return the archives of a lock that a prefix lacks, and those that share a file with one that goes."""
    there = placed(prefix)
    missing = [row for row in archives if afresh or row.name in damaged or not _is_whole(prefix, row, there)]
    return missing if afresh else _with_neighbours(archives, missing, there)


def _is_whole(prefix: Path, archive: Archive, there: Mapping[str, Placed]) -> bool:
    record = there.get(archive.name)
    return record is not None and record.is_of(archive) and not record.missing(prefix)


def archive_contents(access: Access, archives: Sequence[Archive]) -> Iterator[Expected]:
    """Yield the files and links of archives, unpacked anew from files with the digests of the lock.

    Raises:
        NetworkError: An archive is not in the store, and can't be fetched.
        ArchiveRefusedError: An archive can't be unpacked.
    """
    store, fetcher = default_store(access.progress.say, access.unpack_limits()), fetcher_of(access)
    for archive in archives:
        access.progress.step(f"unpacking {archive.name} to compare")
        path = store.fetch(fetcher, RemoteFile(archive.name, archive.url, archive.sha256, archive.size)).path
        with tempfile.TemporaryDirectory(prefix="tenv-", dir=store.folder) as folder:
            home = Path(folder) / "tree"
            contents = unpack(
                path,
                archive.kind,
                home,
                strip=archive.strip,
                windows=_WINDOWS,
                limits=store.limits,
                name=archive.name,
            )
            record = describe(archive, Tree(home, contents))
        yield from (Expected(file, archive.name, f"sha256:{digest}") for file, digest in record.files.items())
        yield from (Expected(link, archive.name, f"{POINTER}{target}") for link, target in record.links.items())


def _with_neighbours(archives: Sequence[Archive], missing: list[Archive], there: Mapping[str, Placed]) -> list[Archive]:
    """Return the missing archives, and those that share a file with one that is removed or replaced."""
    again = {row.name for row in missing}
    gone = {name for name in there if name not in {row.name for row in archives}} | (again & there.keys())
    while gone:
        files = {file for name in gone for file in (*there[name].files, *there[name].links)}
        rest = [row.name for row in archives if row.name not in again and row.name in there]
        gone = {name for name in rest if not files.isdisjoint((*there[name].files, *there[name].links))}
        again |= gone
    return [row for row in archives if row.name in again]
