"""Conda packages: fetched, looked at and linked by rattler, from the package cache that pixi uses too.

Nothing of a package reaches a prefix before its bytes have been compared with the lock and the names of its files have
been read: rattler takes a local file without asking for its digest, follows names that lead out of a prefix as far as
they go, and ends the whole process over an absolute one.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.engine.network import Network, open_client
from tenv.engine.network import cache_folder as shared_cache
from tenv.engine.records import Record
from tenv.errors import EnvironmentBrokenError, HashMismatchError, NetworkError, StorageError, UsageError

if TYPE_CHECKING:
    from rattler import Client

__all__ = ["Content", "cache_folder", "downloads_folder", "fetch", "link", "read_archives", "read_cache"]

_CONNECTIONS = 8
_TRIES = 3
_PAUSE = 1.0
_FULL = 1 << 16  # bytes; with less than that left, nothing can be installed
_ABOUT = ("info/paths.json", "info/link.json", "info/files", "info/has_prefix")
_OURS = ("info/paths.json", "info/link.json")


@dataclass(frozen=True, slots=True)
class Content:
    """What a package holds.

    Attributes:
        record: The package.
        files: The names of its files as the package has them.
        links: Those that are symbolic links.
        entry_points: The programs that an installer makes for it, of noarch Python packages.
        noarch_python: Whether its files go where the environment's Python is.
    """

    record: Record
    files: tuple[str, ...]
    links: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    noarch_python: bool = False


def cache_folder() -> Path:
    """Return the folder of the package cache: the one of rattler and pixi."""
    return shared_cache() / "pkgs"


def read_cache(records: Sequence[Record], *, thorough: bool = False) -> tuple[dict[str, Content], tuple[str, ...]]:
    """Return, by URL, the content of the packages that lie in the cache, and the names of those that are damaged there.

    Args:
        records: The packages.
        thorough: Tell by the digests of their files whether packages are whole, which takes about as long as to
            install them, and not by the sizes alone.
    """
    import asyncio  # noqa: PLC0415 (late: 38 ms)

    from rattler.package_cache import PackageCache  # noqa: PLC0415 (late: 40 ms and 25 MB)

    folder = cache_folder()
    if not folder.is_dir() or not records:
        return {}, ()
    index = asyncio.run(_index(PackageCache(folder)))
    there = [record for record in records if index.contains_record(record.raw)]
    read = {r.url: _read_folder(r, folder / f"{r.name}-{r.version}-{r.build}", thorough=thorough) for r in there}
    damaged = tuple(record.name for record in there if read[record.url] is None)
    return {url: content for url, content in read.items() if content is not None}, damaged


async def _index(cache: Any) -> Any:
    return await cache.index()


def _read_folder(record: Record, folder: Path, *, thorough: bool) -> Content | None:
    """Return the content of a package in the cache; None when it is not whole."""
    try:
        texts = {name: (folder / name).read_bytes() for name in _OURS if (folder / name).is_file()}
        content, told = _read_content(record, texts)
        for name, (size, digest) in told.items():
            path = f"{folder}/{name}"  # not a Path: there are tens of thousands of files
            if size is not None and os.lstat(path).st_size != size:
                return None
            if thorough and digest and _sha256(path) != digest:
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return content


def _sha256(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 (not a Path: there are tens of thousands of files)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_content(
    record: Record, texts: Mapping[str, bytes | None]
) -> tuple[Content, dict[str, tuple[int | None, str]]]:
    """Return the content that a package's own lists tell, and the size and sha256 of its regular files."""
    rows: list[dict[str, Any]] = json.loads(texts.get("info/paths.json") or b"")["paths"]
    files = tuple(str(row["_path"]) for row in rows)
    links = tuple(str(row["_path"]) for row in rows if row.get("path_type") == "softlink")
    told = {
        str(row["_path"]): (row.get("size_in_bytes"), str(row.get("sha256") or ""))
        for row in rows
        if row.get("path_type") == "hardlink"
    }
    noarch = json.loads(texts.get("info/link.json") or b"{}").get("noarch") or {}
    python = noarch.get("type") == "python"
    programs = tuple(str(line).partition("=")[0].strip() for line in noarch.get("entry_points") or ())
    return Content(record, files, links, programs if python else (), python), told


def read_archives(archives: Mapping[str, Path], records: Iterable[Record]) -> dict[str, Content]:
    """Return, by URL, the content of packages that were fetched.

    Raises:
        NetworkError: One of them is not a conda package.
    """
    import asyncio  # noqa: PLC0415 (late: 38 ms)

    return asyncio.run(_read_archives(archives, [record for record in records if record.url in archives]))


async def _read_archives(archives: Mapping[str, Path], records: Sequence[Record]) -> dict[str, Content]:
    from rattler.package_streaming import PackageArchive  # noqa: PLC0415 (late)

    found = {}
    for record in records:
        try:
            archive = await PackageArchive.from_path(archives[record.url])
            texts = await archive.read_files(_ABOUT)
            if texts.get("info/paths.json") is None:  # packages from before 2017 have plain lists
                names = (texts.get("info/files") or b"").decode().split("\n")
                rows = [{"_path": name, "path_type": "hardlink"} for name in names if name]
                texts["info/paths.json"] = json.dumps({"paths": rows}).encode()
            found[record.url] = _read_content(record, texts)[0]
        except Exception as error:  # rattler's errors have no common base below Exception
            raise NetworkError(f"{record.url}: is not a conda package: {_told(error)}") from error
    return found


def downloads_folder() -> Path:
    """Return the folder beside the package cache that packages are fetched to; they leave it once they are linked."""
    return cache_folder().parent / "tenv-downloads"


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
    import asyncio  # noqa: PLC0415 (late: 38 ms)

    if network.offline and records:
        names = ", ".join(sorted(record.name for record in records))
        raise NetworkError(
            f"the package cache ({cache_folder()}) lacks {names}, and the network is not to be used",
            hint="run the same command once without `--offline`",
        )
    folder = downloads_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return asyncio.run(_fetch(records, folder, open_client(network), on_bytes))
    except OSError as error:
        raise _storage(error, f"can't write to {folder}") from error


async def _fetch(
    records: Sequence[Record], folder: Path, client: "Client", on_bytes: Callable[[str, int, int], None]
) -> dict[str, Path]:
    import asyncio  # noqa: PLC0415 (late: 38 ms)

    free = asyncio.Semaphore(_CONNECTIONS)

    async def one(record: Record) -> tuple[str, Path]:
        digest = record.sha256 or record.md5
        path = folder / f"{digest}{'.conda' if record.url.endswith('.conda') else '.tar.bz2'}"
        async with free:
            if not path.is_file() or await asyncio.to_thread(_digest, path, record) != digest:
                await _download(record, path, client, on_bytes)
        return record.url, path

    tasks = [asyncio.create_task(one(record)) for record in records]
    try:
        return dict(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _digest(path: Path, record: Record) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, _kind(record)).hexdigest()


def _kind(record: Record) -> str:
    return "sha256" if record.sha256 else "md5"


class _Sink:
    """What a download is written to: a file, with its digest."""

    def __init__(self, record: Record, path: Path, on_bytes: Callable[[str, int, int], None]) -> None:
        self._file = path.open("wb", buffering=1 << 20)
        self._record, self._on_bytes = record, on_bytes
        self._hash = hashlib.new(_kind(record), usedforsecurity=False)
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
        return self._hash.hexdigest()


async def _download(record: Record, path: Path, client: "Client", on_bytes: Callable[[str, int, int], None]) -> None:
    """Download one package; a connection that breaks, or bytes that are not the right ones, are tried again."""
    import asyncio  # noqa: PLC0415 (late: 38 ms)

    from rattler.package_streaming import download_to_writer  # noqa: PLC0415 (late)

    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    problem: NetworkError | None = None
    for number in range(_TRIES):
        if number:
            await asyncio.sleep(_PAUSE)
        sink = _Sink(record, part, on_bytes)
        try:
            await download_to_writer(client, record.url, sink)
        except Exception as error:  # rattler's errors have no common base below Exception
            if isinstance(error, OSError) and error.errno:  # ours: the disk is full
                raise
            problem = NetworkError(
                f"{record.url}: {_told(error)}", hint="check the network and the mirrors, then try again"
            )
            if "HTTP status" in problem.message:  # the client has asked again already where that could help
                break
            continue
        finally:
            found = sink.close()
        if found == (record.sha256 or record.md5):
            part.replace(path)
            return
        told_before = isinstance(problem, HashMismatchError)
        problem = HashMismatchError(
            f"{record.url}: its {_kind(record)} is {found}, and the lock names {record.sha256 or record.md5}",
            hint="the channel or a mirror serves another file: ask its maintainers; `tenv update` takes what is there",
        )
        if told_before:
            break
    part.unlink(missing_ok=True)
    if problem is not None:
        raise problem


def link(
    records: Sequence[Record],
    prefix: Path,
    platform: str,
    archives: Mapping[str, Path],
    *,
    kept: Iterable[str] = (),
    again: Iterable[str] = (),
    thorough: bool = False,
    on_linked: Callable[[], None] = lambda: None,
) -> None:
    """Make the conda packages of a prefix exactly those that are given.

    Args:
        records: The packages.
        prefix: The prefix.
        platform: The platform of the prefix.
        archives: By URL: packages that are not in the cache yet, and whose bytes and names have been looked at.
        kept: Names of packages that are left alone, whatever they are.
        again: Names of packages that are linked anew even where the right version is there.
        thorough: Compare every file of the cache with its digest first.
        on_linked: Called for each package that is done.

    Raises:
        StorageError: The disk is full, or can't be written.
        EnvironmentBrokenError: rattler could not do it; the prefix is then in between.
    """
    import asyncio  # noqa: PLC0415 (late: 38 ms)

    for record in records:
        if record.url in archives:
            record.raw.url = archives[record.url].absolute().as_uri()
    try:
        asyncio.run(_link(records, prefix, platform, set(kept), set(again), on_linked, thorough=thorough))
    except OSError as error:
        raise _storage(error, f"can't install into {prefix}") from error
    except Exception as error:  # rattler's errors have no common base below Exception
        raise _link_error(error, prefix) from error
    finally:
        for record in records:
            record.raw.url = record.url
    for record in records:
        if record.url in archives:
            _name_origin(prefix, record)
            archives[record.url].unlink(missing_ok=True)  # the cache has it now


async def _link(
    records: Sequence[Record],
    prefix: Path,
    platform: str,
    kept: set[str],
    again: set[str],
    on_linked: Callable[[], None],
    *,
    thorough: bool,
) -> None:
    from rattler.install import InstallerReporter, install  # noqa: PLC0415 (late)
    from rattler.package_cache import PackageCache, ValidationMode  # noqa: PLC0415
    from rattler.platform import Subdir  # noqa: PLC0415

    class Reporter(InstallerReporter):
        """Counts the packages that are removed, linked or replaced."""

        def on_transaction_operation_complete(self, operation: int) -> None:  # noqa: ARG002 (rattler calls it so)
            on_linked()

    # What `read_cache` has found whole need not be looked at again.
    mode = ValidationMode.full() if thorough else ValidationMode.skip()
    await install(
        [record.raw for record in records],
        prefix,
        platform=Subdir(platform),
        ignored_packages=kept,
        reinstall_packages=again,
        execute_link_scripts=False,
        show_progress=False,
        reporter=Reporter(),  # type: ignore[abstract]  # none of its methods has to be there
        package_cache=PackageCache.new_layered([cache_folder()], validation_mode=mode),
    )


def _name_origin(prefix: Path, record: Record) -> None:
    """Write the canonical URL into the note of a package that was linked from a file."""
    note = prefix / "conda-meta" / f"{record.name}-{record.version}-{record.build}.json"
    try:
        data = json.loads(note.read_bytes())
        data["url"] = record.url
        note.write_text(json.dumps(data, indent=2), encoding="utf-8")
    except FileNotFoundError:  # whoever counts the packages will say that it is missing
        return
    except OSError as error:
        raise _storage(error, f"can't write {note}") from error


def _link_error(error: Exception, prefix: Path) -> StorageError | EnvironmentBrokenError | NetworkError | UsageError:
    text = _told(error)
    if "longer than the placeholder prefix" in text:
        hint = "choose a shorter folder: `--prefix`"
        return UsageError(f"{prefix}: this path is too long for the packages: {text}", hint=hint)
    for words in ("No space left", "Disk quota", "Read-only file system", "Permission denied", "Too many open files"):
        if words.lower() in text.lower():
            hint = "free some space or choose another folder, then run the same command again"
            return StorageError(f"can't install into {prefix}: {text}", hint=hint)
    if _is_full(prefix):  # rattler stumbles over the empty notes that it has written itself
        hint = "free some space or choose another folder, then run the same command again"
        return StorageError(f"can't install into {prefix}: No space left on device ({text})", hint=hint)
    hint = "run the same command again; with `--exact` every file of the package cache is checked first"
    if "failed to fetch" in text:
        return NetworkError(
            f"the package cache ({cache_folder()}) is damaged, and what is missing can't be had: {text}"
        )
    return EnvironmentBrokenError(f"the packages could not be linked into {prefix}: {text}", hint=hint)


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _FULL
    except OSError:
        return False


def _storage(error: OSError, what: str) -> StorageError:
    where = f" ({error.filename})" if error.filename else ""
    return StorageError(f"{what}: {error.strerror or error}{where}", hint="free some space or choose another folder")


def _told(error: Exception) -> str:
    """Return an error of rattler, which has a line for each of its causes, as one line."""
    lines = [line.removeprefix("Caused by: ").strip().rstrip(".") for line in str(error).splitlines()]
    return ": ".join(dict.fromkeys(line for line in lines if line)) or type(error).__name__
