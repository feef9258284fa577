"""Whether an environment may be used: it was made by this user, lies where it was made, and is whole.

Any other one has the state ``broken`` with a reason. Every command that uses an environment asks `find_fault` first,
and obeys nothing in the folder (its state, records, scripts) until the mark of the user has been found in it.
"""

import contextlib
import json
import os
import re
import shlex
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from tenv.activation.changes import ACTIVATION
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.files import digest_bytes, read_regular, same_file
from tenv.core.other_users import is_own, other_owner, unreadable_part
from tenv.core.prefix import META, python_program, spelled
from tenv.environment.installed_files import LINK
from tenv.environment.marks import Registry
from tenv.environment.state import Environment, State, Status

MADE = "made.json"
"""The file with the digests of the files that tenv itself made, among its notes in an environment."""

_PYVENV = "pyvenv.cfg"
_PYTHON = re.compile(r"python(3(\.\d+)?)?(\.exe)?")


class Reason(StrEnum):
    """Why an environment is broken."""

    MOVED = "moved"
    COPIED = "copied"
    FOREIGN = "foreign"
    GUTTED = "gutted"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an environment can't be used as it is."""

    reason: Reason
    """The reason, as JSON has it."""
    message: str
    """The fault and its place."""
    hint: str
    """A command that helps."""
    renew: bool = True
    """Whether the packages have to be put there anew."""

    @property
    def is_ours(self) -> bool:
        """Whether this user made the folder, so that its records are obeyed."""
        return self.reason in (Reason.MOVED, Reason.GUTTED)

    def error(self) -> EnvironmentBrokenError:
        """Return the error that a command ends with."""
        error = EnvironmentBrokenError(self.message, hint=self.hint)
        error.data = {"state": Status.BROKEN.value, "reason": self.reason.value}
        return error


def find_fault(environment: Environment, registry: Registry, command: str) -> Fault | None:
    """Return why an environment can't be used; None for one that can, or where there is none.

    Args:
        environment: The environment.
        registry: The marks of this user.
        command: The words of ``tenv create`` that make this environment, for hints.
    """
    fault = seen = None
    while (now := _identity(environment.prefix, registry)) != seen:  # again when another process replaced the folder
        fault, seen = None, now
        with contextlib.suppress(FileNotFoundError):  # it was removed
            fault = _fault_now(environment, registry, command)
        if fault is None:
            return None
    return fault


def _identity(prefix: Path, registry: Registry) -> tuple[int, str]:
    """Return the identity of a folder, which another one in its place does not have."""
    try:
        return prefix.stat().st_ino, registry.read_id(prefix)
    except OSError:
        return 0, ""


def _fault_now(environment: Environment, registry: Registry, command: str) -> Fault | None:
    prefix = environment.prefix
    if str(spelled(prefix)) != (real := os.path.realpath(prefix)):
        return Fault(Reason.FOREIGN, f"a link leads from {prefix} to {real}, so it is not used", "remove the link")
    if not os.access(prefix / META, os.R_OK | os.X_OK) and (fault := _unreadable(prefix)):
        return fault
    if not (prefix / META).is_dir():
        return None
    state = environment.state()
    if not registry.is_marked(prefix) and (fault := _of_place(environment, state, registry, command)):
        return fault
    return _gutted(environment, state, command)


def _unreadable(prefix: Path) -> Fault | None:
    """Return the folder whose rights hide an environment; None where none does."""
    folder = unreadable_part(prefix / META)
    if folder is None:
        return None
    rights = f"`ls -ld {shlex.quote(str(folder))}` shows its rights"
    if os.access(folder.parent, os.X_OK) and folder.stat().st_uid == os.geteuid():
        rights = f"`chmod u+rwx {shlex.quote(str(folder))}` gives you the rights"
    return Fault(Reason.UNREADABLE, f"{folder} can't be read: Permission denied", rights)


def _of_place(environment: Environment, state: State | None, registry: Registry, command: str) -> Fault | None:
    """Return why a prefix without a valid mark of this user is not taken; None where it is all the same."""
    prefix = environment.prefix
    mark = registry.find(prefix)
    anew = f"`{command} --anew` puts the folder aside and makes the environment anew"
    if mark and mark.owner == prefix.stat().st_uid:
        if mark.is_moved_to(prefix):
            return _moved(prefix, mark.real, command)
        return Fault(Reason.COPIED, f"{prefix} is a copy of {mark.real}, whose path its files hold", anew)
    if registry.is_safe(prefix):
        stays = not state or not state.prefix or same_file(state.prefix, prefix)
        return None if stays else _moved(prefix, Path(state.prefix if state else ""), command)
    if state is None and not registry.read_id(prefix) and not environment.kept_locks():
        return None  # no environment: left to `Environment.check_ours`
    return _of_stranger(prefix, registry, anew, command)


def _of_stranger(prefix: Path, registry: Registry, anew: str, command: str) -> Fault:
    quoted = shlex.quote(str(prefix))
    if owner := other_owner(prefix):
        if part := registry.open_part(prefix):
            return Fault(
                Reason.FOREIGN,
                f"{prefix} belongs to {owner}, and a folder is safe only where nobody but its owner can write: "
                f"others can write {part}",
                f"`chmod go-w {shlex.quote(str(part))}`, by its owner, closes it",
            )
        instead = f"; {anew}" if os.access(prefix.parent, os.W_OK) else ""
        return Fault(
            Reason.FOREIGN,
            f"{prefix} was not created by this user: it belongs to {owner}, so it is not used",
            f"if you trust {owner}: `export TENV_SAFE_FOLDERS={quoted}` accepts it, and so does `safe-folders` in your "
            f"config.toml, or in root's /etc/tenv/config.toml for all users{instead}",
        )
    accept = f"`TENV_SAFE_FOLDERS={quoted} {command}` accepts it if you made it yourself"
    return Fault(
        Reason.FOREIGN,
        f"{prefix} was not created by this user (a clone, an image, a cache, another user's?), so it is not used",
        f"{anew}; {accept}",
    )


def _moved(prefix: Path, made: Path, command: str) -> Fault:
    return Fault(Reason.MOVED, f"{prefix} was moved: it was made as {made}", f"`{command}` repairs it in its place")


def made_names(environment: Environment) -> dict[str, str]:
    """Return the digests that ``made.json`` holds, by file; raises ValueError if it differs from the state's digest."""
    state = environment.state()
    data = b""
    with contextlib.suppress(OSError):
        data = read_regular(environment.meta / MADE)
    if state and state.made and digest_bytes(data) != state.made:
        raise ValueError(MADE)
    with contextlib.suppress(ValueError, RecursionError):
        rows = json.loads(data)
        return {str(name): str(value) for name, value in rows.items()} if isinstance(rows, dict) else {}
    return {}


def needed_names(prefix: Path, minor: str) -> tuple[str, ...]:
    """Return the files without which an environment can't be activated, or another Python would run than its own.

    These are notes of tenv, ``pyvenv.cfg`` and programs.

    Args:
        prefix: The folder.
        minor: Its Python minor; empty for an environment without a Python.
    """
    notes = tuple(f"{META}/{name}" for name in (ACTIVATION, MADE))
    if not minor:
        return notes
    program = python_program(prefix)
    names = (program.name, f"python3{program.suffix}", f"python{minor}{program.suffix}")
    found = [path for name in names if (path := program.with_name(name)).exists()]
    config = [path] if (path := prefix / _PYVENV).is_file() else []
    return (*notes, *(os.path.relpath(path, prefix) for path in dict.fromkeys((*found, *config))))


def _out_of_reach(environment: Environment, state: State | None, command: str) -> Fault | None:
    """Return the closed folder that the Python of a shared environment lies in; None where it can be reached."""
    program = python_program(environment.prefix)
    if not (state and state.python and state.status is Status.READY) or _is_there(program):
        return None
    real = Path(os.path.realpath(program))
    if (folder := unreadable_part(real)) is None:
        return None
    return Fault(
        Reason.UNREADABLE,
        f"the Python of {environment.prefix} is {real}, which this user can't reach: {folder} is closed to others",
        f"`{command} --anew --python /usr/bin/python{state.python}`, by its owner, takes a Python that everybody has",
    )


def _gutted(environment: Environment, state: State | None, command: str) -> Fault | None:
    """Return the first essential file that is missing or changed."""
    if fault := _closed_note(environment, command) or _out_of_reach(environment, state, command):
        return fault
    for what, renew in _gaps(environment, state):
        return Fault(Reason.GUTTED, f"{what}, so the environment can't be used", f"`{command}` repairs it", renew)
    return None


def _gaps(environment: Environment, state: State | None) -> Iterator[tuple[str, bool]]:
    """Yield each missing or changed essential file, and whether the packages have to be installed again for it."""
    prefix = environment.prefix
    if state is None:
        yield f"{prefix} has lost its state", True
    elif state.status is Status.BROKEN:
        yield f"the state of {prefix} is broken, unreadable or written by another version of tenv", True
    elif state.status is Status.READY:
        program = python_program(prefix)
        if state.python and not (_is_there(program) and os.access(program, os.X_OK)):
            yield f"the Python of the environment is gone ({program})", True
        try:
            rows = made_names(environment)
        except ValueError as error:
            yield f"{environment.meta / str(error)} is not what was written", False
        else:
            for name, value in rows.items():
                yield from _gap(prefix / name, name, value)


def _closed_note(environment: Environment, command: str) -> Fault | None:
    """Return the first note of another user's environment that this user can't read; None without one."""
    if is_own(environment.prefix) or not environment.meta.is_dir():
        return None
    needed = [path for path in sorted(environment.meta.iterdir()) if path.name.startswith(("activat", MADE, "state"))]
    closed = [path for path in needed if not os.access(path, os.R_OK)]
    if not closed:
        return None
    return Fault(
        Reason.UNREADABLE,
        f"{closed[0]} can't be read: Permission denied",
        f"`{command} --for-others`, by the owner of the environment, opens it to other users",
    )


def _gap(path: Path, name: str, value: str) -> Iterator[tuple[str, bool]]:
    part = name.partition("/")[0]
    is_python = part in ("bin", "Scripts") and _PYTHON.fullmatch(path.name) is not None
    if (is_python or part == _PYVENV) and not _is_there(path):
        yield f"{path} is gone", True
    elif (is_python and not _is_program(path, value)) or (name == _PYVENV and not _is_of(path, value)):
        yield f"{path} is not what was written", True
    elif part == META and path.name.startswith("activat") and (path.is_symlink() or not _is_of(path, value)):
        yield f"{path} is not what was written", False


def _is_there(path: Path) -> bool:
    """Return whether a file can be looked at; a closed folder on the way is an error of `Path.is_file`."""
    with contextlib.suppress(OSError):
        return path.is_file()
    return False


def _is_program(path: Path, value: str) -> bool:
    """Return whether a path is a link to the noted target, or a file in the place of one; its bytes are not read."""
    if path.is_symlink():
        return value == f"{LINK}{os.readlink(path)}"  # noqa: PTH115 (the text of the link)
    return path.is_file() and not value.startswith(LINK)


def _is_of(path: Path, value: str) -> bool:
    with contextlib.suppress(OSError):
        return f"sha256:{digest_bytes(read_regular(path))}" == value
    return False
