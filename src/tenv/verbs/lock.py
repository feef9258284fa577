"""Lock a target: keep the lock that is there, or write one with other files, as `tenv.solve.solve` chooses them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tenv.checks.lock_verdict import JudgedLock, judge_lock
from tenv.checks.rules.interface import Finding, Severity
from tenv.checks.rules.toolkit import check_lock
from tenv.core.errors import LockCorruptError, LockMissingError, NoSolutionError, UsageError
from tenv.core.files import write_atomic
from tenv.core.names import normalize
from tenv.core.toml_reader import nearest
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock
from tenv.project.context import Context
from tenv.sources.interface import Problem, SolveOptions, package_names
from tenv.targets.search import Target
from tenv.targets.sections import SECTIONS

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
    """Return how many files of each source a lock holds for each platform."""
    keys = [section.key for section in SECTIONS if section.noun]
    return {platform: {key: len(lock.files(key, platform)) for key in keys} for platform in lock.platforms}


def check_target_lock(target: Target) -> Locked:
    """Return the lock of a target if it satisfies the manifest.

    Raises:
        LockMissingError, LockCorruptError: There is none that can be read.
        LockStaleError: It no longer satisfies the manifest.
    """
    return Locked(judge_lock(target).require(target), target.lock_file, changed=False)


def lock_target(
    context: Context,
    target: Target,
    upgrade: Sequence[str] | None = (),
    path: Path | None = None,
    limits: SolveOptions | None = None,
    *,
    start: Lock | None = None,
    dry_run: bool = False,
    judged: JudgedLock | None = None,
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
        judged: The lock that is there, where the caller has judged it.

    Raises:
        NoSolutionError: No set of files satisfies the manifest, or the one found breaks a rule.
        NetworkError: An index or a channel does not answer.
    """
    from tenv.solve.solve import solve  # late: a lock that is up to date needs no solver

    home = path or target.lock_home
    limits = limits or SolveOptions()
    # A question about a day in the past is not answered with what was chosen on a later one.
    upgrade = None if upgrade is None or limits.exclude_newer else tuple(map(normalize, upgrade))
    if judged is None and start is None:
        judged = judge_lock(target, path=home if home.is_file() else None)
    old, stale = _old(judged) if judged else (start, ["it is chosen anew"])
    if old and not stale and upgrade == () and path is None and context.places.project is None:
        return Locked(old, target.lock_file, changed=False, before=old)  # no copy hides the built-in's successors
    path = home
    _check_names(upgrade or (), target, old)
    if old and not stale and upgrade == ():
        lock, text = old, old.text
    else:
        _, text = solve(Problem(context, target.manifest, old, upgrade, replace(limits, afresh=start is not None)))
        lock = parse_lock(text, str(path), target.name)
    findings = _judge(lock)
    changed = _is_changed(path, text, judged)
    if changed and not dry_run:
        project = context.places.project
        write_atomic(path, text, within=project if project and project in path.parents else None)
    return Locked(lock, path, changed, tuple(stale), findings, old)


def _is_changed(path: Path, text: bytes, judged: JudgedLock | None) -> bool:
    if judged and judged.lock and judged.path == path:  # its bytes need not be read again
        return judged.lock.text != text
    return not path.is_file() or path.read_bytes() != text


def _old(judged: JudgedLock) -> tuple[Lock | None, list[str]]:
    """Return the lock that is there and why it does not do; a damaged one is no obstacle to making a new one."""
    if isinstance(judged.error, LockMissingError):
        return None, ["there is no lock yet"]
    if judged.error is not None:
        if type(judged.error) is not LockCorruptError:  # a conflict or a newer tenv's: not ours to overwrite
            raise judged.error
        return None, [judged.error.message]
    return judged.lock, list(judged.faults)


def _check_names(names: Sequence[str], target: Target, lock: Lock | None) -> None:
    known = package_names(lock, target.manifest)
    for name in names:
        if name not in known:
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
