"""Whether another user can change a file or folder, by its owner and its mode; Windows has its own rights.

The system is trusted: root, and the owner of ``/``, who is another number in a container that maps no root.
"""

import os
import stat
from pathlib import Path

__all__ = ["open_part", "others_write"]


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
