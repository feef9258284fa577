"""An environment for other users: they can enter its folder and read and run its files, and its owner alone writes."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from tenv.core.errors import UsageError
from tenv.core.files import make_folder, storage_errors
from tenv.core.other_users import closed_part

_READ, _ENTER, _WRITE = 0o444, 0o111, 0o022


def require_open(prefix: Path | None) -> None:
    """Refuse the default prefix, and one in a folder that other users can't enter; raises UsageError."""
    if prefix is None:
        raise UsageError("`--for-others` is about a shared folder", hint="`--prefix FOLDER` names it")
    prefix = prefix.absolute()
    if sys.platform == "win32":
        raise UsageError(
            "`--for-others` sets rights of POSIX", hint="give others the right to read the folder yourself"
        )
    if folder := closed_part(prefix.parent):
        raise UsageError(
            f"{prefix} lies in {folder}, which other users can't enter",
            hint="`--prefix FOLDER` names a folder that all can enter, such as one below /srv or /opt",
        )


def make_folder_for_others(folder: Path) -> None:
    """Create a folder and its parents, so that everybody can enter those that were missing, under any umask."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    make_folder(folder)
    with storage_errors(f"can't open {folder} to others"):
        for part in missing:
            _open(part, part.stat())


def open_to_others(prefix: Path, unmanaged: Iterable[str] = ()) -> list[str]:
    """Let everybody read the files of an environment and run its programs, and nobody but its owner write.

    Args:
        prefix: The environment, of this user.
        unmanaged: The files that no package has, relative to the prefix. Closed ones stay closed, since they may hold
            a secret, and so does a folder of such files alone.

    Returns:
        The files and folders that stay closed, relative to the prefix.

    Raises:
        StorageError: The rights can't be changed.
    """
    own = {str(prefix / name) for name in unmanaged}
    closed = []
    with storage_errors(f"can't open {prefix} to others"):
        for folder, _, _ in os.walk(prefix, topdown=False):
            with os.scandir(folder) as found:
                entries = [entry for entry in found if not entry.is_symlink()]
            for entry in entries:
                is_own = entry.path in own
                with contextlib.suppress(FileNotFoundError):  # a Python that runs renames its bytecode
                    info = entry.stat(follow_symlinks=False)
                    _open(Path(entry.path), info, more=not is_own)
                    if is_own and info.st_mode & _READ != _READ:
                        closed.append(os.path.relpath(entry.path, prefix))
            if entries and all(entry.path in own for entry in entries):
                own.add(folder)
        _open(prefix, prefix.lstat())
    return sorted(closed)


def _open(path: Path, info: os.stat_result, *, more: bool = True) -> None:
    """Take the right to write from others, and give them `more`: to read, and to run or enter what the owner may."""
    mode = stat.S_IMODE(info.st_mode)
    enter = _ENTER if stat.S_ISDIR(info.st_mode) or mode & stat.S_IXUSR else 0
    wanted = (mode | (_READ | enter if more else 0)) & ~_WRITE
    if wanted != mode:
        path.chmod(wanted)
