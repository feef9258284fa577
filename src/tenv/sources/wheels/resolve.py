"""The wheels of a lock: resolved by uv for each platform and each Python minor."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

from tenv.core import process
from tenv.core.errors import NoSolutionError
from tenv.locks.lock import CondaPackage, Wheel
from tenv.locks.wheel_answers import python_packages
from tenv.sources.interface import Problem
from tenv.sources.wheels.choose import join
from tenv.targets.manifest import Manifest

__all__ = ["resolve_wheels"]

_WORKERS = 4
"""uv mostly waits for the index; more at once than this gained nothing on two cores."""

Resolved = Mapping[str, list[dict[str, tuple[Wheel, str]]]]


def resolve_wheels(problem: Problem, conda: Mapping[str, Sequence[CondaPackage]]) -> dict[str, tuple[Wheel, ...]]:
    """Choose the wheels of every platform.

    Args:
        problem: What is to be chosen.
        conda: The conda packages by platform, which may bring the Python.

    Raises:
        NoSolutionError: No set of wheels satisfies the manifest.
        NetworkError: An index does not answer.
    """
    return _join(problem, _resolve(problem, conda))


def _resolve(problem: Problem, conda: Mapping[str, Sequence[CondaPackage]]) -> Resolved:
    """Choose wheels for each platform and Python minor; the order of the answers does not depend on their speed."""
    access, manifest, old = problem.access, problem.manifest, problem.old
    uv = access.uv()
    cases = _wheel_cases(manifest, conda)
    if cases:
        access.progress.step(f"resolving {manifest.name}", len(cases))

    def one(case: tuple[str, str]) -> dict[str, tuple[Wheel, str]]:
        platform, minor = case
        here = manifest.on(platform)
        kept = old.wheels.get(platform, ()) if old else ()
        given = python_packages(conda.get(platform, ()))
        chosen = uv.resolve(here, platform, minor, kept, problem.upgrade, given, problem.limits.exclude_newer)
        access.progress.advance()
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


def _join(problem: Problem, resolved: Resolved) -> dict[str, tuple[Wheel, ...]]:
    """Join what was chosen, with the sizes that the index, the old lock or the file's own server tell."""
    access = problem.access
    old = [wheel for wheels in problem.old.wheels.values() for wheel in wheels] if problem.old else []
    known = {wheel.sha256: wheel.size for wheel in old if wheel.size is not None}
    rows = [row for choices in resolved.values() for choice in choices for row in choice.values()]
    urls = {url: wheel.sha256 for wheel, url in rows if wheel.size is None and wheel.sha256 not in known}
    if urls:
        access.progress.step("asking for sizes", len(urls))
        sizes = access.uv().sizes(urls, access.progress) if not access.offline else {}
        known |= {urls[url]: size for url, size in sizes.items()}
    requires = _requirements(problem, {wheel.sha256: url for wheel, url in rows}, old)
    joined = {platform: join(choices, known) for platform, choices in resolved.items()}
    return {
        platform: tuple(replace(wheel, requires=requires.get(wheel.sha256)) for wheel in wheels)
        for platform, wheels in joined.items()
    }


def _requirements(
    problem: Problem, urls: Mapping[str, str], old: Sequence[Wheel]
) -> Mapping[str, tuple[str, ...] | None]:
    """Return what wheels require, by sha256, asked where the old lock does not say it; None where nobody tells."""
    known = {wheel.sha256: wheel.requires for wheel in old if wheel.requires is not None}
    asked = {digest: url for digest, url in urls.items() if digest not in known}
    if not asked:
        return known
    from tenv.sources.wheels.urls import requirements_at  # late: a lock of known wheels asks nobody

    problem.access.progress.step("asking what wheels require", len(asked))
    return {**known, **requirements_at(problem.access.uv(), asked, problem.access.progress)}
