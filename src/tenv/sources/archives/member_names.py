"""What the members of an archive may be called, and where its links may lead; no file is looked at.

A fault is a ValueError whose text goes on after the member's name: ``'../x' leads out of the archive``.
"""

import re
from collections.abc import Mapping

from tenv.sources.archives.formats.interface import ArchiveLimits

__all__ = ["check_target", "check_way", "parts_of"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DRIVE = re.compile(r"[A-Za-z]:")
_WINDOWS = re.compile(r"""[<>:"|?*]|[ .]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)""", re.IGNORECASE)
_MAX_PART = 255
_MAX_HOPS = 40


def parts_of(name: str, limits: ArchiveLimits, *, windows: bool) -> tuple[str, ...]:
    """Return the parts of a name that leads nowhere else.

    Args:
        name: The name.
        limits: How long and how deep it may be.
        windows: Whether Windows must be able to hold it.

    Raises:
        ValueError: It must not be used.
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
        raise ValueError("is too long a name")
    if windows and any(_WINDOWS.search(part) for part in parts):
        raise ValueError("is a name that Windows can't hold")
    return parts


def check_target(target: str, limits: ArchiveLimits, *, hard: bool) -> None:
    """Look at what a link says of where it leads, before it is known what is there.

    Args:
        target: What it says.
        limits: How long it may be.
        hard: Whether it is a hard link, which leads to a name of the archive; that name is for `parts_of`.

    Raises:
        ValueError: It must not lead there.
    """
    try:
        parts = [part.encode() for part in target.split("/")]
    except UnicodeEncodeError:
        raise ValueError("is a link to a name that is not UTF-8") from None
    if not target or len(b"/".join(parts)) > limits.path:
        raise ValueError("is a link to nowhere, or to too long a name")
    if hard:
        return
    if target.startswith("/") or "\\" in target or _DRIVE.match(target) or _CONTROL.search(target):
        raise ValueError(f"is a link that leads out of the archive, to {target!r}")
    if any(len(part) > _MAX_PART for part in parts):
        raise ValueError("is a link to nowhere, or to too long a name")


def check_way(link: tuple[str, ...], target: str, links: Mapping[tuple[str, ...], str]) -> None:
    """Follow a link through the tree, also by way of other links.

    Args:
        link: The parts of its name.
        target: Where it leads.
        links: Every link of the archive.

    Raises:
        ValueError: It leads out of the archive, or in a circle.
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
