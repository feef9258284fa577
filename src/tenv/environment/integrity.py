"""Whether the files of a prefix are intact.

Records list the files of packages (`tenv.environment.installed_files`). ``tenv-meta/made.json`` lists the files that
tenv makes: the CUDA toolkit folder, the virtual environment and the activation.
"""

import json
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import IntEnum
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.core.files import digest, digest_bytes
from tenv.core.names import Digest
from tenv.core.threads import each
from tenv.environment.installed_files import FOLDER, LINK, POINTER, TEXT, Expected

_ROOM = 1 << 18
"""The bytes that a thread reads at once."""


class Defect(IntEnum):
    """The defect of a path; a higher one includes the lower ones."""

    RIGHTS = 1
    """Only its executable bit is wrong."""
    CONTENT = 2
    """It has another content or leads elsewhere, or is another kind of file."""
    KIND = 3
    """It is a folder in the place of a file, or anything else in the place of a folder."""
    MISSING = 4
    """It is missing."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The missing and changed paths of a prefix."""

    defects: Mapping[str, Defect] = field(default_factory=dict)
    """The defect of each path, by its name relative to the prefix."""
    owned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The packages that own each path, those that tenv made itself left out."""
    programs: Mapping[str, bool] = field(default_factory=dict)
    """Whether a path is to be executable, for those with the wrong rights."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The missing paths, sorted."""
        return tuple(sorted(name for name, defect in self.defects.items() if defect is Defect.MISSING))

    @property
    def changed(self) -> tuple[str, ...]:
        """The changed paths, sorted."""
        return tuple(sorted(name for name, defect in self.defects.items() if defect is not Defect.MISSING))

    @property
    def owners(self) -> tuple[str, ...]:
        """The packages that own missing and changed paths, sorted."""
        return tuple(sorted(frozenset().union(*self.owned.values())))

    @property
    def damaged(self) -> frozenset[str]:
        """The packages to install again: those with more defects than wrong rights."""
        rows = (self.owned.get(name, frozenset()) for name, defect in self.defects.items() if defect > Defect.RIGHTS)
        return frozenset[str]().union(*rows)

    def __or__(self, other: "Faults") -> "Faults":
        """Return the faults that either of two comparisons found."""
        defects = {**self.defects}
        for name, defect in other.defects.items():
            defects[name] = max(defect, defects.get(name, defect))
        return Faults(defects, {**self.owned, **other.owned}, {**self.programs, **other.programs})


def describe_made(prefix: Path, names: Iterable[str], known: Mapping[str, str] | None = None) -> str:
    """Return the text of ``made.json``: the target of each link and the digest of each file.

    Args:
        prefix: The folder.
        names: The files and folders to record, relative to it.
        known: The present rows of ``made.json`` for other files, which stay; None to start empty.
    """
    found = dict(known or {})
    for name in names:
        for path in _files(prefix / name):
            target = os.readlink(path) if path.is_symlink() else ""  # noqa: PTH115 (the text of the link)
            found[os.path.relpath(path, prefix)] = LINK + target if target else f"sha256:{digest(path)}"
    return json.dumps(found, indent=0, sort_keys=True) + "\n"


def _files(path: Path) -> Iterator[Path]:
    if path.is_symlink() or path.is_file():
        yield path
    elif path.is_dir():
        for entry in sorted(path.iterdir()):
            yield from _files(entry)


def expect_made(file: Path, prefix: Path) -> Iterator[Expected]:
    """Yield the files that tenv made in a prefix; none without their record."""
    name = os.path.relpath(file, prefix)
    try:
        rows = json.loads(read_text(file))
        yield from [Expected(str(path), "", str(value)) for path, value in rows.items()]
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError, AttributeError):
        yield Expected(name, "", "sha256:unreadable")


def check(prefix: Path, expected: Iterable[Expected]) -> Faults:
    """Verify every expected path. Threads hash in parallel, since hashing releases Python's global lock."""
    rows = {row.name: row for row in expected}
    waiting = iter(rows.values())
    root, threads = f"{os.fspath(prefix)}{os.sep}", min(8, os.cpu_count() or 1)

    def judge(_: int) -> list[tuple[Expected, Defect]]:
        """Take paths until none is left: tens of thousands of tasks of a pool would cost as much as to open them."""
        room = memoryview(bytearray(_ROOM))
        return [(row, defect) for row in waiting if (defect := _judge(f"{root}{row.name}", row, room))]

    found = [fault for faults in each(judge, range(threads)) for fault in faults]
    defects = {row.name: defect for row, defect in found}
    owned = {row.name: frozenset({row.owner} - {""}) for row, _ in found}
    for folder, owners in _no_folders(root, rows.values()).items():
        defects[folder], owned[folder] = Defect.KIND, owners
    programs = {
        row.name: row.executable for row, defect in found if defect is Defect.RIGHTS and row.executable is not None
    }
    return Faults(defects, owned, programs)


def _no_folders(root: str, rows: Iterable[Expected]) -> dict[str, frozenset[str]]:
    """Return the paths above expected ones that are no folders, a link to one included, with the owners below."""
    below: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        below[os.path.dirname(row.name)].add(row.owner)  # noqa: PTH120 (fast: there are tens of thousands)
    for folder in list(below):
        parent = folder
        while (above := os.path.dirname(parent)) not in ("", parent):  # noqa: PTH120
            below[above] |= below[folder]
            parent = above
    found = {}
    for folder, owners in below.items():
        try:
            is_folder = not folder or stat.S_ISDIR(os.lstat(f"{root}{folder}").st_mode)
        except (OSError, ValueError):  # the missing paths below are reported
            continue
        if not is_folder:
            found[folder] = frozenset(owners - {""})
    return found


def _judge(path: str, row: Expected, room: memoryview) -> Defect | None:
    """Return the defect of a path; a name that no file can have is missing."""
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return Defect.MISSING
    if row.digest == FOLDER:
        return None if stat.S_ISDIR(mode) else Defect.KIND
    if stat.S_ISDIR(mode):
        return Defect.KIND
    kind = next((kind for kind in (LINK, POINTER, TEXT) if row.digest.startswith(kind)), "")
    return _judge_link(path, kind, row.digest.removeprefix(kind)) if kind else _judge_file(path, row, mode, room)


def _judge_file(path: str, row: Expected, mode: int, room: memoryview) -> Defect | None:
    written = Digest.parse(row.digest)
    try:
        if not stat.S_ISREG(mode) or (written.value and not written.is_of(path, room)):
            return Defect.CONTENT
    except (OSError, ValueError):
        return Defect.CONTENT
    return Defect.RIGHTS if row.executable not in (None, bool(mode & stat.S_IXUSR)) else None


def _judge_link(path: str, kind: str, wanted: str) -> Defect | None:
    try:
        target = os.readlink(path)  # noqa: PTH115 (the text of the link)
    except OSError:
        return Defect.CONTENT
    if kind == TEXT:
        return None if wanted in ("", digest_bytes(os.fsencode(target))) else Defect.CONTENT
    if target != wanted:
        return Defect.CONTENT
    return Defect.MISSING if kind == LINK and not os.path.exists(path) else None  # noqa: PTH110 (fast)
