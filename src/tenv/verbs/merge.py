"""Merge two locks of one target by solving again, as git's merge driver or after a conflict."""

import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import LockConflictError, LockCorruptError, ManifestError, TenvError, UsageError
from tenv.core.file_content import read_text
from tenv.core.files import read_regular, write_atomic
from tenv.core.git import Repository, find_repository
from tenv.locks.difference import Difference
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock
from tenv.locks.three_way import begin_with
from tenv.project.context import Context
from tenv.sources.interface import SolveOptions
from tenv.targets.search import Origin, Place, SearchPath, Target
from tenv.verbs.diff import difference_of
from tenv.verbs.lock import lock_target
from tenv.verbs.lock_place import require_kept

ATTRIBUTES = "locks/*.lock merge=tenv"
"""The line of ``.gitattributes`` that makes git merge locks with tenv."""

_MARKS = re.compile(rb"^(<<<<<<<|>>>>>>>) ", re.MULTILINE)
_BROKEN = b"<<<<<<< in conflict\n"
_HEADS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD")


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge."""

    path: str
    """The lock's path in the repository."""
    lock: Lock
    """The merged lock."""
    difference: Difference
    """Its difference from our side."""


@dataclass(frozen=True, slots=True)
class _Sides:
    """The three versions of a lock file; a missing ancestor is empty."""

    base: bytes
    ours: bytes
    theirs: bytes


def merge_for_git(context: Context, base: Path, ours: Path, theirs: Path, path: str) -> Merged:
    """Merge as git's merge driver: write the result to `ours`; on failure, both sides with conflict markers.

    Args:
        context: The context of the verb.
        base: The file with the common ancestor (``%O``); it may be empty.
        ours: The file with our side (``%A``), which receives the result.
        theirs: The file with their side (``%B``).
        path: The lock's path in the repository (``%P``).

    Raises:
        TenvError: The merge failed. Git reports a conflict on any status other than 0.
    """
    sides = _Sides(*(read_regular(file) for file in (base, ours, theirs)))
    try:
        repository = find_repository(Path.cwd(), context.environ)
        with _merged_manifests(repository, path, sides) as (folder, conflicts):
            merged = _merge(context, folder, path, sides, conflicts)
    except BaseException as error:
        # Whole sides, not lines: a lock is never merged by hand, and no command reads this file as a lock.
        marked = (b"<<<<<<< ours\n", sides.ours, b"=======\n", sides.theirs, b">>>>>>> theirs\n")
        ours.write_bytes(b"".join(marked))
        if isinstance(error, TenvError):
            error.hint = f"{error.hint}; then `tenv merge-driver {path}`".removeprefix("; then ")
        raise
    ours.write_bytes(merged.lock.text)
    return merged


def merge_in_conflict(context: Context, file: Path) -> Merged:
    """Merge a lock in conflict, with the manifests of the work tree.

    Raises:
        UsageError: The file is not in conflict.
        TenvError: The merge failed; the file is unchanged.
    """
    repository = find_repository(file.absolute().parent, context.environ)
    path = repository.relative(file) or str(file)
    ours, theirs = repository.read(":2", path), repository.read(":3", path)
    if ours is None or theirs is None:
        raise UsageError(
            f"{path} is not in conflict, or one side has removed it",
            hint="`git status` lists the files in conflict",
        )
    project = (repository.folder / path).parent.parent
    conflicts = [
        str(manifest.relative_to(repository.folder))
        for manifest in sorted((project / "manifests").glob("*.toml"))
        if _MARKS.search(read_regular(manifest))
    ]
    merged = _merge(context, project, path, _Sides(repository.read(":1", path) or b"", ours, theirs), conflicts)
    write_atomic(repository.folder / path, merged.lock.text)
    return merged


def _merge(context: Context, project: Path, path: str, sides: _Sides, conflicts: list[str]) -> Merged:
    """Solve again for the manifests of a folder, starting from the packages of both sides."""
    require_kept(Path(path), f"tenv merge-driver {shlex.quote(path)}")
    ours, theirs = parse_lock(sides.ours, f"{path} (ours)"), parse_lock(sides.theirs, f"{path} (theirs)")
    if ours.target != theirs.target:
        raise LockCorruptError(
            f"{path}: one side is the lock of `{ours.target}`, the other is the lock of `{theirs.target}`"
        )
    others = [place for place in context.places.places if place.origin is not Origin.PROJECT]
    places = SearchPath(project, (Place(Origin.PROJECT, project), *others), context.places.data)
    target = _find(places, ours.target, path, conflicts)
    start = begin_with(_base(sides.base, path), ours, theirs)
    with tempfile.TemporaryDirectory(prefix="tenv-") as name:
        home = Path(name) / "merged.lock"
        locked = lock_target(
            replace(context, places=places),
            replace(target, lock_file=home, lock_home=home),
            limits=SolveOptions(ask_backends=False),  # a merge of a stranger's branch runs no code that it names
            start=start,
        )
    return Merged(path, locked.lock, difference_of(context, ours, locked.lock))


def _base(text: bytes, path: str) -> Lock | None:
    """Return the common ancestor; None if it is empty or can't be read."""
    try:
        return parse_lock(text, path) if text.strip() else None
    except LockCorruptError:
        return None


def _find(places: SearchPath, name: str, path: str, conflicts: list[str]) -> Target:
    try:
        return places.find(name)
    except ManifestError as error:
        if not conflicts:
            raise
        raise LockConflictError(
            f"{path} can't be merged while {', '.join(conflicts)} is in conflict",
            hint=f"resolve {conflicts[0]} first",
        ) from error


@contextmanager
def _merged_manifests(repository: Repository, path: str, sides: _Sides) -> Iterator[tuple[Path, list[str]]]:
    """Yield a folder with the merged manifests of a project, and the names of those in conflict.

    While git merges, the work tree still holds our side (git 2.34 and later merge in memory). So this function merges
    the manifests of the two commits.
    """
    project = Path(path).parent.parent
    folder = (project / "manifests").as_posix()
    base, ours, theirs = _commits(repository, path, sides)
    names = dict.fromkeys(name for commit in (base, ours, theirs) for name in repository.files(commit, folder))
    conflicts = []
    with tempfile.TemporaryDirectory(prefix="tenv-") as temporary:
        home = Path(temporary) / "manifests"
        home.mkdir()
        for name in names:
            if name.endswith(".toml"):
                before, mine, other = (repository.read(commit, name) for commit in (base, ours, theirs))
                text = other if mine in (before, other) else mine if other == before else None
                if mine is not None and other is not None and text is None:
                    text = repository.merge_texts(mine, before or b"", other)
                    if text is None:
                        conflicts.append(name)
                        text = _BROKEN
                if text is not None:
                    (home / Path(name).name).write_bytes(text)
        yield Path(temporary), conflicts


def _commits(repository: Repository, path: str, sides: _Sides) -> tuple[str, str, str]:
    """Return the commits of the three versions of a lock.

    Git passes no commits to a merge driver (before 2.44 not even their labels), so this function searches: our side is
    HEAD; the other side is a head with the same text, or the commit that added it.

    Raises:
        UsageError: The search found no commits.
    """
    theirs = _holder(repository, path, sides.theirs, repository.heads(_HEADS))
    ours = _holder(repository, path, sides.ours, ("HEAD",))
    if ours is None or theirs is None:
        raise UsageError(
            f"git does not report the commits of the two sides of {path}, so tenv can't read their manifests",
            hint="finish the merge of the other files",
        )
    fork = (repository.ask("merge-base", ours, theirs) or "").strip()
    near = [commit for commit in (f"{theirs}^", fork) if commit]
    return _holder(repository, path, sides.base, near) or fork or ours, ours, theirs


def _holder(repository: Repository, path: str, text: bytes, candidates: Sequence[str]) -> str | None:
    """Return a commit with a text at a path: one of the candidates, else the latest commit that added it."""
    for commit in candidates:
        if repository.read(commit, path) == text:
            return commit
    return next((commit for commit in repository.bringers(path, text) if repository.read(commit, path) == text), None)


@dataclass(frozen=True, slots=True)
class Installed:
    """The result of `install_driver`."""

    driver: str
    """The command that git runs."""
    attributes: Path
    """The ``.gitattributes`` file."""
    written: bool
    """Whether this call added the line."""


def install_driver(context: Context) -> Installed:
    """Configure the git repository of the working folder to merge locks with tenv.

    Raises:
        UsageError: There is no git repository, or its configuration can't be written.
    """
    repository = find_repository(Path.cwd(), context.environ)
    own = "tenv" if process.find("tenv", context.environ.get("PATH")) else f"{shlex.quote(sys.executable)} -P -m tenv"
    driver = f"{own} merge-driver %O %A %B %P"
    settings = {
        "merge.tenv.name": "tenv: solve a lock again instead of merging its lines",
        "merge.tenv.driver": driver,
        "merge.tenv.recursive": "binary",  # an ancestor of two merge bases needs no solve
    }
    for name, value in settings.items():
        if repository.ask("config", "--local", name, value) is None:
            raise UsageError(f"git can't write `{name}` to the configuration of {repository.folder}")
    project = context.places.project or repository.folder
    file = project / ".gitattributes"
    there = repository.ask("check-attr", "merge", "--", str(project.resolve() / "locks" / "any.lock")) or ""
    written = not there.rstrip().endswith(": tenv")
    if written:
        text = read_text(file) if file.is_file() else ""
        write_atomic(file, f"{text.rstrip()}\n{ATTRIBUTES}\n".lstrip())
    return Installed(driver, file, written)
