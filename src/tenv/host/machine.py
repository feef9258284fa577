"""Detect the machine's platform, C library, disk, and its cores and memory with the limits of its control group."""

import os
import platform as std_platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import text_or_empty
from tenv.core.size_text import format_bytes
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.host.field import HostField
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.places import Places, exists, is_folder, read
from tenv.host.report import Disk

_PLATFORMS = {
    ("linux", "x86_64"): "linux-64",
    ("linux", "aarch64"): "linux-aarch64",
    ("win32", "amd64"): "win-64",
    ("darwin", "arm64"): "osx-arm64",
    ("darwin", "x86_64"): "osx-64",
}


@dataclass(frozen=True, slots=True)
class BuildResources:
    """The resources that a build may use."""

    cores: Fact[int]
    """The processors that this process may run on, with the control group's quota."""
    memory: Fact[int] | Missing
    """Bytes of memory, with the control group's limit."""


def sees_gpu(root: Path = Path("/")) -> bool:
    """Return whether a device of NVIDIA's driver exists; under WSL, the device of the Windows driver."""
    return any((root / "dev").glob("nvidia[0-9]*")) or exists(root / "dev/dxg")


def current_platform() -> str:
    """Return this host's platform by its conda name."""
    return platform_name(std_platform.machine())


def platform_name(machine: str) -> str:
    """Return the platform of a host with this system by its conda name.

    Args:
        machine: The processor family.
    """
    machine = machine.lower()
    return _PLATFORMS.get((sys.platform, machine), f"{sys.platform}-{machine}")


def glibc() -> Fact[Version] | Missing:
    """Return the version of the GNU C library that this process runs on."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError, AttributeError):
        return Missing("the C library does not identify itself as glibc", ReasonKind.NOT_GLIBC)
    if name != "glibc" or not (found := Version.find(version)):
        return Missing(f"the C library is {name or 'not GNU'}", ReasonKind.NOT_GLIBC)
    return Fact(found, "confstr(CS_GNU_LIBC_VERSION)", OriginKind.SYSTEM)


def probe(root: Path = Path("/")) -> BuildResources:
    """Return the resources that a build on this machine may use.

    Args:
        root: The folder that holds ``proc`` and ``sys``.
    """
    return BuildResources(_cores(root), _memory(root))


def _cores(root: Path) -> Fact[int]:
    try:
        found = Fact(len(os.sched_getaffinity(0)), "sched_getaffinity", OriginKind.SYSTEM)
    except AttributeError:  # not on Windows or macOS
        found = Fact(os.cpu_count() or 1, "os.cpu_count", OriginKind.SYSTEM)
    for group in _groups(root, "cpu"):
        if (quota := _quota(group)) and quota < found.value:
            found = Fact(max(quota, 1), f"CPU quota of {group}", OriginKind.CGROUP)
    return found


def _quota(group: Path) -> int | None:
    """Return the whole cores that a control group may use; None without a limit."""
    text = text_or_empty(group / "cpu.max").split()  # version 2: "QUOTA PERIOD" or "max PERIOD"
    if not text:
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")  # version 1; -1 for no limit
        text = [text_or_empty(group / name).strip() for name in names]
    quota, period = map(whole_number, (*text, "", "")[:2])
    return None if quota is None or not period else -(-quota // period)


def _memory(root: Path) -> Fact[int] | Missing:
    total: Fact[int] | Missing = Missing("/proc/meminfo has no MemTotal", ReasonKind.NONE)
    for line in text_or_empty(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemTotal" and (size := whole_number(rest.strip().partition(" ")[0])) is not None:
            total = Fact(size * 1024, "MemTotal of /proc/meminfo", OriginKind.SYSTEM)
    for group in _groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):  # versions 2 and 1
            limit = whole_number(text_or_empty(group / name).strip())
            if limit is not None and (isinstance(total, Missing) or limit < total.value):
                total = Fact(limit, f"{name} of {group}", OriginKind.CGROUP)
    return total


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of the control groups that this process is in, innermost first (cgroups(7))."""
    for line in text_or_empty(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / (controller if controllers else "")
        folder = base / path.lstrip("/")
        while True:
            yield folder
            if folder == base or base not in folder.parents:
                break
            folder = folder.parent


LIBC = HostField(
    label="glibc",
    meaning="the version of the GNU C library",
    form='`"2.35"`',
    probe=lambda _: glibc(),
)

CORES = HostField(
    label="cores",
    meaning="the processors that this process may use, with the limits of its control group",
    form="a number",
    probe=lambda scan: _cores(scan.places.root),
)

MEMORY = HostField(
    label="memory",
    meaning="the memory that this process may use, with the limits of its control group",
    form="a number of bytes",
    probe=lambda scan: _memory(scan.places.root),
    show=lambda size: [format_bytes(size)],
)


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


def disk(folder: Path, places: Places) -> Fact[Disk] | Missing:
    """Return the free bytes and the file system of a folder or its future place.

    Args:
        folder: The folder; if it does not exist yet, its nearest existing parent is used.
        places: Where to look.
    """
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
    probe=lambda scan: disk(scan.folder, scan.places),
    show=lambda disk: [f"{format_bytes(disk.free)} free on {disk.file_system}  {disk.path}"],
)
