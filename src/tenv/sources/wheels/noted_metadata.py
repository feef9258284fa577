"""What wheels of an index require, noted by their sha256 in tenv's own cache folder.

A wheel never changes under its sha256, so its metadata are read from an index once. A wrong note does what a wrong
answer of an index does: the lock with it does not answer its manifest, or `create` finds that the wheel says otherwise.
"""

import contextlib
import json
from pathlib import Path

from tenv.core.errors import StorageError
from tenv.core.file_stamps import stamps_folder
from tenv.core.files import read_regular, write_atomic
from tenv.core.names import Digest

__all__ = ["note_requirements", "noted_requirements"]

Requirements = tuple[tuple[str, ...], str]
"""The requirements of a wheel, and its Python versions; empty for any."""


def _file(sha256: str) -> Path | None:
    """Return the file of a note; None for what is no sha256, since an index may say anything."""
    return stamps_folder() / f"{sha256}.requires.json" if Digest("sha256", sha256).is_valid() else None


def noted_requirements(sha256: str) -> Requirements | None:
    """Return what was noted of a wheel; None where nothing was noted or can be read."""
    file = _file(sha256)
    with contextlib.suppress(OSError, ValueError, RecursionError, TypeError, LookupError):
        if file is not None:
            row = json.loads(read_regular(file))
            requires, python = row["requires_dist"], row["requires_python"]
            if isinstance(requires, list) and all(isinstance(text, str) for text in (*requires, python)):
                return tuple(requires), python
    return None


def note_requirements(sha256: str, requirements: Requirements) -> None:
    """Note what a wheel requires, if possible; without the note the index is asked again."""
    requires, python = requirements
    file = _file(sha256)
    with contextlib.suppress(StorageError, OSError):
        if file is not None:
            write_atomic(file, json.dumps({"requires_dist": requires, "requires_python": python}))
