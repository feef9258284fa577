"""The files that tenv makes in an environment: CUDA toolkit folder, activation, one script per shell."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from tenv.activation.changes import ACTIVATION, Activation
from tenv.activation.shells.interface import STORED
from tenv.core.files import digest_bytes, write_atomic
from tenv.core.prefix import files_in
from tenv.environment.installed_files import Expected
from tenv.environment.integrity import describe_made, expect_made
from tenv.environment.state import Environment, State
from tenv.environment.trust import MADE, needed_names
from tenv.toolchain.discover import TOOLKIT

__all__ = ["expected_of_tenv", "note_made", "store_scripts"]


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
    text = describe_made(prefix, (*toolkit, *scripts, *locks, *config, *records), known)
    write_atomic(environment.meta / MADE, text, within=environment.prefix, parents=False)
    return digest_bytes(text.encode())


def _notes(environment: Environment, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{environment.meta.name}/{name}" for name in names)


def expected_of_tenv(environment: Environment, state: State) -> Iterator[Expected]:
    """Yield the files that tenv made in an environment."""
    yield Expected(f"{environment.meta.name}/{MADE}", "", f"sha256:{state.made}")
    yield from expect_made(environment.meta / MADE, environment.prefix)


def store_scripts(environment: Environment, activation: Activation) -> None:
    """Write the activation scripts of all shells."""
    for shell in STORED:
        script = os.fsencode(shell.render_activation(activation))
        write_atomic(environment.meta / shell.SCRIPT, script, within=environment.prefix, parents=False)
