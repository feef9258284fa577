"""Find what activates an environment."""

from pathlib import Path

from tenv.activation import Activation, read_activation
from tenv.environment import Environment
from tenv.errors import EnvironmentBrokenError
from tenv.workflows.context import Context

__all__ = ["find_activation", "find_environment", "find_script"]


def find_environment(context: Context, target: str | None, prefix: Path | None) -> tuple[str, Environment]:
    """Return the name and the environment, which is ready."""
    if prefix is not None:
        environment = context.environment("", prefix)
        state = environment.require_ready(target or environment.prefix.name)
        return state.target, environment
    name = target or context.only_environment()
    environment = context.environment(name, None)
    if environment.state() is None:
        context.places.find(name)  # a misspelt name is told as such
    environment.require_ready(name)
    return name, environment


def find_script(context: Context, target: str | None, prefix: Path | None, script: str) -> tuple[str, Path]:
    """Return the target's name and the stored script that activates its environment.

    Raises:
        EnvironmentMissingError, EnvironmentBrokenError: It can't be activated.
    """
    name, environment = find_environment(context, target, prefix)
    path = environment.meta / script
    if not path.is_file():
        raise EnvironmentBrokenError(f"{path} is missing", hint=f"`tenv create {name}` repairs the environment")
    return name, path


def find_activation(context: Context, target: str | None, prefix: Path | None) -> Activation:
    """Return the stored activation of an environment that is ready.

    Raises:
        EnvironmentMissingError, EnvironmentBrokenError: It can't be activated.
    """
    _, environment = find_environment(context, target, prefix)
    return read_activation(environment.meta / "activation.json")
