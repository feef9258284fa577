"""Resolves the wheels of a lock with uv, for each platform and each Python minor."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tenv.core import process
from tenv.core.errors import NetworkError, NoSolutionError
from tenv.core.http import Http, Unanswered
from tenv.core.names import file_at, is_wheel, normalize
from tenv.core.progress import Progress, Silent
from tenv.core.size_text import some_of
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.locks.lock import CondaPackage, Lock, LockedTree, Wheel
from tenv.locks.wheel_answers import python_packages
from tenv.sources.interface import Problem
from tenv.sources.wheels.ask_ahead import (
    CachedUv,
    NotCachedError,
    ask_all,
    ask_names,
    ask_new,
    new_names,
    unasked,
)
from tenv.sources.wheels.choose import join
from tenv.sources.wheels.compiled import CompiledSdists
from tenv.sources.wheels.index_requests import require_index_folders
from tenv.sources.wheels.sdists import locked_sdists
from tenv.sources.wheels.trees import Trees, stand_ins
from tenv.sources.wheels.urls import requirements_at
from tenv.sources.wheels.uv import Uv
from tenv.sources.wheels.uv_output import CHECK_INDEX
from tenv.targets.manifest import Manifest

_WORKERS = 4
"""uv mostly waits for the index; more processes than this gained nothing on two cores."""

_CONNECTIONS = 8

Case = tuple[str, str]
"""A platform and a Python minor."""
Answer = dict[str, tuple[Wheel, str]]
"""The wheels of a case and their URLs, by name."""
Resolved = Mapping[str, list[Answer]]


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
    uv = problem.access.uv()
    if not uv.environment.get("UV_NO_INDEX"):
        require_index_folders(problem.manifest, uv.users)
    trees, compiled, cases = Trees(problem), CompiledSdists(problem), _wheel_cases(problem.manifest, conda)
    with stand_ins(problem, trees, compiled, cases) as whole:
        resolved = _with_compiled(problem, compiled, cases, _resolve(whole, conda))
        wheels = _join(whole, _without_sdists(resolved))
    built = trees.locked(cases)
    for platform in problem.manifest.platforms:
        minors = [minor for where, minor in cases if where == platform]
        given = python_packages(conda.get(platform, ()))
        there = {
            minor: {**given, **{name: wheel.version for name, (wheel, _) in choice.items()}}
            for minor, choice in zip(minors, resolved.get(platform, ()), strict=True)
        }
        if rows := tuple(compiled.rows(platform, there, problem.manifest.on(platform).wheels)):
            built[platform] = (*built.get(platform, ()), *rows)
    if any(not is_wheel(row[0].file) for choices in resolved.values() for choice in choices for row in choice.values()):
        for platform, rows in locked_sdists(problem, resolved).items():
            built[platform] = (*built.get(platform, ()), *rows)
    return wheels, built


def _with_compiled(
    problem: Problem, compiled: CompiledSdists, cases: Sequence["Case"], resolved: "Resolved"
) -> "Resolved":
    """Return the selected wheels, with those that an index has compiled against the selected torch, and print these."""
    found: dict[str, list[Answer]] = {}
    for platform, choices in resolved.items():
        minors = [minor for where, minor in cases if where == platform]
        taken: dict[str, list[str]] = {}
        for minor, choice in zip(minors, choices, strict=True):
            more = dict(compiled.wheels(platform, minor, choice))
            found.setdefault(platform, []).append({**choice, **more})
            for name in more:
                taken.setdefault(name, []).append(minor)
        for name, served in taken.items():
            some = "" if served == minors else f" for Python {', '.join(served)}"
            where = f" on {platform}" if len(problem.manifest.platforms) > 1 else ""
            problem.access.progress.say(f"{name}: the index has a wheel that fits{some}{where}, nothing is compiled")
    return {**resolved, **found}


def _without_sdists(resolved: Resolved) -> Resolved:
    return {
        platform: [{name: row for name, row in choice.items() if is_wheel(row[0].file)} for choice in choices]
        for platform, choices in resolved.items()
    }


def _resolve(problem: Problem, conda: Mapping[str, Sequence[CondaPackage]]) -> Resolved:
    """Select wheels for each platform and Python minor; the order of the results is fixed."""
    access, manifest = problem.access, problem.manifest
    uv = access.uv()
    cases = _wheel_cases(manifest, conda)
    if cases:
        access.progress.step(f"resolving {manifest.name}", len(cases))
    new = _new_names(problem, cases)
    oldest = min((minor for _, minor in cases), key=Version, default="")
    refreshed = problem.upgrade != () or bool(new)
    # Few cases ask at the same time anyway, but none asks again for a page that is fresh by its headers.
    ahead = bool(cases) and not uv.offline and (refreshed or len(cases) > _WORKERS)
    asked = ask_new(uv, manifest, oldest, problem.old) if ahead and problem.old and new is not None else None
    try:
        if ahead and asked is None:
            _require_alone(problem, cases, new or ())
            asked = ask_all(uv, manifest, oldest, refresh=refreshed)
        return _answers(problem, conda, cases, uv, asked)
    except _UnsolvedError as unsolved:
        if not (refreshed or uv.offline):  # a page that is fresh by its headers may lack a release of this minute
            asked = ask_all(uv, manifest, oldest, refresh=True)
            with contextlib.suppress(_UnsolvedError):
                return _answers(problem, conda, cases, uv, asked)
        error = unsolved.error
        # A hint names its cause: a held file that no index has.
        explained = problem.limits.explain and not error.hint
        raise (_explained(problem, conda, *unsolved.case, error, new or ()) if explained else error) from None


class _UnsolvedError(Exception):
    """A case without a solution.

    Attributes:
        case: The platform and the Python minor.
        error: The error of uv.
    """

    def __init__(self, case: Case, error: NoSolutionError) -> None:
        super().__init__()
        self.case = case
        self.error = error


def _new_names(problem: Problem, cases: Sequence[Case]) -> set[str] | None:
    """Return the requests that the old lock has no package for; None where more than those may be new."""
    old = problem.old
    if old is None or problem.upgrade != () or problem.limits.exclude_newer:
        return None
    return new_names(problem.manifest, old)[0] if all(old.wheels_for(*case) for case in cases) else None


def _require_alone(problem: Problem, cases: Sequence[Case], names: Iterable[str]) -> None:
    """Refuse new requests one of which has no solution without the others, before all are tried together.

    Raises:
        _UnsolvedError: One has none.
    """
    limits, old, uv = problem.limits, problem.old, problem.access.uv()
    uv.refresh = True

    def ask(case: Case) -> None:
        here = problem.manifest.on(case[0])
        for name in sorted(here.wheels.keys() & {*names}):
            alone = replace(here, wheels={name: here.wheels[name]})
            kept = [row for row in (_kept(old, case[0]) if old else ()) if row.name == normalize(name)]
            uv.resolve(alone, *case, kept, (), {}, limits.exclude_newer, builds=limits.ask_backends)

    _for_each(ask, cases if names else ())


def _answers(
    problem: Problem,
    conda: Mapping[str, Sequence[CondaPackage]],
    cases: Sequence[Case],
    uv: Uv,
    asked: set[str] | None,
) -> Resolved:
    """Select wheels for each case, from uv's cache where its answer is surely the same as the indexes'.

    Args:
        problem: The problem.
        conda: The conda packages by platform.
        cases: The platforms and Python minors.
        uv: uv with the user's settings.
        asked: The packages whose pages this command has asked for; None to ask the indexes in each case.

    Raises:
        _UnsolvedError: A case has no solution.
    """
    manifest, old, limits = problem.manifest, problem.old, problem.limits
    found: dict[Case, Answer] = {}
    lacking: set[str] = set()

    def ask(case: Case, uv: Uv) -> Answer:
        platform, minor = case
        kept = _kept(old, platform) if old else ()
        given, newest = python_packages(conda.get(platform, ())), limits.exclude_newer
        here, upgrade = manifest.on(platform), problem.upgrade
        return uv.resolve(here, platform, minor, kept, upgrade, given, newest, builds=limits.ask_backends)

    def look(case: Case) -> None:
        with contextlib.suppress(NotCachedError, NoSolutionError, NetworkError):
            cached = CachedUv(uv)
            chosen = ask(case, cached)
            kept = [wheel for wheel in (_kept(old, case[0]) if old else ()) if case[1] in wheel.python]
            more = unasked(cached.pages, [wheel for wheel, _ in chosen.values()], kept, asked or ())
            lacking.update(more or ())
            if more == set():
                settle(case, chosen)

    def settle(case: Case, chosen: Answer) -> None:
        found[case] = chosen
        read(chosen)
        problem.access.progress.advance()

    with _reading_ahead(problem) as read:
        first = list({platform: (platform, minor) for platform, minor in cases}.values())  # one of each platform
        for batch in (first, cases) if asked is not None else ():
            _for_each(look, [case for case in batch if case not in found])
            if batch is first and asked is not None and lacking - asked:
                asked |= ask_names(uv, manifest, min((minor for _, minor in cases), key=Version), lacking - asked)
            elif not found:  # the cache lacks metadata, or there is no solution
                break
        _for_each(lambda case: settle(case, ask(case, uv)), [case for case in cases if case not in found])
    return {platform: [found[case] for case in cases if case[0] == platform] for platform in manifest.platforms}


@contextlib.contextmanager
def _reading_ahead(problem: Problem) -> Iterator[Callable[[Answer], None]]:
    """Yield a function that reads the requirements of wheels while uv resolves other cases, and wait for their end.

    `_requirements` finds their notes; a request without an answer is repeated there.
    """
    known = {wheel.sha256 for wheels in problem.old.wheels.values() for wheel in wheels} if problem.old else set()
    uv, pool = problem.access.uv(), ThreadPoolExecutor(1)
    reads: list[Future[Any]] = []

    def read(chosen: Answer) -> None:
        wheels = [row for row in chosen.values() if is_wheel(row[0].file)]
        urls = {wheel.sha256: url for wheel, url in wheels if wheel.sha256 not in known}
        known.update(urls)
        if urls:
            reads.append(pool.submit(requirements_at, uv, urls, Silent()))

    try:
        yield read
        while wait(reads, timeout=0.1).not_done:  # as in `_for_each`
            pass
    finally:
        uv.http.stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _for_each(work: Callable[[Case], None], cases: Sequence[Case]) -> None:
    """Call a function for each case, in threads; the first error in the order of the cases ends all work.

    Raises:
        _UnsolvedError: A case has no solution.
    """
    pool = ThreadPoolExecutor(_WORKERS)
    answers = [pool.submit(work, case) for case in cases]
    try:
        for case, answer in zip(cases, answers, strict=True):
            while not answer.done():
                wait([answer], timeout=0.1)  # handles a signal that arrives just as the wait begins
            try:
                answer.result()
            except NoSolutionError as error:
                raise _UnsolvedError(case, error) from error
    finally:  # after Ctrl-C or an error, cancel waiting work and stop running work
        pool.shutdown(wait=False, cancel_futures=True)
        while any(answer.running() for answer in answers):
            process.end_all()
            time.sleep(0.02)


def _kept(old: Lock, platform: str) -> tuple[Wheel, ...]:
    """Return the wheels of a lock, and its source archives as if they were wheels: their versions stay, too."""
    archives = (tree for tree in old.trees.get(platform, ()) if tree.file)
    rows = (
        Wheel(tree.name, tree.version, tree.file, tree.digest, tree.size, tree.python, tree.requires)
        for tree in archives
    )
    return (*old.wheels.get(platform, ()), *rows)


def _explained(
    problem: Problem,
    conda: Mapping[str, Sequence[CondaPackage]],
    platform: str,
    minor: str,
    error: NoSolutionError,
    new: Iterable[str],
) -> NoSolutionError:
    """Return the error of one platform and Python minor with its cause; the requests that are new come first."""
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
        frozenset(new),
        frozenset(row.name for row in problem.access.facts().torch_packages.rows),
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
    """Return the requirements of wheels by sha256, from the old lock or their metadata; None for all if unknown.

    Raises:
        NetworkError: Those of some wheels can't be read. An error, since a lock holds them of all wheels or of none.
    """
    known = {wheel.sha256: wheel.requires for wheel in old if wheel.requires is not None}
    asked = {digest: url for digest, url in urls.items() if digest not in known}
    if not asked:
        return known
    problem.access.progress.step("reading the metadata of wheels", len(asked))
    found = {**known, **requirements_at(problem.access.uv(), asked, problem.access.progress)}
    unread = sorted(file_at(url) for digest, url in asked.items() if found[digest] is None)
    if unread and any(found[digest] is not None for digest in urls):
        raise NetworkError(
            f"can't read the requirements of {some_of(unread, 3)}",
            hint="run the same command once without `--offline`" if problem.access.offline else CHECK_INDEX,
        )
    return found
