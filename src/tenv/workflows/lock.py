"""Lock a target: choose every file for every platform, and write the lock."""

import datetime as dt
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tenv import process
from tenv.engine.lockfile import read_records, write_conda_part
from tenv.engine.records import Record
from tenv.errors import LockCorruptError, LockMissingError, LockStaleError, NoSolutionError, UsageError
from tenv.files import write_atomic
from tenv.lock import CondaPackage, Lock, Wheel, from_manifest, parse_lock, read_lock, render_lock
from tenv.manifest import Manifest, normalize
from tenv.providers.conda import Conda, python_packages, to_package
from tenv.providers.wheels import join
from tenv.rules.interface import Finding, Severity
from tenv.rules.toolkit import check_lock
from tenv.staleness import conda_differences, differences
from tenv.tables import nearest
from tenv.targets import Target
from tenv.workflows.context import Context

__all__ = ["Limits", "Locked", "check_target_lock", "counts", "lock_target"]

_WORKERS = 4
"""uv mostly waits for the index; more at once than this gained nothing on two cores."""

_NAMED = 8  # findings that an error lists

Resolved = Mapping[str, list[dict[str, tuple[Wheel, str]]]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a choice is limited to.

    Attributes:
        seconds: How long reading the package lists of channels, and then solving, may take.
        exclude_newer: Files that came later do not count; in UTC.
        afresh: Conda packages are solved for even where the kept ones answer the manifest, since they may be a mixture.
        trust_first_use: Whether a file whose digest nobody names may be taken as it is seen now.
    """

    seconds: float = 300.0
    exclude_newer: dt.datetime | None = None
    afresh: bool = False
    trust_first_use: bool = False


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
            from tenv.providers.system.take import check_names  # noqa: PLC0415 (late: loads every probe of tools)

            check_names(target.manifest)
        lock, text = _choose(context, target.manifest, old, upgrade, replace(limits, afresh=start is not None))
    findings = _judge(lock)
    changed = not path.is_file() or path.read_bytes() != text
    if changed and not dry_run:
        write_atomic(path, text)
    return Locked(parse_lock(text, str(path), target.name), path, changed, tuple(stale), findings, old)


def _choose(
    context: Context, manifest: Manifest, old: Lock | None, upgrade: Sequence[str] | None, limits: Limits
) -> tuple[Lock, bytes]:
    """Choose the files of a target, conda packages first, since the Python among them decides on the wheels."""
    from tenv.workflows.archives import choose_archives  # noqa: PLC0415 (late: `create` loads this module, too)

    archives = choose_archives(context, manifest, old, upgrade, trust=limits.trust_first_use)
    records = _solve(context, manifest, old, upgrade, limits)
    conda = {platform: tuple(map(to_package, found)) for platform, found in records.items()}
    resolved = _resolve(context, manifest, old, upgrade, conda, limits)
    lock = from_manifest(manifest, _wheels(context, resolved, old), conda, archives)
    raw = {platform: [record.raw for record in found] for platform, found in records.items()}
    part = write_conda_part(manifest.name, manifest.platforms, lock.channels, raw)
    return lock, render_lock(lock, part)


def _solve(
    context: Context, manifest: Manifest, old: Lock | None, upgrade: Sequence[str] | None, limits: Limits
) -> dict[str, list[Record]]:
    """Choose conda packages, or keep those of the old lock where the manifest asks nothing else of them."""
    if not any(manifest.on(platform).dependencies for platform in manifest.platforms):
        return {}
    kept = _locked_records(old, manifest) if old and upgrade is not None else {}
    names = {normalize(record.name) for records in kept.values() for record in records}
    if not limits.afresh and kept and old and names.isdisjoint(upgrade or ()) and not conda_differences(old, manifest):
        return kept
    fixed = {
        platform: [record for record in records if normalize(record.name) not in (upgrade or ())]
        for platform, records in kept.items()
    }
    conda = Conda(context.network(), limits.seconds, limits.exclude_newer)
    return conda.resolve(manifest, fixed, context.progress)


def _locked_records(lock: Lock, manifest: Manifest) -> dict[str, list[Record]]:
    return {
        platform: [Record.of(raw) for raw in read_records(lock.text, lock.target, platform)]
        for platform in manifest.platforms
        if lock.conda.get(platform)
    }


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
    known |= {package.name for packages in (lock.conda.values() if lock else ()) for package in packages}
    for platform in target.manifest.platforms:
        here = target.manifest.on(platform)
        known |= {*here.wheels, *here.dependencies, *here.archives}
    for name in names:
        if name not in map(normalize, known):
            hint = nearest(name, known) or f"`tenv show {target.name}` lists its packages"
            raise UsageError(f"{target.name} has no package `{name}`", hint=hint)


def _resolve(
    context: Context,
    manifest: Manifest,
    old: Lock | None,
    upgrade: Sequence[str] | None,
    conda: Mapping[str, Sequence[CondaPackage]],
    limits: Limits,
) -> Resolved:
    """Choose wheels for each platform and Python minor; the order of the answers does not depend on their speed."""
    uv = context.uv()
    cases = [
        (platform, minor)
        for platform in manifest.platforms
        if manifest.on(platform).wheels
        for minor in manifest.python_minors() or _python_of(conda.get(platform, ()), platform)
    ]
    if cases:
        context.progress.step(f"resolving {manifest.name}", len(cases))

    def one(case: tuple[str, str]) -> dict[str, tuple[Wheel, str]]:
        platform, minor = case
        kept = old.wheels.get(platform, ()) if old else ()
        given = python_packages(conda.get(platform, ()))
        chosen = uv.resolve(manifest.on(platform), platform, minor, kept, upgrade, given, limits.exclude_newer)
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


def _python_of(packages: Sequence[CondaPackage], platform: str) -> list[str]:
    """Return the minor of the Python among conda packages."""
    pythons = [package.version for package in packages if package.name == "python"]
    if not pythons:
        raise NoSolutionError(
            f"no conda package supplies a Python for the wheels on {platform}",
            hint=f"ask for python in [dependencies] or [platform.{platform}.dependencies]",
        )
    return [".".join(pythons[0].split(".")[:2])]


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
        lines = [f"\n  {finding.code} {finding.subject}: {finding.message}" for finding in errors]
        more = f"\n  … and {len(lines) - _NAMED} more (`--verbose` has all)" if len(lines) > _NAMED else ""
        raise NoSolutionError(
            f"the packages found for {lock.target} do not fit together:{''.join(lines[:_NAMED])}{more}",
            hint=errors[0].fix,
            detail="".join(lines).lstrip("\n") if more else "",
        )
    return findings
