"""Detect the disk of a folder."""

import os
import re
from pathlib import Path

from tenv.core.size_text import format_bytes
from tenv.host.field import HostField
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.places import Places, is_folder, read
from tenv.host.report import Disk

__all__ = ["DISK", "parse_mounts", "probe"]

_MOUNTS = "/proc/self/mountinfo"
_BEFORE_TYPE = 6  # fields of every line (proc_pid_mountinfo(5)); optional ones and a dash follow
_MOUNT_POINT = 4


def parse_mounts(text: str, folder: str) -> str | None:
    """Return the type of the file system that a folder is on, from the text of ``/proc/self/mountinfo``.

    Args:
        text: The mounts in their order: the last one on a folder hides the others.
        folder: The folder, links resolved.
    """
    best: tuple[int, str] | None = None
    for line in text.splitlines():
        fields = line.split(" ")
        if "-" not in fields[_BEFORE_TYPE:]:
            continue
        dash = fields.index("-", _BEFORE_TYPE)
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[_MOUNT_POINT])
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        if inside and len(fields) > dash + 1 and (best is None or len(point) >= best[0]):
            best = (len(point), fields[dash + 1])
    return best[1] if best else None


def probe(folder: Path, places: Places | None = None) -> Fact[Disk] | Missing:
    """Return the free bytes and the file system of a folder or its future place.

    Args:
        folder: The folder; if it does not exist yet, its nearest existing parent is used.
        places: Where to look; None means this machine.
    """
    places = places or Places()
    real = Path(os.path.realpath(folder))
    there = next((path for path in (real, *real.parents) if is_folder(path)), real)
    try:
        state = os.statvfs(there)
    except (OSError, AttributeError) as error:  # the latter on Windows
        return Missing(f"{there} can't be queried: {error}", ReasonKind.FAILED)
    mounts = read(places.at(_MOUNTS))
    kind = None if isinstance(mounts, Missing) else parse_mounts(mounts, str(there))
    origin = f"statvfs of {there}" + (f", {_MOUNTS}" if kind else "")
    disk = Disk(str(folder), state.f_bavail * state.f_frsize, kind or "unknown")
    return Fact(disk, origin, OriginKind.SYSTEM)


DISK = HostField(
    label="disk",
    meaning="free bytes and file system of the environments' folder",
    form="`path`, `free`, `file_system`",
    probe=lambda scan: probe(scan.folder, scan.places),
    show=lambda disk: [f"{format_bytes(disk.free)} free on {disk.file_system}  {disk.path}"],
)
