"""Verify an environment: compare every file with its digest, then run the tools."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from tenv.checks.rules.whole_toolkit import cmake_targets
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, TenvError
from tenv.core.files import digest
from tenv.environment.integrity import Faults
from tenv.environment.state import Environment, State
from tenv.environment.trust import Fault
from tenv.host.machine import current_platform, sees_gpu
from tenv.locks.lock import Lock
from tenv.locks.lock_features import take
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.sources.archives.store import Damage
from tenv.sources.interface import sources
from tenv.sources.owners import find_deep_faults, find_faults, unmanaged_files
from tenv.sources.system.fingerprint import Drift, read_fingerprints
from tenv.sources.system.taken import BESIDE, fit, replaced_torch
from tenv.sources.wheels.installed import Wheels
from tenv.toolchain import smoke_tests as probes
from tenv.toolchain.discover import Toolchain, discover
from tenv.toolchain.smoke_tests import Outcome
from tenv.verbs.activate import find_activation, find_environment
from tenv.verbs.lock_standing import LockStanding, Standing, report_standing, stale_by_torch

_AT_ONCE = 4
"""How many probes run at the same time: each is one compiler, and nvcc takes 1 GiB."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification."""

    target: str
    """The target."""
    prefix: Path
    """The environment's folder."""
    faults: Faults
    """The missing and changed files."""
    extra: tuple[str, ...]
    """The unmanaged files, sorted; they are no error."""
    outcomes: tuple[Outcome, ...] | None
    """The results of the smoke tests; None if they did not run."""
    machine: tuple[Drift, ...] = ()
    """The changed files of system tools."""
    store: tuple[Damage, ...] | None = None
    """The damaged files in the store of archives; None if the store was not verified."""
    standing: LockStanding = field(default_factory=lambda: LockStanding(Standing.CURRENT))
    """How the environment stands to its lock."""
    fault: Fault | None = None
    """Why the environment can't be used, None when it can."""

    @property
    def whole(self) -> bool:
        """Whether every file is intact, system tools' files too."""
        return not (self.faults.defects or self.machine or self.store or self.fault)

    @property
    def works(self) -> bool:
        """Whether all smoke tests passed."""
        return all(outcome.ok for outcome in self.outcomes or ())

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        faults = {"missing": list(self.faults.missing), "changed": list(self.faults.changed)}
        return {
            "target": self.target,
            "prefix": str(self.prefix),
            "integrity": {**faults, "extra": list(self.extra), "packages": list(self.faults.owners)},
            "machine": [asdict(drift) for drift in self.machine],
            "store": None
            if self.store is None
            else [{"file": str(damage.path), "reason": damage.reason} for damage in self.store],
            "stale": self.standing.word is Standing.STALE,
            "reason": (self.fault.reason.value if self.fault else self.standing.reason) or None,
            "probes": [outcome.to_json() for outcome in self.outcomes or ()],
        }


def verify(
    context: Context,
    target: str | None,
    prefix: Path | None,
    *,
    with_probes: bool,
    with_store: bool = False,
    deep: bool = False,
) -> Verified:
    """Verify every file of an environment, and run its tools.

    Args:
        context: The context of the verb.
        target: The target; None for the only environment's.
        prefix: The environment's folder; None for the default one.
        with_probes: Whether to run the smoke tests.
        with_store: Whether to verify the store of archives too.
        deep: Whether to compare the files with those of the lock, fetched again.

    Raises:
        EnvironmentMissingError, EnvironmentBrokenError: The environment is missing or not ready.
        EnvironmentStaleError: It does not have the files of its lock, and `locked` was asked for.
    """
    name, environment, state = find_environment(context, target, prefix, gutted=True)
    fault = context.fault_of(environment, name)
    standing = report_standing(context, environment, state, None)
    context.progress.step(f"verifying the files of {name}", 1)
    faults = find_faults(environment, state)
    if deep:
        faults |= find_deep_faults(context, environment, state, _lock_of(environment, state))
    extra = tuple(name for name in unmanaged_files(environment.prefix, state.owned) if name not in faults.defects)
    drifts = [drift for source in sources() for drift in source.drifts(environment, deep=True)]
    machine = tuple(drift for drift in drifts if drift.name != BESIDE)
    if len(machine) < len(drifts) and standing.word is Standing.CURRENT:  # with its size and times unchanged
        reason = replaced_torch(environment, deep=True)
        standing = stale_by_torch(context, environment, state, reason, standing.lock)
    store = None
    if with_store:
        context.progress.step("verifying the store of archives")
        store = tuple(damage for source in sources() for damage in source.damages())
    outcomes = tuple(_try(context, name, environment, state)) if with_probes and not fault else None
    return Verified(name, environment.prefix, faults, extra, outcomes, machine, store, standing, fault)


def _lock_of(environment: Environment, state: State) -> Lock:
    """Return the lock that an environment was made from, with the files of its features.

    Raises:
        EnvironmentBrokenError: The environment does not hold it.
    """
    for path in reversed(environment.kept_locks()):
        if digest(path) == state.lock:
            return take(read_lock(path, state.target), state.features)
    raise EnvironmentBrokenError(
        f"{environment.prefix} does not hold the lock that it was made from",
        hint=f"`tenv create {state.target} --exact` makes it anew",
    )


def _try(context: Context, name: str, environment: Environment, state: State) -> Iterator[Outcome]:
    """Run the smoke tests that apply, in the active environment."""
    active = find_activation(context, name, environment.prefix).apply(context.environ)
    toolchain = fit(discover(environment.prefix), read_fingerprints(environment.meta))
    parts = _parts(context, name, toolchain, active)
    planned = list(probes.plan(toolchain, active, _modules(environment, state), sees_gpu(), parts))
    context.progress.step("running its tools", len(planned))
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        for outcome in pool.map(lambda probe: probes.run(probe, active, bound=False), planned):
            context.progress.advance()
            yield outcome


def _parts(context: Context, name: str, toolchain: Toolchain, active: Mapping[str, str]) -> tuple[str, ...]:
    """Return the toolkit parts that CMake must find; empty if no place has the target any more."""
    try:
        target = context.find_target(name)
    except TenvError:
        return ()
    if toolchain.cuda_version is None:
        return ()
    return cmake_targets(target.manifest.on(current_platform()), context.facts(), toolchain.cuda_version, active)


def _modules(environment: Environment, state: State) -> tuple[str, ...]:
    """Return the top-level modules of the installed packages, sorted, without private modules."""
    site = discover(environment.prefix).site_packages
    found = set()
    for name in Wheels(environment.prefix).files(state.of("wheels")):
        path = environment.prefix / name
        if path.name == "__init__.py" and path.parent.parent == site:
            found.add(path.parent.name)
        elif path.suffix == ".py" and path.parent == site:
            found.add(path.stem)
    return tuple(sorted(name for name in found if name.isidentifier() and not name.startswith("_")))
