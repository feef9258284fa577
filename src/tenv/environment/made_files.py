"""What tenv itself makes in an environment: the toolkit's folder, the activation, and its script for each shell.

A script holds nothing that ``activation.json`` does not, so that one that is not there can be made at any time. An
environment made before tenv spoke to a shell lacks nothing but that shell's script.
"""

import os
from collections.abc import Iterable, Iterator

from tenv.activation.changes import ACTIVATION, Activation, read_activation
from tenv.activation.shells.interface import SHELLS
from tenv.core.files import write_atomic
from tenv.environment.installed_files import Expected, read_note
from tenv.environment.integrity import describe_made, expect_made
from tenv.environment.state import Environment
from tenv.toolchain.discover import TOOLKIT

__all__ = ["add_scripts", "expected_of_tenv", "lacks_scripts", "note_made", "store_scripts"]

_MADE = "made.json"
_OLDEST = (ACTIVATION, SHELLS[0].SCRIPT)
"""What every environment has, one too that is older than ``made.json``."""


def note_made(environment: Environment) -> None:
    """Write down what tenv has made in an environment: the toolkit's folder and the activation."""
    names = (TOOLKIT, *_notes(environment, (ACTIVATION, *(shell.SCRIPT for shell in SHELLS))))
    write_atomic(environment.meta / _MADE, describe_made(environment.prefix, names), within=environment.prefix)


def _notes(environment: Environment, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{environment.meta.name}/{name}" for name in names)


def expected_of_tenv(environment: Environment) -> Iterator[Expected]:
    """Yield what tenv itself has made in an environment, as far as it knew the shells then."""
    yield from (Expected(name, "") for name in _notes(environment, _OLDEST))
    yield from expect_made(environment.meta / _MADE, environment.prefix)


def store_scripts(environment: Environment, activation: Activation) -> None:
    """Store the scripts with which shells make the changes of an activation."""
    for shell in SHELLS:
        script = os.fsencode(shell.render_activation(activation))
        write_atomic(environment.meta / shell.SCRIPT, script, within=environment.prefix)


def lacks_scripts(environment: Environment) -> bool:
    """Tell whether a shell's script is not there."""
    return not all(os.path.lexists(environment.meta / shell.SCRIPT) for shell in SHELLS)


def add_scripts(environment: Environment) -> None:
    """Make the scripts from the stored activation where one is not there, and write down that they were made.

    All are made: those that an older tenv made may be undone in another way than this one does.

    Raises:
        EnvironmentBrokenError: The stored activation is not there or can't be read.
    """
    if not lacks_scripts(environment):
        return
    store_scripts(environment, read_activation(environment.meta / ACTIVATION))
    rows = read_note(environment.meta / _MADE)
    if rows:  # an older tenv wrote none
        names = _notes(environment, (shell.SCRIPT for shell in SHELLS))
        text = describe_made(environment.prefix, names, rows)
        write_atomic(environment.meta / _MADE, text, within=environment.prefix)
