"""Lock a target: keep the existing lock, or write a new one with the files that the sources select in turn."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tenv.checks.lock_verdict import JudgedLock, judge_lock
from tenv.checks.rules.interface import Finding, Severity
from tenv.checks.rules.toolkit import check_lock
from tenv.core.dataclass import dataclass
from tenv.core.errors import LockCorruptError, LockMissingError, NetworkError, NoSolutionError, TenvError, UsageError
from tenv.core.files import write_atomic
from tenv.core.names import normalize
from tenv.core.toml_reader import nearest
from tenv.locks.lock import Lock, from_manifest
from tenv.locks.lock_features import divide, part
from tenv.locks.lock_file import parse_lock, read_lock, render_lock
from tenv.project.context import Context, without_beside
from tenv.sources.access import Access
from tenv.sources.interface import Chosen, Problem, SolveOptions, differences, package_names, sources
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.search import Target
from tenv.targets.sections import SECTIONS
from tenv.targets.torch_beside import require_beside

_NAMED = 8  # the number of findings that an error lists


@dataclass(frozen=True, slots=True)
class Locked:
    """The result of `lock_target`."""

    lock: Lock
    """The lock, as it is on disk."""
    path: Path
    """Its file."""
    changed: bool
    """Whether the file's bytes changed."""
    differences: tuple[str, ...] = ()
    """Why the existing lock did not satisfy the manifest."""
    findings: tuple[Finding, ...] = ()
    """The findings of the rules about the lock."""
    before: Lock | None = None
    """The previous lock; None if there was none that tenv can read."""


def counts(lock: Lock) -> dict[str, dict[str, int]]:
    """Return the number of files in a lock, by platform and source."""
    keys = [section.key for section in SECTIONS if section.noun]
    return {platform: {key: len(lock.files(key, platform)) for key in keys} for platform in lock.platforms}


def check_target_lock(target: Target) -> Locked:
    """Return the lock of a target; it must satisfy the manifest.

    Raises:
        LockMissingError, LockCorruptError: The lock is missing or can't be read.
        LockStaleError: The lock does not satisfy the manifest.
    """
    _require_torch(target)
    return Locked(judge_lock(target).require(target), target.lock_file, changed=False)


def _require_torch(target: Target) -> None:
    """Raise TorchError where a target is beside an environment without a torch that a toolkit can be made for."""
    if target.manifest.beside:
        require_beside(Path(target.manifest.beside))


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
    """Update the lock of a target, keeping files that still satisfy the manifest.

    Args:
        context: The context of the verb.
        target: The target.
        upgrade: Packages to select anew; None for all.
        path: The file to write; None for the target's own.
        limits: The limits of the selection.
        start: A lock to start from in place of the existing one; the solver then always runs.
        dry_run: Write nothing.
        judged: The existing lock, if the caller has judged it.

    Raises:
        NoSolutionError: No set of files satisfies the manifest, or the found set violates a rule.
        NetworkError: An index or a channel does not respond.
    """
    _require_torch(target)
    context = without_beside(context, target)
    home = path or target.lock_home
    limits = limits or SolveOptions()
    # With `--exclude-newer`, files of the existing lock may be too new.
    upgrade = None if upgrade is None or limits.exclude_newer else tuple(map(normalize, upgrade))
    if judged is None and start is None:
        judged = judge_lock(target, path=home if home.is_file() else None)
    old, stale = _old(judged) if judged else (start, ["all files are selected anew"])
    outside = path is None and context.places.project is None  # there, a copy would hide newer built-in locks
    if old and not stale and limits.trust_first_use:
        from tenv.sources.archives.answers import left_out  # late: only with that option

        stale = [f"{name} is optional, and was left out" for name in left_out(old, target.manifest)]
    if old and not stale and upgrade == () and outside:
        return Locked(old, target.lock_file, changed=False, before=old)
    if old and not stale and target.manifest.inherited:  # a feature that was left out may fit now
        stale = differences(old, replace(target.manifest, inherited=frozenset()))
    if old and not stale and target.manifest.wheelhouse and _pinned(context, target.manifest, old, old) != old:
        stale = ["the wheelhouse has other wheels than it names"]
    path = home
    _check_names(upgrade or (), target, old)
    if old and not stale and upgrade == ():
        lock, text = old, old.text
    else:
        kept = _lock_above(context, target) if old is None and upgrade == () else old
        afresh = replace(limits, afresh=start is not None)
        _, text = solve(Problem(context, target.manifest, kept, upgrade, afresh))
        lock = parse_lock(text, str(path), target.name)
    findings = _judge(lock)
    if outside and old and old.text == text and not path.exists():
        return Locked(old, target.lock_file, changed=False, findings=findings, before=old)
    changed = _is_changed(path, text, judged)
    if changed and not dry_run:
        project = context.places.project
        write_atomic(path, text, within=project if project and project in path.parents else None)
    return Locked(lock, path, changed, tuple(stale), findings, old)


def _lock_above(context: Context, target: Target) -> Lock | None:
    """Return the lock of the nearest parent of a target that has one, whose files a child keeps; None without one."""
    for file in target.files[1:]:
        with contextlib.suppress(TenvError):
            parent = context.places.find(file.stem)
            return read_lock(parent.lock_file, parent.name)
    return None


def _is_changed(path: Path, text: bytes, judged: JudgedLock | None) -> bool:
    if judged and judged.lock and judged.path == path:  # the caller has read its bytes
        return judged.lock.text != text
    return not path.is_file() or path.read_bytes() != text


def _old(judged: JudgedLock) -> tuple[Lock | None, list[str]]:
    """Return the existing lock and why it does not satisfy the manifest. A corrupt lock is replaced."""
    if isinstance(judged.error, LockMissingError):
        return None, ["it is missing"]
    if judged.error is not None:
        if type(judged.error) is not LockCorruptError:  # a merge conflict: never overwritten
            raise judged.error
        return None, [judged.error.message]
    return judged.lock, list(judged.faults)


def _check_names(names: Sequence[str], target: Target, lock: Lock | None) -> None:
    known = package_names(lock, target.manifest)
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f"`tenv show {target.name}` lists the packages"
            raise UsageError(f"{target.name} has no package `{name}`", hint=hint)


def _judge(lock: Lock) -> tuple[Finding, ...]:
    findings = tuple(check_lock(lock))
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        lines = [f"\n  {finding.code} {finding.subject}: {finding.message}" for finding in errors]
        more = f"\n  … and {len(lines) - _NAMED} more (`--verbose` has all)" if len(lines) > _NAMED else ""
        raise NoSolutionError(
            f"the packages found for {lock.target} violate a rule:{''.join(lines[:_NAMED])}{more}",
            hint=errors[0].fix,
            detail="".join(lines).lstrip("\n") if more else "",
        )
    return findings


def solve(problem: Problem) -> tuple[Lock, bytes]:
    """Select the files of a lock for every platform, source by source in the order of the tuple of sources.

    Every source validates the requests before the first one begins. A target and all of its features are one question,
    so that none changes the version of a package that another brings. A feature that only a parent of the manifest has
    is left out, with a note, where the target has a solution without it alone.

    Returns:
        The lock and its bytes.

    Raises:
        ManifestError: A source can't serve a request.
        NoSolutionError: No set of files satisfies the manifest.
        NetworkError: An index or a channel does not answer.
    """
    manifest = problem.manifest
    if not manifest.inherited:
        return _solve_together(problem)
    try:
        return _solve_together(replace(problem, limits=replace(problem.limits, explain=False)))
    except (NoSolutionError, NetworkError):
        own = {name: feature for name, feature in manifest.features.items() if name not in manifest.inherited}
        problem = replace(problem, manifest=replace(manifest, features=own, inherited=frozenset()))
    found = _solve_together(problem)
    for name in sorted(manifest.inherited):
        features = {**problem.manifest.features, name: manifest.features[name]}
        wider = replace(problem, manifest=replace(problem.manifest, features=features))
        try:
            found = _solve_together(replace(wider, limits=replace(problem.limits, explain=False)))
            problem = wider
        except (NoSolutionError, NetworkError) as error:
            problem.access.progress.say(
                f"note: the feature {name} of a parent is left out of the lock: {_cause(error)}"
            )
    return found


def _pinned(access: Access, manifest: Manifest, lock: Lock, old: Lock | None) -> Lock:
    """Return a lock whose rows name the wheels of the wheelhouse."""
    from tenv.sources.wheels.wheelhouse import pin_wheels  # late: few manifests name one

    return pin_wheels(lock, manifest, access.facts().torch_packages, old, access.progress.say)


def _cause(error: TenvError) -> str:
    """Return why there is no solution, on one line: uv's cause where it names one."""
    lines = [line.strip() for line in error.message.splitlines()]
    causes = [line.partition("cause: ")[2] for line in lines if line.startswith("cause: ")]
    return causes[-1] if causes else " ".join(lines[:2])


def _solve_together(problem: Problem) -> tuple[Lock, bytes]:
    """Select the files of a lock for a target and all of its features at once."""
    from tenv.rattler_api.lockfile import write_conda_part  # late: a lock that is up to date needs no solver

    follows = problem.manifest.requirements.cuda_from and not problem.manifest.beside
    if follows:
        from tenv.verbs.lock_torch import following  # late: few targets follow torch

        problem = following(problem)
    manifest, chosen = problem.manifest, Chosen()
    together = replace(problem, manifest=with_features(manifest))
    for source in sources():
        source.check(together.manifest)
    for source in sources():
        source.choose(together, chosen)
    if follows:
        from tenv.verbs.lock_torch import check_followed  # late: few targets follow torch

        check_followed(problem, chosen)
    lock = from_manifest(manifest, divide(manifest, chosen.files))
    if manifest.wheelhouse:
        lock = _pinned(problem.access, manifest, lock, problem.old)
    text = render_lock(lock, write_conda_part(manifest.name, manifest.platforms, lock.channels, chosen.records))
    if manifest.features:
        _check_parts(parse_lock(text, f"the lock of {manifest.name}", manifest.name), manifest)
    return lock, text


def _check_parts(lock: Lock, manifest: Manifest) -> None:
    """Refuse a lock whose target, or one feature, needs a feature: a wheel may require a package that only that brings.

    Raises:
        NoSolutionError: It does.
    """
    if lacking := differences(*part(lock, manifest)):
        raise NoSolutionError(
            f"{manifest.name} can't be made without its features: {lacking[0]}",
            hint="ask for it in the section of the target itself, not below [feature.…]",
        )
    for name in manifest.features if len(manifest.features) > 1 else ():
        if lacking := differences(*part(lock, manifest, [name])):
            raise NoSolutionError(
                f"{manifest.name} can't be made with the feature `{name}` alone: {lacking[0]}",
                hint=f"ask for it in [feature.{name}.…] too, or in the section of the target itself",
            )
