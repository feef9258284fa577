"""The archives of a lock: fetched and unpacked beside the other work, then brought into the prefix."""

import queue
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

from tenv.core.errors import NetworkError
from tenv.core.http import Http
from tenv.core.progress import Joined, Transfer
from tenv.environment.state import Environment
from tenv.locks.lock import Archive, Lock
from tenv.project.context import Context
from tenv.project.user_facts import user_facts
from tenv.sources.archives.download import Fetcher
from tenv.sources.archives.link import Placed, describe, place, placed, remove
from tenv.sources.archives.partial_file import Wanted
from tenv.sources.archives.store import Store, Tree, default_store
from tenv.targets.manifest import Manifest

__all__ = ["Gathering", "choose_archives", "gather", "homes_in", "remembered", "settle_archives"]

_CONNECTIONS = 5


def choose_archives(
    context: Context, manifest: Manifest, old: Lock | None, upgrade: Sequence[str] | None, *, trust: bool
) -> dict[str, tuple[Archive, ...]]:
    """Choose the archives of a manifest for every platform.

    Args:
        context: What every verb is given.
        manifest: The manifest.
        old: The lock before.
        upgrade: Names whose version is chosen anew; None for all.
        trust: Whether a file whose digest nobody names may be taken as it is seen now.

    Raises:
        TenvError: As `Archives.lock` does.
    """
    from tenv.sources.archives.choose import Archives  # noqa: PLC0415 (late: to install archives, none has to be chosen)

    if not any(manifest.on(platform).archives for platform in manifest.platforms):
        return {}
    names = sorted({name for platform in manifest.platforms for name in manifest.on(platform).archives})
    context.progress.step(f"looking up {', '.join(names)}")
    store = default_store(context.progress.say)
    provider = Archives(user_facts(context), _fetcher(context), store, trust, context.progress.say)
    return provider.lock(manifest, old, upgrade)


def _fetcher(context: Context) -> Fetcher:
    return Fetcher(context.settings(), Http(context.http()), offline=context.offline)


@dataclass
class Gathering:
    """Archives that are being fetched and unpacked, in threads of their own.

    Attributes:
        archives: Those archives.
        wanted: All that the prefix shall hold.
        damaged: Names of those whose files in the prefix are not what they were.
    """

    archives: Sequence[Archive]
    wanted: Sequence[Archive]
    _fetcher: Fetcher
    _store: Store
    _thorough: bool
    damaged: Collection[str] = ()
    _waiting: "queue.SimpleQueue[Archive]" = field(default_factory=queue.SimpleQueue)
    _trees: dict[str, Tree] = field(default_factory=dict)
    _errors: list[BaseException] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Begin."""
        for archive in sorted(self.archives, key=lambda archive: -(archive.size or 0)):
            self._waiting.put(archive)
        for _ in range(min(_CONNECTIONS, len(self.archives))):
            # Daemons: a thread that waits for a server must not keep an interrupted command from ending.
            thread = threading.Thread(target=self._work, daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def _work(self) -> None:
        while not self._fetcher.stopped.is_set():
            try:
                archive = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                fetch, windows = partial(self._fetch, archive), sys.platform == "win32"
                self._trees[archive.name] = self._store.unpacked(
                    archive, fetch, windows=windows, thorough=self._thorough
                )
            except BaseException as error:  # noqa: BLE001 (raised where somebody waits for it)
                self._errors.append(error)
                self._fetcher.stopped.set()

    def _fetch(self, archive: Archive) -> Path:
        return self._store.fetch(self._fetcher, Wanted(archive.name, archive.url, archive.sha256, archive.size)).path

    def wait(self) -> Mapping[str, Tree]:
        """Return the unpacked archives by name, when all are there.

        Raises:
            TenvError: One could not be had.
        """
        for thread in self._threads:
            while thread.is_alive():
                thread.join(0.1)  # so that Ctrl-C is heard
        if self._errors:
            raise self._errors[0]
        return self._trees

    def __exit__(self, *_: object) -> None:
        """End what has not ended; what is there of a download stays for the next command."""
        self._fetcher.stopped.set()


def gather(
    context: Context,
    prefix: Path,
    archives: Sequence[Archive],
    joined: Joined,
    *,
    afresh: bool = False,
    damaged: Collection[str] = (),
    thorough: bool = False,
) -> Gathering:
    """Return what has the archives of a lock at hand that are not in a prefix yet; entering it begins.

    Args:
        context: What every verb is given.
        prefix: The prefix.
        archives: Those that it shall hold.
        joined: Who watches.
        afresh: Whether the prefix will be cleared before.
        damaged: The names of those that are brought there again, whatever is there of them.
        thorough: Whether to trust nothing that was unpacked before without looking at every byte.
    """
    there = placed(prefix)
    missing = [row for row in archives if afresh or row.name in damaged or not _is_whole(prefix, row, there)]
    joined.expected = sum(archive.size or 0 for archive in missing)
    fetcher = _fetcher(context)
    fetcher.on_bytes = lambda name, done, total: joined.background(Transfer(name, done, total or done))
    return Gathering(missing, archives, fetcher, default_store(joined.say), thorough, damaged)


def _is_whole(prefix: Path, archive: Archive, there: Mapping[str, Placed]) -> bool:
    record = there.get(archive.name)
    return record is not None and record.is_of(archive) and not record.missing(prefix)


def settle_archives(environment: Environment, gathering: Gathering) -> None:
    """Bring the archives of a prefix to what a lock says: take away what is not in it, put there what is.

    Raises:
        NetworkError: One could not be had.
        ForeignFolderError: One would replace a file that is not its own.
    """
    trees = gathering.wait()
    prefix = environment.prefix
    there = placed(prefix)
    names = {archive.name for archive in gathering.wanted}
    for name, record in there.items():
        if name in trees or name not in names:
            remove(prefix, record)
    for archive in gathering.archives:
        if archive.name in gathering.damaged and archive.name not in there:  # its record is what was lost
            remove(prefix, describe(archive, trees[archive.name]))
    for archive in gathering.wanted:
        if archive.name in trees:
            place(prefix, archive, trees[archive.name])
        elif not _is_whole(prefix, archive, there):  # cleared away since it was looked at
            raise NetworkError(f"{archive.name} has gone from {prefix}", hint="run the same command again")


def homes_in(prefix: Path, archives: Sequence[Archive]) -> tuple[Path, ...]:
    """Return the folders of a prefix that NVIDIA's archives have gone to; the prefix itself is none of them."""
    return tuple(dict.fromkeys(prefix / archive.to for archive in archives if archive.to and archive.version))


def remembered(archives: Sequence[Archive]) -> dict[str, tuple[str, str]]:
    """Return what the state remembers of archives."""
    return {archive.name: (archive.version, archive.sha256) for archive in archives}
