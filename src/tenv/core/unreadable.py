"""Which folder keeps this user from a path: a path that can't be read is not missing."""

import os
import stat
import sys
from pathlib import Path

__all__ = ["closed_to_others", "unreadable_part"]


def unreadable_part(path: Path) -> Path | None:
    """Return the first folder on the way to a path that this user can't enter, or the path if it can't be read.

    Args:
        path: The path, absolute or from the working folder.

    Returns:
        The folder, as a part of the path; None where the rights are no obstacle, as for a path that is not there.
    """
    for folder in (*reversed(path.parents), path):
        if not os.path.lexists(folder):
            return None
        needed = os.X_OK if folder.is_dir() else 0
        if not os.access(folder, needed | (os.R_OK if folder == path else 0)):
            return folder
    return None


def closed_to_others(program: Path, prefix: Path) -> Path | None:
    """Return the folder that keeps other users from a program in use by a prefix that they can enter.

    Args:
        program: The program, outside the prefix.
        prefix: A folder, which need not exist.

    Returns:
        The folder; None where others reach the program, or can't enter the prefix either.
    """
    if sys.platform == "win32":  # its rights are no modes
        return None
    folders = reversed(Path(os.path.realpath(program)).parents)
    closed = next((folder for folder in folders if not folder.stat().st_mode & stat.S_IXOTH), None)
    ways = [folder for folder in prefix.parents if folder.exists()]
    shared = all(folder.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH) for folder in ways)
    return closed if closed and shared and closed not in ways else None
