"""Find the activation of an environment, and the changes of a shell's variables."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.activation.changes import ACTIVATION, Activation, read_activation
from tenv.core.errors import EnvironmentBrokenError, EnvironmentMissingError, TenvError, UsageError
from tenv.environment.state import Environment, State
from tenv.project.context import Context
from tenv.verbs.lock_standing import report_standing

if TYPE_CHECKING:
    from tenv.activation.shells.interface import EditShell


def find_environment(
    context: Context, target: str | None, prefix: Path | None, *, gutted: bool = False
) -> tuple[str, Environment, State]:
    """Return the name of a ready environment, the environment and its state.

    Args:
        context: The context of the verb.
        target: The target; None for the only environment here.
        prefix: The environment's folder; None for the default one.
        gutted: Whether to accept an environment that lacks an essential file.

    Raises:
        EnvironmentMissingError: It does not exist.
        EnvironmentBrokenError: It is not ready, not of this user, or was moved.
    """
    if prefix is not None:
        environment = context.environment("", prefix)
        state = context.require_ready(environment, target or "", gutted=gutted)
        return state.target, environment, state
    name = target or context.default_target()
    environment = context.environment(name, None)
    if environment.state() is None:
        context.places.find(name)  # reports a misspelled name as such
        _refer_elsewhere(context, environment, name)
    return name, environment, context.require_ready(environment, name, gutted=gutted)


def _refer_elsewhere(context: Context, environment: Environment, name: str) -> None:
    """Raise EnvironmentMissingError if a target has no environment here, and one of that name lies elsewhere.

    It is not taken instead: in another project, the target of that name is another one.
    """
    active = context.environ.get("TENV_PREFIX", "")
    if active and context.environ.get("TENV_TARGET") == name and Path(active) != environment.prefix:
        raise EnvironmentMissingError(
            f"there is no environment `{name}` ({environment.prefix})",
            hint=f"the active one lies elsewhere: `--prefix {shlex.quote(active)}` takes it; "
            f"`tenv create {name}` creates one here",
        )
    if older := made_outside(context, environment, name):
        raise EnvironmentMissingError(
            f"there is no environment `{name}` ({environment.prefix})",
            hint=f"one made outside of projects is there: `--prefix {shlex.quote(str(older))}` takes it; "
            f"`tenv create {name}` creates one here",
        )


def made_outside(context: Context, environment: Environment, name: str) -> Path | None:
    """Return the ready environment of a target that was made outside of projects, unless it is this one."""
    prefix = context.places.data / "envs" / name
    if prefix == environment.prefix or not (prefix / "tenv-meta").is_dir():
        return None
    older = context.environment(name, prefix)
    try:
        context.require_ready(older, name)
    except TenvError:
        return None
    return prefix


def _report(
    context: Context,
    environment: Environment,
    state: State,
    name: str,
    say: Callable[[str], None] | None,
    *,
    beyond_shell: bool,
) -> None:
    """Warn about a stale environment and about changed system tools."""
    if say is not None or context.locked:
        report_standing(context, environment, state, say, beyond_shell=beyond_shell)
    if say is None or not (environment.meta / "system.json").is_file():
        return
    from tenv.sources.system.taken import alarm  # late: most environments use no system tools

    for sentence in alarm(environment, name, beyond_shell=beyond_shell):
        say(f"warning: {sentence}")


def find_script(
    context: Context,
    target: str | None,
    prefix: Path | None,
    script: str,
    say: Callable[[str], None] | None = None,
) -> tuple[str, Path]:
    """Return the target's name and the stored script that activates its environment.

    Args:
        context: The context of the verb.
        target: The target; None for the only environment's.
        prefix: The environment's folder; None for the default one.
        script: The script's name.
        say: Receives warnings about changed system tools that the script can't detect.

    Raises:
        EnvironmentMissingError, EnvironmentBrokenError: It can't be activated.
        EnvironmentStaleError: It does not have the files of its lock, and `locked` was asked for.
    """
    name, environment, state = find_environment(context, target, prefix)
    path = environment.meta / script
    if not path.is_file():
        raise EnvironmentBrokenError(f"{path} is missing", hint=f"`tenv create {name}` repairs the environment")
    _report(context, environment, state, name, say, beyond_shell=True)
    return name, path


def find_activation(
    context: Context, target: str | None, prefix: Path | None, say: Callable[[str], None] | None = None
) -> Activation:
    """Return the stored activation of a ready environment.

    Args:
        context: The context of the verb.
        target: The target; None for the only environment's.
        prefix: The environment's folder; None for the default one.
        say: Receives warnings about changed system tools.

    Raises:
        EnvironmentMissingError, EnvironmentBrokenError: It can't be activated.
        EnvironmentStaleError: It does not have the files of its lock, and `locked` was asked for.
    """
    name, environment, state = find_environment(context, target, prefix)
    _report(context, environment, state, name, say, beyond_shell=False)
    return read_activation(environment.meta / ACTIVATION)


def render_activated(
    context: Context, target: str | None, prefix: Path | None, shell: "EditShell", say: Callable[[str], None]
) -> tuple[str, str]:
    """Return the target's name and the script that activates its environment in a shell without a stored one.

    Args:
        context: The context of the verb, with the variables of the shell.
        target: The target; None for the only environment's.
        prefix: The environment's folder; None for the default one.
        shell: The shell.
        say: Receives warnings about changed system tools.

    Raises:
        EnvironmentMissingError, EnvironmentBrokenError: It can't be activated.
        EnvironmentStaleError: It does not have the files of its lock, and `locked` was asked for.
        UsageError: The shell can't hold a value.
    """
    from tenv.activation.levels import activated, edits  # late: POSIX shells and fish have stored scripts
    from tenv.activation.shells import cmd

    activation = find_activation(context, target, prefix, say)
    if shell.NAMES == cmd.NAMES:
        activation = cmd.with_prompt(activation, context.environ)
    changed = edits(context.environ, activated(context.environ, activation))
    if names := [name for name, value in changed.items() if value is not None and not shell.holds(value)]:
        raise UsageError(
            f"{shell.NAMES[0]} can't hold the value of {', '.join(names)}; no variable was set",
            hint=f"`tenv run {activation.target} -- COMMAND` runs a command without a shell script",
        )
    return activation.target, shell.render_edits(changed)


def render_deactivated(environ: Mapping[str, str], shell: "EditShell", say: Callable[[str], None]) -> str:
    """Return the script that undoes the innermost activation of a shell without a script of its own for that.

    Args:
        environ: The variables of the shell.
        shell: The shell.
        say: Receives a message if no environment is active.

    Raises:
        UsageError: The shell can't hold a value that another shell has left.
    """
    from tenv.activation.levels import deactivated, edits, level_of  # late: as above

    if not level_of(environ):
        say("tenv: no environment is active")
    changed = edits(environ, deactivated(environ))
    if names := [name for name, value in changed.items() if value and not shell.holds(value)]:
        raise UsageError(f"{shell.NAMES[0]} can't hold the value of {', '.join(names)}; no variable was set")
    return shell.render_edits(changed)
