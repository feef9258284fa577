"""Notes about conda packages in the cache: what each says of its files, and their stamps when their digests were right.

A note spares the reading of the package's own lists, which vouch for the rest and are among its stamps.
"""

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import StorageError
from tenv.core.file_stamps import Stamp, stamps_folder
from tenv.core.files import read_regular, write_atomic

__all__ = ["CacheNote", "read_note", "write_note"]


@dataclass(frozen=True, slots=True)
class CacheNote:
    """What was noted of a package.

    Attributes:
        lists: The stamps of its own lists, by name; a list that is not named was not there.
        names: The names of its regular files.
        stamps: The stamp of each of them.
        files: The names of all its files.
        links: Those that are symbolic links.
        entry_points: The programs that an installer creates for it.
        noarch_python: Whether its files depend on the place of the environment's Python.
        changed: The regular files that an installer does not link, since it replaces the prefix in them.
    """

    lists: Mapping[str, Stamp]
    names: tuple[str, ...]
    stamps: tuple[Stamp, ...]
    files: tuple[str, ...]
    links: tuple[str, ...]
    entry_points: tuple[str, ...]
    noarch_python: bool
    changed: tuple[str, ...]

    def by_name(self) -> dict[str, Stamp]:
        """Return the stamps of the lists and the regular files."""
        return {**self.lists, **dict(zip(self.names, self.stamps, strict=True))}


def read_note(key: str) -> CacheNote | None:
    """Return the note of a package; None where there is none, or where it can't be read."""
    with contextlib.suppress(OSError, ValueError, LookupError, RecursionError, TypeError, AttributeError):
        data: dict[str, Any] = json.loads(read_regular(stamps_folder() / f"{key}.json"))
        lists = {str(name): (int(size), int(time)) for name, (size, time) in data["lists"].items()}
        stamps = tuple(zip(data["sizes"], data["times"], strict=True))
        files = tuple(data["files"])
        names = files if data["names"] is None else tuple(data["names"])
        links, programs, changed = (tuple(data[name]) for name in ("links", "entry_points", "changed"))
        "".join((*names, *files, *links, *programs, *changed))  # raises TypeError unless all are texts
        if len(names) == len(stamps) and type(sum(data["sizes"]) + sum(data["times"])) is int:
            return CacheNote(lists, names, stamps, files, links, programs, bool(data["noarch_python"]), changed)
    return None


def write_note(key: str, note: CacheNote) -> None:
    """Note a package, if possible; without a note its digests are compared again."""
    data = {
        "lists": note.lists,
        "names": None if note.names == note.files else note.names,
        "sizes": [size for size, _ in note.stamps],
        "times": [time for _, time in note.stamps],
        **{key: getattr(note, key) for key in ("files", "links", "entry_points", "noarch_python", "changed")},
    }
    with contextlib.suppress(StorageError, OSError):
        write_atomic(stamps_folder() / f"{key}.json", json.dumps(data))
