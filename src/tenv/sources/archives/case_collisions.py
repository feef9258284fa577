"""Names that a file system may not distinguish: `xt_MARK.h` and `xt_mark.h`, or two Unicode forms of `é`.

Linux distinguishes them, and valid trees such as the kernel's headers rely on it. Windows, macOS and some mounted disks
do not: there one file would silently replace the other.
"""

import os
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["Clashes", "first_clash"]


class Clashes:
    """Finds names that a file system does not distinguish.

    Names that differ only by case or Unicode form are tested on the file system itself.
    """

    def __init__(self, folder: Path | None) -> None:
        """Detect clashes on the file system of a folder.

        Args:
            folder: The folder for test files, which the caller removes. None assumes a file system that does not
                distinguish case, as on Windows.
        """
        self._folder = folder
        self._first: dict[str, str] = {}
        self._tried: dict[str, Path] = {}

    def add(self, path: str) -> str:
        """Return an earlier path that clashes with this one; empty without one.

        Raises:
            OSError: The folder is not writable.
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
    """Return two paths that clash below a folder; None without a clash.

    Args:
        names: Relative paths.
        folder: The folder, or one on the same file system; test files are removed.
    """
    with tempfile.TemporaryDirectory(prefix=".names.", dir=folder) as aside:
        clashes = Clashes(Path(aside))
        for name in _with_folders(names):
            if other := clashes.add(name):
                return other, name
    return None


def _with_folders(names: Iterable[str]) -> Iterator[str]:
    """Yield paths, each after its parent folders; a folder is yielded once."""
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
    """Create an empty file; return whether the name was free."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True
