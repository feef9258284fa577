"""Whether the files of a prefix are intact.

Records list the files of packages (`tenv.environment.installed_files`). ``tenv-meta/made.json`` lists the files that
tenv makes: the CUDA toolkit folder and the activation.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.core.files import digest
from tenv.core.names import Digest
from tenv.core.threads import each
from tenv.environment.installed_files import POINTER, Expected

__all__ = ["Faults", "check", "describe_made", "expect_made"]

_LINK = "link:"
_ROOM = 1 << 18
"""The bytes that a thread reads at once."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The missing and changed files of a prefix.

    Attributes:
        missing: The missing files, sorted.
        changed: The files with other content, sorted.
        owners: The packages that own them, sorted.
    """

    missing: tuple[str, ...]
    changed: tuple[str, ...]
    owners: tuple[str, ...]


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
            found[os.path.relpath(path, prefix)] = _LINK + target if target else f"sha256:{digest(path)}"
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
    """Verify every expected file. Threads hash in parallel, since hashing releases Python's global lock."""
    waiting = iter({row.name: row for row in expected}.values())
    root, threads = f"{os.fspath(prefix)}{os.sep}", min(8, os.cpu_count() or 1)

    def judge(_: int) -> list[tuple[Expected, str]]:
        """Take files until none is left: tens of thousands of tasks of a pool would cost as much as to open them."""
        room = memoryview(bytearray(_ROOM))
        return [(row, answer) for row in waiting if (answer := _judge(f"{root}{row.name}", row.digest, room))]

    faults = [fault for found in each(judge, range(threads)) for fault in found]
    return Faults(
        missing=tuple(sorted(row.name for row, answer in faults if answer == "missing")),
        changed=tuple(sorted(row.name for row, answer in faults if answer == "changed")),
        owners=tuple(sorted({row.owner for row, _ in faults if row.owner})),
    )


def _judge(path: str, wanted: str, room: memoryview) -> str:
    """Return ``missing``, ``changed``, or an empty string; a name that no file can have is missing."""
    if wanted.startswith(_LINK):
        return _judge_link(path, wanted.removeprefix(_LINK))
    if wanted.startswith(POINTER):
        same = _target(path) == wanted.removeprefix(POINTER)
        return "" if same else "changed" if os.path.lexists(path) else "missing"
    written = Digest.parse(wanted)
    try:
        if written.value and written.is_of(path, room):
            return ""
    except (OSError, ValueError):
        pass
    return "missing" if not os.path.lexists(path) else "changed" if written.value else ""


def _judge_link(path: str, target: str) -> str:
    found, there = _target(path), os.path.exists(path)  # noqa: PTH110 (no error for a name that no file can have)
    if found is not None:
        return "changed" if found != target else "" if there else "missing"
    return "changed" if there else "missing"


def _target(path: str) -> str | None:
    """Return what a link says; None for anything else."""
    try:
        return os.readlink(path)  # noqa: PTH115 (the text of the link)
    except (OSError, ValueError):
        return None
