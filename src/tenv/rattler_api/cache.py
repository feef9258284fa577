"""Read the cache of conda packages, which rattler, pixi and tenv share, and the content of its packages.

The file names of a package are read before it is linked into a prefix: rattler follows names that leave a prefix, and
aborts the process on an absolute name.
"""

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError
from tenv.core.file_stamps import note_stamps, noted_stamps, stamp
from tenv.core.files import open_regular
from tenv.core.names import CondaFile
from tenv.rattler_api.network import cache_folder as shared_cache
from tenv.rattler_api.network import one_line
from tenv.rattler_api.records import Record

_OURS = ("info/paths.json", "info/link.json")


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a package."""

    record: Record
    """The package."""
    files: tuple[str, ...]
    """The names of its files as in the package."""
    links: tuple[str, ...] = ()
    """Those that are symbolic links."""
    entry_points: tuple[str, ...] = ()
    """The programs that an installer creates, for noarch Python packages."""
    noarch_python: bool = False
    """Whether its files depend on the place of the environment's Python."""


@dataclass(frozen=True, slots=True)
class PackageMembers:
    """The members of a fetched package."""

    about: Mapping[str, bytes]
    """The bytes of its lists of files, by the name of the list."""
    targets: Mapping[str, str]
    """The targets of its symbolic links, by name."""
    programs: frozenset[str]
    """The names of its executable files."""


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a package, as the package describes it."""

    sha256: str
    """Its digest in hex; empty for a link, and where the package has none."""
    placeholder: str
    """The text that an installer replaces with the prefix; empty for none."""
    binary: bool
    """Whether that is in a binary file."""
    target: str
    """The target of a symbolic link; empty for any other file."""
    executable: bool
    """Whether it is executable."""


@dataclass(frozen=True, slots=True)
class PackedFiles:
    """The content of a package with the description of each of its files, in the same order."""

    content: Content
    """The content."""
    files: tuple[PackedFile, ...]
    """The descriptions."""


def cache_folder() -> Path:
    """Return the folder of the package cache, which rattler and pixi share."""
    return shared_cache() / "pkgs"


def downloads_folder() -> Path:
    """Return the folder for fetched packages next to the package cache; they are removed once linked."""
    return cache_folder().parent / "tenv-downloads"


def lists_folder() -> Path:
    """Return the folder of the channels' package lists, which rattler and pixi share."""
    return shared_cache() / "repodata"


def is_cached_package(path: Path) -> bool:
    """Return whether an entry of the package cache is rattler's: a package with its lock file, or such a lock."""
    if path.name == ".cache.lock":
        return True
    package = path.with_name(path.name.removesuffix(".lock"))
    return path.with_name(f"{package.name}.lock").is_file() and (path != package or (path / "info").is_dir())


def is_package_list(path: Path) -> bool:
    """Return whether an entry of the lists' folder is rattler's: its names begin with a hash of the channel's URL."""
    return _LIST.match(path.name) is not None


_LIST = re.compile(r"[0-9a-f]{8}\.|shards")


def read_cache(records: Sequence[Record], *, thorough: bool = False) -> tuple[dict[str, Content], tuple[str, ...]]:
    """Return, by URL, the content of the packages in the cache, and the names of damaged ones.

    Args:
        records: The packages.
        thorough: Compare the digests of all files, not only of those with another stamp than the noted one.
    """
    there = in_cache(records)
    read = {record.url: _read_folder(record, folder, thorough=thorough) for record, folder in there}
    damaged = tuple(record.name for record, _ in there if read[record.url] is None)
    return {url: content for url, content in read.items() if content is not None}, damaged


def in_cache(records: Sequence[Record]) -> list[tuple[Record, Path]]:
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


def _read_folder(record: Record, folder: Path, *, thorough: bool) -> Content | None:
    """Return the content of a package in the cache; None for an incomplete or damaged one.

    A file is compared with its digest unless it has the stamp that tenv noted when the digest was right.
    """
    key = f"conda-{record.sha256 or record.md5}"
    noted = noted_stamps(key)
    try:
        texts = {name: (folder / name).read_bytes() for name in _OURS if (folder / name).is_file()}
        content, sizes = _read_content(record, texts)
        found = {name: stamp(f"{folder}/{name}", noted.get(name)) for name in (*texts, *sizes)}
        if any(name in noted and noted[name] != found[name] for name in texts):  # the lists vouch for the rest
            return None
        for name, (size, digest) in sizes.items():
            if size is not None and found[name][0] != size:
                return None
            if digest and (thorough or noted.get(name) != found[name]) and _sha256(f"{folder}/{name}") != digest:
                return None
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    if found != noted:
        note_stamps(key, found)
    return content


def _sha256(path: str) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_content(
    record: Record, texts: Mapping[str, bytes | None]
) -> tuple[Content, dict[str, tuple[int | None, str]]]:
    """Return the content by a package's own lists, and the size and sha256 of its regular files."""
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
    return Content(record, files, links, programs if python else (), python), sizes


def read_packed(packed: Mapping[str, PackageMembers], records: Iterable[Record]) -> list[PackedFiles]:
    """Return the content of fetched packages with the description of each file.

    Args:
        packed: The members of each package, by its URL.
        records: The packages; those without members are left out.

    Raises:
        NetworkError: One of them is not a conda package.
    """
    found = []
    for record in records:
        if record.url not in packed:
            continue
        members = packed[record.url]
        try:
            about: dict[str, bytes | None] = {**members.about}
            if about.get("info/paths.json") is None:  # packages before 2017 have plain lists
                names = (about.get("info/files") or b"").decode().split("\n")
                rows = [{"_path": name, "path_type": "hardlink"} for name in names if name]
                about["info/paths.json"] = json.dumps({"paths": rows}).encode()
            rows = json.loads(about["info/paths.json"] or b"")["paths"]
            files = tuple(_packed(row, members) for row in rows)
            found.append(PackedFiles(_read_content(record, about)[0], files))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise NetworkError(f"{record.url}: is not a conda package: {one_line(error)}") from error
    return found


def _packed(row: Mapping[str, Any], members: PackageMembers) -> PackedFile:
    name, link = posixpath.normpath(str(row["_path"])), row.get("path_type") != "hardlink"
    return PackedFile(
        sha256="" if link else str(row.get("sha256") or ""),
        placeholder=str(row.get("prefix_placeholder") or ""),
        binary=row.get("file_mode") == "binary",
        target=members.targets.get(name, ""),
        executable=name in members.programs,
    )
