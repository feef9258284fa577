"""Lock a target: keep the lock that is there, or write one with other files, as `tenv.solve.solve` chooses them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tenv.checks.rules.interface import Finding, Severity
from tenv.checks.rules.toolkit import check_lock
from tenv.core.errors import LockCorruptError, LockMissingError, LockStaleError, NoSolutionError, UsageError
from tenv.core.files import write_atomic
from tenv.core.names import normalize
from tenv.core.toml_reader import nearest
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock, read_lock
from tenv.locks.satisfaction import differences
from tenv.project.context import Context
from tenv.solve.options import Limits
from tenv.targets.search import Target

__all__ = ["Locked", "check_target_lock", "counts", "lock_target"]

_NAMED = 8  # findings that an error lists


@dataclass(frozen=True, slots=True)
class Locked:
    """What `lock_target` did.

    Attributes:
        lock: The lock, as it now stands on disk.
        path: Its file.
        changed: Whether the file's bytes are new.
        differences: Why the lock that was there did not do.
        findings: What the rules say of the lock.
        before: The lock that was there; None when there was none that could be read.
    """

    lock: Lock
    path: Path
    changed: bool
    differences: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    before: Lock | None = None


def counts(lock: Lock) -> dict[str, dict[str, int]]:
    """Return how many files of each kind a lock holds for each platform."""
    return {
        platform: {
            "conda": len(lock.conda.get(platform, ())),
            "wheels": len(lock.wheels.get(platform, ())),
            "archives": len(lock.archives.get(platform, ())),
        }
        for platform in lock.platforms
    }


def check_target_lock(target: Target) -> Locked:
    """Return the lock of a target if it satisfies the manifest.

    Raises:
        LockMissingError, LockCorruptError: There is none that can be read.
        LockStaleError: It no longer satisfies the manifest.
    """
    lock = read_lock(target.lock_file, target.name)
    found = _faults(lock, target)
    if found:
        listed = "".join(f"\n  {line}" for line in found)
        raise LockStaleError(
            f"{target.lock_file} no longer satisfies the manifest:{listed}",
            hint=f"`tenv lock {target.name}` brings it up to date",
        )
    return Locked(lock, target.lock_file, changed=False)


def lock_target(
    context: Context,
    target: Target,
    upgrade: Sequence[str] | None = (),
    path: Path | None = None,
    limits: Limits | None = None,
    *,
    start: Lock | None = None,
    dry_run: bool = False,
) -> Locked:
    """Bring the lock of a target up to date, keeping what still fits.

    Args:
        context: What every verb is given.
        target: The target.
        upgrade: Packages whose version is chosen anew; None for all.
        path: The file to write; the target's own place when None.
        limits: What the choice is limited to.
        start: What is kept where it fits, in place of the lock that is there; the files are then chosen anew in any
            case.
        dry_run: Write nothing.

    Raises:
        NoSolutionError: No set of files satisfies the manifest, or the one found breaks a rule.
        NetworkError: An index or a channel does not answer.
    """
    from tenv.solve.solve import Problem, solve  # noqa: PLC0415 (late: a lock that is up to date needs no solver)

    home = path or target.lock_home
    limits = limits or Limits()
    # A question about a day in the past is not answered with what was chosen on a later one.
    upgrade = None if upgrade is None or limits.exclude_newer else tuple(map(normalize, upgrade))
    old, stale = _read_old(target, home) if start is None else (start, ["it is chosen anew"])
    if old and not stale and upgrade == () and path is None and context.places.project is None:
        return Locked(old, target.lock_file, changed=False, before=old)  # no copy hides the built-in's successors
    path = home
    _check_names(upgrade or (), target, old)
    if old and not stale and upgrade == ():
        lock, text = old, old.text
    else:
        if any(target.manifest.on(platform).system for platform in target.manifest.platforms):
            from tenv.sources.system.take import check_names  # noqa: PLC0415 (late: loads every probe of tools)

            check_names(target.manifest)
        lock, text = solve(Problem(context, target.manifest, old, upgrade, replace(limits, afresh=start is not None)))
    findings = _judge(lock)
    changed = not path.is_file() or path.read_bytes() != text
    if changed and not dry_run:
        write_atomic(path, text)
    return Locked(parse_lock(text, str(path), target.name), path, changed, tuple(stale), findings, old)


def _read_old(target: Target, path: Path) -> tuple[Lock | None, list[str]]:
    """Return the lock that is there and why it does not do; a damaged one is no obstacle to making a new one."""
    try:
        lock = read_lock(path if path.is_file() else target.lock_file, target.name)
    except LockMissingError:
        return None, ["there is no lock yet"]
    except LockCorruptError as error:
        if type(error) is not LockCorruptError:  # a conflict or a newer tenv's: not ours to overwrite
            raise
        return None, [error.message]
    return lock, _faults(lock, target)


def _faults(lock: Lock, target: Target) -> list[str]:
    """Return why a lock does not do: it does not answer the manifest, or what it holds does not belong together."""
    errors = [finding for finding in check_lock(lock) if finding.severity is Severity.ERROR]
    return differences(lock, target.manifest) + [f"{row.subject} {row.message} ({row.code})" for row in errors]


def _check_names(names: Sequence[str], target: Target, lock: Lock | None) -> None:
    known = {wheel.name for wheels in (lock.wheels.values() if lock else ()) for wheel in wheels}
    known |= {package.name for packages in (lock.conda.values() if lock else ()) for package in packages}
    for platform in target.manifest.platforms:
        here = target.manifest.on(platform)
        known |= {*here.wheels, *here.dependencies, *here.archives}
    for name in names:
        if name not in map(normalize, known):
            hint = nearest(name, known) or f"`tenv show {target.name}` lists its packages"
            raise UsageError(f"{target.name} has no package `{name}`", hint=hint)


def _judge(lock: Lock) -> tuple[Finding, ...]:
    findings = tuple(check_lock(lock))
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        lines = [f"\n  {finding.code} {finding.subject}: {finding.message}" for finding in errors]
        more = f"\n  … and {len(lines) - _NAMED} more (`--verbose` has all)" if len(lines) > _NAMED else ""
        raise NoSolutionError(
            f"the packages found for {lock.target} do not fit together:{''.join(lines[:_NAMED])}{more}",
            hint=errors[0].fix,
            detail="".join(lines).lstrip("\n") if more else "",
        )
    return findings
