"""Check the memory and the disk of the host."""

import re
from collections import Counter
from collections.abc import Iterator

from tenv.checks.rules.common import cuda_of
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.host.interface import Missing
from tenv.locks.lock import Lock

MEMORY = "TE701"
DISK = "TE702"
NETWORK = "TE703"
PTRACE = "TE704"

_GIB = 1 << 30
_HEAVY_FILE = 9 * _GIB // 2
"""Bytes per CUDA job when activation sets MAX_JOBS (docs/activation.md)."""
UNPACKED = 2
"""Approximate bytes on disk per byte of a package: libraries compress to a half, and to less as .conda files."""
_DEBUGGERS = ("gdb", "cuda-gdb", "lldb", "python-debug")
_LAST_THAT_CHANGES = 2
"""The highest ptrace_scope that root can change without a reboot."""
_NETWORK = (
    *("nfs", "nfs4", "lustre", "beegfs", "gpfs", "ceph", "cifs", "smb3", "smbfs", "afs", "panfs", "orangefs"),
    *("glusterfs", "9p", "v9fs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.beegfs"),
)


def memory(case: Case) -> Iterator[Finding]:
    """Yield a warning if the memory is less than one heavy CUDA file, or MAX_JOBS of the manifest, may need."""
    found = case.host.memory
    if isinstance(found, Missing) or cuda_of(case) is None:
        return
    request = case.manifest.environment.get("MAX_JOBS")
    asked = ((request.text if request else None) or "").strip()
    jobs = int(asked) if asked and re.fullmatch(r"\d{1,6}", asked, re.ASCII) else 0
    if found.value < _HEAVY_FILE:
        yield Finding(
            code=MEMORY,
            severity=Severity.WARNING,
            subject="memory",
            message=(
                f"is {_gib(found.value)}, but the heaviest CUDA files of PyTorch take up to {_gib(_HEAVY_FILE)} "
                "each: even a single job may be killed"
            ),
            evidence=f"{found.value} bytes ({found.origin})",
            source="docs/activation.md, MAX_JOBS",
            fix="raise the limit of the container or add swap, and build with MAX_JOBS=1",
        )
    elif found.value < jobs * _HEAVY_FILE:
        yield Finding(
            code=MEMORY,
            severity=Severity.WARNING,
            subject=f"MAX_JOBS={jobs}",
            message=(
                f"may take {_gib(jobs * _HEAVY_FILE)}: the heaviest CUDA files of PyTorch take up to "
                f"{_gib(_HEAVY_FILE)} each, and the host has {_gib(found.value)}, so jobs may be killed"
            ),
            evidence=f"[activation.env] of {case.manifest.file}; {found.value} bytes ({found.origin})",
            source="docs/activation.md, MAX_JOBS",
            fix="remove MAX_JOBS from [activation.env]: activation sets a value that fits the host",
        )


def small_disk(case: Case) -> Iterator[Finding]:
    """Yield an error if those packages of the target that its environment lacks do not fit on the disk."""
    disk = case.host.disk
    if case.lock is None or isinstance(disk, Missing):
        return
    packed = _packed(case.lock, case.platform, case.there, enough=disk.value.free // UNPACKED)
    missing = "missing packages" if case.there else "packages"
    if disk.value.free < packed * UNPACKED:
        yield Finding(
            code=DISK,
            severity=Severity.ERROR,
            subject=disk.value.path,
            message=(
                f"has {_gib(disk.value.free)} free; the {missing} of `{case.lock.target}` take about "
                f"{_gib(packed * UNPACKED)} unpacked, and a build of PyTorch needs more"
            ),
            evidence=f"{disk.value.free} bytes free ({disk.origin}); {missing} of {packed} bytes in the lock",
            source=f"the sizes in the lock of `{case.lock.target}`",
            fix="free some space (`tenv clean` removes what no environment needs), or put environments on another disk",
        )


def _packed(lock: Lock, platform: str, there: frozenset[str], enough: int) -> int:
    """Return the bytes of the packages that are missing, for the largest Python minor; 0 if `enough` holds them all."""
    key = (id(lock), platform, there)
    if key not in _sizes:
        if len(_sizes) >= _REMEMBERED:
            _sizes.clear()
        _sizes[key] = (lock, *_missing(lock, platform, there))  # the lock is kept, so that no other has its identity
    _, every, largest = _sizes[key]
    return 0 if every <= enough else largest


_REMEMBERED = 64
_sizes: dict[tuple[int, str, frozenset[str]], tuple[Lock, int, int]] = {}
"""The sizes of locks that were added up, since a lock is judged on each host of a fleet."""


def _missing(lock: Lock, platform: str, there: frozenset[str]) -> tuple[int, int]:
    """Return the bytes of the packages that are missing: for all Python minors, and for the largest one."""
    wheels = [wheel for wheel in lock.wheels.get(platform, ()) if wheel.sha256 not in there]
    conda = [package for package in lock.conda.get(platform, ()) if there.isdisjoint((package.sha256, package.md5))]
    rest = sum(package.size or 0 for package in conda)
    rest += sum(one.size or 0 for one in lock.archives.get(platform, ()) if one.sha256 not in there)
    sizes: Counter[str] = Counter()
    for wheel in wheels:
        for minor in wheel.python:
            sizes[minor] += wheel.size or 0
    return rest + sum(wheel.size or 0 for wheel in wheels), rest + max(sizes.values(), default=0)


def network_disk(case: Case) -> Iterator[Finding]:
    """Yield a warning if environments are on a network file system."""
    disk = case.host.disk
    if not isinstance(disk, Missing) and disk.value.file_system in _NETWORK:
        yield Finding(
            code=NETWORK,
            severity=Severity.WARNING,
            subject=disk.value.path,
            message=(
                f"is on a network file system ({disk.value.file_system}): creating, importing from and building "
                "in environments with thousands of files is slow there"
            ),
            evidence=f"file system {disk.value.file_system} ({disk.origin})",
            source="each import and each header is a round trip to the server",
            fix="put environments and the build folder on a local disk",
        )


def ptrace(case: Case) -> Iterator[Finding]:
    """Yield a note or a warning about the limits of a debugger here if the target is for debugging."""
    scope, debuggers = case.host.ptrace_scope, _debuggers(case)
    if not debuggers or isinstance(scope, Missing) or scope.value < 1:
        return
    only_children = scope.value == 1
    yield Finding(
        code=PTRACE,
        severity=Severity.NOTE if only_children else Severity.WARNING,
        subject="ptrace_scope",
        message=(
            f"is {scope.value}: {', '.join(debuggers)} can debug programs that it starts, but can't attach to "
            "running ones (a data loader's worker, a rank of a job)"
            if only_children
            else f"is {scope.value}: {', '.join(debuggers)} can't debug anything here without root"
        ),
        evidence=f"kernel.yama.ptrace_scope = {scope.value} ({scope.origin})",
        source="Documentation/admin-guide/LSM/Yama.rst of the Linux kernel",
        fix=(
            "ask an administrator: sysctl kernel.yama.ptrace_scope=0 (in a container: --cap-add=SYS_PTRACE)"
            if scope.value <= _LAST_THAT_CHANGES
            else "set kernel.yama.ptrace_scope in /etc/sysctl.d and reboot: the value 3 can't be changed at run time"
        ),
    )


def _debuggers(case: Case) -> list[str]:
    """Return the evidence that the target is for debugging: requested packages, not parts of a toolkit."""
    here = case.manifest
    names = {*here.dependencies, *here.wheels, *here.system}
    found = [name for name in _DEBUGGERS if name in names]
    python = here.dependencies.get("python")
    return [*found, "a debug Python"] if python and "debug" in python.build else found


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"
