"""The files that tenv makes in an environment: CUDA toolkit folder, activation, one script per shell.

A script follows from ``activation.json``, so tenv can write a missing one at any time. An environment from before
tenv supported a shell lacks that shell's script alone.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tenv.activation.changes import ACTIVATION, Activation, read_activation
from tenv.activation.shells.interface import STORED
from tenv.core.files import digest_bytes, write_atomic
from tenv.core.prefix import files_in
from tenv.environment.installed_files import Expected, read_note
from tenv.environment.integrity import describe_made, expect_made
from tenv.environment.state import Environment, State
from tenv.environment.trust import MADE, needed_names
from tenv.toolchain.discover import TOOLKIT

__all__ = ["add_scripts", "expected_of_tenv", "lacks_scripts", "note_made", "store_scripts"]

_OLDEST = (ACTIVATION, STORED[0].SCRIPT)
"""The files that every environment has, even one older than ``made.json``."""


def note_made(environment: Environment, minor: str, records: Iterable[str], theirs: Collection[str]) -> str:
    """Write down what tenv has made in an environment, and return the sha256 of that.

    The toolkit's folder, the activation, the Python, kept locks, and the records of packages, which vouch for the rest.

    Args:
        environment: The environment.
        minor: Its Python minor; empty for one without a Python.
        records: The files of the records of its packages, relative to the prefix.
        theirs: The files of the user, relative to the prefix; some may lie in the toolkit's folder.
    """
    prefix = environment.prefix
    scripts = _notes(environment, (ACTIVATION, *(shell.SCRIPT for shell in STORED)))
    locks = (os.path.relpath(path, prefix) for path in environment.kept_locks())
    needed = needed_names(prefix, minor)
    config = [name for name in needed if name.endswith(".cfg")]
    programs = [name for name in needed if not name.endswith((".cfg", ".json"))]
    known = dict.fromkeys(programs, "")  # a link to the machine's Python, which may be updated
    toolkit = {str(Path(TOOLKIT) / name) for name in files_in(prefix / TOOLKIT)}.difference(theirs)
    return _write_made(environment, describe_made(prefix, (*toolkit, *scripts, *locks, *config, *records), known))


def _write_made(environment: Environment, text: str) -> str:
    write_atomic(environment.meta / MADE, text, within=environment.prefix, parents=False)
    return digest_bytes(text.encode())


def _notes(environment: Environment, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{environment.meta.name}/{name}" for name in names)


def expected_of_tenv(environment: Environment, state: State) -> Iterator[Expected]:
    """Yield the files that tenv made in an environment, with the scripts of the shells it supported then."""
    yield from (Expected(name, "") for name in _notes(environment, _OLDEST))
    if state.made:
        yield Expected(f"{environment.meta.name}/{MADE}", "", f"sha256:{state.made}")
    yield from expect_made(environment.meta / MADE, environment.prefix)


def store_scripts(environment: Environment, activation: Activation) -> None:
    """Write the activation scripts of all shells."""
    for shell in STORED:
        script = os.fsencode(shell.render_activation(activation))
        write_atomic(environment.meta / shell.SCRIPT, script, within=environment.prefix, parents=False)


def lacks_scripts(environment: Environment) -> bool:
    """Return whether the script of a shell is missing."""
    return not all(os.path.lexists(environment.meta / shell.SCRIPT) for shell in STORED)


def add_scripts(environment: Environment) -> None:
    """Write the scripts of all shells from the stored activation if one is missing, and record them.

    All scripts are replaced: those of an older tenv may deactivate differently.

    Raises:
        EnvironmentBrokenError: The stored activation is missing or can't be read.
    """
    if not lacks_scripts(environment):
        return
    store_scripts(environment, read_activation(environment.meta / ACTIVATION))
    rows = read_note(environment.meta / MADE)
    if rows:  # an older tenv recorded no files
        names = _notes(environment, (shell.SCRIPT for shell in STORED))
        made = _write_made(environment, describe_made(environment.prefix, names, rows))
        state = environment.state()
        if state and state.made:
            environment.write_state(replace(state, made=made))
