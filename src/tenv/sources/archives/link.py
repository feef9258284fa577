"""Archives in a prefix: brought there from the store, recorded, and taken away again.

Each has a record ``tenv-meta/archives/NAME.json``: which archive it was, and every file with its digest.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tenv.core.errors import ArchiveRefusedError, ForeignFolderError
from tenv.core.files import digest, read_regular, storage_errors, write_atomic
from tenv.core.prefix import ARCHIVES, OWN, leads_out, require_inside
from tenv.core.untrusted import name_fault
from tenv.locks.lock import Archive
from tenv.sources.archives.case_collisions import first_clash
from tenv.sources.archives.store import Sharing, Tree, share

__all__ = ["Placed", "describe", "place", "placed", "record_of", "remove"]

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Placed:
    """An archive that is in a prefix.

    Attributes:
        name: Its name in the lock.
        version: Its version.
        sha256: The digest of its bytes in hex.
        to: The folder that it went to.
        files: The digest of each of its files, by path relative to the prefix.
        links: Its links, with what they lead to.
        licence: The file in the prefix that holds its licence, or an empty string.
    """

    name: str
    version: str
    sha256: str
    to: str
    files: Mapping[str, str]
    links: Mapping[str, str]
    licence: str

    def is_of(self, archive: Archive) -> bool:
        """Tell whether this is what a lock names, in the same place."""
        return (self.sha256, self.to) == (archive.sha256, archive.to)

    def missing(self, prefix: Path) -> list[str]:
        """Return those of its files that are not there any more."""
        return [name for name in (*self.files, *self.links) if not os.path.lexists(prefix / name)]

    def to_json(self) -> str:
        """Return the text of its record."""
        return json.dumps({"schema": _SCHEMA, **{name: getattr(self, name) for name in self.__slots__}}) + "\n"


def record_of(prefix: Path, name: str) -> Path:
    """Return where the record of an archive is, or would be."""
    return prefix / ARCHIVES / f"{name}.json"


def placed(prefix: Path) -> dict[str, Placed]:
    """Return the archives that are in a prefix by name; a record that can't be read counts as none."""
    found = {}
    for path in sorted((prefix / ARCHIVES).glob("*.json")):
        try:
            data = json.loads(read_regular(path))
            known = data.pop("schema") == _SCHEMA and _is_record(data) and path.stem == data["name"]
            if known and not leads_out(prefix, (*data["files"], *data["links"])):
                found[data["name"]] = Placed(**data)
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
            continue
    return found


def _is_record(data: Mapping[str, Any]) -> bool:
    """Tell whether the values of a record have the types and the name that tenv writes."""
    texts = [data[key] for key in ("name", "version", "sha256", "to", "licence")]
    texts += [text for key in ("files", "links") for pair in data[key].items() for text in pair]
    return all(isinstance(text, str) for text in texts) and not name_fault(data["name"])


def place(prefix: Path, archive: Archive, tree: Tree) -> Placed:
    """Bring an unpacked archive into a prefix.

    A folder that is not there yet is filled aside and then renamed; into one that is, file goes beside file. What
    is there with the very bytes of the archive's (its record was lost, say) becomes the archive's.

    Raises:
        ForeignFolderError: It would replace a file that is not its own.
        ArchiveRefusedError: Two of its names are one and the same there.
        StorageError: The disk is full, or the prefix can't be written.
    """
    home = prefix / archive.to
    record = describe(archive, tree)
    _check_inside(prefix, record)
    names = [*tree.contents.files, *tree.contents.links]
    there = [name for name in names if os.path.lexists(home / name)]
    taken = next((name for name in there if not _is_same(home / name, name, tree)), None)
    if taken is not None:
        raise ForeignFolderError(
            f"{archive.name}: its file {PurePosixPath(archive.to) / taken} is already in {prefix} and not its own",
            hint=f'give it a folder of its own in the manifest: `to = "opt/{archive.name}"`',
        )
    _check_parents(prefix, home, names, archive)
    with storage_errors(f"can't put {archive.name} into {prefix}"):
        _check_clashes(prefix, names, archive)
        for name in there:
            (home / name).unlink()
        if home.exists():
            _fill(home, tree)
        else:
            home.parent.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=f".{home.name}.", dir=home.parent))
            try:
                _fill(aside / "tree", tree)
                (aside / "tree").rename(home)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        write_atomic(record_of(prefix, archive.name), record.to_json(), within=prefix)
    return record


def _check_inside(prefix: Path, record: Placed) -> None:
    """Refuse an archive that has, or whose record names, what is not below the prefix or is tenv's and conda's own."""
    names = [*record.files, *record.links]
    note = os.path.relpath(record_of(prefix, record.name), prefix)
    require_inside(prefix, [*names, note, f"{record.to or '.'}/x"], f"the archive {record.name}")
    own = next((name for name in names if Path(os.path.normpath(name)).parts[0] in (*OWN, "conda-meta")), None)
    if own is not None:
        raise ArchiveRefusedError(
            f"{record.name}: holds `{own}`, a name that belongs to the environment itself, so nothing is installed",
            hint=f'give it a folder of its own in the manifest: `to = "opt/{record.name}"`',
        )


def _is_same(path: Path, name: str, tree: Tree) -> bool:
    """Tell whether what is at a path is what an archive has under a name."""
    if path.is_symlink():
        return os.readlink(path) == tree.contents.links.get(name)  # noqa: PTH115 (as it was written)
    return path.is_file() and name in tree.contents.files and digest(path) == tree.contents.files[name].sha256


def _check_parents(prefix: Path, home: Path, names: Iterable[str], archive: Archive) -> None:
    """Refuse to write through a link that stands in the prefix: what it leads to is not ours to fill."""
    folders = {home / parent for name in names for parent in PurePosixPath(name).parents}
    folders |= {parent for parent in (home, *home.parents) if parent != prefix and prefix in parent.parents}
    through = min((folder for folder in folders if folder.is_symlink() or folder.is_file()), default=None)
    if through is not None and through != prefix:
        raise ForeignFolderError(
            f"{archive.name}: {through} is no folder, so nothing is put below it",
            hint=f'give it a folder of its own in the manifest: `to = "opt/{archive.name}"`',
        )


def _check_clashes(prefix: Path, names: Iterable[str], archive: Archive) -> None:
    """Refuse what the file system of the prefix can't hold side by side, though that of the store could."""
    if found := first_clash(names, prefix):
        raise ArchiveRefusedError(
            f"{archive.name}: its files {found[0]!r} and {found[1]!r} would be one and the same in {prefix}, "
            "where upper and lower case are not told apart",
            hint="make the environment on another file system: `--prefix`",
        )


def _fill(home: Path, tree: Tree) -> None:
    how = Sharing.CLONE
    made: set[Path] = set()
    for name in tree.contents.files:
        target = home / name
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        how = share(tree.folder / name, target, how)
    home.mkdir(parents=True, exist_ok=True)
    for name, leads_to in tree.contents.links.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(leads_to)


def describe(archive: Archive, tree: Tree) -> Placed:
    """Return the record of an archive in a prefix."""

    def below(name: str) -> str:
        return f"{archive.to}/{name}" if archive.to else name

    contents = tree.contents
    return Placed(
        name=archive.name,
        version=archive.version,
        sha256=archive.sha256,
        to=archive.to,
        files={below(name): file.sha256 for name, file in contents.files.items()},
        links={below(name): target for name, target in contents.links.items()},
        licence=below(contents.licence) if contents.licence else "",
    )


def remove(prefix: Path, record: Placed) -> None:
    """Take an archive out of a prefix: its files, its links, the folders that are then empty, its record."""
    _check_inside(prefix, record)
    with storage_errors(f"can't remove {record.name} from {prefix}"):
        for name in (*record.files, *record.links):
            (prefix / name).unlink(missing_ok=True)
        for folder in _folders(prefix, record):
            try:
                folder.rmdir()
            except OSError:  # something else is in it
                continue
        record_of(prefix, record.name).unlink(missing_ok=True)


def _folders(prefix: Path, record: Placed) -> Iterator[Path]:
    """Yield the folders of an archive, those inside others first."""
    names = {parent for name in (*record.files, *record.links) for parent in PurePosixPath(name).parents}
    for name in sorted(names, key=lambda name: -len(name.parts)):
        if name.parts:
            yield prefix / name
