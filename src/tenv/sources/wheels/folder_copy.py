"""The sources in a folder of the user: their copy for a build, and a digest that an edit of them changes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tenv.core.files import digest_bytes

_NOWHERE = frozenset((".git", "__pycache__", ".tenv"))
_MARKS = ("pyvenv.cfg", "conda-meta", "CACHEDIR.TAG")
"""What environments of Python and conda hold, and caches (https://bford.info/cachedir/) as those of pytest and ruff."""
_BUILT = shutil.ignore_patterns("build", "dist", "*.egg-info")
"""What an earlier build left at the top; a package below may have such a name."""


def copy_folder(original: Path, folder: Path) -> None:
    """Copy the sources of a folder; raises OSError.

    Args:
        original: The folder.
        folder: Their new folder, which must not exist.
    """

    def left_out(place: str, names: list[str]) -> set[str]:
        return _left_out(original, place, names)

    shutil.copytree(original, folder, symlinks=True, ignore=left_out)


def digest_of_folder(folder: Path) -> str:
    """Return a digest of the names, sizes and times of the sources of a folder; it reads no file.

    A folder that is not there has the digest of an empty one.
    """
    return digest_bytes("\n".join(sorted(_rows(folder))).encode("utf-8", "surrogateescape"))


def _rows(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        skipped = _left_out(folder, place, [*folders, *files])
        folders[:] = [name for name in folders if name not in skipped]
        for name in files:
            if name not in skipped and not name.endswith((".so", ".pyd")):  # of `build_ext --inplace`
                path = os.path.join(place, name)  # noqa: PTH118 (there may be ten thousands of files)
                status = os.lstat(path)
                yield f"{path} {status.st_size} {status.st_mtime_ns}"


def _left_out(original: Path, place: str, names: list[str]) -> set[str]:
    """Return the names in a folder that are no sources: built there, of git, of tenv, environments or caches."""
    found = {*names} & _NOWHERE
    found |= {name for name in names for mark in _MARKS if os.path.exists(os.path.join(place, name, mark))}  # noqa: PTH110, PTH118
    return found | (_BUILT(place, names) if Path(place) == original else set())
