"""Checks the names and link targets of archive members, without access to files.

A fault is a ValueError whose text continues the member's name: ``'../x' leads out of the archive``.
"""

import re
from collections.abc import Mapping

from tenv.core.unpack_limits import UnpackLimits

__all__ = ["check_target", "check_way", "parts_of"]

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
