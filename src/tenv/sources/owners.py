"""Whose the files of a prefix are, and whether they are intact, whichever source brought them."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tenv.core.names import normalize
from tenv.core.prefix import files_in
from tenv.environment.installed_files import Expected, Records
from tenv.environment.integrity import Faults, check
from tenv.environment.made_files import expected_of_tenv
from tenv.environment.state import Environment, Owned, State, Status
from tenv.sources.interface import sources

__all__ = ["find_faults", "holds", "record_files", "unmanaged_files", "unmanaged_while"]


def _records(prefix: Path) -> Iterator[tuple[str, Records]]:
    """Yield the records of each source, with its key."""
    for source in sources():
        yield source.section.key, source.records(prefix)


def holds(environment: Environment, owned: Mapping[str, Owned]) -> bool:
    """Tell whether all that sources have brought is there, by the names of files alone."""
    return all(records.hold(owned.get(key, {})) for key, records in _records(environment.prefix))


def find_faults(environment: Environment, state: State) -> Faults:
    """Look at every file that tenv put into an environment.

    Args:
        environment: The environment.
        state: What is known about it.
    """
    return check(environment.prefix, _expected(environment, state))


def _expected(environment: Environment, state: State) -> Iterator[Expected]:
    made = {row.name: row for row in expected_of_tenv(environment, state)}
    for key, records in _records(environment.prefix):
        for row in records.expected(state.of(key)):
            # A record vouches for files, and what `create` wrote down of it vouches for the record.
            yield row
            if row.name in made:
                made[row.name] = replace(made[row.name], owner=row.owner)
    yield from made.values()  # the last word on a file


def record_files(prefix: Path, owned: Mapping[str, Collection[str]]) -> list[str]:
    """Return the files of the records of packages, relative to a prefix.

    Args:
        prefix: The folder.
        owned: By the key of a source, the names of the packages.
    """
    return [name for key, records in _records(prefix) for name in records.own_files(owned.get(key, ()))]


def unmanaged_files(prefix: Path, owned: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the files in a prefix that tenv did not put there, relative to it, sorted.

    Args:
        prefix: The folder.
        owned: By the key of a source, the names of its packages that are tenv's.
    """
    ours = {
        name
        for key, records in _records(prefix)
        for name in records.files(records.names() if records.SOLE else owned.get(key, ()))
    }
    return tuple(sorted(name for name in files_in(prefix) if name not in ours and not _is_made(name)))


def unmanaged_while(state: State, prefix: Path, owned: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the files that are not tenv's and must survive.

    While `creating`, they are those that were there before, and those of packages that are in no lock: anything else
    may be the remains of an installation that was stopped. Of a broken state nothing is known, so that every file
    counts that no record of a package of ours names.

    Args:
        state: What is known about the environment.
        prefix: Its folder.
        owned: By the key of a source, the names of the packages that are tenv's, before or after.
    """
    if state.status is not Status.CREATING:
        return unmanaged_files(prefix, owned)
    known: set[str] = set()
    ours: set[str] = set()
    theirs: set[str] = set()
    for key, records in _records(prefix):
        own = owned.get(key, ())
        known |= {*map(normalize, own)}  # a later source must not take what an earlier one brought for another's
        if not records.SOLE:
            theirs |= {*records.files([name for name in records.names() if normalize(name) not in known])}
            ours |= {*records.files(own)}
    return tuple(sorted({*state.foreign, *(theirs - ours)}))


_MADE_FILES = {"pyvenv.cfg", "lib64", "CACHEDIR.TAG", ".gitignore", ".lock", "conda-meta/history"}
_MADE_PROGRAMS = ("python", "activate", "deactivate", "pydoc")


def _is_made(name: str) -> bool:
    """Tell whether a file is one of those that making the environment writes, beside the packages' own."""
    first, _, rest = name.partition(os.sep)
    if name in _MADE_FILES or first in ("cuda", "__clobbers__") or "__pycache__" in name:
        return True
    if first in ("bin", "Scripts"):
        return rest.startswith(_MADE_PROGRAMS)
    return rest.endswith(("_virtualenv.py", "_virtualenv.pth"))
