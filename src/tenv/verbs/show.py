"""Describe a target: what it asks for, what its lock holds, and what is on the disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenv.core.errors import TenvError
from tenv.core.versions import Version
from tenv.environment.state import Environment, State
from tenv.host.machine import current_platform
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tenv.locks.satisfaction import differences
from tenv.project.context import Context
from tenv.sources.archives.link import placed
from tenv.targets.search import Target

__all__ = ["Shown", "describe"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A target, described.

    Attributes:
        target: The target.
        platform: The platform that `packages` is about.
        lock_state: Where the lock is and whether it can be used, in words.
        packages: A row a package: ``name``, ``kind`` (conda, wheel, archive), ``wanted``, ``locked``, ``size`` (bytes);
            of an archive also ``trust`` (where its digest is from) and ``licence`` (the file in the prefix).
        environment: Where its environment is or would be.
        state: The environment's state, or None when there is none.
    """

    target: Target
    platform: str
    lock_state: str
    packages: tuple[dict[str, Any], ...]
    environment: Environment
    state: State | None

    def to_json(self) -> dict[str, Any]:
        """Return the description as plain values."""
        manifest = self.target.manifest
        return {
            "name": self.target.name,
            "description": manifest.description,
            "origin": self.target.origin.value,
            "manifest": str(self.target.file),
            "pytorch": str(manifest.pytorch or ""),
            "platforms": list(manifest.platforms),
            "asked": {platform: manifest.asked(platform) for platform in manifest.platforms},
            "activation": {platform: dict(manifest.on(platform).environment) for platform in manifest.platforms},
            "lock": str(self.target.lock_file),
            "lock_state": self.lock_state,
            "platform": self.platform,
            "packages": list(self.packages),
            "prefix": str(self.environment.prefix),
            "state": self.state.status.value if self.state else None,
        }


def describe(context: Context, name: str, prefix: Path | None) -> Shown:
    """Return the description of a target."""
    target = context.places.find(name)
    environment = context.environment(name, prefix)
    state = environment.state()
    here = current_platform()
    platform = here if here in target.manifest.platforms else target.manifest.platforms[0]
    lock, words = _lock_state(target)
    packages = _packages(target, lock, platform, state, environment.prefix)
    return Shown(target, platform, words, tuple(packages), environment, state)


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
    """Return a row for each package; wheels in the Python minor of the environment or the newest of the lock."""
    manifest = target.manifest.on(platform)
    wanted = {("conda", name): str(request.version) for name, request in manifest.dependencies.items()}
    wanted |= {("wheel", name): str(request.version) for name, request in manifest.wheels.items()}
    locked: dict[tuple[str, str], tuple[str, int | None]] = {}
    if lock:
        minors = lock.python_minors(platform)
        minor = state.python if state and state.python in minors else max(minors, key=Version, default="")
        conda, wheels = lock.conda.get(platform, ()), lock.wheels_for(platform, minor)
        locked |= {("conda", package.name): (package.version, package.size) for package in conda}
        locked |= {("wheel", wheel.name): (wheel.version, wheel.size) for wheel in wheels}
    rows = _archives(target, lock, platform, prefix)
    for kind, name in sorted({*wanted, *locked}, key=lambda key: (key[1], key[0])):
        version, size = locked.get((kind, name), ("", None))
        asked = wanted.get((kind, name), "")
        rows.append({"name": name, "kind": kind, "wanted": asked, "locked": version, "size": size})
    return sorted(rows, key=lambda row: (row["name"], row["kind"]))


def _archives(target: Target, lock: Lock | None, platform: str, prefix: Path) -> list[dict[str, Any]]:
    """Return a row for each archive; the licence is that of the one in the prefix."""
    asked = {name: request.version for name, request in target.manifest.on(platform).archives.items()}
    locked = {archive.name: archive for archive in (lock.archives.get(platform, ()) if lock else ())}
    there = placed(prefix) if locked else {}
    rows = []
    for name in sorted({*asked, *locked}):
        archive, record = locked.get(name), there.get(name)
        row: dict[str, Any] = {
            "name": name,
            "kind": "archive",
            "wanted": asked.get(name, ""),
            "locked": "",
            "size": None,
        }
        if archive:
            shown = archive.version or archive.url.partition("?")[0].rpartition("/")[2]
            row |= {"locked": shown, "size": archive.size, "trust": archive.trust}
        rows.append({**row, "licence": record.licence if record else archive.licence if archive else ""})
    return rows
