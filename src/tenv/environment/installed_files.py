"""What is in a prefix and whose it is, as the records of its packages tell.

Every kind of package leaves a record of its files: a wheel the ``RECORD`` in its ``.dist-info``, a conda package a note
in ``conda-meta``, an archive a note among tenv's own. Each kind has one reader here, and all have one form, `Records`:
a further kind is one more reader, its line in `foreign_files`, and one in `Environment.owned`. A record that can't be
read counts as one that names nothing.
"""

import contextlib
import csv
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenv.core.names import CondaFile, dist_info, dist_infos
from tenv.core.prefix import ARCHIVES, files_in
from tenv.core.versions import same_release

__all__ = ["POINTER", "Archives", "CondaPackages", "Expected", "Records", "Wheels", "foreign_files"]


POINTER = "pointer:"
"""Begins the digest of a link that is judged by its text, whatever it leads to."""

_BYTECODE = "__pycache__"


@dataclass(frozen=True, slots=True)
class Expected:
    """A file that should be in a prefix.

    Attributes:
        name: The file, relative to the prefix.
        owner: The package that it belongs to; empty for what tenv itself makes.
        digest: The algorithm and the digest in hex, such as ``sha256:12ab…``; ``link:`` and where a link leads,
            ``pointer:`` when nothing need be there; empty when nothing is written of its content.
    """

    name: str
    owner: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Records(ABC):
    """The records of one kind of package in a prefix.

    Attributes:
        prefix: The folder.
    """

    prefix: Path

    @abstractmethod
    def names(self) -> Collection[str]:
        """Return the names of the packages that are there."""

    @abstractmethod
    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files of some packages, relative to the prefix, and those of their records."""

    @abstractmethod
    def hold(self, packages: Mapping[str, Any]) -> bool:
        """Tell whether packages are there as a state remembers them, by the names of files alone."""

    @abstractmethod
    def expected(self, packages: Mapping[str, Any]) -> Iterator[Expected]:
        """Yield every file of packages that a state remembers, their records too; what Python makes anew, not.

        Of a package whose record is not there, or is of another version, one file is told that no prefix has.
        """


class Wheels(Records):
    """The wheels of a prefix, by their normalized names."""

    __slots__ = ()

    def names(self) -> Collection[str]:
        """Return the names of the packages that are there."""
        return self.versions().keys()

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files that the records of packages name, and what else lies beside the records."""
        wanted = set(names)
        for info in self.distributions():
            if dist_info(info)[0] in wanted:
                base = os.path.relpath(info.parent, self.prefix)
                for row in _read_record(info):
                    yield os.path.normpath(os.path.join(base, row[0]))  # noqa: PTH118 (fast)
                yield from (os.path.relpath(path, self.prefix) for path in info.rglob("*") if not path.is_dir())

    def hold(self, packages: Mapping[str, tuple[str, str]]) -> bool:
        """Tell whether wheels are there in their versions, by the names of their folders alone."""
        there = self.versions()
        return all(same_release(there.get(name, ""), version) for name, (version, _) in packages.items())

    def expected(self, packages: Mapping[str, tuple[str, str]]) -> Iterator[Expected]:
        """Yield the files of wheels, with the digests that their RECORDs have."""
        infos = {dist_info(info)[0]: info for info in self.distributions()}
        versions = self.versions()
        for name, (version, _) in packages.items():
            if name not in infos or not same_release(versions[name], version):
                yield Expected(f"{name} {version}", name)  # whatever else of it is there, nobody can tell
                continue
            # A missing RECORD is told as missing, a broken one by what it no longer lists.
            yield Expected(os.path.relpath(infos[name] / "RECORD", self.prefix), name)
            base = os.path.relpath(infos[name].parent, self.prefix)
            for file, *rest in _read_record(infos[name]):
                if _BYTECODE not in file:
                    path = os.path.normpath(os.path.join(base, file))  # noqa: PTH118 (fast)
                    yield Expected(path, name, _of_record(*rest[:1]))

    def versions(self) -> dict[str, str]:
        """Return the version of every installed package."""
        found = {}
        for info in self.distributions():
            name, version = dist_info(info)
            found[name] = version
        return found

    def distributions(self) -> list[Path]:
        """Return the ``.dist-info`` folders of the prefix, sorted."""
        # conda's Python has a link `lib/python3.1` to its own folder, whose packages must not count twice.
        folders = [path for path in self.prefix.glob("lib/python3*") if not path.is_symlink()]
        homes = [folder / "site-packages" for folder in (*folders, self.prefix / "Lib")]
        return sorted(info for home in homes for info in dist_infos(home))

    def folders(self, names: Iterable[str], below: Path) -> tuple[Path, ...]:
        """Return the folders directly in `below` (a folder of site-packages) that hold files of packages, sorted."""
        wanted = set(names)
        found = set()
        for info in self.distributions():
            if dist_info(info)[0] in wanted:
                with contextlib.suppress(OSError, ValueError):  # not taken apart by csv: there are tens of thousands
                    record = (info / "RECORD").read_text("utf-8")
                    found.update(re.findall(rf"^{re.escape(below.name)}/([^/,]+)/", record, re.MULTILINE))
        return tuple(below / name for name in sorted(found))


class CondaPackages(Records):
    """The conda packages of a prefix."""

    __slots__ = ()

    def names(self) -> Collection[str]:
        """Return the names of the packages that are there."""
        return self.notes().keys()

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files that the notes of packages name, and those notes."""
        known = self.notes()
        for name in names:
            for note in known.get(name, ()):
                yield os.path.relpath(note, self.prefix)
                yield from _listed(_read_note(note), "files")

    def hold(self, packages: Mapping[str, tuple[str, str, str]]) -> bool:
        """Tell whether packages are there in their versions and builds, by the names of their notes alone."""
        if not packages:
            return True
        notes = {note.name for notes in self.notes().values() for note in notes}
        return all(CondaFile(name, version, build).note in notes for name, (version, build, _) in packages.items())

    def expected(self, packages: Mapping[str, tuple[str, str, str]]) -> Iterator[Expected]:
        """Yield the files of packages, with the digests that their notes have."""
        notes = {note.name: note for notes in self.notes().values() for note in notes}
        for name, (version, build, _) in packages.items():
            note = notes.get(CondaFile(name, version, build).note)
            if note is None:
                yield Expected(f"{name} {version}", name)
                continue
            file = os.path.relpath(note, self.prefix)
            try:
                rows = _read_note(note)["paths_data"]["paths"]
                files = [_of_note(row, name) for row in rows if _BYTECODE not in row["_path"]]
            except (KeyError, TypeError):
                yield Expected(file, name, "sha256:unreadable")
            else:
                yield from (Expected(file, name), *files)

    def notes(self) -> dict[str, list[Path]]:
        """Return the files in ``conda-meta``, one for each package, by the package's name."""
        found: dict[str, list[Path]] = {}
        folder = self.prefix / "conda-meta"
        for note in sorted(folder.iterdir()) if folder.is_dir() else ():
            if note.name.endswith(".json") and (file := CondaFile.parse(note.name)):
                found.setdefault(file.name, []).append(note)
        return found

    def without_note(self, names: Iterable[str]) -> set[str]:
        """Return those of some packages of which no note can be read."""
        known = self.notes()

        def is_read(name: str) -> bool:
            return any(isinstance(_read_note(note).get("files"), list) for note in known.get(name, ()))

        return {name for name in names if not is_read(name)}


class Archives(Records):
    """The archives of a prefix, by their names in ``[archives]``."""

    __slots__ = ()

    def names(self) -> Collection[str]:
        """Return the names of the archives that are there."""
        return self._records().keys()

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files and links that the records of archives name; the records are among tenv's own notes."""
        known = self._records()
        for name in names:
            yield from _placed(known.get(name, {}))

    def hold(self, packages: Mapping[str, tuple[str, str]]) -> bool:
        """Tell whether archives are there, by their records and by the names of their files."""
        if not packages:
            return True
        known = self._records()
        return all(
            name in known
            and known[name].get("sha256") == sha256
            and all(os.path.lexists(self.prefix / file) for file in _placed(known[name]))
            for name, (_, sha256) in packages.items()
        )

    def expected(self, packages: Mapping[str, tuple[str, str]]) -> Iterator[Expected]:
        """Yield the files and links of archives, with the digests and targets that their records have."""
        known = self._records() if packages else {}
        for name, (version, sha256) in packages.items():
            record = known.get(name, {})
            files, links = record.get("files"), record.get("links")
            if record.get("sha256") != sha256 or not isinstance(files, dict) or not isinstance(links, dict):
                yield Expected(f"{name} {version}".rstrip(), name)
                continue
            yield Expected(f"{ARCHIVES}/{name}.json", name)
            yield from (Expected(file, name, f"sha256:{digest}") for file, digest in files.items())
            yield from (Expected(link, name, f"{POINTER}{target}") for link, target in links.items())

    def _records(self) -> dict[str, dict[str, Any]]:
        read = (_read_note(path) for path in sorted((self.prefix / ARCHIVES).glob("*.json")))
        return {record["name"]: record for record in read if isinstance(record.get("name"), str)}


def _placed(record: Mapping[str, Any]) -> Iterator[str]:
    yield from map(os.path.normpath, (*_listed(record, "files"), *_listed(record, "links")))


def foreign_files(prefix: Path, wheels: Iterable[str], conda: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the files in a prefix that tenv did not put there, relative to it, sorted.

    Args:
        prefix: The folder.
        wheels: The normalized names of the wheels that are tenv's.
        conda: The names of the conda packages that are tenv's.
    """
    archives = Archives(prefix)  # nobody else brings any
    ours = {
        *Wheels(prefix).files(wheels),
        *CondaPackages(prefix).files(conda),
        *archives.files(archives.names()),
    }
    return tuple(sorted(name for name in files_in(prefix) if name not in ours and not _is_made(name)))


_MADE_FILES = {"pyvenv.cfg", "lib64", "CACHEDIR.TAG", ".gitignore", ".lock", "conda-meta/history"}
_MADE_PROGRAMS = ("python", "activate", "deactivate", "pydoc")


def _is_made(name: str) -> bool:
    """Tell whether a file is one of those that making the environment writes, beside the packages' own."""
    first, _, rest = name.partition(os.sep)
    if name in _MADE_FILES or first in ("cuda", "__clobbers__") or "__pycache__" in name:
        return True
    if first in ("bin", "Scripts"):
        return rest.startswith(_MADE_PROGRAMS)
    return rest.endswith(("_virtualenv.py", "_virtualenv.pth"))


def _read_record(info: Path) -> list[list[str]]:
    """Return the rows of the ``RECORD`` in a ``.dist-info``: name, digest, size; none where it can't be read."""
    try:
        with (info / "RECORD").open(newline="", encoding="utf-8") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, ValueError, csv.Error):
        return []


def _of_record(text: str = "") -> str:
    """Return a digest of a RECORD (``sha256=`` and urlsafe base64 without padding) in hex."""
    import base64  # noqa: PLC0415 (late: only who looks at every file asks)
    import hashlib  # noqa: PLC0415

    algorithm, _, value = text.partition("=")
    try:
        raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return ""
    return f"{algorithm}:{raw.hex()}" if raw and algorithm in hashlib.algorithms_guaranteed else ""


def _of_note(row: Mapping[str, Any], owner: str) -> Expected:
    """Return a file of a conda package: one in which the prefix was written has a digest of its own."""
    kind, sha256 = row.get("path_type", "hardlink"), row.get("sha256_in_prefix") or row.get("sha256")
    return Expected(os.path.normpath(row["_path"]), owner, f"sha256:{sha256}" if sha256 and kind == "hardlink" else "")


def _read_note(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one where it can't be read."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        data = json.loads(path.read_bytes())
        return data if isinstance(data, dict) else {}
    return {}


def _listed(record: Mapping[str, Any], key: str) -> Iterable[str]:
    """Return the names that a record lists, or has as keys."""
    names = record.get(key)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | dict) else []
