"""Compare two locks: files, targets, or what git has of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenv.core.errors import LockMissingError, TenvError, UsageError
from tenv.core.git import Repository, find_repository
from tenv.locks.difference import Difference, compare
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock, read_lock
from tenv.project.context import Context
from tenv.project.user_facts import user_facts

__all__ = ["Compared", "diff", "difference_of"]

_HEAD = "HEAD"


@dataclass(frozen=True, slots=True)
class Compared:
    """Two locks and what lies between them.

    Attributes:
        old: What was named first.
        new: What was named second.
        difference: What lies between them.
    """

    old: str
    new: str
    difference: Difference


def diff(
    context: Context, old: str, new: str | None, revision: str | None = None, platforms: Sequence[str] = ()
) -> Compared:
    """Compare two locks.

    Args:
        context: What every verb is given.
        old: A lock file, a target, or ``REVISION:PATH``; without `new`, the one whose past is asked for.
        new: The same; None to compare what git has with what is there now.
        revision: The git revision to compare with where `new` is None; the last commit when None.
        platforms: The platforms to look at; empty for all that both serve.

    Raises:
        UsageError: The words name no lock, or there is no git repository to look into.
        LockMissingError, LockCorruptError: One of them is not there, or can't be read.
    """
    if new is not None and revision is not None:
        raise UsageError("`--rev` stands in for OLD: name one lock with it, not two")
    if new is None:
        before, now = _past(context, old, revision or _HEAD), _read(context, old)
    else:
        before, now = _read(context, old), _read(context, new)
    _check_platforms(before[1], now[1], platforms)
    return Compared(before[0], now[0], difference_of(context, before[1], now[1], platforms))


def difference_of(context: Context, old: Lock, new: Lock, platforms: Sequence[str] = ()) -> Difference:
    """Compare two locks by the tables of this user."""
    return compare(old, new, user_facts(context), platforms)


def _check_platforms(old: Lock, new: Lock, platforms: Sequence[str]) -> None:
    both = [name for name in old.platforms if name in new.platforms]
    for name in platforms:
        if name not in both:
            raise UsageError(f"`--platform {name}`: both locks serve {', '.join(both) or 'no platform in common'}")


def _read(context: Context, name: str) -> tuple[str, Lock]:
    """Return a lock, and what it is called: a file, a target, or a file of a git revision."""
    if Path(name).is_file():
        return name, parse_lock(Path(name).read_bytes(), name)
    revision, colon, path = name.partition(":")
    if colon and revision and path:
        repository = find_repository(Path.cwd(), context.environ)
        return name, _read_revision(repository, revision, path)
    if "/" in name or name.endswith(".lock"):
        raise LockMissingError(f"there is no lock file {name}")
    target = context.places.find(name)
    return name, read_lock(target.lock_file, target.name)


def _past(context: Context, name: str, revision: str) -> tuple[str, Lock]:
    """Return what a git revision has of a lock file, or of a target's."""
    file = Path(name) if Path(name).is_file() else context.places.find(name).lock_file
    try:
        repository = find_repository(file.resolve().parent, context.environ)
    except TenvError as error:
        raise UsageError(error.message, hint="name two: `tenv diff OLD NEW`") from None
    path = repository.relative(file)
    return f"{revision}:{path}", _read_revision(repository, revision, str(path))


def _read_revision(repository: Repository, revision: str, path: str) -> Lock:
    shown = f"{revision}:{path}"
    if repository.commit(revision) is None:
        raise UsageError(f"git knows no revision `{revision}`", hint="`git log --oneline -- locks` lists some")
    raw = repository.read(revision, path)
    if raw is None:
        raise LockMissingError(f"revision {revision} has no {path}", hint=f"`git log --oneline -- {path}` lists some")
    return parse_lock(raw, shown)
