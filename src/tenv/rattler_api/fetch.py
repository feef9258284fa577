"""Conda packages, fetched by rattler's client to a folder of tenv's own.

Nothing of a package goes on from there before its bytes have been compared with the lock: rattler takes a local file
without asking for its digest.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.certificates import Authorities
from tenv.core.errors import HashMismatchError, NetworkError
from tenv.core.names import CondaFile, Digest
from tenv.rattler_api.cache import cache_folder, downloads_folder
from tenv.rattler_api.faults import refused_certificate, storage_error, told
from tenv.rattler_api.network import Network, open_client
from tenv.rattler_api.records import Record

if TYPE_CHECKING:
    from rattler import Client

__all__ = ["fetch"]

_CONNECTIONS = 8
_TRIES = 4
_PAUSE = 1.0
_LASTING = re.compile(r"HTTP status client error \((?!408|425|429)")
"""An answer that will be the same the next time."""


def fetch(records: Sequence[Record], network: Network, on_bytes: Callable[[str, int, int], None]) -> dict[str, Path]:
    """Fetch packages; what an interrupted run has fetched before is taken from there.

    Args:
        records: The packages.
        network: How channels are reached.
        on_bytes: Told now and then the name of a package, the bytes of it that are here, and its size.

    Returns:
        By URL: where each package lies.

    Raises:
        HashMismatchError: A file's bytes are not those of the lock.
        NetworkError: A file can't be had.
        StorageError: The cache can't be written.
    """
    import asyncio  # late: 38 ms

    if network.offline and records:
        names = ", ".join(sorted(record.name for record in records))
        raise NetworkError(
            f"the package cache ({cache_folder()}) lacks {names}, and the network is not to be used",
            hint="run the same command once without `--offline`",
        )
    folder = downloads_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return asyncio.run(_fetch(records, folder, network, on_bytes))
    except OSError as error:
        raise storage_error(error, f"can't write to {folder}") from error


async def _fetch(
    records: Sequence[Record], folder: Path, network: Network, on_bytes: Callable[[str, int, int], None]
) -> dict[str, Path]:
    import asyncio  # late: 38 ms

    free = asyncio.Semaphore(_CONNECTIONS)
    client = open_client(replace(network, retries=0))  # `_download` asks again: rattler would not say what went wrong

    async def one(record: Record) -> tuple[str, Path]:
        digest = _digest(record)
        file = CondaFile.parse(record.url)
        path = folder / f"{digest.value}{file.ending if file else '.tar.bz2'}"
        async with free:
            if not path.is_file() or not await asyncio.to_thread(digest.is_of, path):
                part = folder / f".{path.name}.{os.getpid()}.part"
                try:
                    await _download(record, part, client, network.authorities, on_bytes)
                    part.replace(path)
                finally:  # half of a package is of no use to the next command, and the disk may be full
                    part.unlink(missing_ok=True)
        return record.url, path

    tasks = [asyncio.create_task(one(record)) for record in records]
    try:
        return dict(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _digest(record: Record) -> Digest:
    """Return the better digest of a package."""
    if found := Digest.best(record.sha256, record.md5):
        return found
    raise NetworkError(f"{record.url}: comes without a sha256 and without an MD5", hint="`tenv lock` chooses another")


class _Sink:
    """What a download is written to: a file, with its digest."""

    def __init__(self, record: Record, path: Path, on_bytes: Callable[[str, int, int], None]) -> None:
        self._file = path.open("wb", buffering=1 << 20)
        self._record, self._on_bytes = record, on_bytes
        self._hash = _digest(record).hasher()
        self.done = 0

    def write(self, data: bytes) -> int:
        """Take the next bytes."""
        self._file.write(data)
        self._hash.update(data)
        self.done += len(data)
        self._on_bytes(self._record.name, self.done, self._record.size or 0)
        return len(data)

    def close(self) -> str:
        """Close the file and return the digest."""
        self._file.close()
        return str(self._hash.hexdigest())


async def _download(
    record: Record, part: Path, client: "Client", authorities: Authorities, on_bytes: Callable[[str, int, int], None]
) -> None:
    """Download one package to `part`; a connection that breaks, or bytes that are not its own, are tried again."""
    import asyncio  # late: 38 ms

    from rattler.package_streaming import download_to_writer

    digest, problem = _digest(record), None
    for number in range(_TRIES):
        if number:
            await asyncio.sleep(_PAUSE * 2 ** (number - 1))
        sink = _Sink(record, part, on_bytes)
        try:
            await download_to_writer(client, record.url, sink)
        except Exception as error:  # rattler's errors have no common base below Exception
            if isinstance(error, OSError) and error.errno:  # ours: the disk is full
                raise
            if refusal := await asyncio.to_thread(refused_certificate, str(error), authorities):
                raise refusal from error
            problem = NetworkError(
                f"{record.url}: {told(error)}", hint="check the network and the mirrors, then try again"
            )
            if _LASTING.search(problem.message):
                break
            continue
        finally:
            found = sink.close()
        if found == digest.value:
            return
        told_before = isinstance(problem, HashMismatchError)
        problem = HashMismatchError(
            f"{record.url}: its {digest.kind} is {found}, and the lock names {digest.value}",
            hint="the channel or a mirror serves another file: ask its maintainers; `tenv update` takes what is there",
        )
        if told_before:
            break
    if problem is not None:
        raise problem
