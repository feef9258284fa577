"""List the caches, and empty them."""

import shutil
from collections.abc import Collection
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_stamps import is_note, stamps_folder
from tenv.core.files import empty_folder, storage_errors
from tenv.core.folder_size import folder_size
from tenv.project.context import Context
from tenv.sources.interface import sources

__all__ = ["NOTES", "Cache", "clean_caches"]

NOTES = "notes on cached files"
"""The name of the cache with the sizes and times of files in the other caches, and with the requirements of wheels."""


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder with content that tenv can download or make again.

    Attributes:
        name: The kind of content.
        path: The folder.
        bytes: Its size, before it was emptied.
        freed: Whether this call emptied it.
        left: Files in it that tenv did not make.
    """

    name: str
    path: Path
    bytes: int
    freed: bool
    left: tuple[Path, ...] = ()


def clean_caches(context: Context, keys: Collection[str], *, leftovers: bool, notes: bool) -> list[Cache]:
    """Return the size of each cache, and empty the caches of some sources.

    Args:
        context: The context of the verb.
        keys: The keys of the sources whose caches are emptied.
        leftovers: Remove the files that interrupted commands left.
        notes: Remove the notes on the files of all caches.
    """
    rows = []
    for source in sources():
        for cache in source.caches(context):
            freed = source.section.key in keys or (leftovers and cache.leftover)
            size = folder_size(cache.path)
            left = tuple(cache.clear() or ()) if freed else ()
            rows.append(Cache(cache.name, cache.path, size, freed and cache.path not in left, left))
    folder = stamps_folder()
    size = folder_size(folder)
    left = tuple(empty_folder(folder, is_note)) if notes else ()
    rows.append(Cache(NOTES, folder, size, notes, left))
    for parent in dict.fromkeys((context.places.environments(), context.places.data / "envs")):
        for path in sorted(parent.glob(".*.removed-*")):
            rows.append(Cache("half-removed environment", path, folder_size(path), leftovers))
            if leftovers:
                with storage_errors(f"can't remove {path}"):
                    shutil.rmtree(path)
    return [row for row in rows if row.bytes or row.path.exists()]
