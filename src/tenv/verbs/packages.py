"""The installed or locked packages of a target, with size, source and requirements."""

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UsageError
from tenv.core.files import digest
from tenv.core.names import normalize
from tenv.core.toml_reader import nearest
from tenv.core.versions import Version
from tenv.core.wheel_platforms import marker_values
from tenv.environment.state import Environment, State
from tenv.host.machine import current_platform
from tenv.locks.lock import Archive, CondaPackage, Lock, LockedFile, LockedTree, Wheel
from tenv.locks.lock_features import take
from tenv.locks.lock_file import read_lock
from tenv.locks.wheel_answers import LockedWheel, reach, required_names
from tenv.project.context import Context
from tenv.sources.interface import sources
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.search import Target, require_features


@dataclass(frozen=True, slots=True)
class PackageRow:
    """One package."""

    name: str
    """Its name."""
    version: str
    """Its version."""
    kind: str
    """``conda``, ``wheel``, ``archive``, or the kind of a further source."""
    source: str
    """Where it comes from: a channel, ``index``, or a URL."""
    bytes: int | None
    """The size of its files in the environment, without compiled Python files; before it is installed, that of its file
    in the lock. None if unknown."""
    requires: tuple[str, ...]
    """The packages of the same set that it requires, with the extras that are asked of it, sorted."""
    asked: bool
    """Whether the manifest requests it."""
    download_bytes: int | None = None
    """The size of its file in the lock, in bytes; None if unknown."""
    features: tuple[str, ...] = ()
    """The features of the target that bring it; empty for a part of the target itself."""


@dataclass(frozen=True, slots=True)
class PackageSet:
    """The packages of a target."""

    target: str
    """The target's name."""
    lock: Path
    """The lock that they were read from."""
    installed: bool
    """Whether they are installed; else they are only locked."""
    rows: tuple[PackageRow, ...]
    """The packages, by name."""

    def by_name(self) -> dict[str, PackageRow]:
        """Return the packages by normalized name; a wheel wins over a conda package of the same name."""
        return {normalize(row.name): row for row in self.rows}


def find_packages(
    context: Context, name: str | None, prefix: Path | None, wanted: str = "", feature: str = "", python: str = ""
) -> PackageSet:
    """Return the packages of an environment; without one, those of the lock.

    Args:
        context: Where things are found.
        name: The target; None for the default one.
        prefix: The environment's folder, if it is not the default one.
        wanted: The platform; that of the environment or this machine when empty. Another one is only in the lock.
        feature: A feature that is asked about; one that the environment does not hold is only in the lock.
        python: The Python minor; that of the environment or the newest when empty. Another one is only in the lock.

    Raises:
        UsageError: The lock has no such platform or Python, or the target no such feature.
        EnvironmentMissingError: The folder has no environment, and no target is named.
        UnknownTargetError: The target does not exist.
        LockMissingError, LockCorruptError: There is no environment and no valid lock.
    """
    environment = context.environment(name or (prefix.name if prefix else context.default_target()), prefix)
    state = environment.state()
    if prefix and name is None and state is None:
        context.require_ready(environment)
    name = name or environment.prefix.name
    if state and ((wanted or state.platform) != state.platform or (python or state.python) != state.python):
        state = None
    if state and feature and feature not in state.features:
        state = None
    kept = _kept_lock(environment, state) if state else None
    target = None if kept and prefix else _target(context, name, optional=kept is not None)
    path = kept or (target.lock_file if target else Path())
    lock = read_lock(path, state.target if state and kept else name)
    lock = take(lock, state.features) if state and kept else lock
    if feature and target:
        require_features(target, (feature,))
    if wanted:
        _require_platform(lock, wanted, name)
    here = wanted or (state.platform if state and kept else current_platform())
    platform = here if here in lock.platforms else lock.platforms[0]
    minors = lock.python_minors(platform)
    if python and python not in minors:
        hint = f"it has {', '.join(minors)}" if minors else ""
        raise UsageError(f"the lock of {name} has no Python {python} on {platform}", hint=hint)
    minor = python or (state.python if state and state.python in minors else max(minors, key=Version, default=""))
    rows = tuple(_rows(lock, target, platform, minor))
    if state and kept:
        sizes = _installed_sizes(environment.prefix, state)
        rows = tuple(replace(row, bytes=sizes.get((row.kind, row.name), row.bytes)) for row in rows)
        rows = tuple(_as_built(rows, {tree.name for tree in lock.trees_for(platform, minor)}, environment.prefix))
    return PackageSet(name, path, kept is not None, rows)


def _as_built(rows: Iterable[PackageRow], built: Collection[str], prefix: Path) -> Iterator[PackageRow]:
    """Yield rows, those of built packages with the version that their build gave them, which the lock may not know."""
    if not built:
        yield from rows
        return
    from tenv.sources.wheels.installed import Wheels  # late: few targets build a package

    versions = Wheels(prefix).versions()
    for row in rows:
        yield replace(row, version=versions.get(row.name, row.version)) if row.name in built else row


def _require_platform(lock: Lock, platform: str, name: str) -> None:
    """Raise UsageError where a lock has no such platform."""
    if platform not in lock.platforms:
        raise UsageError(f"the lock of {name} is not for {platform}", hint=f"it is for {', '.join(lock.platforms)}")


def _installed_sizes(prefix: Path, state: State) -> dict[tuple[str, str], int]:
    """Return the size in bytes of the files of each installed package, by its kind and name, from the records."""
    sizes: dict[tuple[str, str], int] = {}
    for source in sources():
        owned = state.of(source.section.key) if source.section.noun else {}
        rows = source.records(prefix).expected(owned) if owned else ()
        for row in {(row.owner, row.name): row for row in rows}.values():  # a RECORD names itself
            if not row.name.startswith((os.sep, "..")):
                with contextlib.suppress(OSError, ValueError):  # one that was removed, which `verify` reports
                    size = os.lstat(os.path.join(prefix, row.name)).st_size  # noqa: PTH118 (fast)
                    key = source.section.kind, row.owner
                    sizes[key] = sizes.get(key, 0) + size
    return sizes


def _target(context: Context, name: str, *, optional: bool) -> Target | None:
    try:
        return context.places.find(name)
    except TenvError:
        if optional:
            return None
        raise


def _kept_lock(environment: Environment, state: State) -> Path | None:
    """Return the lock that an environment was made from, as it keeps it."""
    return next((path for path in reversed(environment.kept_locks()) if digest(path) == state.lock), None)


def _rows(lock: Lock, target: Target | None, platform: str, minor: str) -> Iterator[PackageRow]:
    files = [
        (source.section.key, source.section.kind, file)
        for source in sources()
        if source.section.noun
        for file in source.files(lock, platform, minor)
    ]
    known = {normalize(file.name): file.name for _, _, file in files}
    manifest = with_features(target.manifest).on(platform) if target else None
    needs = _needs_of_wheels(lock, manifest, platform, minor) if minor else {}
    for key, kind, file in sorted(files, key=lambda row: (row[2].name, row[1])):
        needed = {known[name] for name in _required(file, needs) if name in known}
        asked = manifest is not None and (
            file.name in manifest.wanted(key) or (isinstance(file, Archive) and file.part_of in manifest.wanted(key))
        )
        requires = tuple(sorted(needed - {file.name}))
        features = getattr(file, "features", ())
        origin, size = _source_of(file), file.size
        yield PackageRow(file.name, file.version, kind, origin, size, requires, asked, size, features)


def _needs_of_wheels(lock: Lock, manifest: Manifest | None, platform: str, minor: str) -> Mapping[str, Iterable[str]]:
    """Return the requirements of each wheel, with the extras that requests and other wheels ask of it.

    A wheel that no request reaches has its requirements without extras, and so have all without a manifest.
    """
    values = marker_values(platform, minor)
    files: tuple[Wheel | LockedTree, ...] = (*lock.wheels_for(platform, minor), *lock.trees_for(platform, minor))
    wheels = {file.name: LockedWheel(file.version, file.requires) for file in files}
    requests = dict(manifest.wheels) if manifest else {}
    found = reach(wheels, requests, {}, values).needs
    return {name: found.get(name) or required_names(wheel.requires or (), values) for name, wheel in wheels.items()}


def _required(file: LockedFile, needs: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield the normalized names of the requirements of a package."""
    if isinstance(file, CondaPackage):
        yield from (normalize(spec.split("[")[0].split()[0]) for spec in file.depends if spec.partition("[")[0].strip())
    elif isinstance(file, Wheel | LockedTree):
        yield from needs.get(file.name, ())


def _source_of(file: LockedFile) -> str:
    if isinstance(file, CondaPackage):
        return file.channel
    if isinstance(file, LockedTree) and file.file:
        return str(file.index) if file.index else "index"
    if isinstance(file, LockedTree):
        return f"{file.git}@{file.commit}" if file.git else file.path
    if isinstance(file, Wheel):
        return file.url or file.path or (str(file.index) if file.index else "index")
    return file.url if isinstance(file, Archive) else "index"


def matching(rows: Sequence[PackageRow], pattern: str | None) -> list[PackageRow]:
    """Return the packages whose name matches a regular expression anywhere; all without one.

    Raises:
        UsageError: The expression is not valid.
    """
    if not pattern:
        return list(rows)
    try:
        wanted = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise UsageError(f"`{pattern}` is not a regular expression: {error}") from error
    return [row for row in rows if wanted.search(row.name)]


def find_row(found: PackageSet, name: str) -> PackageRow:
    """Return a package by name.

    Raises:
        UsageError: It is not among the packages.
    """
    rows = found.by_name()
    if (row := rows.get(normalize(name))) is None:
        hint = nearest(name, rows) or f"`tenv packages {found.target}` lists them"
        raise UsageError(f"{found.target} has no package `{name}`", hint=hint)
    return row


def requirers(found: PackageSet) -> dict[str, list[str]]:
    """Return, by the name of each package, the packages that require it, sorted."""
    by: dict[str, list[str]] = {row.name: [] for row in found.rows}
    for row in found.rows:
        for needed in row.requires:
            by[needed].append(row.name)
    return {name: sorted(set(names)) for name, names in by.items()}
