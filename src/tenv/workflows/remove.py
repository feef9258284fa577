"""Remove an environment."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tenv.environment import MARKER
from tenv.errors import EnvironmentMissingError
from tenv.files import exclusive, remove_tree
from tenv.workflows.context import Context

__all__ = ["Removed", "remove_environment"]


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed.

    Attributes:
        prefix: The folder.
        bytes: The bytes that it held, by its own account.
    """

    prefix: Path
    bytes: int


def remove_environment(
    context: Context, target: str, prefix: Path | None, *, wait: bool, say: Callable[[str], None]
) -> Removed:
    """Remove an environment that tenv made.

    Raises:
        EnvironmentMissingError: There is none.
        ForeignFolderError: The folder is not tenv's.
    """
    environment = context.environment(target, prefix)
    if not environment.prefix.is_dir():
        context.places.find(target) if prefix is None else None
        raise EnvironmentMissingError(f"there is no environment `{target}` ({environment.prefix})")
    with exclusive(
        environment.prefix,
        f"tenv remove {target}",
        lambda sentence: say(f"waiting: {sentence}"),
        None if wait else 0,
    ):
        state = environment.state()
        remove_tree(environment.prefix, MARKER)
    return Removed(environment.prefix, state.bytes if state else 0)
