"""Step `configure`: CMake is run as the revision's own build runs it, with a log, and not again without a reason."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenv.builds.build_job import BuildJob
from tenv.builds.build_way import BuildWay
from tenv.builds.logged_run import look_up, run_logged
from tenv.builds.memory_launcher import write_launcher
from tenv.builds.own_flags import flag_words, same_code
from tenv.builds.provenance import is_built
from tenv.builds.step_report import Done, build_finding
from tenv.builds.switches import is_off, known_switches, meant, set_switches, unread
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.files import make_folder, remove_tree, write_atomic

__all__ = ["configure", "configure_commands", "unread_switches"]

_SETTLED = ("CC", "CXX", "CUDACXX", "CUDAHOSTCXX", "CUDA_HOME", "TORCH_CUDA_ARCH_LIST", "CFLAGS", "CXXFLAGS", "LDFLAGS")
"""Variables that CMake keeps from its first run, besides the switches."""
_VOLATILE = ("CMAKE_BUILD_PARALLEL_LEVEL",)


def unread_switches(job: BuildJob) -> Iterator[Finding]:
    """Yield the switches that are set and that this revision does not read, each with the one that was meant."""
    known = known_switches(job.checkout)
    given = {**set_switches(job.environ or job.context.environ), **set_switches(job.request.defines)}
    own = {change.name for change in job.activation.changes} if job.activation else {*job.target.manifest.environment}
    for name in unread(given, known):
        if name in own and name not in job.context.environ:  # the target is for revisions that do read it
            continue
        right = meant(name, given[name], known)
        yield build_finding(
            "TE931",
            name,
            f"is set to `{given[name]}`, and PyTorch {job.tree.version.value} does not read it"
            + (f"; {right} is what it reads" if right else ""),
            "-D" if name in job.request.defines else "your shell",
            f"no build file of {job.checkout} names it",
            f"unset {name}" + (f" && export {right}" if "=" in right else ""),
            Severity.WARNING,
        )


def configure_commands(job: BuildJob) -> list[list[str]]:
    """Return what configures the build folder; nothing where a revision has no such step."""
    way, python = job.found.way, str(job.toolchain.python if job.toolchain else "python")
    defines = [f"-D{name}={value}" for name, value in job.request.defines.items()]
    if way in (BuildWay.SCIKIT, BuildWay.CMAKE):
        fixed = [f"-DPython_EXECUTABLE={python}", f"-DCMAKE_BUILD_TYPE={job.request.debug.build_type}"]
        fixed += [f"-DTORCH_BUILD_VERSION={job.tree.version.value}", "-DBUILD_PYTHON=ON"]
        if way is BuildWay.CMAKE:
            fixed.append(f"-DCMAKE_INSTALL_PREFIX={job.checkout / 'torch'}")
        if is_off(job.environ.get("BUILD_TEST", "1")):
            fixed.append("-DBUILD_TEST=OFF")
        generator = ["-G", "Ninja"] if job.environ.get("CMAKE_GENERATOR", "Ninja") == "Ninja" else []
        return [["cmake", "-S", str(job.checkout), "-B", str(job.folder), *generator, *fixed, *defines]]
    if way is BuildWay.CMAKE_ONLY:
        again = [["cmake", *defines, str(job.folder)]] if defines else []
        return [[python, "setup.py", "build", "--cmake-only"], *again]
    return []


def configure(job: BuildJob) -> Done:
    """Configure the build folder, unless it is what these sources, this target and these switches make of it."""
    findings = list(unread_switches(job))
    if job.request.clean:
        _remove(job)
    commands = configure_commands(job)
    variables = _variables(job)
    inputs = _inputs(job, commands, variables)
    facts = {"folder": str(job.folder), "commands": commands, "skipped": False}
    if not commands:
        return Done(findings, {**facts, "skipped": True}, lines=("this revision configures and compiles in one go",))
    kept = _kept(job, commands, variables)
    if _is_configured(job, inputs) or (kept and _is_configured(job, kept)):
        lines = (f"{job.folder} is configured for this already: CMake is not run", *_left_out(job, variables))
        return Done(findings, {**facts, "skipped": True}, job.log("configure"), lines)
    before, cache = _variables_before(job), job.folder / "CMakeCache.txt"
    changed = _changed(before, variables) if before else []
    if job.request.fresh or job.stamp():  # setup.py runs no CMake where a cache is, and elsewhere a cached value wins
        cache.unlink(missing_ok=True)
    make_folder(job.folder)
    write_launcher(job)
    log = job.log("configure")
    for index, command in enumerate(commands):
        ran = run_logged(
            command,
            log,
            environ=job.environ,
            folder=job.checkout,
            progress=job.context.progress,
            title="configuring",
            again=index > 0,
        )
        if ran.status:
            write_atomic(job.stamp_file, json.dumps({"variables": variables}, indent=1) + "\n")  # of no target yet
            table = job.context.facts().build_failures
            return Done([*findings, look_up(ran, "TE932", "the configuration", log, table)], facts, log)
    stamp = {"target": job.target.name, "switches": job.switches, "inputs": inputs, "variables": variables}
    write_atomic(job.stamp_file, json.dumps(stamp, indent=1) + "\n")
    again = f", anew, since {', '.join(_words(before, variables, name) for name in changed)} changed" if changed else ""
    return Done(findings, {**facts, "changed": changed}, log, (f"configured in {job.folder}{again}",))


def _remove(job: BuildJob) -> None:
    if job.folder.exists() and any(job.folder.iterdir()):
        remove_tree(job.folder, "CMakeCache.txt")  # which every configuration leaves, a failed one too
    job.stamp_file.unlink(missing_ok=True)


def _variables(job: BuildJob) -> dict[str, str]:
    """Return the variables that a configuration depends on."""
    return {
        name: value
        for name, value in sorted(job.environ.items())
        if name in _SETTLED
        or name in set_switches(job.environ)
        or (name.startswith("CMAKE_") and name not in _VOLATILE)
    }


def _inputs(job: BuildJob, commands: list[list[str]], variables: Mapping[str, str]) -> str:
    """Return a digest of all that a configuration depends on and CMake itself does not watch."""
    state = job.environment.state()
    found: Mapping[str, object] = {"commands": commands, "environ": variables, "python": state.python if state else ""}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def _variables_before(job: BuildJob) -> dict[str, str]:
    """Return the variables of the last configuration; none where there was none."""
    before = job.stamp().get("variables")
    return {str(name): str(value) for name, value in before.items()} if isinstance(before, dict) else {}


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the variables that have another value, or that only one of two configurations has."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def _words(before: Mapping[str, str], now: Mapping[str, str], name: str) -> str:
    """Return the name of a variable that changed, for a list of flags with what came and went."""
    said = flag_words(before.get(name, ""), now.get(name, "")) if name.endswith("FLAGS") else ""
    return f"{name} ({said})" if said else name


def _kept(job: BuildJob, commands: list[list[str]], variables: Mapping[str, str]) -> str:
    """Return the digest of the last configuration if a new one would change no code of a folder that is built.

    Another version of tenv may add other flags than the one that configured the folder, and CMake would start over.
    """
    before = _variables_before(job)
    if before and is_built(job) and same_code(before, variables):
        return _inputs(job, commands, before)
    return ""


def _left_out(job: BuildJob, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the flags of tenv that a folder was not configured with, and how it gets them."""
    before = _variables_before(job)
    if said := ", ".join(_words(before, variables, name) for name in _changed(before, variables)):
        yield f"--fresh would configure it anew: {said}; they change no code, and everything would be compiled again"


def _is_configured(job: BuildJob, inputs: str) -> bool:
    if job.request.fresh or job.stamp().get("inputs") != inputs or not job.log("configure").is_file():
        return False
    return (job.folder / "CMakeCache.txt").is_file() and _has_plan(job.folder)


def _has_plan(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("build.ninja", "Makefile"))
