"""Steps `configure` and `summary`: CMake runs as the revision's own build runs it, and its summary is compared.

CMake runs not again without a reason. Compiler flags that tenv adds by itself and that change no code are no reason: a
build folder that is built goes on without them. The summary is compared with the parts of the target and the switches.
"""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tenv.builds.build_environ import OPTIONS
from tenv.builds.build_job import BUILD_TYPE, BuildJob, BuildWay, Done, build_finding
from tenv.builds.compile_cache import PREFIX_MAP
from tenv.builds.extension_steps import prepare
from tenv.builds.logged_run import look_up, run_step
from tenv.builds.provenance import is_built
from tenv.builds.switches import DECIDING, is_off, is_on, known_switches, meant, set_switches, similar, unread
from tenv.builds.task_costs import write_launcher
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.files import make_folder, remove_tree, write_atomic
from tenv.core.process import command_words
from tenv.host.interface import Fact

_VOLATILE = ("CMAKE_BUILD_PARALLEL_LEVEL",)
_PLAIN = ("--no-deps", "--no-build-isolation")
_NOTHING = ("-Cbuild.targets=help", "-Cinstall.components=tenv")
"""Settings of scikit-build-core: Ninja lists its targets, and CMake installs a component that no project has."""
_NEW_CXX = 20
"""The first C++ standard that compilers of today do not take by themselves."""
_PYTHONS = ("Python", "Python3", "PYTHON")
"""The names by which FindPython, FindPython3 and the older FindPythonInterp, which pybind11 calls, take a Python."""


def unread_switches(job: BuildJob) -> Iterator[Finding]:
    """Yield the switches that are set and that this revision does not read, each with the one that was meant."""
    if job.extension:  # its own files decide on its variables
        return
    known, table = known_switches(job.checkout), job.context.facts().pytorch_switches
    given = {**set_switches(job.environ or job.context.environ), **set_switches(job.request.defines)}
    own = {change.name for change in job.activation.changes} if job.activation else {*job.target.manifest.environment}
    for name in unread(given, known):
        if name in own and name not in job.context.environ:  # the target is for revisions that do read it
            continue
        right, row = meant(name, given[name], known, table), table.find(name)
        fate = row.fate(job.tree.release) if row else ""
        question = "" if right or fate else similar(name, known)
        told = [f"it reads {right}" if right else "", fate, question]
        defined = name in job.request.defines
        yield build_finding(
            "TE931",
            name,
            f"is set to `{given[name]}`, and PyTorch {job.tree.version.value} does not read it"
            + "".join(f"; {words}" for words in told if words),
            "-D" if defined else "your shell",
            row.basis.source if row else f"no build file of {job.checkout} names it",
            _without(name, right, defined=defined),
            Severity.WARNING,
        )


def _without(name: str, right: str, *, defined: bool) -> str:
    """Return the edit that takes a switch off, and sets the one that was meant."""
    if defined:
        return f"leave out `-D {name}=…`" + (f", and give `-D {right}`" if "=" in right else "")
    return f"unset {name}" + (f" && export {right}" if "=" in right else "")


def configure_commands(job: BuildJob) -> list[list[str]]:
    """Return the commands that configure the build folder; none where a revision has no such step."""
    way, python = job.found.way, str(job.toolchain.python if job.toolchain else "python")
    defines = [f"-D{name}={value}" for name, value in job.request.passed.items()]
    if way is BuildWay.LIBTORCH:
        fixed = [*torch_defines(job), *(f"-D{name}_EXECUTABLE={python}" for name in _PYTHONS)]
        fixed += [f"-DCMAKE_BUILD_TYPE={job.request.debug.build_type}"]
        return [["cmake", "-S", str(job.checkout), "-B", str(job.folder), "-G", "Ninja", *fixed, *defines]]
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


def torch_defines(job: BuildJob) -> list[str]:
    """Return the definitions of a CMake project by which it compiles against the target's torch.

    Those are the place of torch and its Python, and the C++ standard that its headers demand, as torch's own
    ``cpp_extension.py`` adds it where a ``setup.py`` names none: compilers begin with an older one. A project that
    sets one keeps that, and so does the user.
    """
    if job.toolchain is None:
        return []
    found = {"Torch_DIR": str(job.toolchain.site_packages / "torch" / "share" / "cmake" / "Torch")}
    least = job.installed.least_cxx if job.installed else None
    if isinstance(least, Fact) and least.value >= _NEW_CXX:
        found |= {f"CMAKE_{language}_STANDARD": str(least.value) for language in ("CXX", "CUDA")}
    return [f"-D{name}={value}" for name, value in found.items() if name not in job.request.passed]


def backend_settings(job: BuildJob) -> list[str]:
    """Return the settings by which scikit-build-core keeps its build folder; none for another backend."""
    if job.found.way not in (BuildWay.SCIKIT, BuildWay.EXTENSION_SCIKIT):
        return []
    found = {"build-dir": str(job.folder), "cmake.build-type": job.request.debug.build_type}
    defines = [f"{name}={value}" for name, value in job.request.passed.items()]
    if job.found.way is BuildWay.EXTENSION_SCIKIT:
        defines += [one.removeprefix("-D") for one in torch_defines(job)]
    return [*(f"-C{name}={value}" for name, value in found.items()), *(f"-Ccmake.define.{one}" for one in defines)]


def package_command(job: BuildJob, wheel: Path | None, settings: Sequence[str]) -> list[str]:
    """Return the command by which the backend of a package makes a wheel, or installs the package in develop mode.

    Args:
        job: The build.
        wheel: The folder of the wheel; None to install.
        settings: The settings of the backend.
    """
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    python = str(job.toolchain.python)
    if (job.toolchain.site_packages / "pip").is_dir():
        words = ["wheel", "-w", str(wheel)] if wheel else ["install"]
        return [python, "-m", "pip", *words, "-v", *_PLAIN, *settings, *([] if wheel else ["-e"]), "."]
    uv = [sys.executable, "-P", "-m", "uv"]
    if wheel:
        words = ["build", "--wheel", "--out-dir", str(wheel), "--no-build-isolation", "--offline"]
        return [*uv, *words, "--python", python, *settings, "."]
    words = ["pip", "install", "--python", python, "--offline", "-v", *_PLAIN]
    words += ["--reinstall"] if job.extension else []
    return [*uv, *words, *settings, "-e", "."]


def configure(job: BuildJob) -> Done:
    """Configure the build folder, unless it has these sources, this target and these switches already."""
    if job.extension and (done := _prepared(job)):
        return done
    findings = list(unread_switches(job))
    if job.request.clean and not job.extension:
        _remove(job)
    commands = configure_commands(job)
    variables = _variables(job)
    inputs = _inputs(job, commands, variables)
    facts = {"folder": str(job.folder), "commands": commands, "skipped": False}
    kept = _kept(job, commands, variables)
    if commands and (_is_configured(job, inputs) or (kept and _is_configured(job, kept))):
        lines = (f"{job.folder} is configured for this already: CMake is not run", *_left_out(job, variables))
        return Done(findings, {**facts, "skipped": True}, job.log("configure"), lines)
    changed, again = _reason(job, variables)
    # setup.py runs no CMake where a cache is, and elsewhere a cached value wins.
    if job.request.fresh or again or (commands and job.stamp()):
        (job.folder / "CMakeCache.txt").unlink(missing_ok=True)
    stamp = {"target": job.target.name, "switches": job.switches, "inputs": inputs, "variables": variables}
    if not commands:
        if job.found.way is BuildWay.BUILD_DEPS:  # before, each library is configured at every build
            _write_stamp(job, stamp)
        lines = ("this revision configures and compiles in one go" + again,)
        return Done(findings, {**facts, "skipped": True, "changed": changed}, lines=lines)
    make_folder(job.folder)
    write_launcher(job)
    log = job.log("configure")
    for index, command in enumerate(commands):
        ran = run_step(job, command, log, "configuring", again=index > 0)
        if ran.status:
            _write_stamp(job, {"variables": variables})  # of no target yet
            table = job.context.facts().build_failures
            return Done([*findings, look_up(ran, "TE932", "the configuration", log, table, of=job.kind)], facts, log)
    _write_stamp(job, stamp)
    return Done(findings, {**facts, "changed": changed}, log, (f"configured in {job.folder}{again}",))


def _prepared(job: BuildJob) -> Done | None:
    """Prepare the folder of an extension, and return the result where nothing of it is configured apart."""
    why = prepare(job)
    if job.found.configures:
        return None
    if job.found.way is BuildWay.EXTENSION_SCIKIT and not (job.folder / "build.ninja").is_file():
        _run_backend(job)
    line = f"{job.folder} was emptied: {why}" if why else f"objects are kept in {job.folder}"
    return Done((), {"folder": str(job.folder), "emptied": why}, lines=(line,))


def _run_backend(job: BuildJob) -> None:
    """Let scikit-build-core run CMake and compile nothing, so that Ninja's plan is known before the build.

    A failure ends nothing: the build comes to it, too, and reports it.
    """
    out = job.notes / "planned"
    settings = [*backend_settings(job), *_NOTHING]
    run_step(job, package_command(job, out, settings), job.log("configure"), "configuring")
    shutil.rmtree(out, ignore_errors=True)


def _reason(job: BuildJob, variables: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the variables that changed since the last configuration, and why it is made anew, for a line of text."""
    before, kind = _variables_before(job), job.cmake_cache().get(BUILD_TYPE, "")
    changed = _changed(before, variables) if before else []
    words = [_words(before, variables, name) for name in changed]
    if not words and kind and kind != job.request.debug.build_type:  # configured without tenv
        words = [f"{BUILD_TYPE} ({kind} before)"]
    return changed, f", anew, since {', '.join(words)} changed" if words else ""


def _write_stamp(job: BuildJob, stamp: Mapping[str, object]) -> None:
    make_folder(job.stamp_file.parent)
    write_atomic(job.stamp_file, json.dumps(stamp, indent=1) + "\n")


def _remove(job: BuildJob) -> None:
    if job.folder.exists() and any(job.folder.iterdir()):
        remove_tree(job.folder, "CMakeCache.txt")  # which every configuration leaves, a failed one too
    job.stamp_file.unlink(missing_ok=True)


def _variables(job: BuildJob) -> dict[str, str]:
    """Return the variables that a configuration depends on."""
    return {
        name: value
        for name, value in sorted(job.environ.items())
        if name in DECIDING
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
    """Return the name of a changed variable; of a list of flags, with those that came and went."""
    words = flag_words(before.get(name, ""), now.get(name, "")) if name.endswith("FLAGS") else ""
    return f"{name} ({words})" if words else name


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
    if words := ", ".join(_words(before, variables, name) for name in _changed(before, variables)):
        yield f"--fresh would configure it anew: {words}; they change no code, and everything would be compiled again"


def _is_configured(job: BuildJob, inputs: str) -> bool:
    if job.request.fresh or job.stamp().get("inputs") != inputs or not job.log("configure").is_file():
        return False
    return (job.folder / "CMakeCache.txt").is_file() and _has_plan(job.folder)


def _has_plan(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("build.ninja", "Makefile"))


_VARIABLES = ("CFLAGS", "CXXFLAGS")


def same_code(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether variables differ in nothing but flags of tenv that change no code.

    These are the place of the checkout in ``__FILE__``, and warnings that stay warnings: an object that is compiled
    already did compile without them.
    """
    return _coded(before) == _coded(now)


def flag_words(before: str, now: str) -> str:
    """Return in words how two lists of flags differ; empty where their order alone does."""
    old, new = command_words(before), command_words(now)
    gone = [word for word in old if word not in new]
    more = [word for word in new if word not in old]
    return ", ".join(f"{kind} {' '.join(words)}" for kind, words in (("with", more), ("without", gone)) if words)


def _coded(variables: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    rows = {name: tuple(command_words(value)) if name in _VARIABLES else (value,) for name, value in variables.items()}
    kept = {name: tuple(word for word in words if not _is_own(word)) for name, words in rows.items()}
    return {name: words for name, words in kept.items() if words}


def _is_own(word: str) -> bool:
    return word in OPTIONS or word.startswith(f"{PREFIX_MAP}=")


_HEAD = re.compile(r"^-- \*+ Summary \*+$")
_ROW = re.compile(r"^--\s+([A-Za-z+][A-Za-z0-9_+ .()-]*?)\s*:(?:\s+(.*))?$")
_SOURCE = "cmake/Summary.cmake of github.com/pytorch/pytorch"
_PARTS = {
    "USE_CUDA": "cuda",
    "USE_CUDNN": "cudnn",
    "USE_CUSPARSELT": "cusparselt",
    "USE_NCCL": "nccl",
    "USE_MKL": "mkl",
    "USE_ROCM": "rocm",
}
"""Switches by the part of the toolchain without which nobody expects them to be on."""
_UNDER = {"USE_CUDNN": "USE_CUDA", "USE_CUSPARSELT": "USE_CUDA", "USE_NCCL": "USE_CUDA", "USE_STATIC_MKL": "USE_MKL"}
"""Switches that a summary leaves out where another one is off."""
_NEEDS = {"USE_CUDNN": ("USE_CUDA",), "USE_CUSPARSELT": ("USE_CUDA",), "USE_NCCL": ("USE_CUDA", "USE_DISTRIBUTED")}
"""Switches by those without which PyTorch's CMake turns them off; USE_NCCL hangs on USE_DISTRIBUTED in newer ones."""
_WORDS = {
    "USE_CUDNN": ("cudnn",),
    "USE_CUSPARSELT": ("cusparselt",),
    "USE_NCCL": ("nccl",),
    "USE_CUDA": ("cuda",),
    "USE_ROCM": ("rocm", "hip"),
    "USE_MKL": ("mkl",),
    "USE_STATIC_MKL": ("mkl",),
    "USE_MKLDNN": ("mkldnn", "mkl-dnn", "onednn"),
    "USE_NUMPY": ("numpy",),
    "USE_OPENMP": ("openmp",),
    "USE_DISTRIBUTED": ("distributed", "gloo", "tensorpipe"),
}
_SHOWN = (
    *("TORCH_VERSION", "CMake version", "C++ compiler", "Build type", "Python executable", "BLAS", "USE_CUDA"),
    *("USE_ROCM", "ROCM_VERSION"),
    *("CUDA version", "cuDNN version", "USE_CUSPARSELT", "USE_NCCL", "USE_MPI", "USE_MKL", "USE_MKLDNN"),
    *("USE_OPENMP", "USE_DISTRIBUTED", "BUILD_TEST"),
)
_MOST = 10
_TURNED = re.compile(
    r"turn(?:ed|ing)?\b.{0,40}\boff\b|not found|cannot find|could(?: not|n't) find|disabl", re.IGNORECASE
)


def read_summary(lines: Iterable[str]) -> dict[str, str]:
    """Return the rows of the last summary in a log by their names; empty without one."""
    found: dict[str, str] = {}
    within = False
    for line in lines:
        text = line.rstrip()
        if _HEAD.match(text):
            within, found = True, {}
        elif within and text.startswith(("-- Configuring", "CMake ")):
            within = False
        elif within and (match := _ROW.match(text)):
            found[match[1]] = (match[2] or "").strip()
    return found


def check_summary(job: BuildJob) -> Done:
    """Hold the summary against the target, and the switches that were set."""
    log = job.log("configure")
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    rows = read_summary(lines)
    job.summary = rows
    if not rows:
        return Done((), {"rows": {}}, log, ("this revision prints no summary",))
    findings = [*_turned_off(job, rows, lines), *_mpi(job, rows)]
    hip = read_hip(lines) if is_on(rows.get("USE_ROCM", "0")) else {}
    unsaid = ("USE_CUDA",) if hip else ("USE_ROCM",)
    shown = [f"{name}: {rows[name]}" for name in _SHOWN if rows.get(name) and name not in unsaid][:_MOST]
    facts = {"rows": rows, "hip": hip} if hip else {"rows": rows}
    return Done(findings, facts, log, [*shown, *_hip_lines(hip)])


_ARCHS = re.compile(r"^(?:-- )?Building PyTorch for GPU arch: *(.*?)\s*$")
_VERSION = re.compile(r"^(?:-- )?([A-Za-z][\w-]*) VERSION: *([\d.][\w.-]*)\s*$")
_ABSENT = re.compile(r"^(?:-- )?Optional package ([\w-]+) not found\s*$")


def read_hip(lines: Iterable[str]) -> dict[str, Any]:
    """Return the rows of LoadHIP.cmake: the architectures, the versions of ROCm's parts, the absent optional parts."""
    found: dict[str, Any] = {"architectures": [], "parts": {}, "absent": []}
    for line in lines:
        if match := _ARCHS.match(line):
            found["architectures"] = list(filter(None, re.split(r"[;\s]+", match[1])))
        elif match := _VERSION.match(line):
            found["parts"][match[1]] = match[2]
        elif match := _ABSENT.match(line):
            found["absent"].append(match[1])
    return found


def _hip_lines(hip: Mapping[str, Any]) -> Iterator[str]:
    if hip.get("architectures"):
        yield f"compiled for {', '.join(hip['architectures'])}"
    if hip.get("parts"):
        yield "parts of ROCm: " + ", ".join(f"{name} {version}" for name, version in hip["parts"].items())
    if hip.get("absent"):
        yield f"without the optional {', '.join(hip['absent'])}"


def _wanted(job: BuildJob) -> dict[str, str]:
    """Return the switches that must be on, each with who wants it."""
    given = set_switches(job.environ) | set_switches(job.request.defines)
    wanted = {name: f"{name}={value} is set" for name, value in given.items() if is_on(value)}
    for name, part in _PARTS.items():
        there = getattr(job.toolchain, part, None)
        unwanted = any(is_off(given.get(switch, "1")) for switch in (name, *_NEEDS.get(name, ())))
        if there is not None and not unwanted:
            wanted.setdefault(name, f"the target has it ({there})")
    return wanted


def _turned_off(job: BuildJob, rows: Mapping[str, str], lines: Sequence[str]) -> Iterator[Finding]:
    cache = job.cmake_cache()
    for name, why in sorted(_wanted(job).items()):
        value = rows.get(name)
        over = _UNDER.get(name, "")
        if value is None and over and is_off(rows.get(over, "1")):
            continue  # the switch that it depends on is off, and reported
        if value is None or not is_off(value):
            continue
        evidence = _warning(name, lines)
        yield build_finding(
            "TE941",
            name,
            f"was turned off by the configuration ({value or 'empty'}), although {why}",
            evidence or f"summary: {name}: {value}; CMakeCache.txt: {cache.get(name, 'nothing')}",
            _SOURCE,
            f"`tenv verify {job.target.name}` tries the library; `tenv build --allow {name}` goes on without it",
        )


def _warning(name: str, lines: Sequence[str]) -> str:
    """Return the line of the log with the reason why a switch was turned off, with its number."""
    words = _WORDS.get(name, (name.partition("_")[2].lower(),))
    best = ""
    for number, line in enumerate(lines, start=1):
        lower = line.lower()
        if any(word in lower for word in words) and _TURNED.search(line) and not _ROW.match(line):
            best = f"line {number}: {line.strip()}"
            if "turn" in lower:
                return best
    return best


def _mpi(job: BuildJob, rows: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a warning for an MPI without CUDA in a build with it: gradients of GPUs then fail when they are sent."""
    if not (is_on(rows.get("USE_MPI", "0")) and is_on(rows.get("USE_CUDA", "0"))) or "USE_MPI" in job.context.environ:
        return
    if any("MPI_CUDA" in line or "mpi_built_with_cuda_support:value:true" in line for line in rows.values()):
        return
    yield build_finding(
        "TE942",
        "USE_MPI",
        "an MPI was found by chance, and nothing says that it was built with CUDA: tensors of GPUs then fail",
        f"summary: USE_MPI: {rows['USE_MPI']}",
        _SOURCE,
        "export USE_MPI=0, or USE_MPI=1 if `ompi_info --parsable | grep mpi_built_with_cuda_support` says true",
        Severity.WARNING,
    )
