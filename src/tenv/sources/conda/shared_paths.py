"""Paths that several conda packages claim, and the packages to link again so that an update ends as a fresh create.

rattler gives a shared path to one package and puts the file of every other one below ``__clobbers__``. py-rattler 0.28
decides on that from the packages that one transaction links, so that an update can end with another file than a fresh
installation does, or with none. Packages that share a path are therefore removed before rattler links them together.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from tenv.core.files import storage_errors
from tenv.core.prefix import require_inside
from tenv.sources.conda.installed import CondaPackages

__all__ = ["sharing", "unlink"]


def sharing(before: Mapping[str, Collection[str]], after: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the packages that claim a path which another package claims, before or after an update.

    A file in the place of another package's folder counts as shared too.

    Args:
        before: The paths that each installed package claims, by its name.
        after: The same for the packages of the lock.
    """
    claims: defaultdict[str, set[str]] = defaultdict(set)
    for packages in (before, after):
        for name, paths in packages.items():
            for path in paths:
                claims[path].add(name)
    found = {name for names in claims.values() if len(names) > 1 for name in names}
    for folder, below in _folders(claims):
        if folder in claims:
            found |= claims[folder] | claims[below]
    return frozenset(found)


def _folders(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each folder above some paths once, with a path below it."""
    known: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in known:
            known.add(folder)
            yield folder, path
            folder = folder.rpartition("/")[0]


def unlink(packages: CondaPackages, names: Collection[str]) -> None:
    """Remove packages from a prefix: their files, the folders that become empty, and their records.

    Raises:
        EnvironmentBrokenError: A record names a file outside the prefix.
        StorageError: A file can't be removed.
    """
    prefix, notes = packages.prefix, packages.notes()
    files = [*packages.files(names)]
    require_inside(prefix, files, "a record of a conda package")
    ours = {os.path.relpath(note, prefix) for name in names for note in notes.get(name, ())}
    with storage_errors(f"can't remove packages from {prefix}"):
        for file in files:
            if file not in ours:
                _remove(prefix / file)
        folders = {parent for file in files if file not in ours for parent in PurePosixPath(file).parents[:-1]}
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            with contextlib.suppress(OSError):  # it holds other files
                (prefix / folder).rmdir()
        for note in ours:  # last, so that an interrupted removal can be repeated
            (prefix / note).unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(NotADirectoryError):  # a folder above is a file now
            path.unlink(missing_ok=True)
