"""Link conda packages from the package cache into a prefix with rattler."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tenv.core.errors import EnvironmentBrokenError, NetworkError, StorageError, UsageError
from tenv.core.file_content import read_text
from tenv.core.names import CondaFile
from tenv.rattler_api.cache import cache_folder
from tenv.rattler_api.network import one_line, storage_error
from tenv.rattler_api.records import Record

_FULL = 1 << 16  # bytes; with less free space, nothing can be installed


def link(
    records: Sequence[Record],
    prefix: Path,
    platform: str,
    archives: Mapping[str, Path],
    *,
    kept: Iterable[str] = (),
    again: Iterable[str] = (),
    thorough: bool = False,
    copies: bool = False,
    on_linked: Callable[[], None] | None = None,
) -> None:
    """Make the conda packages of a prefix exactly the given ones.

    Args:
        records: The packages.
        prefix: The prefix.
        platform: The platform of the prefix.
        archives: By URL: packages that are not in the cache yet, with verified bytes and names.
        kept: Names of packages that stay unchanged in any version.
        again: Names of packages that are linked again even if the right version is installed.
        thorough: First compare every file of the cache with its digest.
        copies: Whether files are copied, in place of clones and links of those in the cache.
        on_linked: Called for each linked package.

    Raises:
        StorageError: The disk is full or not writable.
        EnvironmentBrokenError: rattler failed; the prefix is incomplete.
    """
    import asyncio  # late: 38 ms

    for record in records:
        if record.url in archives:
            record.raw.url = archives[record.url].absolute().as_uri()
    notes = {record.url: _note(prefix, record) for record in records}
    before = {url: _stamp(note) for url, note in notes.items()}
    try:
        work = _link(records, prefix, platform, set(kept), set(again), on_linked, thorough=thorough, copies=copies)
        asyncio.run(work)
    except OSError as error:
        raise storage_error(error, f"can't install into {prefix}") from error
    except Exception as error:  # rattler's errors have no common base below Exception
        raise _link_error(error, prefix) from error
    finally:
        for record in records:
            record.raw.url = record.url
    try:
        _settle({url: note for url, note in notes.items() if _stamp(note) not in (before[url], _MISSING)})
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _link_error(error, prefix) from error  # rattler leaves empty records on a full disk
    for record in records:
        if record.url in archives:
            archives[record.url].unlink(missing_ok=True)  # it is in the cache now


async def _link(
    records: Sequence[Record],
    prefix: Path,
    platform: str,
    kept: set[str],
    again: set[str],
    on_linked: Callable[[], None] | None,
    *,
    thorough: bool,
    copies: bool,
) -> None:
    from rattler import Config
    from rattler.install import InstallerReporter, install
    from rattler.package_cache import PackageCache, ValidationMode
    from rattler.platform import Subdir

    class Reporter(InstallerReporter):
        """Counts the removed, linked and replaced packages."""

        def on_transaction_operation_complete(self, operation: int) -> None:  # noqa: ARG002 (rattler's signature)
            if on_linked:
                on_linked()

    config = Config() if copies else None
    for way in ("allow-ref-links", "allow-hard-links", "allow-symbolic-links"):
        if config:
            config.set(way, "false")
    # Packages that `read_cache` found complete need no second check.
    mode = ValidationMode.full() if thorough else ValidationMode.skip()
    await install(
        [record.raw for record in records],
        prefix,
        platform=Subdir(platform),
        ignored_packages=kept,
        reinstall_packages=again,
        execute_link_scripts=False,
        show_progress=False,
        config=config,
        reporter=Reporter() if on_linked else None,  # type: ignore[abstract]  # all of its methods are optional
        package_cache=PackageCache.new_layered([cache_folder()], validation_mode=mode),
    )


_MISSING = (0, 0)
"""The stamp of a missing record, which is left to those who count the packages."""


def _note(prefix: Path, record: Record) -> Path:
    return prefix / "conda-meta" / CondaFile(record.name, record.version, record.build).note


def _stamp(note: Path) -> tuple[int, int]:
    try:
        status = note.stat()
    except OSError:
        return _MISSING
    return status.st_ino, status.st_mtime_ns


def _settle(notes: Mapping[str, Path]) -> None:
    """Write the canonical URL, and the files in a stable order, into the records of linked packages.

    py-rattler 0.28 writes the URL that it was given, and the files in the order in which its threads linked them.

    Args:
        notes: The record of each package, by its URL.

    Raises:
        StorageError: A record can't be written.
        ValueError, LookupError, TypeError, AttributeError: One can't be read.
    """
    for url, note in notes.items():
        try:
            data = json.loads(read_text(note))
            data["url"] = url
            data["files"].sort()
            data["paths_data"]["paths"].sort(key=lambda row: row["_path"])
            with note.open("r+b") as file:  # not emptied first: ext4 then writes each file to the disk on closing
                file.write(f"{json.dumps(data)}\n".encode())
                file.truncate()
        except OSError as error:
            raise storage_error(error, f"can't write {note}") from error


_DISK = (
    *("No space left", "Disk quota", "Read-only file system", "Permission denied", "Too many open files"),
    "Input/output error",
)
"""The C library's errors about a disk that can't be written; rattler passes them on."""


def _link_error(error: Exception, prefix: Path) -> StorageError | EnvironmentBrokenError | NetworkError | UsageError:
    text = one_line(error)
    if "longer than the placeholder prefix" in text:
        hint = "choose a shorter path: `--prefix FOLDER`"
        return UsageError(f"{prefix}: this path is too long for the packages: {text}", hint=hint)
    for words in _DISK:
        if words.lower() in text.lower():
            hint = "free some space or choose another folder, then run the same command again"
            return StorageError(f"can't install into {prefix}: {_brief(text)}", hint=hint)
    if _is_full(prefix):  # rattler fails on the empty records that it wrote itself
        hint = "free some space or choose another folder, then run the same command again"
        return StorageError(f"can't install into {prefix}: No space left on device ({_brief(text)})", hint=hint)
    hint = "run the same command again; with `--exact`, every file of the package cache is verified first"
    if "failed to fetch" in text:
        return NetworkError(
            f"the package cache ({cache_folder()}) is damaged, and missing packages can't be fetched: {text}"
        )
    return EnvironmentBrokenError(f"the packages could not be linked into {prefix}: {text}", hint=hint)


def _brief(text: str) -> str:
    """Return an error of the disk without the middle of its chain of causes, which repeats long paths."""
    first, *others = text.split(": ")
    return ": ".join((first, *others[-2:]))


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _FULL
    except OSError:
        return False
