"""Resolves the wheels of a lock with uv, for each platform and each Python minor."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tenv.core import process
from tenv.core.errors import NetworkError, NoSolutionError
from tenv.core.http import Http, Unanswered
from tenv.core.names import file_at, is_wheel
from tenv.core.progress import Progress
from tenv.core.untrusted import whole_number
from tenv.locks.lock import CondaPackage, Lock, LockedTree, Wheel
from tenv.locks.wheel_answers import python_packages
from tenv.sources.interface import Problem
from tenv.sources.wheels.choose import join
from tenv.sources.wheels.trees import Trees, stand_ins
from tenv.targets.manifest import Manifest

__all__ = ["resolve_wheels"]

_WORKERS = 4
"""uv mostly waits for the index; more processes than this gained nothing on two cores."""

_CONNECTIONS = 8

Resolved = Mapping[str, list[dict[str, tuple[Wheel, str]]]]


def resolve_wheels(
    problem: Problem, conda: Mapping[str, Sequence[CondaPackage]]
) -> tuple[dict[str, tuple[Wheel, ...]], dict[str, tuple[LockedTree, ...]]]:
    """Select the wheels of every platform, and read the source trees.

    Args:
        problem: The problem.
        conda: The conda packages by platform, which may include the Python.

    Raises:
        NoSolutionError: No set of wheels satisfies the manifest.
        NetworkError: An index does not respond.
    """
    trees = Trees(problem)
    with stand_ins(problem, trees) as whole:
        resolved = _resolve(whole, conda)
        wheels = _join(whole, _without_sdists(resolved))
    built = trees.locked(_wheel_cases(problem.manifest, conda))
    if any(not is_wheel(row[0].file) for choices in resolved.values() for choice in choices for row in choice.values()):
        from tenv.sources.wheels.sdists import locked_sdists  # late: few targets have one

        for platform, rows in locked_sdists(problem, resolved).items():
            built[platform] = (*built.get(platform, ()), *rows)
    return wheels, built


def _without_sdists(resolved: Resolved) -> Resolved:
    return {
        platform: [{name: row for name, row in choice.items() if is_wheel(row[0].file)} for choice in choices]
        for platform, choices in resolved.items()
    }


def _resolve(problem: Problem, conda: Mapping[str, Sequence[CondaPackage]]) -> Resolved:
    """Select wheels for each platform and Python minor; the order of the results is fixed."""
    access, manifest, old = problem.access, problem.manifest, problem.old
    uv = access.uv()
    cases = _wheel_cases(manifest, conda)
    if cases:
        access.progress.step(f"resolving {manifest.name}", len(cases))

    def one(case: tuple[str, str]) -> dict[str, tuple[Wheel, str]]:
        platform, minor = case
        here = manifest.on(platform)
        kept = _kept(old, platform) if old else ()
        given = python_packages(conda.get(platform, ()))
        limits = problem.limits
        chosen = uv.resolve(
            here, platform, minor, kept, problem.upgrade, given, limits.exclude_newer, builds=limits.ask_backends
        )
        access.progress.advance()
        return chosen

    resolved: dict[str, list[dict[str, tuple[Wheel, str]]]] = {platform: [] for platform in manifest.platforms}
    pool = ThreadPoolExecutor(_WORKERS)
    answers = [pool.submit(one, case) for case in cases]
    failed: tuple[str, str, NoSolutionError] | None = None
    try:
        for (platform, minor), answer in zip(cases, answers, strict=True):
            while not answer.done():
                wait([answer], timeout=0.1)  # handles a signal that arrives just as the wait begins
            try:
                resolved[platform].append(answer.result())
            except NoSolutionError as error:
                failed = platform, minor, error
                break
    finally:  # after Ctrl-C or an error, cancel waiting work and stop running work
        pool.shutdown(wait=False, cancel_futures=True)
        while any(answer.running() for answer in answers):
            process.end_all()
            time.sleep(0.02)
    if failed is not None and failed[-1].hint:  # it names its cause: a held file that no index has
        raise failed[-1]
    if failed is not None:
        raise _explained(problem, conda, *failed) if problem.limits.explain else failed[-1]
    return resolved


def _kept(old: Lock, platform: str) -> tuple[Wheel, ...]:
    """Return the wheels of a lock, and its source archives as if they were wheels: their versions stay, too."""
    archives = (tree for tree in old.trees.get(platform, ()) if tree.file)
    rows = (
        Wheel(tree.name, tree.version, tree.file, tree.digest, tree.size, tree.python, tree.requires)
        for tree in archives
    )
    return (*old.wheels.get(platform, ()), *rows)


def _explained(
    problem: Problem, conda: Mapping[str, Sequence[CondaPackage]], platform: str, minor: str, error: NoSolutionError
) -> NoSolutionError:
    """Return the error of one platform and Python minor with its cause."""
    from tenv.sources.wheels.urls import requirements_at
    from tenv.sources.wheels.wheel_conflicts import WheelCase, explain  # late: only without a solution

    uv, manifest, limits = problem.access.uv(), problem.manifest, problem.limits
    problem.access.progress.step("searching for the conflict")
    case = WheelCase(
        manifest.on(platform),
        {name: manifest.on(name) for name in manifest.platforms},
        platform,
        minor,
        python_packages(conda.get(platform, ())),
        lambda asked, where, python, given: uv.resolve(asked, where, python, (), None, given, limits.exclude_newer),
        lambda pins, python: uv.releases(
            pins, python, indexes=manifest.on(platform).bound_indexes(), manifest=manifest
        ),
        lambda urls: requirements_at(uv, urls, problem.access.progress),
    )
    return explain(case, error)


def _wheel_cases(manifest: Manifest, conda: Mapping[str, Sequence[CondaPackage]]) -> list[tuple[str, str]]:
    """Return each platform with requests for wheels, with each of its Python minors."""
    return [
        (platform, minor)
        for platform in manifest.platforms
        if manifest.on(platform).wheels
        for minor in manifest.python_minors() or _python_of(conda.get(platform, ()), platform)
    ]


def _python_of(packages: Sequence[CondaPackage], platform: str) -> list[str]:
    """Return the minor of the conda package `python`."""
    pythons = [package.version for package in packages if package.name == "python"]
    if not pythons:
        raise NoSolutionError(
            f"no conda package supplies a Python for the wheels on {platform}",
            hint=f"add `python` to [dependencies] or [platform.{platform}.dependencies]",
        )
    return [".".join(pythons[0].split(".")[:2])]


def _join(problem: Problem, resolved: Resolved) -> dict[str, tuple[Wheel, ...]]:
    """Join the selected wheels, with sizes from the index, the old lock or the file's server."""
    access = problem.access
    old = [wheel for wheels in problem.old.wheels.values() for wheel in wheels] if problem.old else []
    known = {wheel.sha256: wheel.size for wheel in old if wheel.size is not None}
    rows = [row for choices in resolved.values() for choice in choices for row in choice.values()]
    urls = {url: wheel.sha256 for wheel, url in rows if wheel.size is None and wheel.sha256 not in known}
    if urls:
        access.progress.step("reading sizes", len(urls))
        sizes = _ask_sizes(access.uv().http, urls, access.progress) if not access.offline else {}
        known |= {urls[url]: size for url, size in sizes.items()}
    requires = _requirements(problem, {wheel.sha256: url for wheel, url in rows}, old)
    joined = {platform: join(choices, known) for platform, choices in resolved.items()}
    return {
        platform: tuple(replace(wheel, requires=requires.get(wheel.sha256)) for wheel in wheels)
        for platform, wheels in joined.items()
    }


def _ask_sizes(http: Http, urls: Iterable[str], progress: Progress) -> dict[str, int]:
    """Return the sizes of files by URL, without those that the server does not report.

    Raises:
        NetworkError: A server does not respond. An error, since a lock must not depend on chance.
    """

    def ask(url: str) -> tuple[str, int]:
        local = urlsplit(url).scheme == "file"
        size = Path(unquote(urlsplit(url).path)).stat().st_size if local else _ask_size(http, url)
        progress.advance()
        return url, size

    pool = ThreadPoolExecutor(_CONNECTIONS)
    try:
        return {url: size for url, size in pool.map(ask, urls) if size}
    finally:
        pool.shutdown(cancel_futures=True)


def _ask_size(http: Http, url: str) -> int:
    """Return the size of a file; 0 if its server does not report it."""
    try:
        with http.head(url) as answer:
            return whole_number(answer.headers.get("Content-Length", "")) or 0 if answer.ok else 0
    except Unanswered as error:
        raise NetworkError(
            f"can't read the size of {file_at(url)}: {error}", hint="run the same command again"
        ) from error


def _requirements(
    problem: Problem, urls: Mapping[str, str], old: Sequence[Wheel]
) -> Mapping[str, tuple[str, ...] | None]:
    """Return the requirements of wheels by sha256, from the old lock or their metadata; None if unknown."""
    known = {wheel.sha256: wheel.requires for wheel in old if wheel.requires is not None}
    asked = {digest: url for digest, url in urls.items() if digest not in known}
    if not asked:
        return known
    from tenv.sources.wheels.urls import requirements_at  # late: not needed if all wheels are known

    problem.access.progress.step("reading the metadata of wheels", len(asked))
    return {**known, **requirements_at(problem.access.uv(), asked, problem.access.progress)}
