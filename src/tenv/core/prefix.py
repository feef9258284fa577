"""The folder of an environment: what in it is tenv's own, every other file, and how it is cleared."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenv.core.errors import EnvironmentBrokenError
from tenv.core.files import storage_errors

__all__ = ["ARCHIVES", "LOCK_NOTE", "MARKER", "META", "OWN", "clear", "files_in", "leads_out", "require_inside"]

META = "tenv-meta"
"""The folder in a prefix that holds what tenv knows about it."""

MARKER = f"{META}/state.json"
"""The file that only tenv makes, by which an environment is known."""

ARCHIVES = f"{META}/archives"
"""The folder with a record for each archive in the prefix."""

LOCK_NOTE = "lock-note"
"""The file in `META` with what was last found out about the lock (`tenv.environment.lock_note`)."""

OWN = (META, ".tenv.lock", ".tenv.owner")
"""What stands in a prefix for tenv's own use; the latter two (`tenv.core.files.exclusive`) while it is held."""


def leads_out(prefix: Path, names: Iterable[str]) -> str:
    """Return the first of some names that does not stay in a prefix; an empty string when all do.

    A name stays when it is relative, does not climb, and no folder on its way is a link to somewhere else. The last
    part may be a link, which is replaced or removed and not followed.

    Args:
        prefix: The folder.
        names: Files relative to it, as a lock, a package or a record names them.
    """
    home, sep = os.path.realpath(prefix), os.sep
    known: dict[str, bool] = {"": True}
    for name in names:
        plain = os.path.normpath(name)
        if not name or "\0" in name or plain in (".", "..") or plain.startswith((f"..{sep}", sep)):
            return name or "an empty name"
        folder = os.path.dirname(plain)  # noqa: PTH120 (fast: there are tens of thousands of names)
        if folder not in known:
            real = os.path.realpath(os.path.join(home, folder))  # noqa: PTH118
            known[folder] = real == home or real.startswith(home + sep)
        if not known[folder]:
            return name
    return ""


def require_inside(prefix: Path, names: Iterable[str], owner: str) -> None:
    """Raise EnvironmentBrokenError when one of some names leads out of a prefix.

    The last check before anything is written or removed, whatever was checked before: a record in the prefix may be
    anybody's by then.

    Args:
        prefix: The folder.
        names: Files relative to it.
        owner: Who names them, for the message.
    """
    if name := leads_out(prefix, names):
        raise EnvironmentBrokenError(
            f"{owner} names {name!r}, which leads out of {prefix}, so nothing is written or removed",
            hint="move that folder away, then `tenv create` makes the environment anew",
        )


def files_in(prefix: Path) -> Iterator[str]:
    """Yield every file and link in a prefix but what is tenv's own, relative to it."""
    for folder, folders, names in os.walk(prefix):
        relative = os.path.relpath(folder, prefix)
        if relative == ".":
            folders[:] = [name for name in folders if name not in OWN]
            names = [name for name in names if name not in OWN]  # noqa: PLW2901
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118 (fast)
        for name in (*names, *links):
            yield os.path.normpath(os.path.join(relative, name))  # noqa: PTH118


def clear(prefix: Path, keep: Iterable[str]) -> None:
    """Remove everything in a prefix but what is tenv's own and the files to keep.

    Args:
        prefix: The folder.
        keep: Files relative to it.

    Raises:
        StorageError: Something can't be removed.
    """
    kept = set(keep)
    with storage_errors(f"can't clear {prefix}"):
        if kept:
            for name in files_in(prefix):
                if name not in kept:
                    (prefix / name).unlink(missing_ok=True)
            _prune(prefix)
        else:
            for entry in list(prefix.iterdir()) if prefix.is_dir() else []:
                if entry.name not in OWN:
                    _remove(entry)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _prune(prefix: Path) -> None:
    """Remove folders that have become empty."""
    for folder, folders, names in os.walk(prefix, topdown=False):
        if not names and Path(folder) != prefix and not any((Path(folder) / name).exists() for name in folders):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
