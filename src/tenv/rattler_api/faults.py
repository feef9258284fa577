"""What rattler and the disk say when something goes wrong, in our words.

rattler's errors have no common base below Exception, so that whoever calls it catches that.
"""

from tenv.core.errors import StorageError

__all__ = ["storage_error", "told"]


def told(error: Exception) -> str:
    """Return an error of rattler, which has a line for each of its causes, as one line."""
    lines = [line.removeprefix("Caused by: ").strip().rstrip(".") for line in str(error).splitlines()]
    return ": ".join(dict.fromkeys(line for line in lines if line)) or type(error).__name__


def storage_error(error: OSError, what: str) -> StorageError:
    """Return the error about a disk that is full or can't be written."""
    where = f" ({error.filename})" if error.filename else ""
    return StorageError(f"{what}: {error.strerror or error}{where}", hint="free some space or choose another folder")
