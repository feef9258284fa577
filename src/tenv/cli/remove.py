"""``tenv remove``."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command, prefix_option, target_argument
from tenv.cli.output import Result, Voice, format_bytes, is_terminal
from tenv.core.errors import CancelledError, UnknownTargetError, UsageError

if TYPE_CHECKING:
    from tenv.project.context import Context

__all__ = ["remove"]


@command("remove", short_help="Remove an environment.")
@target_argument
@prefix_option
@click.option("--no-wait", is_flag=True, help="End with status 8 if another process uses the environment.")
@click.option("--yes", "-y", is_flag=True, help="Remove the environment of the default target without a question.")
@click.option("--dry-run", is_flag=True, help="Report what would be removed and which built torch breaks, no more.")
def remove(voice: Voice, *, target: str | None, prefix: Path | None, no_wait: bool, yes: bool, dry_run: bool) -> Result:
    """Remove the environment of TARGET with all its files. tenv refuses a folder that it did not create.

    Without TARGET, it is the environment in the folder of --prefix, or that of the default target: tenv asks first on
    a terminal, and needs --yes without one. Other environments stay.

    It names each torch that `tenv build` made with the environment and that can't be imported without it.
    """
    from tenv.project.context import Context
    from tenv.verbs.remove import remove_environment

    context = Context()
    if target is None:
        target = _of_prefix(context, prefix) if prefix else context.default_target()
        if not (prefix or yes or dry_run):
            _ask(context, target, voice)
    try:
        removed = remove_environment(context, target, prefix, wait=not no_wait, say=voice.say, dry_run=dry_run)
    except UnknownTargetError as error:
        raise UnknownTargetError(
            f"{error.message}: `tenv remove` removes environments",
            hint=f"`tenv drop {context.default_word()} {shlex.quote(target)}` takes a package out of a target; "
            f"{error.hint}",
        ) from error
    data = {
        "target": target,
        "prefix": str(removed.prefix),
        "bytes": removed.bytes,
        "removed": removed.removed,
        "breaks": [{**torch.to_json(), "environment": str(place)} for torch, place in removed.breaks],
    }
    done = "removed" if removed.removed else "would remove"
    lines = [f"{done} {removed.prefix} ({format_bytes(removed.bytes)})"]
    if removed.removed and os.environ.get("TENV_PREFIX") == str(removed.prefix):
        lines.append("it is active in this shell, which finds other programs now: `tenv deactivate`")
    return Result(data, summary=lines)


def _of_prefix(context: "Context", prefix: Path) -> str:
    """Return the target of the environment in a folder; the name of the folder where its state can't be read."""
    state = context.environment("", prefix).state()
    return (state.target if state else "") or prefix.name


def _ask(context: "Context", target: str, voice: Voice) -> None:
    """Ask before the environment of a target that was not typed is removed.

    Raises:
        UsageError: There is no terminal to ask on.
        CancelledError: The answer is no.
    """
    prefix = context.environment(target, None).prefix
    if not prefix.is_dir():  # the error says so
        return
    if voice.json or voice.quiet or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        hint = f"`tenv remove {shlex.quote(target)}` removes it"
        raise UsageError(f"no TARGET is given; the default one has the environment {prefix}", hint=hint)
    try:
        agreed = click.confirm(f"Remove {prefix}, the environment of the default target {target}?", err=True)
    except click.Abort:  # Ctrl-C, or the end of the input
        agreed = False
    if not agreed:
        raise CancelledError("nothing was removed")
