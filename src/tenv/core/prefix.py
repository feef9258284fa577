"""The folder of an environment: its Python, tenv's own files, all other files, and how to clear it."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenv.core.errors import EnvironmentBrokenError
from tenv.core.files import storage_errors

META = "tenv-meta"
"""The folder in a prefix with tenv's records."""

CONSTRAINT = f"{META}/built-torch.txt"
"""The versions that pip and uv keep, relative to the prefix; empty until a torch was built."""

TOOLS = f"{META}/bin"
"""The folder, relative to the prefix, with the programs of a toolkit beside another environment."""

MARKER = f"{META}/state.json"
"""The file that only tenv creates; it marks an environment."""

STATE_SCHEMA = 2
"""The number of the form of `MARKER`. Any change of the form raises it."""

READY = f'{{"state": "ready", "schema": {STATE_SCHEMA},'
"""The first bytes of `MARKER` in an environment that may be used; shells compare them."""

ID_FILE = f"{META}/id"
"""The file of a prefix with its id (`tenv.environment.marks`)."""

MARKS = "marks"
"""The folder of marks in the user's data folder."""

ARCHIVES = f"{META}/archives"
"""The folder with a record of each archive in the prefix."""

LOCK_NOTE = "lock-note"
"""The file in `META` with the last comparison with the lock (`tenv.environment.lock_note`)."""

OWN = (META, ".tenv.lock", ".tenv.owner")
"""tenv's own names in a prefix; the latter two (`tenv.core.files.exclusive`) exist while it is locked."""


def has_conda_packages(prefix: Path) -> bool:
    """Return whether a prefix holds conda packages."""
    return next((prefix / "conda-meta").glob("*.json"), None) is not None


def python_program(prefix: Path) -> Path:
    """Return the path of a prefix's Python program, which may not exist."""
    if sys.platform != "win32":
        return prefix / "bin" / "python"
    own = has_conda_packages(prefix) and not (prefix / "pyvenv.cfg").is_file()
    return prefix / "python.exe" if own else prefix / "Scripts" / "python.exe"


def site_packages(prefix: Path) -> Path:
    """Return the folder of packages of a prefix's Python."""
    if sys.platform == "win32":
        return prefix / "Lib" / "site-packages"
    # conda's Python has a link `python3.1` to its own folder.
    folders = [path for path in (prefix / "lib").glob("python3.*") if not path.is_symlink()]
    found = sorted(path for folder in folders if (path := folder / "site-packages").is_dir())
    return found[-1] if found else prefix / "lib" / "site-packages"


def spelled(prefix: Path) -> Path:
    """Return a prefix with the links above ``.tenv`` resolved, and those below it as they are.

    A link in a home folder is the user's own. A link in the place of ``.tenv`` may have come with a repository.
    """
    parts = prefix.parts
    above = len(parts) - 1 - parts[::-1].index(".tenv") if ".tenv" in parts else len(parts) - 1
    return Path(os.path.realpath(Path(*parts[:above])), *parts[above:])


def leads_out(prefix: Path, names: Iterable[str]) -> str:
    """Return the first name that leaves a prefix; an empty string if all stay.

    A name stays if it is relative, has no ``..``, and no folder in it is a link to outside. The last part may be a
    link, which is replaced or removed but not followed.

    Args:
        prefix: The folder.
        names: Files relative to it, from a lock, a package or a record.
    """
    home, sep = os.path.realpath(prefix), os.sep
    known: dict[str, bool] = {"": True}
    listed = [*names]
    if sep == "/" and _are_plain(listed):  # then one look at each folder is enough
        first: dict[str, str] = {}
        for name in listed:
            first.setdefault(name.rpartition("/")[0], name)
        listed = [*first.values()]
    for name in listed:
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


_NOT_PLAIN = ("\0", "//", "/.", "\n.", "\n/", "/\n", "\n\n")


def _are_plain(names: Iterable[str]) -> bool:
    """Return whether `os.path.normpath` changes none of the names, and each is relative and has no ``..``."""
    together = "\n".join(("", *names, ""))
    return not any(mark in together for mark in _NOT_PLAIN)


def require_inside(prefix: Path, names: Iterable[str], owner: str) -> None:
    """Raise EnvironmentBrokenError if a name leaves a prefix.

    The last check before anything is written or removed, in addition to earlier checks: other programs may change
    records in the prefix.

    Args:
        prefix: The folder.
        names: Files relative to it.
        owner: The origin of the names, for the message.
    """
    if name := leads_out(prefix, names):
        raise EnvironmentBrokenError(
            f"{owner} names {name!r}, which is outside {prefix}, so nothing is written or removed",
            hint="move that folder away, then `tenv create` creates the environment again",
        )


def files_in(prefix: Path) -> Iterator[str]:
    """Yield every file and link in a prefix except tenv's own, relative to it."""
    for folder, folders, names in os.walk(prefix):
        relative = os.path.relpath(folder, prefix)
        if relative == ".":
            folders[:] = [name for name in folders if name not in OWN]
            names = [name for name in names if name not in OWN]  # noqa: PLW2901
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118 (fast)
        for name in (*names, *links):
            yield os.path.normpath(os.path.join(relative, name))  # noqa: PTH118


def clear(prefix: Path, keep: Iterable[str]) -> None:
    """Remove everything in a prefix except tenv's own files and the files to keep.

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
            prune(prefix)
        else:
            for entry in list(prefix.iterdir()) if prefix.is_dir() else []:
                if entry.name not in OWN:
                    _remove(entry)


def _remove(path: Path) -> None:
    import shutil  # late: few commands remove anything

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def prune(prefix: Path) -> None:
    """Remove the empty folders in a folder."""
    for folder, folders, names in os.walk(prefix, topdown=False):
        if not names and Path(folder) != prefix and not any((Path(folder) / name).exists() for name in folders):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
