"""Read the cache of conda packages, which rattler, pixi and tenv share, and the content of its packages.

The file names of a package are read before it is linked into a prefix: rattler follows names that leave a prefix, and
aborts the process on an absolute name.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError
from tenv.core.file_stamps import Stamp, noted_stamps, stamp
from tenv.core.files import open_regular
from tenv.core.names import CondaFile
from tenv.rattler_api.cache_notes import CacheNote, read_note, write_note
from tenv.rattler_api.faults import one_line
from tenv.rattler_api.network import cache_folder as shared_cache
from tenv.rattler_api.records import Record

__all__ = ["Content", "NotedPackage", "PackedFile", "PackedFiles", "cache_folder", "downloads_folder", "lists_folder"]
__all__ += ["noted_packages", "read_cache", "read_packed"]

_OURS = ("info/paths.json", "info/link.json")


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a package.

    Attributes:
        record: The package.
        files: The names of its files as in the package.
        links: Those that are symbolic links.
        entry_points: The programs that an installer creates, for noarch Python packages.
        noarch_python: Whether its files depend on the place of the environment's Python.
    """

    record: Record
    files: tuple[str, ...]
    links: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    noarch_python: bool = False


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a package, as the package describes it.

    Attributes:
        sha256: Its digest in hex; empty for a link, and where the package does not say.
        placeholder: The text that an installer replaces with the prefix; empty for none.
        binary: Whether that is in a binary file.
    """

    sha256: str
    placeholder: str
    binary: bool


@dataclass(frozen=True, slots=True)
class PackedFiles:
    """The content of a package with the description of each of its files, in the same order.

    Attributes:
        content: The content.
        files: The descriptions.
    """

    content: Content
    files: tuple[PackedFile, ...]


def cache_folder() -> Path:
    """Return the folder of the package cache, which rattler and pixi share."""
    return shared_cache() / "pkgs"


def downloads_folder() -> Path:
    """Return the folder for fetched packages next to the package cache; they are removed once linked."""
    return cache_folder().parent / "tenv-downloads"


def lists_folder() -> Path:
    """Return the folder of the channels' package lists, which rattler and pixi share."""
    return shared_cache() / "repodata"


@dataclass(frozen=True, slots=True)
class NotedPackage:
    """A package in the cache of whose files the digests were right when they had the noted stamps.

    Attributes:
        content: Its content.
        folder: Where it is.
        note: What was noted.
    """

    content: Content
    folder: Path
    note: CacheNote

    def inodes(self) -> set[int] | None:
        """Return the inode numbers of the regular files; None where one no longer has its noted stamp."""
        start, note, found = f"{self.folder}/", self.note, set[int]()
        try:
            for name, (size, time) in zip(note.names, note.stamps, strict=True):
                status = os.lstat(start + name)  # not a Path: there are tens of thousands of files
                if status.st_size != size or status.st_mtime_ns != time:
                    return None
                found.add(status.st_ino)
        except OSError:
            return None
        return found

    def linked(self) -> dict[str, int]:
        """Return the files that an installer links as they are to where they are, with their sizes in bytes."""
        if self.note.noarch_python:
            return {}
        sizes = {name: size for name, (size, _) in zip(self.note.names, self.note.stamps, strict=True)}
        for name in self.note.changed:
            sizes.pop(name, None)
        return {name: size for name, size in sizes.items() if "__pycache__" not in name}  # Python may replace these


def read_cache(records: Sequence[Record], *, thorough: bool = False) -> tuple[dict[str, Content], tuple[str, ...]]:
    """Return, by URL, the content of the packages in the cache, and the names of damaged ones.

    Args:
        records: The packages.
        thorough: Compare the digests of all files, not only of those whose size or time differ from what was noted.
    """
    there = _cached(records)
    read = {record.url: _read_folder(record, folder, thorough=thorough) for record, folder in there}
    damaged = tuple(record.name for record, _ in there if read[record.url] is None)
    return {url: content for url, content in read.items() if content is not None}, damaged


def noted_packages(records: Sequence[Record]) -> list[NotedPackage] | None:
    """Return packages in the cache by their notes alone; None where one is not there or was not noted.

    Their own lists are as noted. The caller asks each package whether its files are, too.
    """
    there = _cached(records)
    notes = [(record, folder, _current_note(record, folder)) for record, folder in there]
    found = [NotedPackage(_noted_content(record, note), folder, note) for record, folder, note in notes if note]
    return found if len(found) == len(records) else None


def _cached(records: Sequence[Record]) -> list[tuple[Record, Path]]:
    """Return the packages that rattler finds in the cache, with their folders."""
    import asyncio  # late: 38 ms

    from rattler.package_cache import PackageCache  # late: 40 ms and 25 MB

    folder = cache_folder()
    if not folder.is_dir() or not records:
        return []
    index = asyncio.run(_index(PackageCache(folder)))
    return [
        (record, folder / CondaFile(record.name, record.version, record.build).stem)
        for record in records
        if index.contains_record(record.raw)
    ]


async def _index(cache: Any) -> Any:
    return await cache.index()


def _key(record: Record) -> str:
    return f"conda-{record.sha256 or record.md5}"


def _current_note(record: Record, folder: Path) -> CacheNote | None:
    """Return the note of a package whose own lists are as noted."""
    note = read_note(_key(record))
    return note if note and note.lists == _stamps(folder, _OURS, missing=True) else None


def _noted_content(record: Record, note: CacheNote) -> Content:
    return Content(record, note.files, note.links, note.entry_points, note.noarch_python)


def _stamps(folder: Path, names: Iterable[str], *, missing: bool = False) -> dict[str, Stamp]:
    """Return the stamps of files; with `missing` without those that are not there."""
    found = {}
    for name in names:
        try:
            found[name] = stamp(f"{folder}/{name}")
        except OSError:
            if not missing:
                raise
    return found


def _read_folder(record: Record, folder: Path, *, thorough: bool) -> Content | None:
    """Return the content of a package in the cache; None if it is incomplete or damaged.

    A file is compared with its digest unless its size and time are what tenv noted when the digest was right.
    """
    key = _key(record)
    note = _current_note(record, folder)
    if note and not thorough:
        package = NotedPackage(_noted_content(record, note), folder, note)
        if package.inodes() is not None:
            return package.content
    noted = old.by_name() if (old := read_note(key)) else noted_stamps(key)
    try:
        texts = {name: (folder / name).read_bytes() for name in _OURS if (folder / name).is_file()}
        content, sizes, changed = _read_content(record, texts)
        found = _stamps(folder, (*texts, *sizes))
        if any(name in noted and noted[name] != found[name] for name in texts):  # the lists vouch for the rest
            return None
        for name, (size, digest) in sizes.items():
            if size is not None and found[name][0] != size:
                return None
            if digest and (thorough or noted.get(name) != found[name]) and _sha256(f"{folder}/{name}") != digest:
                return None
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    lists = {name: found[name] for name in texts}
    stamps = tuple(found[name] for name in sizes)
    new = CacheNote(
        lists, (*sizes,), stamps, content.files, content.links, content.entry_points, content.noarch_python, changed
    )
    if new != old:
        write_note(key, new)
    return content


def _sha256(path: str) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_content(
    record: Record, texts: Mapping[str, bytes | None]
) -> tuple[Content, dict[str, tuple[int | None, str]], tuple[str, ...]]:
    """Return the content by a package's own lists, the size and sha256 of regular files, and those with a prefix."""
    rows: list[dict[str, Any]] = json.loads(texts.get("info/paths.json") or b"")["paths"]
    files = tuple(str(row["_path"]) for row in rows)
    links = tuple(str(row["_path"]) for row in rows if row.get("path_type") == "softlink")
    sizes = {
        str(row["_path"]): (row.get("size_in_bytes"), str(row.get("sha256") or ""))
        for row in rows
        if row.get("path_type") == "hardlink"
    }
    noarch = json.loads(texts.get("info/link.json") or b"{}").get("noarch") or {}
    python = noarch.get("type") == "python"
    programs = tuple(str(line).partition("=")[0].strip() for line in noarch.get("entry_points") or ())
    changed = tuple(str(row["_path"]) for row in rows if row.get("prefix_placeholder"))
    return Content(record, files, links, programs if python else (), python), sizes, changed


def read_packed(texts: Mapping[str, Mapping[str, bytes]], records: Iterable[Record]) -> list[PackedFiles]:
    """Return the content of fetched packages with the description of each file.

    Args:
        texts: By URL: what each package says of its files, by the name of the file.
        records: The packages; those without texts are left out.

    Raises:
        NetworkError: One of them is not a conda package.
    """
    found = []
    for record in records:
        if record.url not in texts:
            continue
        try:
            about: dict[str, bytes | None] = {**texts[record.url]}
            if about.get("info/paths.json") is None:  # packages before 2017 have plain lists
                names = (about.get("info/files") or b"").decode().split("\n")
                rows = [{"_path": name, "path_type": "hardlink"} for name in names if name]
                about["info/paths.json"] = json.dumps({"paths": rows}).encode()
            rows = json.loads(about["info/paths.json"] or b"")["paths"]
            found.append(PackedFiles(_read_content(record, about)[0], tuple(map(_packed, rows))))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise NetworkError(f"{record.url}: is not a conda package: {one_line(error)}") from error
    return found


def _packed(row: Mapping[str, Any]) -> PackedFile:
    link = row.get("path_type") != "hardlink"
    return PackedFile(
        "" if link else str(row.get("sha256") or ""),
        str(row.get("prefix_placeholder") or ""),
        row.get("file_mode") == "binary",
    )
