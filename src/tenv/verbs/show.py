"""Describe a target: its requests, its lock, its environment."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UsageError
from tenv.core.versions import Version
from tenv.environment.state import Environment, State, Status
from tenv.environment.trust import Fault
from tenv.host.machine import current_platform
from tenv.locks.lock import Lock, LockedFile
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.sources.interface import Source, differences, sources
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.search import Target, require_features
from tenv.verbs.list import state_word
from tenv.verbs.lock_standing import LockStanding, Standing, standing_of


@dataclass(frozen=True, slots=True)
class Shown:
    """The description of a target."""

    target: Target
    """The target."""
    platform: str
    """The platform that `packages` is about."""
    lock_state: str
    """Where the lock is and whether it can be used, in words."""
    packages: tuple[dict[str, Any], ...]
    """A row a package: ``name``, ``kind`` (conda, wheel, archive), ``wanted``, ``locked``, ``size`` (bytes),
    ``features`` (those that bring it, none for a part of the target itself); of an archive also ``trust`` (where its
    digest is from) and ``licence`` (the file in the prefix)."""
    environment: Environment
    """Where its environment is or would be."""
    state: State | None
    """The environment's state, or None when there is none."""
    standing: LockStanding
    """How the environment stands to the lock."""
    fault: Fault | None = None
    """Why the environment can't be used, or None."""

    @property
    def word(self) -> str | None:
        """The word for the environment's state; None when there is none."""
        if self.fault:
            return Status.BROKEN.value
        return state_word(self.state, self.standing, None) if self.state else None

    @property
    def offered(self) -> frozenset[str]:
        """The optional archives that the lock does not have."""
        archives = self.target.manifest.on(self.platform).archives
        locked = {row["name"] for row in self.packages if row["locked"]}
        return frozenset(name for name, request in archives.items() if request.optional and name not in locked)

    def to_json(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        manifest = self.target.manifest
        return {
            "name": self.target.name,
            "description": manifest.description,
            "origin": self.target.origin.value,
            "manifest": str(self.target.file),
            "pytorch": str(manifest.pytorch or ""),
            "for": manifest.beside or None,
            "platforms": list(manifest.platforms),
            "asked": {platform: manifest.asked(platform) for platform in manifest.platforms},
            "activation": {platform: manifest.on(platform).variables() for platform in manifest.platforms},
            "lock": str(self.target.lock_file),
            "lock_origin": self.target.lock_origin.value if self.target.lock_origin else None,
            "lock_state": self.lock_state,
            "platform": self.platform,
            "packages": list(self.packages),
            "prefix": str(self.environment.prefix),
            "state": self.word,
            "reason": (self.fault.reason.value if self.fault else self.standing.reason) or None,
            "features": list(manifest.features),
            "features_held": list(self.state.features) if self.state else [],
        }


def describe(context: Context, name: str, prefix: Path | None, wanted: str = "", feature: str = "") -> Shown:
    """Return the description of a target.

    Args:
        context: Where things are found.
        name: The target.
        prefix: The environment's folder, if it is not the default one.
        wanted: The platform of its packages; this machine's when empty.
        feature: The feature that alone brings them; empty for all packages.

    Raises:
        UsageError: The target is not for the platform, or has no such feature.
    """
    target = context.places.find(name)
    if feature:
        require_features(target, (feature,))
    if wanted and wanted not in target.manifest.platforms:
        raise UsageError(f"{name} is not for {wanted}", hint=f"it is for {', '.join(target.manifest.platforms)}")
    environment = context.environment(name, prefix)
    fault = context.fault_of(environment, name)
    state = None if fault and not fault.is_ours else environment.state()
    here = wanted or current_platform()
    platform = here if here in target.manifest.platforms else target.manifest.platforms[0]
    lock, words = _lock_state(target)
    packages = _packages(target, lock, platform, state, environment.prefix)
    packages = [row for row in packages if not feature or feature in row["features"]]
    known = state and not fault
    standing = standing_of(context, environment, state) if state and known else LockStanding(Standing.CURRENT)
    return Shown(target, platform, words, tuple(packages), environment, state, standing, fault)


def _lock_state(target: Target) -> tuple[Lock | None, str]:
    try:
        lock = read_lock(target.lock_file, target.name)
    except TenvError as error:
        return None, error.message
    stale = differences(lock, target.manifest)
    return lock, f"{target.lock_file} ({'stale: ' + '; '.join(stale) if stale else 'up to date'})"


def _packages(
    target: Target, lock: Lock | None, platform: str, state: State | None, prefix: Path
) -> list[dict[str, Any]]:
    """Return a row for each package; wheels are those of the environment's Python minor, else of the highest."""
    manifest = with_features(target.manifest).on(platform)
    minors = lock.python_minors(platform) if lock else ()
    minor = state.python if state and state.python in minors else max(minors, key=Version, default="")
    rows = [
        row
        for source in sources()
        if source.section.noun
        for row in _rows(source, manifest, source.files(lock, platform, minor) if lock else (), prefix)
    ]
    return sorted(rows, key=lambda row: (row["name"], row["kind"]))


def _rows(source: Source, manifest: Manifest, files: Sequence[LockedFile], prefix: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each requested or locked package of a source."""
    wanted = {name: source.asked(request) for name, request in manifest.wanted(source.section.key).items()}
    locked = {file.name: file for file in files}
    for name in {**wanted, **locked}:
        file = locked.get(name)
        row: dict[str, Any] = {"name": name, "kind": source.section.kind, "wanted": wanted.get(name, "")}
        row |= {"features": list(getattr(file, "features", ()))}
        yield {**row, **source.shown(file, prefix)}
