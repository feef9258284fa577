"""The files that tenv makes in an environment: virtual environment, CUDA toolkit folder, activation, shell scripts."""

import json
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator

from tenv.activation.changes import ACTIVATION, Activation
from tenv.activation.shells.interface import STORED
from tenv.core.file_content import noted_json
from tenv.core.files import digest_bytes, write_atomic
from tenv.core.prefix import META, TOOLS, files_in
from tenv.environment.installed_files import Expected, read_note
from tenv.environment.integrity import describe_made, expect_made
from tenv.environment.state import Environment, State
from tenv.environment.trust import MADE, needed_names
from tenv.toolchain.discover import TOOLKIT

_PROGRAMS = "programs.json"
"""The file in `META` with the names of all executable files of the prefix, without the files in tenv's own folder."""

_VENV_FILES = {"pyvenv.cfg", "lib64", "CACHEDIR.TAG", ".gitignore"}
_VENV_PROGRAMS = re.compile(
    r"pythonw?(\d(\.\d+)?)?[td]*(\.exe)?|activate(\.(bat|csh|fish|nu|ps1|xsh))?|Activate\.ps1|activate_this\.py"
    r"|(deactivate|pydoc)\.bat"
)
"""The programs that uv puts into a virtual environment, and that Python's own ``venv`` puts there."""
_VENV_MODULES = ("_virtualenv.py", "_virtualenv.pth")


def is_of_environment(name: str) -> bool:
    """Return whether a file, named relative to a prefix, is one of a virtual environment, or of conda's layout."""
    folder, _, name = name.replace(os.sep, "/").rpartition("/")
    if not folder:
        return name in _VENV_FILES
    if folder in ("bin", "Scripts"):
        return _VENV_PROGRAMS.fullmatch(name) is not None
    return name in _VENV_MODULES and folder.rpartition("/")[2] == "site-packages"


def note_made(
    environment: Environment, minor: str, records: Iterable[str], theirs: Collection[str], *, renewed: bool
) -> str:
    """Write the list of the files that tenv has made in an environment, and return its sha256.

    These are the toolkit's folder, the activation, the virtual environment, kept locks, and the records of packages,
    which vouch for the rest.

    Args:
        environment: The environment.
        minor: Its Python minor; empty for one without a Python.
        records: The files of the records of its packages, relative to the prefix.
        theirs: The files of the user, relative to the prefix; some may lie in the toolkit's folder.
        renewed: Whether the virtual environment was made now; else the old list decides on its files.
    """
    prefix = environment.prefix
    scripts = _notes(environment, (ACTIVATION, *(shell.SCRIPT for shell in STORED)))
    locks = (os.path.relpath(path, prefix) for path in environment.kept_locks())
    names, programs = [*files_in(prefix)], [name for name in needed_names(prefix, minor) if not name.startswith(META)]
    before = {} if renewed else read_note(environment.meta / MADE)
    known = {name: text for name, text in before.items() if is_of_environment(name)}
    own = [name for name in (*programs, *filter(is_of_environment, names)) if name not in known]
    toolkit = {name for name in names if name.startswith(f"{TOOLKIT}/")}.difference(theirs)
    executable = sorted(name for name in names if _is_executable(os.path.join(prefix, name)))  # noqa: PTH118 (fast)
    write_atomic(environment.meta / _PROGRAMS, json.dumps(executable) + "\n", within=prefix, parents=False)
    listed = (*toolkit, *scripts, *locks, *own, *records, *_notes(environment, (_PROGRAMS,)))
    text = describe_made(prefix, (*listed, TOOLS), known)
    write_atomic(environment.meta / MADE, text, within=prefix, parents=False)
    return digest_bytes(text.encode())


def _is_executable(path: str) -> bool:
    mode = os.lstat(path).st_mode
    return stat.S_ISREG(mode) and bool(mode & stat.S_IXUSR)


def read_programs(environment: Environment) -> frozenset[str] | None:
    """Return the names of the files that are to be executable; None where they are not noted."""
    names = noted_json(environment.meta / _PROGRAMS)
    return frozenset(map(str, names)) if isinstance(names, list) else None


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
