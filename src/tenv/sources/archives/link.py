"""Installs archives from the store into a prefix, records them, and removes them.

Each has a record ``tenv-meta/archives/NAME.json``: its identity, and the digest of every file.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import ArchiveRefusedError, ForeignFolderError
from tenv.core.files import digest, read_regular, storage_errors, write_atomic
from tenv.core.prefix import ARCHIVES, OWN, leads_out, require_inside
from tenv.core.untrusted import name_fault
from tenv.locks.lock import Archive
from tenv.sources.archives.member_names import first_clash
from tenv.sources.archives.store import Sharing, Tree, share

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Placed:
    """An installed archive."""

    name: str
    """Its name in the lock."""
    version: str
    """Its version."""
    sha256: str
    """The sha256 of the archive in hex."""
    to: str
    """Its folder."""
    files: Mapping[str, str]
    """The digest of each of its files, by path relative to the prefix."""
    links: Mapping[str, str]
    """Its links, with their targets."""
    licence: str
    """Its license file in the prefix; empty without one."""

    def is_of(self, archive: Archive) -> bool:
        """Return whether this is an archive of a lock, in the same folder."""
        return (self.sha256, self.to) == (archive.sha256, archive.to)

    def missing(self, prefix: Path) -> list[str]:
        """Return its missing files."""
        return [name for name in (*self.files, *self.links) if not os.path.lexists(prefix / name)]

    def to_json(self) -> str:
        """Return its record as text."""
        return json.dumps({"schema": _SCHEMA, **{name: getattr(self, name) for name in self.__slots__}}) + "\n"


def record_of(prefix: Path, name: str) -> Path:
    """Return the path of the record of an archive."""
    return prefix / ARCHIVES / f"{name}.json"


def placed(prefix: Path) -> dict[str, Placed]:
    """Return the installed archives by name; a record that can't be read is skipped."""
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
    """Return whether the values of a record have valid types and a valid name."""
    texts = [data[key] for key in ("name", "version", "sha256", "to", "licence")]
    texts += [text for key in ("files", "links") for pair in data[key].items() for text in pair]
    return all(isinstance(text, str) for text in texts) and not name_fault(data["name"])


def place(prefix: Path, archive: Archive, tree: Tree, how: Sharing = Sharing.CLONE) -> Placed:
    """Install an unpacked archive into a prefix.

    A new folder is filled aside and then renamed; an existing folder gets the files one by one. An existing file with
    the same bytes (after a lost record) becomes a file of the archive.

    Raises:
        ForeignFolderError: The archive would overwrite a file that it does not own.
        ArchiveRefusedError: The file system does not distinguish two of its names.
        StorageError: The disk is full, or the prefix is not writable.
    """
    home = prefix / archive.to
    record = describe(archive, tree)
    _check_inside(prefix, record)
    names = [*tree.contents.files, *tree.contents.links]
    there = [name for name in names if os.path.lexists(home / name)]
    taken = next((name for name in there if not _is_same(home / name, name, tree)), None)
    if taken is not None:
        raise ForeignFolderError(
            f"{archive.name}: {PurePosixPath(archive.to) / taken} exists in {prefix} and belongs to something else",
            hint=f'`to = "opt/{archive.name}"` in the manifest sets another folder',
        )
    _check_parents(prefix, home, names, archive)
    with storage_errors(f"can't install {archive.name} into {prefix}"):
        _check_clashes(prefix, names, archive)
        for name in there:
            (home / name).unlink()
        if home.exists():
            _fill(home, tree, how)
        else:
            home.parent.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=f".{home.name}.", dir=home.parent))
            try:
                _fill(aside / "tree", tree, how)
                (aside / "tree").rename(home)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        write_atomic(record_of(prefix, archive.name), record.to_json(), within=prefix)
    return record


def _check_inside(prefix: Path, record: Placed) -> None:
    """Raise an error for an archive with a path that is outside the prefix or reserved for tenv and conda."""
    names = [*record.files, *record.links]
    note = os.path.relpath(record_of(prefix, record.name), prefix)
    require_inside(prefix, [*names, note, f"{record.to or '.'}/x"], f"the archive {record.name}")
    own = next((name for name in names if Path(os.path.normpath(name)).parts[0] in (*OWN, "conda-meta")), None)
    if own is not None:
        raise ArchiveRefusedError(
            f"{record.name}: has the file `{own}`, which is reserved for tenv and conda",
            hint=f'`to = "opt/{record.name}"` in the manifest sets another folder',
        )


def _is_same(path: Path, name: str, tree: Tree) -> bool:
    """Return whether a path holds the same file or link as an archive under a name."""
    if path.is_symlink():
        return os.readlink(path) == tree.contents.links.get(name)  # noqa: PTH115 (the text of the link)
    return path.is_file() and name in tree.contents.files and digest(path) == tree.contents.files[name].sha256


def _check_parents(prefix: Path, home: Path, names: Iterable[str], archive: Archive) -> None:
    """Raise an error if a symbolic link in the prefix would redirect a file of the archive."""
    folders = {home / parent for name in names for parent in PurePosixPath(name).parents}
    folders |= {parent for parent in (home, *home.parents) if parent != prefix and prefix in parent.parents}
    through = min((folder for folder in folders if folder.is_symlink() or folder.is_file()), default=None)
    if through is not None and through != prefix:
        raise ForeignFolderError(
            f"{archive.name}: {through} is not a folder",
            hint=f'`to = "opt/{archive.name}"` in the manifest sets another folder',
        )


def _check_clashes(prefix: Path, names: Iterable[str], archive: Archive) -> None:
    """Raise an error for names that the file system of the prefix does not distinguish."""
    if found := first_clash(names, prefix):
        raise ArchiveRefusedError(
            f"{archive.name}: its files {found[0]!r} and {found[1]!r} clash in {prefix}, "
            "whose file system does not distinguish case",
            hint="`--prefix FOLDER` names a folder on another file system",
        )


def _fill(home: Path, tree: Tree, how: Sharing) -> None:
    made: set[Path] = set()
    how = Sharing.COPY if tree.shared else how
    for name, file in tree.contents.files.items():
        target = home / name
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        how = share(tree.folder / name, target, how)
        if tree.shared and digest(target) != file.sha256:  # of the copy, which nobody else can write
            raise ForeignFolderError(f"{tree.folder / name} was changed while it was copied")
    home.mkdir(parents=True, exist_ok=True)
    for name, leads_to in tree.contents.links.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(leads_to)


def describe(archive: Archive, tree: Tree) -> Placed:
    """Return the record of an unpacked archive."""

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
    """Remove an archive from a prefix: its files, its links, folders that become empty, its record."""
    _check_inside(prefix, record)
    with storage_errors(f"can't remove {record.name} from {prefix}"):
        for name in (*record.files, *record.links):
            (prefix / name).unlink(missing_ok=True)
        for folder in _folders(prefix, record):
            try:
                folder.rmdir()
            except OSError:  # the folder holds other files
                continue
        record_of(prefix, record.name).unlink(missing_ok=True)


def _folders(prefix: Path, record: Placed) -> Iterator[Path]:
    """Yield the folders of an archive, deepest first."""
    names = {parent for name in (*record.files, *record.links) for parent in PurePosixPath(name).parents}
    for name in sorted(names, key=lambda name: -len(name.parts)):
        if name.parts:
            yield prefix / name
