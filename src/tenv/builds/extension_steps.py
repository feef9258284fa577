"""The steps of `tenv build` for a package that compiles against a torch, where they differ from those of PyTorch."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PathDistribution, distributions
from pathlib import Path
from typing import Any

from tenv.builds.build_job import BuildJob, BuildWay, Done, build_finding
from tenv.builds.extension_plan import (
    ARCHS,
    STANDARD,
    Asked,
    Reason,
    compilers,
    job_limits,
    package_variables,
    refusals,
)
from tenv.builds.extension_record import CONFIG, NINJA, recorded, sharing, units_of, with_parts
from tenv.builds.ninja_plan import compile_commands, kind_of_object, remaining
from tenv.builds.switches import DECIDING, is_off
from tenv.builds.task_costs import Task
from tenv.checks.build_log.diagnose import diagnose
from tenv.checks.rules.interface import Finding
from tenv.core import process
from tenv.core.errors import TenvError
from tenv.core.file_content import text_or_empty
from tenv.core.files import make_folder, write_atomic
from tenv.core.missing import Missing
from tenv.core.names import dist_info, dist_infos, normalize
from tenv.host.installed_torch import InstalledTorch, read_torch
from tenv.host.interface import Fact
from tenv.host.machine import current_platform, probe
from tenv.locks.lock_file import read_lock

PACKAGE = "package"
"""The folder of the editable wheel, below tenv's notes on a build."""
MARK = "tenv-import:"
"""The start of the line in which a script names the modules that it has imported."""
IMPORT = "import"
"""The name of the log of the imports."""
_AUDIT = "TE981"
_FILES = "the files of torch"
_HEADERS = (".h", ".hpp", ".cuh", ".hh", ".hxx")
_NVCC = ("NVCC_FLAGS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_OWN = (".tenv", ".git", "build", "dist")
_SCIKIT = ("CMAKE_", "SKBUILD_")
_JOBS = "CMAKE_BUILD_PARALLEL_LEVEL"
_HEADER = re.compile(
    r"""^[ \t]*\#[ \t]*include[ \t]*[<"](torch/(?:all|extension|python|script|torch|types)\.h|ATen/ATen\.h)[>"]""",
    re.MULTILINE,
)
"""The headers of torch that end in the ``#error`` about the C++ standard, which is in ATen/ATen.h and torch/all.h."""
_SECONDS = 600.0
_SCRIPT = """\
import importlib, json, sys
import torch
found = {"version": torch.__version__, "location": torch.__file__, "modules": {}}
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    found["modules"][name] = getattr(module, "__file__", None) or str([*getattr(module, "__path__", [""])][0])
print("tenv-import:" + json.dumps(found))
"""


def look_at_torch(job: BuildJob) -> None:
    """Store the torch that an extension is compiled against, the variables, and the extensions of its ``setup.py``."""
    job.context.progress.step(f"reading {job.found.evidence}")
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    found = read_torch(job.toolchain.site_packages / "torch")
    job.installed = None if isinstance(found, Missing) else found
    job.environ = _extension_environ(job, job.environ)
    if job.found.way is BuildWay.EXTENSION:
        facts = job.extension.facts if job.extension else None
        job.record = recorded(job.toolchain.python, job.environ, job.checkout, facts)


def _extension_environ(job: BuildJob, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a build with the switches of its package, its limits and the folder of its objects."""
    assert job.extension is not None  # noqa: S101 (of extensions alone)
    facts, own = job.extension.facts, job.context.environ
    environ = {name: value for name, value in environ.items() if name not in ("CC", "CXX") or value.strip()}
    archs, gpu = environ.get(ARCHS, ""), job.installed is not None and job.installed.has_cuda
    found = package_variables(facts, archs, environ, job_limits(facts, probe(), environ, own), gpu=gpu)
    found[_JOBS] = found["MAX_JOBS"]
    if job.found.way is BuildWay.EXTENSION:
        found |= {CONFIG: str(job.notes / "setup.cfg"), **job.request.debug.variables()}
    return found


def refused(job: BuildJob) -> Iterator[Finding]:
    """Yield the first reason why an extension can't be compiled against its torch."""
    assert job.extension is not None  # noqa: S101 (of extensions alone)
    if job.installed is None:
        yield _refusal(job, f"{job.environment.prefix} has no torch", "")
        return
    asked = Asked(job.package, 0, job.environ.get(ARCHS, ""))
    table = job.context.facts().cuda_gpu_arch
    commands = {} if job.found.way is BuildWay.EXTENSION else compile_commands(job.folder, job.environ)
    reasons = (
        *refusals(job.record, asked, job.extension.facts, job.installed, table),
        *old_standards(commands, job.environ, job.installed),
    )
    if found := next(iter(reasons), None):
        reason, hint = found
        yield _refusal(job, reason, "" if hint.startswith(("`cxx", "`archs", "a git revision")) else hint)


def old_standards(
    commands: Mapping[Path, str], environ: Mapping[str, str], torch: InstalledTorch | None
) -> Iterator[Reason]:
    """Yield the first source with headers of torch that CMake compiles by an older C++ standard than they demand.

    Args:
        commands: The commands of the compilers, by their sources.
        environ: The variables of the build.
        torch: The torch that it is compiled against; None where it can't be read.
    """
    least = torch.least_cxx if torch else None
    if torch is None or not isinstance(least, Fact):
        return
    for file, command in commands.items():
        named = STANDARD.findall(command)
        if file.suffix == ".cu":  # which counts after those of the command
            named += STANDARD.findall(environ.get("NVCC_APPEND_FLAGS", ""))
        if not named or int(named[-1]) >= least.value or not (header := _HEADER.search(text_or_empty(file))):
            continue
        what = f"{file.name} includes {header[1]} and is compiled as C++{named[-1]}"
        edit = f"CXXSTANDARD and CUDASTANDARD {least.value} in its CMakeLists.txt"
        yield f"{what}, torch {torch.label} demands C++{least.value}", edit
        return


def _refusal(job: BuildJob, reason: str, fix: str) -> Finding:
    return build_finding(
        "TE954",
        job.package,
        f"can't be compiled: {reason}",
        str(job.checkout / job.found.evidence),
        "docs/build.md",
        fix,
    )


def prepare(job: BuildJob) -> str:
    """Make the folder of the objects, an empty one where they are of another torch or toolkit.

    Ninja compares times, and the files of a wheel keep those of its archive: nothing would be compiled again.

    Returns:
        The reason why the folder was emptied; an empty text if it was not.
    """
    stamp, before = job.notes / "torch.json", dict[str, Any]()
    now = _inputs(job)
    with contextlib.suppress(OSError, ValueError, RecursionError):
        before = dict(json.loads(stamp.read_text(encoding="utf-8")))
    changed = [name for name in (*now, *(before.keys() - now)) if before.get(name, "") != now.get(name, "")]
    changed = [name for name in changed if name != _FILES or "torch" not in changed]
    why = "--clean" if job.request.clean else ""
    if before and changed:
        one, is_digest = changed[0], changed[0].startswith("the ")
        why = f"{one} was {before.get(one) or 'not set'}" if len(changed) == 1 and not is_digest else ", ".join(changed)
    if job.folder.exists() and (why or not before):
        shutil.rmtree(job.folder)
        (job.notes / "packaged.json").unlink(missing_ok=True)
    make_folder(job.folder)
    if job.found.way is BuildWay.EXTENSION:
        text = f"[build_ext]\nbuild_temp = {job.folder}\nbuild_lib = {job.folder / 'lib'}\n"
        text += NINJA if job.record.get("idle") else ""
        write_atomic(job.notes / "setup.cfg", text)
        job.environ = {**job.environ, **with_parts(job.record, job.environ, job.notes / "apart")}
        write_atomic(job.stamp_file, json.dumps({"target": job.target.name, "switches": job.switches}) + "\n")
    write_atomic(stamp, json.dumps(now) + "\n")
    return why


def _inputs(job: BuildJob) -> dict[str, str]:
    """Return the inputs of all objects by name: torch, toolkit, compilers and, without a CMake, variables."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    places = job.toolchain.site_packages
    found = {"torch": job.installed.label if job.installed else "", "Python": places.parent.name}
    records = [
        places / "torch" / "version.py",
        *(info / "RECORD" for info in dist_infos(places) if dist_info(info)[0] == "torch"),
    ]
    found[_FILES] = _digest(*(_bytes(file) for file in records))
    found["the compiler"] = _digest(json.dumps(compilers(job.environ)).encode())
    state = job.environment.state()
    with contextlib.suppress(TenvError):
        lock = read_lock(job.target.lock_file, job.target.name)
        found["the toolkit"] = lock.compiled_against(current_platform(), state.python if state else "")[:16]
    if job.found.way is not BuildWay.LIBTORCH:
        found |= {name: value for name, value in sorted(job.environ.items()) if name in (*DECIDING, *_NVCC)}
    if job.found.way is BuildWay.EXTENSION_SCIKIT:  # CMake keeps the value of a variable that is no longer set
        found |= {name: value for name, value in sorted(job.environ.items()) if name.startswith(_SCIKIT)}
        found.pop(_JOBS, None)
    return found


def _digest(*values: bytes) -> str:
    return hashlib.sha256(b"\0".join(values)).hexdigest()[:16]


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def extension_tasks(job: BuildJob) -> tuple[Task, ...] | None:
    """Return the tasks that are left; None where they are not known before the backend has run CMake."""
    if job.found.way is not BuildWay.EXTENSION:
        return remaining(job.folder, (), job.environ) if (job.folder / "build.ninja").is_file() else None
    made = {str(file.relative_to(job.folder).with_suffix("")): file.stat().st_mtime for file in job.folder.rglob("*.o")}
    tasks: list[Task] = []
    again, ninja, apart = forced(job), bool(job.record.get("ninja")), sharing(job.record)
    for row in job.record.get("extensions", []):
        below = f"{row['name']}{os.sep}" if row["name"] in apart else ""
        own = {name.removeprefix(below): at for name, at in made.items() if name.startswith(below)}
        old = [source for source in row["sources"] if again or _is_old(job.checkout / source, source, own)]
        old = old if ninja or not old else row["sources"]  # setuptools compiles an extension as a whole
        tasks += [Task(kind_of_object(f"{source}.o"), f"{source}.o") for source in old]
    return tuple(tasks)


def _is_old(file: Path, named: str, made: Mapping[str, float]) -> bool:
    """Return whether a source has no object, or an older one; an absolute source has an object of as long a path."""
    keys = (
        str(Path(name).with_suffix("")).lstrip(os.sep) for name in (os.path.normpath(named), os.path.normpath(file))
    )
    time = next((made[key] for key in keys if key in made), None)
    try:
        return time is None or file.stat().st_mtime > time
    except OSError:
        return True


def forced(job: BuildJob) -> bool:
    """Return whether everything has to be compiled: without ninja, setuptools compares neither headers nor flags.

    Nor does it see that the build before did not end: a library that was cut off is newer than its sources.
    """
    if job.record.get("ninja") or job.found.way is not BuildWay.EXTENSION:
        return False
    built = [file.stat().st_mtime for file in extension_libraries(job)]
    if not built:
        return False
    return _bytes(_ended(job)) != _recipe(job) or any(time > min(built) for time in _header_times(job.checkout))


def _ended(job: BuildJob) -> Path:
    return job.notes / "compiled.txt"


def _recipe(job: BuildJob) -> bytes:
    """Return a digest of the sources and options of each extension."""
    return _digest(json.dumps(job.record, sort_keys=True).encode()).encode()


def begin(job: BuildJob) -> None:
    """Note that a compilation begins: until `end`, its libraries are not whole."""
    if job.found.way is not BuildWay.EXTENSION:
        return
    if job.request.wheel and forced(job):  # its command takes no --force
        shutil.rmtree(job.folder / "lib", ignore_errors=True)
    _ended(job).unlink(missing_ok=True)


def end(job: BuildJob) -> None:
    """Note that a compilation has ended well."""
    if job.found.way is BuildWay.EXTENSION:
        write_atomic(_ended(job), _recipe(job).decode())


def _files(checkout: Path) -> Iterator[tuple[str, str]]:
    """Yield the folder and the name of each file of a checkout, without its environments and builds."""
    for folder, names, files in os.walk(checkout):
        names[:] = [name for name in names if name not in _OWN]
        yield from ((folder, name) for name in files)


def _header_times(checkout: Path) -> Iterator[float]:
    for folder, name in _files(checkout):
        if name.endswith(_HEADERS):
            with contextlib.suppress(OSError):
                yield Path(folder, name).stat().st_mtime


def extension_libraries(job: BuildJob) -> list[Path]:
    """Return the libraries in the build folder; of a CMake project without a package, its programs, too."""
    cmake = job.found.way is BuildWay.LIBTORCH

    def is_product(file: Path) -> bool:
        if file.suffix in (".so", ".pyd") or ".so." in file.name:
            return True
        return cmake and not file.suffix and "CMakeFiles" not in file.parts and os.access(file, os.X_OK)

    return sorted(file for file in job.folder.rglob("*") if is_product(file) and file.is_file())


def installed_package(job: BuildJob) -> PathDistribution | None:
    """Return the metadata of the package that leads to this checkout; None without one."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    for found in distributions(path=[str(job.toolchain.site_packages)]):
        url = found.read_text("direct_url.json") or ""
        places = (f'"{job.checkout.as_uri()}"', f'"{(job.notes / PACKAGE).as_uri()}/')
        if isinstance(found, PathDistribution) and any(place in url for place in places):
            return found
    return None


def _modules(job: BuildJob) -> list[str]:
    """Return the modules at the top of the installed package."""
    found = installed_package(job)
    names = (found.read_text("top_level.txt") or "").split() if found else []
    if found and not names:
        tops = {str(file).split("/")[0] for file in found.files or () if file.suffix in (".py", ".so", ".pyd", ".pth")}
        names = [top.split(".")[0] for top in sorted(tops) if not top.startswith(("_", "."))]
    names = [name for name in names if name.isidentifier() and not name.startswith("test")]
    return names or [normalize(job.package).replace("-", "_")]


def check_extension_import(job: BuildJob) -> Done:
    """Import the package with its torch, in an empty folder."""
    job.context.progress.step(f"importing {job.package}")
    found = imported(job, _SCRIPT, *_modules(job))
    if isinstance(found, Done):
        return found
    job.torch = {"version": found["version"], "location": found["location"]}
    shown = [f"{name} from {place}" for name, place in found["modules"].items()]
    facts = {"modules": found["modules"], "torch": job.torch}
    return Done([], facts, job.log(IMPORT), (*shown, f"with torch {found['version']}"))


def imported(job: BuildJob, script: str, *names: str) -> dict[str, Any] | Done:
    """Return the output of a script behind `MARK`, run in an empty folder, or the failed step.

    Args:
        job: The build, whose environment has the Python.
        script: The text of the script.
        names: The arguments of the script.
    """
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    environ = {name: value for name, value in job.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    with tempfile.TemporaryDirectory(prefix="tenv-import-") as folder:
        words = [str(job.toolchain.python), "-c", script, *names]
        done = process.run(words, environment=environ, folder=Path(folder), timeout=_SECONDS)
    log = job.log(IMPORT)
    output = done.reason if isinstance(done, Missing) else f"{done.stdout}\n{done.stderr}"
    log.write_text(output, encoding="utf-8")
    row = next((line for line in output.splitlines() if line.startswith(MARK)), None)
    if isinstance(done, Missing) or done.status or row is None:
        return Done([fault_of_import(job, f"{output}\n{_ending(done)}", log)], {}, log)
    return dict(json.loads(row.removeprefix(MARK)))


def _ending(done: process.Completed | Missing) -> str:
    """Return the signal that ended Python, which its output does not show; else an empty text."""
    if isinstance(done, Missing) or done.status >= 0:
        return ""
    name = signal.strsignal(-done.status) or "unknown"
    return f"Python ended by signal {-done.status} ({name})"


def lacking_gpu_code(job: BuildJob, there: str, arch: str) -> Finding:
    """Return the finding for libraries without GPU code for an architecture; an empty one for libraries with none."""
    what = f"has no GPU code for sm_{arch}: its libraries have {there}" if arch else "was compiled without GPU code"
    source = f"{ARCHS}={job.environ.get(ARCHS, '')}" if arch else f"torch {job.installed and job.installed.label}"
    fix = f"a variable of its build may force it; `--allow {_AUDIT}` goes on without it"
    return build_finding(_AUDIT, job.package, what, str(job.folder), source, fix)


def wants_gpu_code(job: BuildJob) -> bool:
    """Return whether libraries must have GPU code: the torch has CUDA, and the extension has sources for it."""
    if job.extension is None or job.installed is None or not job.installed.has_cuda:
        return False
    if is_off(job.environ.get("FORCE_CUDA", "1")):  # the user goes without
        return False
    if job.found.way is BuildWay.EXTENSION:
        return bool(job.extension.facts) or any(unit.endswith(".cu") for unit in units_of(job.record))
    return any(name.endswith(".cu") for _, name in _files(job.checkout))


def fault_of_import(job: BuildJob, output: str, log: Path) -> Finding:
    """Return the finding for an import that failed, by the output of Python."""
    lines = [line for line in output.splitlines() if line.strip()]
    cause = diagnose(
        [*lines, f"ERROR: import {job.package}"], job.context.facts().build_failures, of="pytorch"
    ).own_cause
    if cause is not None:
        return cause.finding()
    last = lines[-1] if lines else "it printed nothing"
    module = last.partition("No module named ")[2].strip("'\" ")
    fix = f"`tenv run {job.target.name} -- python -c 'import {job.package}'` in another folder shows it again"
    if module and module != job.package:
        fix = f'add {module} = "*" to [pypi-dependencies] of {job.target.name}, and lock again'
    source = "its __init__.py" if job.extension else "torch/__init__.py"
    return build_finding("TE971", module or job.package, f"does not import: {last}", str(log), source, fix)
