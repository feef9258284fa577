"""Compare two locks: files, targets, or files of git revisions."""

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import LockMissingError, TenvError, UnknownTargetError, UsageError
from tenv.core.git import Repository, find_repository
from tenv.locks.difference import Difference, compare
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock, read_lock, read_lock_bytes
from tenv.project.context import Context

_HEAD = "HEAD"


@dataclass(frozen=True, slots=True)
class Compared:
    """Two locks and their difference."""

    old: str
    """The name of the first lock."""
    new: str
    """The name of the second lock."""
    difference: Difference
    """Their difference."""


def diff(
    context: Context, old: str, new: str | None, revision: str | None = None, platforms: Sequence[str] = ()
) -> Compared:
    """Compare two locks.

    Args:
        context: The context of the verb.
        old: A lock file, a target, or ``REVISION:PATH``.
        new: The same; None to compare a git revision of `old` with its present file.
        revision: The git revision to use where `new` is None; None for the last commit.
        platforms: The platforms to compare; empty for all that both locks serve.

    Raises:
        UsageError: A name is not a lock, or there is no git repository.
        LockMissingError, LockCorruptError: A lock is missing or can't be read.
    """
    if new is not None and revision is not None:
        raise UsageError("`--rev` replaces OLD, so it takes one lock, not two")
    if new is None:
        before, now = _past(context, old, revision or _HEAD), _read(context, old)
    else:
        before, now = _read(context, old), _read(context, new)
    _check_platforms(before[1], now[1], platforms)
    return Compared(before[0], now[0], difference_of(context, before[1], now[1], platforms))


def difference_of(context: Context, old: Lock, new: Lock, platforms: Sequence[str] = ()) -> Difference:
    """Compare two locks with the tables of the user."""
    return compare(old, new, context.facts(), platforms)


def _check_platforms(old: Lock, new: Lock, platforms: Sequence[str]) -> None:
    both = [name for name in old.platforms if name in new.platforms]
    for name in platforms:
        if name not in both:
            raise UsageError(f"`--platform {name}`: the locks have in common {', '.join(both) or 'no platform'}")


def _read(context: Context, name: str) -> tuple[str, Lock]:
    """Return a lock and its name: a file, a target, or a file of a git revision."""
    if Path(name).is_file():
        return name, parse_lock(read_lock_bytes(Path(name), "TARGET"), name)
    revision, colon, path = name.partition(":")
    if colon and revision and path:
        repository = find_repository(Path.cwd(), context.environ)
        return name, _read_revision(repository, revision, path)
    if "/" in name or name.endswith(".lock"):
        raise LockMissingError(f"there is no lock file {name}")
    target = context.places.find(name)
    return name, read_lock(target.lock_file, target.name)


def _past(context: Context, name: str, revision: str) -> tuple[str, Lock]:
    """Return the lock file NAME, or the lock of target NAME, of a git revision."""
    file = Path(name)
    if not file.is_file():
        if "/" in name or name.endswith(".lock"):
            raise LockMissingError(f"there is no lock file {name}")
        file = _target_lock(context, name)
    try:
        repository = find_repository(file.resolve().parent, context.environ)
    except TenvError as error:
        raise UsageError(error.message, hint="`tenv diff OLD NEW` compares two files or targets") from None
    path = repository.relative(file)
    return f"{revision}:{path}", _read_revision(repository, revision, str(path))


def _target_lock(context: Context, name: str) -> Path:
    """Return the lock file of a target; a name that is a git revision is a usage error of its own."""
    try:
        return context.places.find(name).lock_file
    except UnknownTargetError as error:
        with contextlib.suppress(TenvError):
            if find_repository(Path.cwd(), context.environ).commit(name):
                error.hint = f"`tenv diff --rev {shlex.quote(name)}` compares with that revision"
        raise


def _read_revision(repository: Repository, revision: str, path: str) -> Lock:
    shown = f"{revision}:{path}"
    if repository.commit(revision) is None:
        if revision == _HEAD:
            raise UsageError("git has no commit here yet", hint=f"`git add {path} && git commit` makes one")
        raise UsageError(f"git has no revision `{revision}`", hint="`git log --oneline -- locks` lists revisions")
    raw = repository.read(revision, path)
    if raw is None:
        raise LockMissingError(
            f"revision {revision} has no {path}", hint=f"`git log --oneline -- {path}` lists revisions that have it"
        )
    return parse_lock(raw, shown)
