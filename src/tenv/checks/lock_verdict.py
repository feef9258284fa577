"""The lock of a target, read once and held against its manifest once."""

from dataclasses import dataclass
from pathlib import Path

from tenv.checks.rules.interface import Severity
from tenv.checks.rules.toolkit import check_lock
from tenv.core.errors import LockCorruptError, LockMissingError, LockStaleError, TenvError
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock, read_lock
from tenv.sources.staleness import differences
from tenv.targets.search import Target

__all__ = ["JudgedLock", "judge_lock"]


@dataclass(frozen=True, slots=True)
class JudgedLock:
    """A lock that was read and judged.

    Attributes:
        path: Its file.
        lock: The lock; None when there is none that can be read.
        faults: Why it does not do, one sentence each: it does not satisfy the manifest, or its packages do not fit
            together.
        error: Why there is none that can be read.
        unsuited: How many of the first faults say that it does not satisfy the manifest.
    """

    path: Path
    lock: Lock | None
    faults: tuple[str, ...] = ()
    error: TenvError | None = None
    unsuited: int = 0

    def require(self, target: Target) -> Lock:
        """Return the lock if it satisfies the manifest.

        Raises:
            LockMissingError, LockCorruptError: There is none that can be read.
            LockStaleError: It no longer satisfies the manifest.
        """
        if self.lock is None:
            assert self.error is not None  # noqa: S101 (one of the two is there)
            raise self.error
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
            frozen: Take it where it satisfies the manifest, whatever the rules say of its packages.
            kept: Take it whatever the manifest says: the environment was made from it before.
            written: A missing lock, or one that no longer satisfies the manifest, may be made anew.

        Returns:
            The lock; None where it is to be made anew.

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


def judge_lock(target: Target, read: bytes | TenvError | None = None, path: Path | None = None) -> JudgedLock:
    """Return the lock of a target with what is to be said against it; a file that can't be read is no error here.

    Args:
        target: The target.
        read: The bytes of the file or why there are none, where the caller has read it.
        path: The file; that of the target when None.
    """
    path = path or target.lock_file
    if isinstance(read, TenvError):
        return JudgedLock(path, None, error=read)
    try:
        lock = read_lock(path, target.name) if read is None else parse_lock(read, str(path), target.name)
    except (LockMissingError, LockCorruptError) as error:
        return JudgedLock(path, None, error=error)
    errors = [finding for finding in check_lock(lock) if finding.severity is Severity.ERROR]
    told = (f"{row.subject} {row.message} ({row.code})" for row in errors)
    unsuited = differences(lock, target.manifest)
    return JudgedLock(path, lock, (*unsuited, *told), unsuited=len(unsuited))
