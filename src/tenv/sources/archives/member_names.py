"""Checks of the names and link targets of archive members.

A fault is a ValueError whose text continues the member's name: ``'../x' leads out of the archive``.

`Clashes` finds names that a file system may not distinguish: `xt_MARK.h` and `xt_mark.h`, or two Unicode forms of `é`.
Linux distinguishes them, and valid trees such as the kernel's headers rely on it. Windows, macOS and some mounted disks
do not: there one file would silently replace the other.
"""

import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tenv.core.unpack_limits import UnpackLimits

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DRIVE = re.compile(r"[A-Za-z]:")
_WINDOWS = re.compile(r"""[<>:"|?*]|[ .]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)""", re.IGNORECASE)
_MAX_PART = 255
_MAX_HOPS = 40


def parts_of(name: str, limits: UnpackLimits, *, windows: bool) -> tuple[str, ...]:
    """Return the parts of a safe name.

    Args:
        name: The name.
        limits: The limits on length and depth.
        windows: Whether Windows must be able to hold it.

    Raises:
        ValueError: The name is not safe.
    """
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raise ValueError("is a name that is not UTF-8") from None
    if _CONTROL.search(name):
        raise ValueError("is a name with a control character in it")
    if "\\" in name:
        raise ValueError("is a name with a backslash in it")
    if name.startswith("/") or _DRIVE.match(name):
        raise ValueError("is an absolute path")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ValueError("leads out of the archive")
    if len(raw) > limits.path or len(parts) > limits.depth or any(len(part.encode()) > _MAX_PART for part in parts):
        raise ValueError("is longer or deeper than the limit")
    if windows and any(_WINDOWS.search(part) for part in parts):
        raise ValueError("is a name that Windows can't hold")
    return parts


def check_target(target: str, limits: UnpackLimits, *, hard: bool) -> None:
    """Check the text of a link target, without the other members.

    Args:
        target: The target.
        limits: The limits on its length.
        hard: Whether it is a hard link, whose target is a member; `parts_of` checks that name.

    Raises:
        ValueError: The target is not safe.
    """
    try:
        parts = [part.encode() for part in target.split("/")]
    except UnicodeEncodeError:
        raise ValueError("is a link to a name that is not UTF-8") from None
    if not target or len(b"/".join(parts)) > limits.path:
        raise ValueError("is a link with an empty or too long target")
    if hard:
        return
    if target.startswith("/") or "\\" in target or _DRIVE.match(target) or _CONTROL.search(target):
        raise ValueError(f"is a link that leads out of the archive, to {target!r}")
    if any(len(part) > _MAX_PART for part in parts):
        raise ValueError("is a link with an empty or too long target")


def check_way(link: tuple[str, ...], target: str, links: Mapping[tuple[str, ...], str]) -> None:
    """Resolve a link through the tree, including other links.

    Args:
        link: The parts of its name.
        target: Its target.
        links: Every link of the archive.

    Raises:
        ValueError: The link leads out of the archive, or in a circle.
    """
    here = list(link[:-1])
    rest = target.split("/")[::-1]
    hops = 0
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not here:
                raise ValueError(f"is a link that leads out of the archive, to {target!r}")
            here.pop()
            continue
        here.append(part)
        if (next_target := links.get(tuple(here))) is not None:
            hops += 1
            if hops > _MAX_HOPS:
                raise ValueError("is a link that leads in a circle")
            here.pop()
            rest += next_target.split("/")[::-1]


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
