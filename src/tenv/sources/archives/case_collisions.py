"""Names that may be one and the same to a file system: `xt_MARK.h` and `xt_mark.h`, an `é` of one character or of two.

Linux tells them apart, and honest trees such as the kernel's headers count on it. Windows, macOS and some mounted disks
do not: there one file would silently become the other.
"""

import os
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["Clashes", "first_clash"]


class Clashes:
    """Finds names that a file system does not tell apart.

    Names that differ by case or by the form of a letter alone are tried out, side by side, on the file system itself.
    """

    def __init__(self, folder: Path | None) -> None:
        """Look for clashes on the file system of a folder.

        Args:
            folder: Where names are tried out; what is made there is for the caller to remove. None takes it that no
                such names are told apart, as on Windows.
        """
        self._folder = folder
        self._first: dict[str, str] = {}
        self._tried: dict[str, Path] = {}

    def add(self, path: str) -> str:
        """Return an earlier path that this one would be the same as, an empty string when there is none.

        Raises:
            OSError: The folder can't be written.
        """
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
        first = self._first.setdefault(folded, path)
        if first == path:
            return ""
        if self._folder is None:
            return first
        if folded not in self._tried:
            self._tried[folded] = Path(tempfile.mkdtemp(prefix="names.", dir=self._folder))
            _make(self._tried[folded] / first)
        return "" if _make(self._tried[folded] / path) else first


def first_clash(names: Iterable[str], folder: Path) -> tuple[str, str] | None:
    """Return two of some paths that would be one and the same below a folder, None when all are told apart.

    Args:
        names: Relative paths.
        folder: The folder, or one on the same file system; nothing stays in it.
    """
    with tempfile.TemporaryDirectory(prefix=".names.", dir=folder) as aside:
        clashes = Clashes(Path(aside))
        for name in _with_folders(names):
            if other := clashes.add(name):
                return other, name
    return None


def _with_folders(names: Iterable[str]) -> Iterator[str]:
    """Yield paths, each after the folders that it is in, and those once."""
    seen = set()
    for name in names:
        folder, above = name.rpartition("/")[0], []
        while folder and folder not in seen:
            seen.add(folder)
            above.append(folder)
            folder = folder.rpartition("/")[0]
        yield from reversed(above)
        yield name


def _make(path: Path) -> bool:
    """Make an empty file; tell whether none of that name was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True
