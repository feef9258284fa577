"""Debug a program of an environment with gdb, including Python frames."""

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tenv.activation.changes import Activation
from tenv.checks.checkout_state import find_checkout
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import HostError, UsageError
from tenv.core.untrusted import whole_number
from tenv.debugging import python_processes as processes
from tenv.debugging.install_line import install_line
from tenv.debugging.interpreter import (
    DebuggedPython,
    describe_interpreter,
    interpreter_of,
    shadowed_torch,
    strange_venv,
)
from tenv.debugging.python_processes import Obstacle, attaching, read_rights, starting
from tenv.project.context import Context
from tenv.toolchain.discover import discover
from tenv.verbs.activate import find_activation
from tenv.verbs.run import StartPlan, missing_program, with_feature

_ATTEMPTS = 4
"""A script's interpreter may be a script again."""

_PY_BT = Path(__file__).with_name("py_bt.gdb")
"""Defines `py-bt` where the interpreter has no debug information."""

_SETTINGS = (
    "set breakpoint pending on",  # the libraries of torch are loaded later
    "set follow-fork-mode parent",  # DataLoader forks its workers; gdb stays with the program
    "set detach-on-fork on",
    "set follow-exec-mode same",
)
_SIGNALS = Path(__file__).with_name("signals.gdb")
"""The signals that do not stop a program. Of a command in a file, gdb prints no table."""
_UNFREEZE_FROM = (3, 11)


@dataclass(frozen=True, slots=True)
class GdbRequest:
    """The request for a debugger."""

    target: str | None
    """The target; None for the default target."""
    prefix: Path | None
    """The environment's folder, if it is not the default one."""
    words: tuple[str, ...]
    """The program and its arguments; empty for the environment's Python."""
    attach: str | None = None
    """A process id or a name to attach to; None to start `words`."""
    cuda: bool = False
    """Use cuda-gdb, which also stops in kernels."""
    extra: tuple[str, ...] = ()
    """Arguments of gdb."""


def plan_gdb(context: Context, request: GdbRequest, say: Callable[[str], None]) -> StartPlan:
    """Return the plan to start gdb, after reporting all obstacles.

    Args:
        context: The context of the verb.
        request: The request.
        say: Receives each warning and note.

    Raises:
        UsageError: The program or process does not exist, or several processes have that name.
        HostError: There is no debugger, or the system forbids tracing.
    """
    activation = find_activation(context, request.target, request.prefix, say)
    environment = activation.apply(context.environ)
    debugger = _debugger(context, activation, environment.get("PATH"), cuda=request.cuda)
    if request.attach is not None:
        attached = _process(request.attach, activation.target, say)
        _require(attaching(read_rights(), attached))
        words: tuple[str, ...] = ()
        program = Path(f"/proc/{attached.pid}/exe")
        program = Path(os.path.realpath(program)) if program.exists() else Path(attached.words[0])
    else:
        attached = None
        _require(starting(read_rights()))
        words = request.words or (str(discover(activation.prefix).python),)
        if process.find(words[0], environment.get("PATH")) is None:
            raise missing_program(context, words[0], activation.target, environment)
        words = _binary(words, environment.get("PATH"))
        program = Path(words[0])
    python = describe_interpreter(program)
    site_packages = discover(activation.prefix).site_packages
    feature = with_feature(context, activation.target, "pystack").strip("`")
    install = feature or install_line(activation.target, "pystack", site_packages)
    pystack = process.find("pystack", environment.get("PATH")) or ""
    for warning in _warnings(activation, words, environment, python):
        say(f"warning: {warning}")
    if python and not python.frames:
        say(f"note: {_about_frames(python, pystack, install)}")
    debuggee = Debuggee(
        words=_unfrozen(words, python) if words else (),
        pid=attached.pid if attached else None,
        interpreter=python,
        prefix=activation.prefix,
        pystack=pystack,
        install=install,
        torch_script=_torch_script(site_packages),
        shell=environment.get("SHELL"),
    )
    return StartPlan(activation.target, _gdb_words(debugger, debuggee, request.extra), _gdb_environment(environment))


def _require(obstacle: Obstacle | None) -> None:
    if obstacle:
        raise HostError(f"a debugger can't trace processes here: {obstacle.message}", hint=obstacle.hint)


def _debugger(context: Context, activation: Activation, path: str | None, *, cuda: bool) -> str:
    if not cuda:
        if found := process.find("gdb", path):
            return found
        raise HostError("no gdb in the environment or on PATH", hint=f"{_installer()} gdb")
    root = discover(activation.prefix).cuda
    folders = os.pathsep.join([*([str(root / "bin")] if root else []), path or os.defpath])
    if found := process.find("cuda-gdb", folders):
        return found
    line = with_feature(context, activation.target, "cuda-gdb")
    asked = 'request it in the manifest: `cuda-gdb = "*"` below [dependencies], or `cuda_gdb` below [archives]'
    hint = f"{line} installs it" if line else asked
    raise HostError(f"no cuda-gdb in the environment of {activation.target} or on PATH", hint=hint)


def _installer() -> str:
    return {"dnf": "sudo dnf install", "apt": "sudo apt install"}.get(_family(), "install")


def _family() -> str:
    """Return the package manager of this system, or an empty text."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ""
    names = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    return "apt" if names & {"debian", "ubuntu"} else "dnf" if names & {"fedora", "rhel", "centos"} else ""


def _process(name: str, target: str, say: Callable[[str], None]) -> processes.PythonProcess:
    """Return the process to attach to, and report the others that have its name, each with its kind."""
    running = processes.python_processes()
    if (pid := whole_number(name)) is not None:
        found = [row for row in running if row.pid == pid]
        if not found and not Path(f"/proc/{name}").exists():
            raise UsageError(
                f"process {name} does not exist", hint="`tenv gdb --attach NAME` finds it by its command line"
            )
        return found[0] if found else processes.PythonProcess(pid, 0, (name,), processes.Role.PROGRAM, _owner(name), 0)
    found = processes.matching(running, name)
    if not found:
        raise UsageError(f"no Python process has `{name}` in its command line")
    lines = [f"  {row.pid}  {row.role}: {row.command}" for row in found]
    chosen = processes.choose(found) or (found[0] if len(found) == 1 else None)
    if chosen is None:
        listed = "\n".join([f"{len(found)} Python processes have `{name}` in their command line:", *lines])
        raise UsageError(listed, hint=f"`tenv gdb {target} --attach PID` selects one")
    if len(found) > 1:
        say("\n".join([f"{len(found)} Python processes have `{name}` in their command line:", *lines]))
    say(f"attaching to process {chosen.pid}: {chosen.role}")
    return chosen


def _owner(pid: str) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def _binary(words: Sequence[str], path: str | None) -> tuple[str, ...]:
    """Return a command line whose first word is no script: gdb reads binaries alone."""
    line = (process.find(words[0], path) or words[0], *words[1:])
    for _ in range(_ATTEMPTS):
        before = interpreter_of(Path(line[0]))
        program = process.find(before[0], path) if before else None
        if program is None:
            break
        line = (program, *before[1:], *line)
    return line


def _warnings(
    activation: Activation, words: Sequence[str], environment: dict[str, str], python: DebuggedPython | None
) -> Iterator[str]:
    if not words or not python:
        return
    if folder := shadowed_torch(words[1:], environment, Path.cwd()):
        yield (
            f"`import torch` takes the sources in {folder / 'torch'}, where no extension is built; "
            "start the program in another folder"
        )
    if venv := strange_venv(Path(words[0]), activation.prefix):
        yield (
            f"{venv} was made from the environment of {activation.target} and has none of its packages; "
            f"the environment's own Python has them: {discover(activation.prefix).python}"
        )


def _about_frames(python: DebuggedPython, pystack: str, install: str) -> str:
    """Return how `py-bt` shows Python frames of an interpreter that gdb can't read, and the fix."""
    lacks = f"gdb can't read the Python frames: {python.lacks()} is missing"
    package = ""
    if str(python.real).startswith(("/usr/bin/", "/usr/lib")):
        minor = python.minor or platform.python_version().rpartition(".")[0]
        packages = {"apt": f"sudo apt install python{minor}-dbg", "dnf": f"sudo dnf debuginfo-install python{minor}"}
        package = packages.get(_family(), "")
    brings = f"; `{package}` brings it" if package else ""
    if pystack:
        return f"{lacks}{brings}; `py-bt` shows them by {pystack}"
    return f"{lacks}{brings}; `{install}` lets `py-bt` show them without it"


def _torch_script(site_packages: Path) -> Path | None:
    """Return PyTorch's script for gdb (torch-tensor-repr), of the checkout that the user works with."""
    checkout = find_checkout(Path.cwd(), site_packages)
    script = checkout / "tools" / "gdb" / "pytorch-gdb.py" if checkout else None
    return script if script and script.is_file() else None


@dataclass(frozen=True, slots=True)
class Debuggee:
    """A debugged program and its helpers."""

    words: tuple[str, ...]
    """The program's command line; empty to attach."""
    pid: int | None
    """The process to attach to; None to start `words`."""
    interpreter: DebuggedPython | None
    """The Python that runs it; None if no Python runs it."""
    prefix: Path
    """The environment's folder."""
    pystack: str = ""
    """The program `pystack`, or an empty text."""
    install: str = ""
    """The command that installs pystack."""
    torch_script: Path | None = None
    """PyTorch's own script for gdb; None without a checkout."""
    shell: str | None = None
    """The user's shell, which gdb does not start and the program shall see."""


def _unfrozen(words: Sequence[str], interpreter: DebuggedPython | None) -> tuple[str, ...]:
    """Return a Python's command line with the modules that are frozen into it left out, so that their files are shown.

    Only Python 3.11 and newer know `-X frozen_modules`.

    Args:
        words: The command line, the interpreter first.
        interpreter: That interpreter; None where the program is no Python.
    """
    minor = tuple(map(int, interpreter.minor.split("."))) if interpreter and interpreter.minor else ()
    if minor < _UNFREEZE_FROM or any("frozen_modules" in word for word in words):
        return tuple(words)
    return (words[0], "-X", "frozen_modules=off", *words[1:])


def _gdb_words(gdb: str, debuggee: Debuggee, extra: Sequence[str] = ()) -> list[str]:
    """Return the command line of gdb.

    Args:
        gdb: The debugger.
        debuggee: The debugged program.
        extra: Further words of the user for gdb.
    """
    words = [gdb, "-q"]
    for command in _early(debuggee):  # before the program's file is read, whose scripts are loaded with it
        words += ["-iex", command]
    for command in (*_SETTINGS, f"source {_SIGNALS}", *_late(debuggee)):
        words += ["-ex", command]
    words += extra
    return [*words, "-p", str(debuggee.pid)] if debuggee.pid is not None else [*words, "--args", *debuggee.words]


def _early(debuggee: Debuggee) -> Iterator[str]:
    python = debuggee.interpreter
    safe = [debuggee.prefix]
    safe += [python.real.parent, python.core.parent] if python and python.script and python.loads else []
    yield from (f"add-auto-load-safe-path {folder}" for folder in dict.fromkeys(safe))
    printers = debuggee.prefix / "share" / "gdb" / "auto-load"
    if printers.is_dir():  # the environment's compilers bring the printers of their libstdc++
        yield f"add-auto-load-scripts-directory {printers}"


def _late(debuggee: Debuggee) -> Iterator[str]:
    python = debuggee.interpreter
    if python and python.script and python.symbols and not python.loads:
        yield f"source {python.script}"
    if python and not python.frames:
        values = {"pystack": debuggee.pystack, "lacks": python.lacks(), "hint": debuggee.install}
        yield "python " + "; ".join(f"tenv_{name} = {json.dumps(value)}" for name, value in values.items())
        yield f"source {_PY_BT}"
    if debuggee.torch_script:
        yield f"source {debuggee.torch_script}"
    if debuggee.pid is None:
        yield f"set environment SHELL {debuggee.shell}" if debuggee.shell else "unset environment SHELL"


def _gdb_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of gdb.

    gdb starts the program by way of a shell. The start files of zsh and fish may change PATH, and `sh` reads none. The
    program itself sees the user's SHELL.
    """
    return {**environment, "SHELL": "/bin/sh"}
