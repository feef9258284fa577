"""The owners and the integrity of the files of a prefix, across all sources."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tenv.core.names import normalize
from tenv.core.prefix import META, files_in
from tenv.environment.installed_files import Expected, Records, read_note
from tenv.environment.integrity import Faults, check
from tenv.environment.made_files import expected_of_tenv, is_of_environment, read_programs
from tenv.environment.state import Environment, Owned, State, Status
from tenv.environment.trust import MADE
from tenv.locks.lock import Lock
from tenv.sources.access import Access
from tenv.sources.interface import sources
from tenv.toolchain.discover import TOOLKIT


def _records(prefix: Path) -> Iterator[tuple[str, Records]]:
    """Yield the records of each source, with its key."""
    for source in sources():
        yield source.section.key, source.records(prefix)


def holds(environment: Environment, owned: Mapping[str, Owned]) -> bool:
    """Return whether all packages of all sources are installed, by file names alone."""
    return all(records.hold(owned.get(key, {})) for key, records in _records(environment.prefix))


def find_faults(environment: Environment, state: State) -> Faults:
    """Verify every file that tenv installed or made in an environment.

    Args:
        environment: The environment.
        state: Its state.
    """
    return check(environment.prefix, _expected(environment, state))


def find_deep_faults(access: Access, environment: Environment, state: State, lock: Lock) -> Faults:
    """Compare the files of packages with the files of their lock, which are fetched again.

    Records in the environment and the notes of ``create`` do not count: the digests of the lock alone decide.

    Args:
        access: The settings and services of the user.
        environment: The environment.
        state: Its state.
        lock: Its lock.

    Raises:
        NetworkError: A file of the lock can't be fetched.
    """
    rows = [row for source in sources() for row in source.contents(access, lock, environment, state)]
    return check(environment.prefix, rows)


def _expected(environment: Environment, state: State) -> Iterator[Expected]:
    made = {row.name: row for row in expected_of_tenv(environment, state)}
    programs = read_programs(environment)
    for key, records in _records(environment.prefix):
        for row in records.expected(state.of(key)):
            # A record vouches for files, and `made.json` vouches for the record.
            yield row if programs is None else row._replace(executable=row.name in programs)
            if row.name in made:
                made[row.name] = made[row.name]._replace(owner=row.owner)
    for row in made.values():  # the last word on a file
        yield row if programs is None else row._replace(executable=row.name in programs)


def record_files(prefix: Path, owned: Mapping[str, Collection[str]]) -> list[str]:
    """Return the files of the records of packages, relative to a prefix.

    Args:
        prefix: The folder.
        owned: By the key of a source, the names of the packages.
    """
    return [name for key, records in _records(prefix) for name in records.own_files(owned.get(key, ()))]


def unmanaged_files(prefix: Path, owned: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the unmanaged files of a prefix, relative to it, sorted.

    Args:
        prefix: The folder.
        owned: The names of the packages that tenv owns, by the key of the source.
    """
    ours = {
        name
        for key, records in _records(prefix)
        for name in records.files(records.names() if records.SOLE else owned.get(key, ()))
    }
    noted = read_note(prefix / META / MADE)
    return tuple(sorted(name for name in files_in(prefix) if name not in ours and not _is_made(prefix, name, noted)))


def unmanaged_while(state: State, prefix: Path, owned: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the unmanaged files that must stay.

    In the state `creating`, they are the files from before, and those of packages that are in no lock: any other file
    may be a leftover of an interrupted installation. A broken state has no data, so every file counts that no record of
    an owned package names.

    Args:
        state: The state of the environment.
        prefix: Its folder.
        owned: The names of the packages that tenv owns, before or after, by the key of the source.
    """
    if state.status is not Status.CREATING:
        return unmanaged_files(prefix, owned)
    known: set[str] = set()
    ours: set[str] = set()
    theirs: set[str] = set()
    for key, records in _records(prefix):
        own = owned.get(key, ())
        known |= {*map(normalize, own)}  # a later source must not count files of an earlier one as unmanaged
        if not records.SOLE:
            theirs |= {*records.files([name for name in records.names() if normalize(name) not in known])}
            ours |= {*records.files(own)}
    return tuple(sorted({*state.foreign, *(theirs - ours)}))


def claimed_twice(prefix: Path, owned: Mapping[str, Collection[str]], more: Mapping[str, Collection[str]]) -> bool:
    """Return whether packages of two sources claim one path, so that an update in place could end with either.

    Args:
        prefix: The folder.
        owned: The names of the packages that tenv owns, by the key of the source.
        more: The paths of packages that are about to be installed, by the key of the source.
    """
    known: set[str] = set()
    for key, records in _records(prefix):
        mine = {*records.files(owned.get(key, ())), *more.get(key, ())}
        if not known.isdisjoint(mine):
            return True
        known |= mine
    return False


_MADE_FILES = {".lock", "conda-meta/history"}
_MADE_TOOLKIT = ("version.json", "libcuda.so")


def _is_made(prefix: Path, name: str, noted: Mapping[str, object]) -> bool:
    """Return whether tenv makes this file when it creates an environment, beside the files of packages.

    Args:
        prefix: The folder.
        name: The file, relative to it.
        noted: The rows of ``made.json``; none if it was lost.
    """
    path = Path(name)
    if name in _MADE_FILES or path.parts[0] == "__clobbers__" or "__pycache__" in path.parts:
        return True
    if path.parts[0] == TOOLKIT:  # of the toolkit's folder, the user may have put files there
        return name in noted if noted else (prefix / name).is_symlink() or path.name in _MADE_TOOLKIT
    return is_of_environment(name)
