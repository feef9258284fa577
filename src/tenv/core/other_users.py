"""Rights of users: whether another user can change a file, and which folder keeps this user from a path.

The system is trusted: root, and the owner of ``/``, who is another number in a container that maps no root. Windows
has its own rights.
"""

import os
import stat
import sys
from pathlib import Path

_OTHERS_WRITE = 0o022


def is_own(path: Path) -> bool:
    """Return whether a file or folder is this user's; on Windows, the rights of the folder decide."""
    return not hasattr(os, "geteuid") or path.stat().st_uid == os.geteuid()


def closed_below(path: Path, folder: Path) -> bool:
    """Return whether nobody but the owners can write a path and the folders above it, up to one that a user trusts.

    Args:
        path: The path, all links resolved.
        folder: The trusted folder, all links resolved, which counts too.
    """
    return path.is_relative_to(folder) and open_below(path, folder) is None


def open_below(path: Path, folder: Path) -> Path | None:
    """Return the path, or the nearest folder above it up to one that a user trusts, that more than its owner can write.

    Args:
        path: The path, all links resolved.
        folder: The trusted folder above it, all links resolved, which counts too.
    """
    if not hasattr(os, "geteuid"):
        return None
    chain = (path, *(parent for parent in path.parents if parent.is_relative_to(folder)))
    return next((part for part in chain if part.stat().st_mode & _OTHERS_WRITE), None)


def closed_part(path: Path, apart: Path | None = None) -> Path | None:
    """Return the path, all links resolved, or the first folder above it, that other users can't enter.

    The group counts as others, but the private group of a user. A missing path is no fault.

    Args:
        path: The path.
        apart: A folder whose own content is no fault.

    Returns:
        The path or the folder; None without one.
    """
    real = Path(os.path.realpath(path))
    if apart is not None and real.is_relative_to(os.path.realpath(apart)):
        return None
    for part in (*reversed(real.parents), real):
        try:
            info = part.stat()
        except FileNotFoundError:
            return None
        group = info.st_mode & stat.S_IXGRP and info.st_gid not in _private_groups()
        if not (info.st_mode & stat.S_IXOTH or group):
            return part
    return None


def others_write(info: os.stat_result) -> bool:
    """Return whether another user can write a file or folder, by its status.

    The group counts as others, but the private group of a user, which distributions with the umask 002 make.
    """
    if not hasattr(os, "geteuid"):
        return False
    if info.st_uid not in _trusted():
        return True
    if stat.S_ISLNK(info.st_mode):  # its mode means nothing
        return False
    if info.st_mode & stat.S_IWOTH:
        return True
    return bool(info.st_mode & stat.S_IWGRP) and info.st_gid not in _private_groups()


def other_owner(path: Path) -> str:
    """Return the name of the other user that a file or folder belongs to; empty for one of this user."""
    if not hasattr(os, "geteuid") or (uid := path.stat().st_uid) == os.geteuid():
        return ""
    import pwd  # not on Windows

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"the user {uid}"


def open_part(path: Path) -> Path | None:
    """Return the path, or the first folder above it, that another user can write; None without one.

    A sticky folder above (``/tmp``) is no fault, since nobody can replace the files of another user in it.
    """
    for place in dict.fromkeys((path.absolute(), Path(os.path.realpath(path)))):
        for part in (place, *place.parents):
            try:
                info = part.stat()
            except OSError:  # it does not exist yet
                continue
            sticky = part != place and info.st_mode & stat.S_ISVTX and info.st_uid in _trusted()
            if not sticky and others_write(info):
                return part
    return None


def _trusted() -> frozenset[int]:
    return frozenset((os.geteuid(), 0, Path("/").stat().st_uid))


def _private_groups() -> frozenset[int]:
    """Return the groups in which nobody is but this user or root."""
    import grp  # not on Windows
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return frozenset((0,))
    private = group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
    return frozenset((0, user.pw_gid) if private else (0,))


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
