"""Run the activation scripts of conda packages once, and decide which of their changes to keep.

conda runs ``etc/conda/activate.d/*.sh`` at every activation. tenv runs them once, when it creates an environment: in a
clean shell, with a time limit, and in a sandbox (`tenv.activation.sandbox`). Their changes to
variables are compared with rules for builds of PyTorch, which decide on each variable.
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tenv.activation import sandbox
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.files import read_regular
from tenv.targets.variable_requests import variable_fault

_SECONDS = 10.0
_MOST = 4 << 20
"""Maximum bytes of a script's variables."""

_FOLDER = "etc/conda/activate.d"
_UNSAID = re.compile(
    r"_|SHLVL|PWD|OLDPWD|HOME|TMPDIR|CONDA_(PREFIX|DEFAULT_ENV|SHLVL|PROMPT_MODIFIER|BACKUP_.*)"
    r"|(NVCC_(PREPEND|APPEND)_FLAGS|CUDAARCHS|NVCC_GENCODE)_BACKUP"
)
"""The variables that bash changes by itself, and those that only conda's own activation needs."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The combined effect of the scripts on one variable."""

    name: str
    """The variable."""
    value: str | None
    """Its value after them; None if they unset it."""
    before: str | None
    """Its value before them, in the clean shell; None if it was not set."""
    script: str
    """The last script that changed it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about an effect."""

    value: str | None
    """The kept value; None if nothing is kept."""
    reason: str
    """The reason, in one sentence."""


def run_scripts(prefix: Path) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """Run the activation scripts of a prefix in a clean shell.

    Returns:
        Their effects by variable, and a sentence for each script that failed and each variable that it may not set.
    """
    scripts = sorted((prefix / _FOLDER).glob("*.sh")) if os.name == "posix" else []
    shell = process.find("bash", f"{prefix / 'bin'}:/usr/local/bin:/usr/bin:/bin") if scripts else None
    if not scripts:
        return (), ()
    if shell is None:
        return (), ("bash was not found, so the activation scripts of the conda packages were not run",)
    with tempfile.TemporaryDirectory(prefix="tenv-scripts-") as name:
        folder = Path(name).resolve()
        start = _clean(prefix, folder)
        return _run_all(shell, scripts, start, folder)


def _clean(prefix: Path, folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{prefix / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "CONDA_PREFIX": str(prefix),
        "CONDA_DEFAULT_ENV": prefix.name,
        "CONDA_SHLVL": "1",
    }


def _run_all(
    shell: str, scripts: Sequence[Path], start: Mapping[str, str], folder: Path
) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    now = dict(start)
    last: dict[str, str] = {}
    notes = []
    open_ways: set[str] = set()
    for script in scripts:
        after, allowed = _run(shell, script, now, folder)
        open_ways |= {allowed} if allowed else set()
        if isinstance(after, process.Missing):
            notes.append(f"the activation script {script.name} {after.reason}; its variables are missing")
            continue
        last |= {name: script.name for name in {*now, *after} if now.get(name) != after.get(name)}
        now = after
    effects = tuple(
        Effect(name, now.get(name), start.get(name), last[name])
        for name in sorted(last)
        if not _UNSAID.fullmatch(name)
        and now.get(name) != start.get(name)
        # The folder is removed afterwards, so paths into it are useless.
        and str(folder) not in (now.get(name) or "")
    )
    notes += [
        f"the activation script {effect.script} sets {effect.name!a}, which {why}; it is left out"
        for effect in effects
        if (why := variable_fault(effect.name))
    ]
    notes += [f"this system could not deny the activation scripts of packages: {words}" for words in sorted(open_ways)]
    return effects, tuple(notes)


def _run(
    shell: str, script: Path, environment: Mapping[str, str], folder: Path
) -> tuple[dict[str, str] | process.Missing, str]:
    """Run one script and return the variables after it, and the rights that the kernel could not deny it."""
    answer = folder / "variables"
    answer.unlink(missing_ok=True)
    code = '. "$1" >/dev/null 2>&1 </dev/null; exec env -0 >"$2"'
    command = [sys.executable, "-I", sandbox.__file__, str(folder)]
    command += [shell, "--noprofile", "--norc", "-c", code, "bash", str(script), str(answer)]
    limited = {**environment, sandbox.SECONDS: f"{_SECONDS:g}"}
    done = process.run(command, environment=limited, folder=folder, timeout=_SECONDS + 5)
    if isinstance(done, process.Missing) or done.status < 0 or done.status in (124, 137):
        return process.Missing(f"timed out after {_SECONDS:g} s"), ""
    first = done.stderr.partition("\n")[0]  # before the script began
    allowed = first.removeprefix(sandbox.SAYS).strip() if first.startswith(sandbox.SAYS) else ""
    allowed = "" if allowed == "nothing" else allowed
    try:
        lines = read_regular(answer, _MOST).split(b"\0")
    except OSError:
        return process.Missing("ended the shell that ran it"), allowed
    pairs = (os.fsdecode(line).partition("=") for line in lines if b"=" in line)
    return {name: value for name, _, value in pairs}, allowed


def decide(effect: Effect) -> Decision:
    """Return the decision about an effect of a package's activation script, with its reason."""
    origin = f"set by the activation script of a conda package ({effect.script})"
    if effect.value is None:
        return Decision(None, f"{origin}: it only unsets a variable of a clean shell")
    if why := variable_fault(effect.name):
        return Decision(None, f"{origin}: left out: it {why}")
    for names, rule in _RULES:
        if re.fullmatch(names, effect.name):
            kept, reason = rule(effect.value)
            return Decision(kept, f"{origin}: {reason}")
    return Decision(effect.value, f"{origin}; tenv has no rule against it")


def _drop(reason: str) -> Callable[[str], tuple[str | None, str]]:
    return lambda _: (None, f"left out: {reason}")


def _keep(reason: str) -> Callable[[str], tuple[str | None, str]]:
    return lambda value: (value, f"kept: {reason}")


def _search_paths(value: str) -> tuple[str | None, str]:
    kept = [word for word in value.split() if re.match(r"-L|-Wl,-rpath(-link)?,", word)]
    reason = (
        "the library folders are kept; the rest is for building conda-forge's own packages, and --as-needed and "
        "--gc-sections drop libraries that PyTorch loads only for their registrations"
    )
    return (" ".join(kept) or None), reason


_OPTIMISED = (
    "PyTorch's build chooses optimisation and instruction sets itself, file by file: -march=nocona, -O2 and "
    "-ffunction-sections would be in every compilation, also with DEBUG=1, and -isystem of the environment would "
    "come before the headers that PyTorch carries (CMAKE_PREFIX_PATH finds the environment's)"
)
_BINUTILS = "ADDR2LINE|AR|AS|CXXFILT|DWP|ELFEDIT|GPROF|LD|LD_GOLD|NM|OBJCOPY|OBJDUMP|RANLIB|READELF|SIZE|STRINGS|STRIP"
_RULES: tuple[tuple[str, Callable[[str], tuple[str | None, str]]], ...] = (
    (
        r"CC|CXX|CPP|GCC|GXX|CC_FOR_BUILD|CXX_FOR_BUILD|GCC_AR|GCC_NM|GCC_RANLIB|F77|F90|FC|GFORTRAN",
        _keep("the environment's own compiler"),
    ),
    (_BINUTILS, _keep("the environment's own binutils, which know the files of its compiler")),
    (r"CUDAHOSTCXX|NVCC_PREPEND_FLAGS|NVCC_CCBIN", _keep("nvcc compiles host code with the environment's compiler")),
    (r"CONDA_BUILD_SYSROOT", _keep("the C library's headers that the environment's compiler is made for")),
    (r"(DEBUG_)?(CFLAGS|CXXFLAGS|CPPFLAGS|FFLAGS|FORTRANFLAGS)", _drop(_OPTIMISED)),
    (r"LDFLAGS(_LD)?", _search_paths),
    (
        r"CMAKE_ARGS|MESON_ARGS",
        _drop(
            "it installs into the environment and lets CMake find nothing outside it, the driver's libraries "
            "not either; CMAKE_PREFIX_PATH, CC and CXX are enough"
        ),
    ),
    (
        r"BUILD|HOST|build_alias|host_alias|CONDA_TOOLCHAIN_(BUILD|HOST)|CONDA_BUILD_CROSS_COMPILATION",
        _drop("only conda-build and configure scripts that it starts read it, and other programs read the name too"),
    ),
    (
        r"_(CONDA_)?PYTHON_SYSCONFIGDATA_NAME",
        _drop("it would give every C extension the flags of conda-forge's own packages; CC and CXX are enough"),
    ),
    (
        r"LD_LIBRARY_PATH|LD_PRELOAD",
        _drop("every program of the shell, also of the system, would load these libraries; rpath finds them"),
    ),
    (r"CMAKE_PREFIX_PATH", _drop("tenv sets it; the sysroot is the compiler's affair")),
    (r"PYTHONPATH|PYTHONHOME", _drop("it would change the imports of every Python of the shell")),
)
