"""Files that the user names for the output of a command: a file of another kind is not overwritten."""

from collections.abc import Callable
from pathlib import Path

from tenv.core.errors import FileExistsAlreadyError, UsageError


def require_output(path: Path, option: str, what: str, is_one: Callable[[Path], bool]) -> None:
    """Refuse standard output, which would get a file that may be cut off, and a file of another kind.

    Args:
        path: The file.
        option: The option that names it.
        what: The kind of the file, such as ``a bundle``.
        is_one: Returns whether a regular file is of that kind, so that it is written anew.

    Raises:
        UsageError: It is ``-``.
        FileExistsAlreadyError: It exists and is of another kind.
    """
    if str(path) == "-":
        raise UsageError(f"{what} is written to a file, not to standard output", hint=f"`{option} FILE` names it")
    if path.exists() and not (path.is_file() and is_one(path)):
        raise FileExistsAlreadyError(f"{path} exists, and is not {what}", hint=f"`{option} FILE` names another file")
