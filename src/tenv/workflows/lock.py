"""Lock a target: choose every file for every platform, and write the lock."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tenv import process
from tenv.engine.lockfile import write_conda_part
from tenv.errors import LockCorruptError, LockMissingError, LockStaleError, NoSolutionError, UsageError
from tenv.files import write_atomic
from tenv.lock import Lock, Wheel, from_manifest, parse_lock, read_lock, render_lock
from tenv.manifest import Manifest, normalize
from tenv.providers.wheels import join
from tenv.rules.interface import Finding, Severity
from tenv.rules.toolkit import check_lock
from tenv.staleness import differences
from tenv.tables import nearest
from tenv.targets import Target
from tenv.workflows.context import Context

__all__ = ["Locked", "check_target_lock", "counts", "lock_target"]

_WORKERS = 4
"""uv mostly waits for the index; more at once than this gained nothing on two cores."""

Resolved = Mapping[str, list[dict[str, tuple[Wheel, str]]]]


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
        platform: {"conda": 0, "wheels": len(lock.wheels.get(platform, ())), "archives": 0}
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
        start: What is kept where it fits, in place of the lock that is there; the files are then chosen anew in any
            case.
        dry_run: Write nothing.

    Raises:
        NoSolutionError: No set of files satisfies the manifest, or the one found breaks a rule.
        NetworkError: An index does not answer.
    """
    home = path or target.lock_home
    upgrade = None if upgrade is None else tuple(map(normalize, upgrade))
    old, stale = _read_old(target, home) if start is None else (start, ["it is chosen anew"])
    if old and not stale and upgrade == () and path is None and context.places.project is None:
        return Locked(old, target.lock_file, changed=False, before=old)  # no copy hides the built-in's successors
    path = home
    _check_names(upgrade or (), target, old)
    if old and not stale and upgrade == ():
        lock = old
    else:
        _refuse_unsupported(target.manifest)
        resolved = _resolve(context, target.manifest, old, upgrade)
        lock = from_manifest(target.manifest, _wheels(context, resolved, old))
    findings = _judge(lock)
    text = old.text if lock is old and old else render_lock(lock, _conda_part(target.manifest))
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
    known = {wheel.name for wheel in _all_wheels(lock)}
    known |= {name for platform in target.manifest.platforms for name in target.manifest.on(platform).wheels}
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f"`tenv show {target.name}` lists its packages"
            raise UsageError(f"{target.name} has no package `{name}`", hint=hint)


def _refuse_unsupported(manifest: Manifest) -> None:
    for section, items in (
        ("dependencies", manifest.dependencies),
        ("archives", manifest.archives),
        ("system", manifest.system),
    ):
        if items:
            raise UsageError(
                f"{manifest.file}: [{section}] can't be locked by this tenv yet",
                hint="targets made of wheels ([pypi-dependencies]) can",
            )


def _resolve(context: Context, manifest: Manifest, old: Lock | None, upgrade: Sequence[str] | None) -> Resolved:
    """Choose wheels for each platform and Python minor; the order of the answers does not depend on their speed."""
    uv = context.uv()
    cases = [(platform, minor) for platform in manifest.platforms for minor in manifest.python_minors()]
    context.progress.step(f"resolving {manifest.name}", len(cases))

    def one(case: tuple[str, str]) -> dict[str, tuple[Wheel, str]]:
        platform, minor = case
        kept = old.wheels.get(platform, ()) if old else ()
        chosen = uv.resolve(manifest.on(platform), platform, minor, kept, upgrade)
        context.progress.advance()
        return chosen

    resolved: dict[str, list[dict[str, tuple[Wheel, str]]]] = {platform: [] for platform in manifest.platforms}
    pool = ThreadPoolExecutor(_WORKERS)
    answers = [pool.submit(one, case) for case in cases]
    try:
        for (platform, _), answer in zip(cases, answers, strict=True):
            resolved[platform].append(answer.result())
    finally:  # after Ctrl-C or an error, what has not begun is not begun, and what has begun is ended
        pool.shutdown(wait=False, cancel_futures=True)
        while any(answer.running() for answer in answers):
            process.end_all()
            time.sleep(0.02)
    return resolved


def _wheels(context: Context, resolved: Resolved, old: Lock | None) -> dict[str, tuple[Wheel, ...]]:
    """Join what was chosen, with the sizes that the index, the old lock or the file's own server tell."""
    known = {wheel.sha256: wheel.size for wheel in _all_wheels(old) if wheel.size is not None}
    rows = [row for choices in resolved.values() for choice in choices for row in choice.values()]
    urls = {url: wheel.sha256 for wheel, url in rows if wheel.size is None and wheel.sha256 not in known}
    if urls:
        context.progress.step("asking for sizes", len(urls))
        sizes = context.uv().sizes(urls, context.progress) if not context.offline else {}
        known |= {urls[url]: size for url, size in sizes.items()}
    return {platform: join(choices, known) for platform, choices in resolved.items()}


def _all_wheels(lock: Lock | None) -> Iterable[Wheel]:
    return (wheel for wheels in lock.wheels.values() for wheel in wheels) if lock else ()


def _judge(lock: Lock) -> tuple[Finding, ...]:
    findings = tuple(check_lock(lock))
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        listed = "".join(f"\n  {finding.code} {finding.subject}: {finding.message}" for finding in errors)
        raise NoSolutionError(f"the wheels found for {lock.target} do not fit together:{listed}", hint=errors[0].fix)
    return findings


def _conda_part(manifest: Manifest) -> str:
    return write_conda_part(manifest.name, manifest.platforms, manifest.channels)
