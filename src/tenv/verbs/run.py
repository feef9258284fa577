"""Run a program, or a shell, in an environment."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tenv.core import process
from tenv.core.errors import EnvironmentMissingError, UsageError
from tenv.core.program_file import require_interpreter
from tenv.project.context import Context
from tenv.targets.search import require_features
from tenv.verbs.activate import find_activation, find_script
from tenv.verbs.missing_program import missing_program
from tenv.verbs.start_plan import StartPlan

__all__ = ["plan_run", "plan_shell", "require_held"]


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
    return StartPlan(activation.target, (program, *words[1:]), environment)


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
