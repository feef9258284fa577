"""The files that tenv makes in an environment: CUDA toolkit folder, activation, one script per shell.

A script follows from ``activation.json``, so tenv can write a missing one at any time. An environment from before
tenv supported a shell lacks that shell's script alone.
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
"""The files that every environment has, even one older than ``made.json``."""


def note_made(environment: Environment) -> None:
    """Record the files that tenv made in an environment: the toolkit folder and the activation."""
    names = (TOOLKIT, *_notes(environment, (ACTIVATION, *(shell.SCRIPT for shell in SHELLS))))
    write_atomic(environment.meta / _MADE, describe_made(environment.prefix, names), within=environment.prefix)


def _notes(environment: Environment, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{environment.meta.name}/{name}" for name in names)


def expected_of_tenv(environment: Environment) -> Iterator[Expected]:
    """Yield the files that tenv made in an environment, with the scripts of the shells it supported then."""
    yield from (Expected(name, "") for name in _notes(environment, _OLDEST))
    yield from expect_made(environment.meta / _MADE, environment.prefix)


def store_scripts(environment: Environment, activation: Activation) -> None:
    """Write the activation scripts of all shells."""
    for shell in SHELLS:
        script = os.fsencode(shell.render_activation(activation))
        write_atomic(environment.meta / shell.SCRIPT, script, within=environment.prefix)


def lacks_scripts(environment: Environment) -> bool:
    """Return whether the script of a shell is missing."""
    return not all(os.path.lexists(environment.meta / shell.SCRIPT) for shell in SHELLS)


def add_scripts(environment: Environment) -> None:
    """Write the scripts of all shells from the stored activation if one is missing, and record them.

    All scripts are replaced: those of an older tenv may deactivate differently.

    Raises:
        EnvironmentBrokenError: The stored activation is missing or can't be read.
    """
    if not lacks_scripts(environment):
        return
    store_scripts(environment, read_activation(environment.meta / ACTIVATION))
    rows = read_note(environment.meta / _MADE)
    if rows:  # an older tenv recorded no files
        names = _notes(environment, (shell.SCRIPT for shell in SHELLS))
        text = describe_made(environment.prefix, names, rows)
        write_atomic(environment.meta / _MADE, text, within=environment.prefix)
