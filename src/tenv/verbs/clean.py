"""Look at the caches, and empty them."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tenv.core.files import folder_size, storage_errors
from tenv.project.context import Context
from tenv.rattler_api.cache import cache_folder, downloads_folder
from tenv.sources.archives.store import default_store

__all__ = ["Cache", "clean_caches"]


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder whose content can be had again.

    Attributes:
        name: What it is.
        path: The folder.
        bytes: What it holds, or held.
        freed: Whether it was emptied now.
    """

    name: str
    path: Path
    bytes: int
    freed: bool


def clean_caches(
    context: Context, *, leftovers: bool, wheels: bool, conda: bool = False, archives: bool = False
) -> list[Cache]:
    """Return what the caches hold, and empty those that were named."""
    uv = context.uv()
    folder = uv.cache_folder()
    rows = [Cache("wheels (uv)", folder, folder_size(folder), wheels)]
    if wheels:
        uv.clean_cache()
    rows.append(_folder("conda packages", cache_folder(), freed=conda))
    rows.append(_folder("conda downloads that were stopped", downloads_folder(), freed=leftovers or conda))
    store = default_store()
    rows.append(Cache("archives", store.folder, folder_size(store.folder), archives))
    if archives:
        store.clear()
    for parent in dict.fromkeys((context.places.environments(), context.places.data / "envs")):
        for path in sorted(parent.glob(".*.removed-*")):
            rows.append(Cache("half-removed environment", path, folder_size(path), leftovers))
            if leftovers:
                with storage_errors(f"can't remove {path}"):
                    shutil.rmtree(path)
    return [row for row in rows if row.bytes or row.path.exists()]


def _folder(name: str, path: Path, *, freed: bool) -> Cache:
    """Return a folder of a cache, emptied when that was asked for."""
    row = Cache(name, path, folder_size(path), freed)
    if freed and path.is_dir():
        with storage_errors(f"can't empty {path}"):
            shutil.rmtree(path)
    return row
