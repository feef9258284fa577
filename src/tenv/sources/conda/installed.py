"""The conda packages of a prefix, from the files in ``conda-meta``."""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tenv.core.files import storage_errors
from tenv.core.names import CondaFile
from tenv.core.prefix import require_inside
from tenv.environment.installed_files import BYTECODE, FOLDER, TEXT, Expected, Records, listed, read_note


class CondaPackages(Records):
    """The conda packages of a prefix."""

    __slots__ = ()

    def names(self) -> Collection[str]:
        """Return the names of the installed packages."""
        return self.notes().keys()

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files in the records of packages, and the records."""
        known = self.notes()
        for name in names:
            for note in known.get(name, ()):
                yield os.path.relpath(note, self.prefix)
                yield from listed(read_note(note), "files")

    def claims(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Return the paths that packages claim, by name: those of their files before rattler put any aside."""
        known = self.notes()
        found: dict[str, set[str]] = {}
        for name in names:
            for note in known.get(name, ()):
                record = read_note(note)
                paths = found.setdefault(name, set())
                rows = record.get("paths_data")
                rows = rows.get("paths") if isinstance(rows, dict) else None
                for row in rows if isinstance(rows, list) else ():
                    claimed = row.get("original_path") or row.get("_path") if isinstance(row, dict) else None
                    if isinstance(claimed, str):
                        paths.add(os.path.normpath(claimed))
                paths |= {*map(os.path.normpath, listed(record, "files"))}
        return found

    def named(self, packages: Iterable[str]) -> Iterator[str]:  # noqa: ARG002 (rattler reads all records)
        """Yield the names in both lists of every record in the prefix."""
        known = self.notes()
        yield from self.files(known)
        for note in (note for notes in known.values() for note in notes):
            if note.is_symlink():
                yield f"{note}"  # absolute, so rattler would write outside the prefix
            rows = read_note(note).get("paths_data")
            paths = rows.get("paths") if isinstance(rows, dict) else None
            for row in paths if isinstance(paths, list) else ():
                name = row.get("_path") if isinstance(row, dict) else None
                if isinstance(name, str):
                    yield name

    def own_files(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the note of each package."""
        known = self.notes()
        for name in packages:
            yield from (os.path.relpath(note, self.prefix) for note in known.get(name, ()))

    def hold(self, packages: Mapping[str, tuple[str, ...]]) -> bool:
        """Return whether packages are installed in their versions and builds, by the names of their records alone."""
        if not packages:
            return True
        notes = {note.name for notes in self.notes().values() for note in notes}
        return all(CondaFile(name, version, build).note in notes for name, (version, build, *_) in packages.items())

    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:
        """Yield the files of packages, with the digests in their records."""
        notes = {note.name: note for notes in self.notes().values() for note in notes}
        for name, (version, build, *_) in packages.items():
            note = notes.get(CondaFile(name, version, build).note)
            if note is None:
                yield Expected(f"{name} {version}", name)
                continue
            file = os.path.relpath(note, self.prefix)
            try:
                rows = read_note(note)["paths_data"]["paths"]
                files = [_of_note(row, name) for row in rows if BYTECODE not in row["_path"]]
            except (KeyError, TypeError):
                yield Expected(file, name, "sha256:unreadable")
            else:
                yield from (Expected(file, name), *files)

    def notes(self) -> dict[str, list[Path]]:
        """Return the files in ``conda-meta``, by package."""
        found: dict[str, list[Path]] = {}
        folder = self.prefix / "conda-meta"
        for note in sorted(folder.iterdir()) if folder.is_dir() else ():
            if note.name.endswith(".json") and (file := CondaFile.parse(note.name)):
                found.setdefault(file.name, []).append(note)
        return found

    def without_note(self, names: Iterable[str]) -> set[str]:
        """Return the packages whose record can't be read."""
        known = self.notes()

        def is_read(name: str) -> bool:
            return any(isinstance(read_note(note).get("files"), list) for note in known.get(name, ()))

        return {name for name in names if not is_read(name)}


def _of_note(row: Mapping[str, Any], owner: str) -> Expected:
    """Return a file of a conda package. A file that holds the prefix has a digest of its own.

    Of a link, py-rattler 0.28 notes the sha256 of its target.
    """
    kind, in_prefix = row.get("path_type", "hardlink"), row.get("sha256_in_prefix") or ""
    name, sha256 = os.path.normpath(row["_path"]), in_prefix or row.get("sha256")
    if kind == "softlink":
        return Expected(name, owner, f"{TEXT}{in_prefix}")
    if kind == "directory":
        return Expected(name, owner, FOLDER)
    return Expected(name, owner, f"sha256:{sha256}" if sha256 else "")


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
