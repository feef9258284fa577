"""Remove an environment."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tenv.core.errors import EnvironmentMissingError, ForeignFolderError, UsageError
from tenv.core.files import exclusive, remove_tree
from tenv.core.prefix import MARKER
from tenv.environment.state import Status
from tenv.environment.trust import Reason
from tenv.project.context import Context

__all__ = ["Removed", "remove_environment"]


@dataclass(frozen=True, slots=True)
class Removed:
    """The result of `remove_environment`.

    Attributes:
        prefix: The folder.
        bytes: Its size, from its state.
    """

    prefix: Path
    bytes: int


def remove_environment(
    context: Context, target: str, prefix: Path | None, *, wait: bool, say: Callable[[str], None]
) -> Removed:
    """Remove an environment that tenv made.

    Raises:
        EnvironmentMissingError: There is no environment.
        ForeignFolderError: tenv did not create the folder.
    """
    environment = context.environment(target, prefix)
    missing = EnvironmentMissingError(f"there is no environment `{target}` ({environment.prefix})")
    if not environment.prefix.is_dir():
        if prefix is None:
            context.places.find(target)  # reports a misspelled name as such
        raise missing
    if environment.prefix.is_symlink():
        folder = shlex.quote(str(environment.prefix.resolve()))
        hint = f"`tenv remove --prefix {folder} {target}` removes the folder itself"
        raise ForeignFolderError(f"{environment.prefix} is a symbolic link, so tenv does not remove it", hint=hint)
    fault = context.fault_of(environment, target)
    if fault and fault.reason is not Reason.GUTTED:
        error = fault.error()
        error.hint = f"{error.hint}; `rm -r {shlex.quote(str(environment.prefix))}` removes it"
        raise error
    with exclusive(
        environment.prefix,
        f"tenv remove {target}",
        lambda sentence: say(f"waiting: {sentence}"),
        None if wait else 0,
    ):
        if not environment.prefix.is_dir():  # another process removed it during the wait
            raise missing
        state = environment.state()
        if state and state.status is not Status.BROKEN and state.target != target:
            raise UsageError(
                f"{environment.prefix} is an environment of `{state.target}`, not of `{target}`",
                hint=f"`tenv remove --prefix {shlex.quote(str(environment.prefix))} {state.target}` removes it",
            )
        context.registry().forget(environment.prefix)
        remove_tree(environment.prefix, MARKER)
    return Removed(environment.prefix, state.bytes if state else 0)
