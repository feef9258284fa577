"""Which folder keeps this user from a path: a path that can't be read is not missing."""

import os
from pathlib import Path

__all__ = ["unreadable_part"]


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
