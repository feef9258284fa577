"""Choose the files of a lock, for every platform: archives, conda packages, then wheels."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from tenv.core import process
from tenv.core.errors import NoSolutionError
from tenv.core.names import normalize
from tenv.locks.lock import CondaPackage, Lock, Wheel, from_manifest
from tenv.locks.lock_file import render_lock
from tenv.locks.satisfaction import conda_differences
from tenv.project.context import Context
from tenv.rattler_api.lockfile import read_records, write_conda_part
from tenv.rattler_api.records import Record
from tenv.solve.options import Limits
from tenv.sources.conda.choose import Conda, python_packages, to_package
from tenv.sources.wheels.choose import join
from tenv.targets.manifest import Manifest

__all__ = ["Problem", "solve"]

_WORKERS = 4
"""uv mostly waits for the index; more at once than this gained nothing on two cores."""

Resolved = Mapping[str, list[dict[str, tuple[Wheel, str]]]]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be chosen.

    Attributes:
        context: What every verb is given.
        manifest: What the files must satisfy.
        old: The lock whose files are kept where they still fit; None to keep nothing.
        upgrade: Normalized names of packages whose version is chosen anew; None for all.
        limits: What the choice is limited to.
    """

    context: Context
    manifest: Manifest
    old: Lock | None
    upgrade: Sequence[str] | None
    limits: Limits

    def known_wheels(self) -> list[Wheel]:
        """Return the wheels of the old lock."""
        return [wheel for wheels in self.old.wheels.values() for wheel in wheels] if self.old else []


def solve(problem: Problem) -> tuple[Lock, bytes]:
    """Choose the files, conda packages before wheels, since the Python among them decides on those.

    Returns:
        The lock, and its bytes.

    Raises:
        NoSolutionError: No set of files satisfies the manifest.
        NetworkError: An index or a channel does not answer.
    """
    from tenv.install.archives import choose_archives  # noqa: PLC0415 (late: most locks are up to date)

    context, manifest, limits = problem.context, problem.manifest, problem.limits
    archives = choose_archives(context, manifest, problem.old, problem.upgrade, trust=limits.trust_first_use)
    records = _choose_records(problem)
    conda = {platform: tuple(map(to_package, found)) for platform, found in records.items()}
    wheels = _join_wheels(problem, _resolve_wheels(problem, conda))
    lock = from_manifest(manifest, wheels, conda, archives)
    raw = {platform: [record.raw for record in found] for platform, found in records.items()}
    return lock, render_lock(lock, write_conda_part(manifest.name, manifest.platforms, lock.channels, raw))


def _choose_records(problem: Problem) -> dict[str, list[Record]]:
    """Choose conda packages, or keep those of the old lock where the manifest asks nothing else of them."""
    manifest, old, upgrade, limits = problem.manifest, problem.old, problem.upgrade, problem.limits
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
    conda = Conda(problem.context.network(), limits.seconds, limits.exclude_newer)
    return conda.resolve(manifest, fixed, problem.context.progress)


def _locked_records(lock: Lock, manifest: Manifest) -> dict[str, list[Record]]:
    return {
        platform: [Record.of(raw) for raw in read_records(lock.text, lock.target, platform)]
        for platform in manifest.platforms
        if lock.conda.get(platform)
    }


def _resolve_wheels(problem: Problem, conda: Mapping[str, Sequence[CondaPackage]]) -> Resolved:
    """Choose wheels for each platform and Python minor; the order of the answers does not depend on their speed."""
    context, manifest, old = problem.context, problem.manifest, problem.old
    uv = context.uv()
    cases = _wheel_cases(manifest, conda)
    if cases:
        context.progress.step(f"resolving {manifest.name}", len(cases))

    def one(case: tuple[str, str]) -> dict[str, tuple[Wheel, str]]:
        platform, minor = case
        here = manifest.on(platform)
        kept = old.wheels.get(platform, ()) if old else ()
        given = python_packages(conda.get(platform, ()))
        chosen = uv.resolve(here, platform, minor, kept, problem.upgrade, given, problem.limits.exclude_newer)
        context.progress.advance()
        return chosen

    resolved: dict[str, list[dict[str, tuple[Wheel, str]]]] = {platform: [] for platform in manifest.platforms}
    pool = ThreadPoolExecutor(_WORKERS)
    answers = [pool.submit(one, case) for case in cases]
    try:
        for (platform, _), answer in zip(cases, answers, strict=True):
            while not answer.done():
                wait([answer], timeout=0.1)  # so that a signal is heard that comes just as the wait begins
            resolved[platform].append(answer.result())
    finally:  # after Ctrl-C or an error, what has not begun is not begun, and what has begun is ended
        pool.shutdown(wait=False, cancel_futures=True)
        while any(answer.running() for answer in answers):
            process.end_all()
            time.sleep(0.02)
    return resolved


def _wheel_cases(manifest: Manifest, conda: Mapping[str, Sequence[CondaPackage]]) -> list[tuple[str, str]]:
    """Return each platform that asks for wheels with each Python minor that it serves."""
    return [
        (platform, minor)
        for platform in manifest.platforms
        if manifest.on(platform).wheels
        for minor in manifest.python_minors() or _python_of(conda.get(platform, ()), platform)
    ]


def _python_of(packages: Sequence[CondaPackage], platform: str) -> list[str]:
    """Return the minor of the Python among conda packages."""
    pythons = [package.version for package in packages if package.name == "python"]
    if not pythons:
        raise NoSolutionError(
            f"no conda package supplies a Python for the wheels on {platform}",
            hint=f"ask for python in [dependencies] or [platform.{platform}.dependencies]",
        )
    return [".".join(pythons[0].split(".")[:2])]


def _join_wheels(problem: Problem, resolved: Resolved) -> dict[str, tuple[Wheel, ...]]:
    """Join what was chosen, with the sizes that the index, the old lock or the file's own server tell."""
    context = problem.context
    known = {wheel.sha256: wheel.size for wheel in problem.known_wheels() if wheel.size is not None}
    rows = [row for choices in resolved.values() for choice in choices for row in choice.values()]
    urls = {url: wheel.sha256 for wheel, url in rows if wheel.size is None and wheel.sha256 not in known}
    if urls:
        context.progress.step("asking for sizes", len(urls))
        sizes = context.uv().sizes(urls, context.progress) if not context.offline else {}
        known |= {urls[url]: size for url, size in sizes.items()}
    return {platform: join(choices, known) for platform, choices in resolved.items()}
