"""Whether what was installed into an environment is still there, and is still the same."""

from collections.abc import Iterator

from tenv.activation.changes import ACTIVATION
from tenv.activation.shells.interface import SHELLS
from tenv.core.files import write_atomic
from tenv.environment.installed_files import Expected
from tenv.environment.integrity import Faults, check, describe_made, expect_made
from tenv.environment.state import Environment, State
from tenv.toolchain.discover import TOOLKIT

__all__ = ["find_faults", "note_made"]

_MADE = "made.json"


def note_made(environment: Environment) -> None:
    """Write down what tenv has made in an environment: the toolkit's folder and the activation."""
    names = (TOOLKIT, *_notes(environment))
    write_atomic(environment.meta / _MADE, describe_made(environment.prefix, names))


def _notes(environment: Environment) -> tuple[str, ...]:
    return tuple(f"{environment.meta.name}/{name}" for name in (ACTIVATION, *(shell.SCRIPT for shell in SHELLS)))


def find_faults(environment: Environment, state: State) -> Faults:
    """Look at every file that tenv put into an environment.

    Args:
        environment: The environment.
        state: What is known about it.
    """
    return check(environment.prefix, _expected(environment, state))


def _expected(environment: Environment, state: State) -> Iterator[Expected]:
    for records, packages in environment.owned(state):
        yield from records.expected(packages)
    yield from (Expected(name, "") for name in _notes(environment))
    yield from expect_made(environment.meta / _MADE, environment.prefix)
