"""Whether an environment has the files of its lock for this platform and Python."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentStaleError, TenvError
from tenv.core.files import digest_bytes, read_regular
from tenv.core.size_text import some_of
from tenv.environment.lock_note import LockNote, LockStamp, read_lock_note, write_lock_note
from tenv.environment.state import Environment, Owned, State, Status
from tenv.project.context import Context
from tenv.targets.search import SearchPath, find_places

if TYPE_CHECKING:
    from tenv.locks.lock import Lock

_NAMED = 3


class Standing(StrEnum):
    """How an environment stands to its lock."""

    CURRENT = "current"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LockStanding:
    """How an environment stands to its lock."""

    word: Standing
    """The answer."""
    reason: str = ""
    """The difference, or why there is no answer; empty for a current environment."""
    hint: str = ""
    """The command that brings the environment up to date; empty for one that is current."""
    lock: Path | None = None
    """The lock's file; None where the target is not known here."""

    def sentence(self, target: str) -> str:
        """Return one line about an environment that is not current; empty for a current one."""
        match self.word:
            case Standing.CURRENT:
                return ""
            case Standing.STALE:
                return f"the environment `{target}` is stale: {self.reason}; {self.hint}"
            case Standing.UNKNOWN:
                return f"whether the environment `{target}` is stale is unknown: {self.reason}; {self.hint}"


def standing_of(context: Context, environment: Environment, state: State) -> LockStanding:
    """Compare an environment with its lock. One that is not ready counts as current, since its state reports that.

    The lock itself is read, and parsed where its digest differs from the one in the state. Its size and time would not
    be enough: copies that keep times, such as those of rsync and of layers of containers, can replace a lock by one of
    the same size and time.
    """
    found = _compare(context, environment, state, _places(context, environment))
    if found.word is Standing.CURRENT and state.status is Status.READY and (reason := _replaced_torch(environment)):
        return stale_by_torch(context, environment, state, reason, found.lock)
    return found


def stale_by_torch(
    context: Context, environment: Environment, state: State, reason: str, lock: Path | None
) -> LockStanding:
    """Return the standing of an environment whose torch, in the environment beside it, is another one now."""
    hint = f"`{_way_to_create(context, environment, state.target)}` updates it"
    return LockStanding(Standing.STALE, reason, hint, lock)


def note_current(context: Context, environment: Environment, state: State) -> None:
    """Note that an environment has the files of its lock, so that the next shell need not ask.

    Args:
        context: The context of the verb.
        environment: The environment.
        state: Its state.
    """
    places = _of_folder(context, environment)
    if not _is_elsewhere(context, places):  # else it was made from a lock of this project, not of theirs
        _compare(context, environment, state, places)


def _compare(context: Context, environment: Environment, state: State, places: SearchPath) -> LockStanding:
    """Compare an environment with the lock in a search path, and note the result for hooks."""
    if state.status is not Status.READY:
        return LockStanding(Standing.CURRENT)
    try:
        lock, nearer = places.lock_of(state.target)
    except TenvError as error:  # made for a project, where it lies in the user's data folder
        return _unknown(error.message, "`tenv targets` lists the targets")
    stamp = LockStamp.of(lock)
    found = _look(context, environment, state, lock)
    if stamp and stamp == LockStamp.of(lock):
        write_lock_note(environment, LockNote(lock, stamp.size, stamp.time, found.sentence(state.target), nearer))
    return found


def report_standing(
    context: Context,
    environment: Environment,
    state: State,
    say: Callable[[str], None] | None,
    *,
    beyond_shell: bool = False,
) -> LockStanding:
    """Report a stale environment in one line.

    Args:
        context: The context of the verb.
        environment: The environment.
        state: Its state.
        say: Takes the line; None where nothing is to be said.
        beyond_shell: Leave out a replaced torch that the stored script reports itself.

    Raises:
        EnvironmentStaleError: It is stale, or that is unknown, and `locked` was asked for.
    """
    found = standing_of(context, environment, state)
    if found.word is Standing.CURRENT:
        return found
    if context.locked:
        raise EnvironmentStaleError(found.sentence(state.target).rpartition("; ")[0], hint=found.hint)
    if found.word is Standing.UNKNOWN and context.registry().is_shared(environment.prefix):
        return found  # its maker has the target
    if say is not None and not (beyond_shell and _shell_reports(environment, found)):
        say(f"warning: {found.sentence(state.target)}")
    return found


def _shell_reports(environment: Environment, found: LockStanding) -> bool:
    """Return whether the stored script of an environment reports itself why it is stale."""
    return found.reason == _replaced_torch(environment) and not _replaced_torch(environment, beyond_shell=True)


def _replaced_torch(environment: Environment, *, beyond_shell: bool = False) -> str:
    if not (environment.meta / "system.json").is_file():
        return ""
    from tenv.sources.system.taken import replaced_torch  # late: most environments use no file of the system

    return replaced_torch(environment, beyond_shell=beyond_shell)


def _places(context: Context, environment: Environment) -> SearchPath:
    """Return the search path of an environment: by its folder, else that of the project whose lock it was made from."""
    places = _of_folder(context, environment)
    if places is not context.places or environment.prefix.parent == places.environments():
        return places
    note = read_lock_note(environment)
    home = note.lock.parent.parent if note else None
    if home is None or home == places.project or not (home / "locks").is_dir():
        return places
    theirs = find_places(home)
    return theirs if theirs.project == home else places


def _of_folder(context: Context, environment: Environment) -> SearchPath:
    """Return the search path of an environment, by its folder.

    For one in the user's data folder, it is that outside projects; for one in the ``.tenv`` of another project or
    checkout, that of the other folder.
    """
    places, folder = context.places, environment.prefix.parent
    if folder == places.data / "envs":
        return places.outside()
    if folder == places.environments() or (folder.parent.name, folder.name) != (".tenv", "envs"):
        return places
    theirs = find_places(folder.parent.parent)
    return theirs if folder == theirs.environments() else places


def _is_elsewhere(context: Context, places: SearchPath) -> bool:
    """Return whether the search path of an environment belongs to another project or checkout."""
    return places is not context.places and places.environments() != places.data / "envs"


def _way_to_create(context: Context, environment: Environment, target: str) -> str:
    """Return the command that creates an environment from its lock."""
    places = _places(context, environment)
    elsewhere = _is_elsewhere(context, places)
    words = ["tenv", "create", target]
    if (places if elsewhere else context.places).environments() / target != environment.prefix:
        words += ["--prefix", str(environment.prefix)]
    own = environment.prefix.parents[2] if _of_folder(context, environment) is not context.places else places.project
    home = shlex.quote(str(own)) if elsewhere else ""
    return f"cd {home} && {shlex.join(words)}" if home else shlex.join(words)


def _unknown(reason: str, hint: str, lock: Path | None = None) -> LockStanding:
    return LockStanding(Standing.UNKNOWN, reason, hint, lock)


def _look(context: Context, environment: Environment, state: State, path: Path) -> LockStanding:
    with suppress(OSError):
        raw = read_regular(path)
        if digest_bytes(raw) == state.lock:
            return LockStanding(Standing.CURRENT, lock=path)
    from tenv.locks.lock_features import take  # late: few environments differ from their lock
    from tenv.locks.lock_file import parse_lock, read_lock_bytes

    try:
        raw = read_lock_bytes(path, state.target)
        lock = take(parse_lock(raw, str(path), state.target), state.features)
    except TenvError as error:
        return _unknown(error.message, error.hint or f"`tenv lock {state.target}` writes it", path)
    changes = list(_changes(lock, state))
    if not changes:
        return LockStanding(Standing.CURRENT, lock=path)
    reason = f"{path} has other files: {some_of(changes, _NAMED)}"
    return LockStanding(
        Standing.STALE, reason, f"`{_way_to_create(context, environment, state.target)}` updates it", path
    )


def _changes(lock: "Lock", state: State) -> Iterator[str]:
    """Yield the differences between the files of a lock and the installed ones."""
    from tenv.sources.interface import owned_by_lock  # late: as above

    wanted: Mapping[str, Owned] = owned_by_lock(lock, state.platform, state.python)
    if state.platform not in lock.platforms:
        yield f"none for {state.platform}"
        return
    if state.python and (minors := lock.python_minors(state.platform)) and state.python not in minors:
        yield f"none for Python {state.python}"
        return
    for key in sorted({*wanted, *state.owned}):
        had, has = state.of(key), wanted.get(key, {})
        for name in sorted({*had, *has}):
            if had.get(name) == has.get(name):
                continue
            before, after = (rows[name][0] if name in rows else "" for rows in (had, has))
            if name not in had or name not in has:
                yield " ".join(filter(None, (name, before, after, "added" if name in has else "removed")))
            elif before != after:
                yield f"{name} {before} → {after}"
            else:
                yield f"{' '.join(filter(None, (name, after)))} (another file)"
