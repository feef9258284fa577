"""An index for GDB in libraries with debug information: GDB reads all of it at each start otherwise.

mold, lld and gold write the index while they link (`--gdb-index`); GNU ld does not. So the index comes afterwards from
GDB's own `gdb-add-index`, whatever has linked. The time of the file is put back: Ninja links nothing again, and CMake
installs nothing again.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tenv.builds.build_job import BuildJob, DebugKind, Done, build_finding
from tenv.checks.rules.interface import Finding, Severity
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.elf import ElfFaultError, open_elf
from tenv.core.missing import Missing
from tenv.core.size_text import format_bytes

__all__ = ["add_indexes", "asks_for_debug"]

_ADDER = "gdb-add-index"
_INDEXES = (".gdb_index", ".debug_names")
_INFORMATION = ".debug_info"
_NO_SYMBOL = "tenv_asks_for_no_such_symbol"
_SECONDS = 3600.0
_LEAST = 64 << 20
"""Bytes of debug information from which an index is worth its room. GDB 13 took 9.6 s for a libtorch_cpu.so of 319 MB
with 1.5 MB of debug information, with and without an index: those seconds are for its table of symbols."""


@dataclass(frozen=True, slots=True)
class _Indexed:
    """A library that has an index now.

    Attributes:
        name: Its file name.
        size: The bytes of its debug information.
        before: Seconds that GDB took to load it without an index.
        after: Seconds that it takes now.
    """

    name: str
    size: int
    before: float
    after: float


def asks_for_debug(job: BuildJob) -> bool:
    """Return whether a build leaves debug information in its files."""
    return job.request.debug is not DebugKind.NONE or bool(job.request.debug_files)


def add_indexes(job: BuildJob, least: int = _LEAST) -> Done:
    """Add an index to each library of the built torch that has debug information and none.

    Args:
        job: The build.
        least: The bytes of debug information from which a library gets an index.
    """
    if not asks_for_debug(job):
        return Done()
    files = [(file, size) for file in _libraries(job) if (size := _information(file)) >= least]
    if not files:
        return Done()
    program = process.find(_ADDER, job.environ.get("PATH"))
    if program is None:
        return Done([_no_program(sum(size for _, size in files))])
    done, findings = list[_Indexed](), list[Finding]()
    for file, size in files:
        before = _load_seconds(job, file)
        if fault := _index(job, program, file):
            findings.append(_failed(file, fault))
        else:
            done.append(_Indexed(file.name, size, before, _load_seconds(job, file)))
    facts = {"gdb_index": [{"library": one.name, "before": one.before, "after": one.after} for one in done]}
    return Done(findings, facts, lines=tuple(_lines(done)))


def _lines(done: Sequence[_Indexed]) -> Iterator[str]:
    for one in done:
        yield (
            f"{one.name} has an index for GDB, which loads its {format_bytes(one.size)} of debug information "
            f"in {one.after:.1f} s, before in {one.before:.1f} s"
        )


def _libraries(job: BuildJob) -> Iterator[Path]:
    """Yield the libraries of the torch that is installed in place."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    if job.request.wheel is not None:
        return
    for root in (job.checkout / "torch", job.toolchain.site_packages / "torch"):
        for folder in (root, root / "lib"):
            yield from (file for file in sorted(folder.glob("*.so")) if file.is_file() and not file.is_symlink())


def _information(file: Path) -> int:
    """Return the bytes of debug information of a library without an index; 0 for one that needs none."""
    try:
        sizes = _sections(file)
    except (OSError, ElfFaultError):
        return 0
    return 0 if any(name in sizes for name in _INDEXES) else sizes.get(_INFORMATION, 0)


def _sections(file: Path) -> dict[str, int]:
    """Return the sizes of the sections of a file."""
    with open_elf(file) as elf:
        return {section.name: section.size for section in elf.sections}


def _index(job: BuildJob, program: str, file: Path) -> str:
    """Add the index; return the error, or an empty text. The file is replaced whole, with its time and mode."""
    before = file.stat()
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".tenv-") as folder:
        copy = Path(folder, file.name)
        shutil.copy2(file, copy)
        answer = process.run([program, str(copy)], environment=job.environ, folder=Path(folder), timeout=_SECONDS)
        if isinstance(answer, Missing):
            return answer.reason
        if answer.status or not any(name in _sections(copy) for name in _INDEXES):
            return answer.stderr.strip() or f"{_ADDER} ended with status {answer.status} and added nothing"
        os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
        copy.chmod(before.st_mode)
        copy.replace(file)
    return ""


def _load_seconds(job: BuildJob, file: Path) -> float:
    """Return the seconds after which GDB knows the symbols of a library: attaching waits for them."""
    gdb = process.find("gdb", job.environ.get("PATH"))
    if gdb is None:
        return 0.0
    start = time.monotonic()
    words = [gdb, "-nx", "-batch", "-ex", f"info address {_NO_SYMBOL}", str(file)]
    process.run(words, environment=job.environ, timeout=_SECONDS)
    return round(time.monotonic() - start, 2)


def _no_program(size: int) -> Finding:
    return build_finding(
        "TE964",
        _ADDER,
        f"is not there, so GDB reads {format_bytes(size)} of debug information at each start",
        "PATH of the environment and of the shell",
        "the manual of GDB: Index Files Speed Up GDB",
        "install the `gdb` package of the system, then run the same command again: nothing is compiled",
        Severity.NOTE,
    )


def _failed(file: Path, fault: str) -> Finding:
    return build_finding(
        "TE964",
        file.name,
        "got no index for GDB, which takes long to attach without one",
        fault.splitlines()[0],
        "the manual of GDB: Index Files Speed Up GDB",
        f"`{_ADDER} {file}` shows the whole error; debugging works without the index",
        Severity.NOTE,
    )
