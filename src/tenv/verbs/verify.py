"""Verify an environment: is every file what it was, and does the toolchain work?"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tenv.checks.rules.whole_toolkit import cmake_targets
from tenv.core.errors import TenvError
from tenv.environment.integrity import Faults
from tenv.environment.state import Environment, State
from tenv.host.machine import current_platform, sees_gpu
from tenv.project.context import Context
from tenv.sources.archives.store import Damage
from tenv.sources.interface import sources
from tenv.sources.owners import find_faults, unmanaged_files
from tenv.sources.system.fingerprint import Drift, read_fingerprints
from tenv.sources.system.fit import fit
from tenv.sources.wheels.installed import Wheels
from tenv.toolchain import smoke_tests as probes
from tenv.toolchain.discover import Toolchain, discover
from tenv.toolchain.smoke_tests import Outcome
from tenv.verbs.activate import find_activation, find_environment
from tenv.verbs.lock_standing import LockStanding, Standing, report_standing

__all__ = ["Verified", "verify"]


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found.

    Attributes:
        target: The target.
        prefix: The environment's folder.
        faults: The files that are not as they were put there.
        extra: The files that tenv did not put there, sorted; they are nobody's fault.
        outcomes: How the probes ended; None when they were not asked for.
        machine: What the environment takes from the machine and is no longer what it was.
        store: What in the store of archives is not what it was; None when that was not asked for.
        standing: How the environment stands to its lock.
    """

    target: str
    prefix: Path
    faults: Faults
    extra: tuple[str, ...]
    outcomes: tuple[Outcome, ...] | None
    machine: tuple[Drift, ...] = ()
    store: tuple[Damage, ...] | None = None
    standing: LockStanding = field(default_factory=lambda: LockStanding(Standing.CURRENT))

    @property
    def whole(self) -> bool:
        """Whether every file is what it was, those of the machine included."""
        return not (self.faults.missing or self.faults.changed or self.machine or self.store)

    @property
    def works(self) -> bool:
        """Whether no probe failed."""
        return all(outcome.ok for outcome in self.outcomes or ())

    def to_json(self) -> dict[str, Any]:
        """Return what was found as plain values."""
        faults = {"missing": list(self.faults.missing), "changed": list(self.faults.changed)}
        return {
            "target": self.target,
            "prefix": str(self.prefix),
            "integrity": {**faults, "extra": list(self.extra), "packages": list(self.faults.owners)},
            "machine": [drift.to_json() for drift in self.machine],
            "store": None
            if self.store is None
            else [{"file": str(damage.path), "reason": damage.reason} for damage in self.store],
            "stale": self.standing.word is Standing.STALE,
            "reason": self.standing.reason or None,
            "probes": [asdict(outcome) for outcome in self.outcomes or ()],
        }


def verify(
    context: Context, target: str | None, prefix: Path | None, *, with_probes: bool, with_store: bool = False
) -> Verified:
    """Look at every file of an environment, and try its tools.

    Args:
        context: What every verb is given.
        target: The target; the one of the only environment here when None.
        prefix: The environment's folder, when it is not the usual one.
        with_probes: Whether to compile and run something.
        with_store: Whether to read the store of archives, too, all of it.

    Raises:
        EnvironmentMissingError, EnvironmentBrokenError: There is no environment, or it is not ready.
        EnvironmentStaleError: It does not have the files of its lock, and `locked` was asked for.
    """
    name, environment = find_environment(context, target, prefix)
    state = environment.require_ready(name)
    standing = report_standing(context, environment, state, None)
    context.progress.step(f"looking at the files of {name}", 1)
    faults = find_faults(environment, state)
    extra = unmanaged_files(environment.prefix, state.owned)
    machine = tuple(drift for source in sources() for drift in source.drifts(environment, deep=True))
    store = None
    if with_store:
        context.progress.step("looking at the store of archives")
        store = tuple(damage for source in sources() for damage in source.damages())
    outcomes = tuple(_try(context, name, environment, state)) if with_probes else None
    return Verified(name, environment.prefix, faults, extra, outcomes, machine, store, standing)


def _try(context: Context, name: str, environment: Environment, state: State) -> Iterator[Outcome]:
    """Run the probes that fit, in the environment as activating it makes it."""
    active = find_activation(context, name, environment.prefix).apply(context.environ)
    toolchain = fit(discover(environment.prefix), read_fingerprints(environment.meta))
    parts = _parts(context, name, toolchain, active)
    planned = list(probes.plan(toolchain, active, _modules(environment, state), sees_gpu(), parts))
    context.progress.step("trying its tools", len(planned))
    for probe in planned:
        yield probes.run(probe, active)
        context.progress.advance()


def _parts(context: Context, name: str, toolchain: Toolchain, active: Mapping[str, str]) -> tuple[str, ...]:
    """Return what CMake must find of the toolkit; nothing where the target is not known here any more."""
    try:
        target = context.find_target(name)
    except TenvError:
        return ()
    if toolchain.cuda_version is None:
        return ()
    return cmake_targets(target.manifest.on(current_platform()), context.facts(), toolchain.cuda_version, active)


def _modules(environment: Environment, state: State) -> tuple[str, ...]:
    """Return the modules at the top of the packages that tenv installed, sorted; private ones are their packages'."""
    site = discover(environment.prefix).site_packages
    found = set()
    for name in Wheels(environment.prefix).files(state.of("wheels")):
        path = environment.prefix / name
        if path.name == "__init__.py" and path.parent.parent == site:
            found.add(path.parent.name)
        elif path.suffix == ".py" and path.parent == site:
            found.add(path.stem)
    return tuple(sorted(name for name in found if name.isidentifier() and not name.startswith("_")))
