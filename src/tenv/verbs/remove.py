"""Remove an environment; list the caches, and empty them."""

import shlex
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, EnvironmentMissingError, ForeignFolderError, UsageError
from tenv.core.file_stamps import is_note, stamps_folder
from tenv.core.files import empty_folder, exclusive, folder_size, remove_tree, storage_errors
from tenv.core.prefix import MARKER
from tenv.environment.built_torch import BuiltTorch, built_torch
from tenv.environment.state import Environment, Status, environments_in
from tenv.project.context import Context
from tenv.sources.interface import sources

NOTES = "notes on cached files"
"""The name of the cache with the sizes and times of files in the other caches, and with the requirements of wheels."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The result of `remove_environment`."""

    prefix: Path
    """The folder."""
    bytes: int
    """Its size, from its state."""
    breaks: tuple[tuple[BuiltTorch, Path], ...] = ()
    """Each built torch that can't be imported without it, with the environment that it is in."""
    removed: bool = True
    """Whether it was removed; a dry run keeps it."""


def broken_torches(context: Context, prefix: Path) -> tuple[tuple[BuiltTorch, Path], ...]:
    """Return each built torch that needs an environment: the one in it, and those that it has built for others.

    Args:
        context: The context of the verb.
        prefix: The environment.
    """
    folders = dict.fromkeys((prefix.parent, context.places.environments(), context.places.data / "envs"))
    places = dict.fromkeys([prefix, *(one.prefix for folder in folders for one in environments_in(folder))])
    found = ((built_torch(place), place) for place in places)
    return tuple((torch, place) for torch, place in found if torch and (place == prefix or torch.prefix == str(prefix)))


def remove_environment(
    context: Context,
    target: str,
    prefix: Path | None,
    *,
    wait: bool,
    say: Callable[[str], None],
    dry_run: bool = False,
) -> Removed:
    """Remove an environment that tenv made, and report each built torch that breaks with it.

    Raises:
        EnvironmentMissingError: There is no environment.
        ForeignFolderError: tenv did not create the folder.
    """
    environment = context.environment(target, prefix)
    missing = EnvironmentMissingError(
        f"there is no environment `{target}` ({environment.prefix})", hint="`tenv list` lists them"
    )
    if not environment.prefix.is_dir():
        if prefix is None:
            context.places.find(target)  # reports a misspelled name as such
        raise missing
    if environment.prefix.is_symlink():
        folder = shlex.quote(str(environment.prefix.resolve()))
        hint = f"`tenv remove --prefix {folder} {target}` removes the folder itself"
        raise ForeignFolderError(f"{environment.prefix} is a symbolic link, so tenv does not remove it", hint=hint)
    _check_own(context, environment, target)
    with exclusive(environment.prefix, f"tenv remove {target}", say, None if wait else 0):
        if not environment.prefix.is_dir():  # another process removed it during the wait
            raise missing
        _check_own(context, environment, target)
        state = environment.state()
        if state and state.status is not Status.BROKEN and state.target != target:
            raise UsageError(
                f"{environment.prefix} is an environment of `{state.target}`, not of `{target}`",
                hint=f"`tenv remove --prefix {shlex.quote(str(environment.prefix))} {state.target}` removes it",
            )
        breaks = broken_torches(context, environment.prefix)
        for torch, place in breaks:
            say(f"warning: {_broken(torch, place, environment.prefix)}")
        if dry_run:
            return Removed(environment.prefix, state.bytes if state else 0, breaks, removed=False)
        with context.registry().forgetting(environment.prefix):
            remove_tree(environment.prefix, MARKER)
    return Removed(environment.prefix, state.bytes if state else 0, breaks)


def _check_own(context: Context, environment: Environment, target: str) -> None:
    """Refuse an environment that this user did not make where it is."""
    try:
        context.require_usable(environment, target, gutted=True)
    except EnvironmentBrokenError as error:
        error.hint = f"{error.hint}; `rm -r {shlex.quote(str(environment.prefix))}` removes it"
        raise


def _broken(torch: BuiltTorch, place: Path, prefix: Path) -> str:
    where = f"from {torch.checkout}" if torch.checkout else f"by {torch.target}"
    if place == prefix:
        return f"torch {torch}, built {where}, is installed in this environment alone"
    return f"torch {torch}, built {where} and installed in {place}, takes its libraries from {prefix}"


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder with content that tenv can download or make again."""

    name: str
    """The kind of content."""
    path: Path
    """The folder."""
    bytes: int
    """Its size, before it was emptied."""
    freed: bool
    """Whether this call emptied it."""
    left: tuple[Path, ...] = ()
    """Files in it that tenv did not make."""


def clean_caches(context: Context, keys: Collection[str], *, leftovers: bool, notes: bool) -> list[Cache]:
    """Return the size of each cache, and empty the caches of some sources.

    Args:
        context: The context of the verb.
        keys: The keys of the sources whose caches are emptied.
        leftovers: Remove the files that interrupted commands left.
        notes: Remove the notes on the files of all caches.
    """
    rows = []
    for source in sources():
        for cache in source.caches(context):
            freed = source.section.key in keys or (leftovers and cache.leftover)
            size = folder_size(cache.path)
            left = tuple(cache.clear() or ()) if freed else ()
            rows.append(Cache(cache.name, cache.path, size, freed and cache.path not in left, left))
    folder = stamps_folder()
    size = folder_size(folder)
    left = tuple(empty_folder(folder, is_note)) if notes else ()
    rows.append(Cache(NOTES, folder, size, notes, left))
    for parent in dict.fromkeys((context.places.environments(), context.places.data / "envs")):
        for path in sorted(parent.glob(".*.removed-*")):
            rows.append(Cache("half-removed environment", path, folder_size(path), leftovers))
            if leftovers:
                with storage_errors(f"can't remove {path}"):
                    shutil.rmtree(path)
    return [row for row in rows if row.bytes or row.path.exists()]
