"""Fetch conda packages with rattler's client to tenv's own folder.

A package is used only after its digest matches the lock: rattler does not check the digest of a local file.
"""

import os
import re
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.certificates import Authorities
from tenv.core.errors import CertificateError, HashMismatchError, NetworkError
from tenv.core.http import PROXY_LOGIN, PROXY_WORDS
from tenv.core.http_settings import Patience
from tenv.core.names import CondaFile, Digest
from tenv.rattler_api.cache import cache_folder, downloads_folder
from tenv.rattler_api.network import Network, connection_fault, one_line, open_client, storage_error, unsent_server
from tenv.rattler_api.records import Record

if TYPE_CHECKING:
    import asyncio

    from rattler import Client

_CONNECTIONS = 8
"""How many packages come at once."""
_SMALL, _SMALL_CONNECTIONS = 1 << 18, 32
"""The bytes up to which a package takes as long to be asked for as to come, and how many of these come at once."""
_TRIES = 4
_PAUSE = 1.0
_PATIENCE = Patience()
_LASTING = re.compile(r"HTTP status client error \((?!408|425|429)")
"""A permanent error, which is not retried."""


def fetch(
    records: Sequence[Record],
    network: Network,
    on_bytes: Callable[[str, int, int], None],
    read: Callable[[Record, Path], None] = lambda *_: None,
) -> dict[str, Path]:
    """Fetch packages; an interrupted run's files are reused.

    Args:
        records: The packages.
        network: The access to channels.
        on_bytes: Called now and then with the name of a package, its bytes so far, and its size.
        read: Called in a thread for each package that has the right digest, while others come. A package that it
            refuses is removed.

    Returns:
        By URL: the path of each package.

    Raises:
        HashMismatchError: A file does not have the digest in the lock.
        NetworkError: A file can't be fetched.
        StorageError: The cache is not writable.
    """
    import asyncio  # late: 38 ms

    absent = [record for record in records if _carried(record, network) is None]
    if network.offline and absent:
        names = ", ".join(sorted(record.name for record in absent))
        raise NetworkError(
            f"the package cache ({cache_folder()}) lacks {names}, and `--offline` forbids the network",
            hint="run the same command once without `--offline`",
        )
    folder = downloads_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return asyncio.run(_fetch(records, folder, network, on_bytes, read))
    except OSError as error:
        raise storage_error(error, f"can't write to {folder}") from error


async def _fetch(
    records: Sequence[Record],
    folder: Path,
    network: Network,
    on_bytes: Callable[[str, int, int], None],
    read: Callable[[Record, Path], None],
) -> dict[str, Path]:
    import asyncio  # late: 38 ms

    few, many = asyncio.Semaphore(_CONNECTIONS), asyncio.Semaphore(_SMALL_CONNECTIONS)
    client, servers = open_client(replace(network, retries=0)), _Servers(network.authorities)  # `_download` asks again

    async def bring(record: Record, path: Path, digest: Digest) -> None:
        if await asyncio.to_thread(_is_whole, path, digest):
            return
        part = folder / f".{path.name}.{os.urandom(4).hex()}.part"  # containers that share a cache share numbers, too
        try:
            if carried := _carried(record, network):
                await asyncio.to_thread(_copy, carried, part, digest)
            else:
                await _download(record, part, client, servers, on_bytes)
            part.replace(path)
        finally:  # a partial package is useless to the next command, and the disk may be full
            part.unlink(missing_ok=True)

    async def one(record: Record) -> tuple[str, Path]:
        digest = _digest(record)
        file = CondaFile.parse(record.url)
        path = folder / f"{digest.value}{file.ending if file else '.tar.bz2'}"
        async with many if 0 < (record.size or 0) <= _SMALL else few:
            for left in reversed(range(_TRIES)):
                try:
                    await bring(record, path, digest)
                    await asyncio.to_thread(read, record, path)
                    break
                except FileNotFoundError:  # another process has installed the package meanwhile, and removed the file
                    if not left:
                        raise
                except NetworkError:
                    path.unlink(missing_ok=True)
                    raise
        return record.url, path

    tasks = [asyncio.create_task(one(record)) for record in records]
    try:
        return dict(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_whole(path: Path, digest: Digest) -> bool:
    return path.is_file() and digest.is_of(path)


def _carried(record: Record, network: Network) -> Path | None:
    """Return the file of a package that lies in a folder; None for one that has to be downloaded."""
    own = network.carried.find(record.sha256 or "") if network.carried else None
    return own or network.mirrored(record.url)


def _copy(source: Path, part: Path, digest: Digest) -> None:
    shutil.copyfile(source, part)
    if not digest.is_of(part):
        raise HashMismatchError(f"{source} has changed: its {digest.kind} is not {digest.value}")


def _digest(record: Record) -> Digest:
    """Return the stronger digest of a package."""
    if found := Digest.best(record.sha256, record.md5):
        return found
    raise NetworkError(f"{record.url}: has neither a sha256 nor an MD5", hint="`tenv lock` selects another one")


class _Sink:
    """The file of a download, with its digest."""

    def __init__(self, record: Record, path: Path, on_bytes: Callable[[str, int, int], None]) -> None:
        self._file = path.open("wb", buffering=1 << 20)
        self._record, self._on_bytes = record, on_bytes
        self._hash = _digest(record).hasher()
        self.done = 0

    def write(self, data: bytes) -> int:
        """Write the next bytes."""
        self._file.write(data)
        self._hash.update(data)
        self.done += len(data)
        self._on_bytes(self._record.name, self.done, self._record.size or 0)
        return len(data)

    def close(self) -> str:
        """Close the file and return the digest."""
        self._file.close()
        return str(self._hash.hexdigest())


async def _watched(work: "Awaitable[object]", sink: _Sink) -> None:
    """Wait for a download; raise TimeoutError if the server is silent or drips.

    rattler limits the time of a whole request alone, which must be long enough for the largest package.
    """
    import asyncio  # late: 38 ms

    task, window = asyncio.ensure_future(work), Patience.of(os.environ).window
    try:
        while True:
            before = sink.done
            done, _ = await asyncio.wait({task}, timeout=window)
            if done:
                task.result()
                return
            if sink.done - before < _PATIENCE.slow * window:
                slow = f"{_PATIENCE.slow / 1024:g} KiB a second for {window:g} s"
                raise TimeoutError(f"the server sent less than {slow}")
    finally:
        task.cancel()


class _Servers:
    """Why requests could not be sent, asked once for each server: an unknown name may take half a minute."""

    def __init__(self, authorities: Authorities) -> None:
        self._authorities = authorities
        self._asked: dict[str, asyncio.Task[CertificateError | NetworkError | None]] = {}

    async def fault(self, output: str) -> CertificateError | NetworkError | None:
        """Return the reason of an error of rattler, as `connection_fault`."""
        import asyncio  # late: 38 ms

        if not (server := unsent_server(output)):
            return self._authorities.refusal(output)
        if server not in self._asked:
            work = asyncio.to_thread(connection_fault, output, self._authorities)
            self._asked[server] = asyncio.create_task(work)
        return await asyncio.shield(self._asked[server])


async def _download(
    record: Record,
    part: Path,
    client: "Client",
    servers: "_Servers",
    on_bytes: Callable[[str, int, int], None],
) -> None:
    """Download one package to `part`; broken connections and wrong bytes are retried, a dead server once."""
    import asyncio  # late: 38 ms

    from rattler.package_streaming import download_to_writer

    digest, problem = _digest(record), None
    for number in range(Patience.of(os.environ).attempts):
        if number:
            await asyncio.sleep(_PAUSE * 2 ** (number - 1))
        sink = _Sink(record, part, on_bytes)
        try:
            await _watched(download_to_writer(client, record.url, sink), sink)
        except Exception as error:  # rattler's errors have no common base below Exception
            if isinstance(error, OSError) and error.errno:  # raised by tenv: the disk is full
                raise
            if isinstance(fault := await servers.fault(str(error)), CertificateError):
                raise fault from error
            reason = fault.message if fault else f"{record.url}: {one_line(error)}"
            hint = PROXY_LOGIN if PROXY_WORDS.search(reason) else "check the network and the mirrors, then try again"
            problem = NetworkError(reason, hint=hint)
            if _LASTING.search(problem.message) or (fault and number):
                break
            continue
        finally:
            found = sink.close()
        if found == digest.value:
            return
        told_before = isinstance(problem, HashMismatchError)
        problem = HashMismatchError(
            f"{record.url}: its {digest.kind} is {found}, but the lock has {digest.value}",
            hint="the channel or a mirror serves another file: report it to its maintainers, or accept it with "
            "`tenv update`",
        )
        if told_before:
            break
    if problem is not None:
        raise problem
