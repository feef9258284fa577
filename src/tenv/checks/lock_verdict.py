"""Judge a target's lock against its manifest; each is read once."""

from collections.abc import Sequence
from pathlib import Path

from tenv.checks.rules.interface import Severity
from tenv.checks.rules.toolkit import check_lock
from tenv.core.dataclass import dataclass
from tenv.core.errors import LockCorruptError, LockMissingError, LockStaleError, TenvError
from tenv.locks.lock import Lock
from tenv.locks.lock_features import features_of, part
from tenv.locks.lock_file import parse_lock, read_lock
from tenv.sources.interface import differences
from tenv.targets.search import Target


@dataclass(frozen=True, slots=True)
class JudgedLock:
    """A lock that was read and judged."""

    path: Path
    """Its file."""
    lock: Lock | None
    """The lock; None if there is no readable one."""
    faults: tuple[str, ...] = ()
    """Why it can't be used, one sentence each: it does not satisfy the manifest, or its packages do not fit
    together."""
    error: TenvError | None = None
    """Why there is no readable lock."""
    unsuited: int = 0
    """How many of the first faults are about satisfying the manifest."""
    lacking: tuple[str, ...] = ()
    """The requested features that it has no file of."""

    def require(self, target: Target) -> Lock:
        """Return the lock if it satisfies the manifest.

        Raises:
            LockMissingError, LockCorruptError: There is no readable lock.
            LockStaleError: The lock does not satisfy the manifest.
        """
        if self.lock is None:
            assert self.error is not None  # noqa: S101 (one of the two is there)
            raise self.error
        if self.lacking:
            named = ",".join(self.lacking)
            raise LockStaleError(
                f"{self.path} was made without the {_features(self.lacking)}",
                hint=f"`tenv lock {target.name}` adds what is missing; `tenv create {target.name}` without "
                f"`--with {named}` installs the rest",
            )
        if self.faults:
            listed = "".join(f"\n  {line}" for line in self.faults)
            raise LockStaleError(
                f"{self.path} does not satisfy its manifest:{listed}",
                hint=f"`tenv lock {target.name}` updates the lock",
            )
        return self.lock

    def usable(self, target: Target, *, frozen: bool, written: bool, kept: bool = False) -> Lock | None:
        """Return the lock to install.

        Args:
            target: The target.
            frozen: Accept the lock if it satisfies the manifest, whatever the rules find in its packages.
            kept: Accept the lock even if it does not satisfy the manifest: the environment was created from it.
            written: A missing lock, or one that does not satisfy the manifest, may be solved again.

        Returns:
            The lock; None if it has to be solved again.

        Raises:
            LockMissingError, LockCorruptError, LockStaleError: As `require`.
        """
        if self.lock is not None and (kept or (frozen and not self.unsuited)):
            return self.lock
        try:
            return self.require(target)
        except (LockMissingError, LockStaleError):
            if frozen or not written:
                raise
            return None


def judge_lock(
    target: Target,
    read: bytes | TenvError | None = None,
    path: Path | None = None,
    features: Sequence[str] | None = None,
) -> JudgedLock:
    """Return the lock of a target with its faults. An unreadable file is not an error here.

    Args:
        target: The target.
        read: The bytes of the file, or why there are none, if the caller has read it.
        path: The file; None for the target's own.
        features: The features to judge and to leave in the lock; None for all of the manifest's.
    """
    path = path or target.lock_file
    if isinstance(read, TenvError):
        return JudgedLock(path, None, error=read)
    try:
        lock = read_lock(path, target.name) if read is None else parse_lock(read, str(path), target.name)
    except (LockMissingError, LockCorruptError) as error:
        return JudgedLock(path, None, error=error)
    errors = [finding for finding in check_lock(lock) if finding.severity is Severity.ERROR]
    broken = tuple(f"{row.subject} {row.message} ({row.code})" for row in errors)
    manifest, there = target.manifest, features_of(lock)
    if features is not None:
        lock, manifest = part(lock, manifest, features)
    unsuited = differences(lock, manifest)
    # A feature whose requests the target answers too has no file of its own.
    lacking = tuple(name for name in features or () if name not in there) if unsuited else ()
    return JudgedLock(path, lock, (*unsuited, *broken), unsuited=len(unsuited), lacking=lacking)


def _features(names: Sequence[str]) -> str:
    return ("feature " if len(names) == 1 else "features ") + ", ".join(f"`{name}`" for name in names)
