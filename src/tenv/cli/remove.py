"""``tenv remove`` and ``tenv clean``."""

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command, prefix_option, target_argument
from tenv.cli.output import Result, Voice, format_bytes, is_terminal, print_table
from tenv.core.errors import CancelledError, UnknownTargetError, UsageError
from tenv.targets.sections import SECTIONS

if TYPE_CHECKING:
    from tenv.project.context import Context


@command("remove", short_help="Remove an environment.")
@target_argument
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@prefix_option
@click.option("--no-wait", is_flag=True, help="End with status 8 if another process uses the environment.")
@click.option("--yes", "-y", is_flag=True, help="Remove the environment of the default target without a question.")
@click.option("--dry-run", is_flag=True, help="Report what would be removed and which built torch breaks, no more.")
def remove(
    voice: Voice, *, target: str | None, packages: tuple[str, ...], prefix: Path | None, no_wait: bool, yes: bool,
    dry_run: bool,
) -> Result:  # fmt: skip
    """Remove the environment of TARGET with all its files. tenv refuses a folder that it did not create.

    With PACKAGEs, take them out of the target, as `tenv drop`; the environment stays.

    Without TARGET, it is the environment in the folder of --prefix, or that of the default target: tenv asks first on
    a terminal, and needs --yes without one. Other environments stay.

    It names each torch that `tenv build` made with the environment and that can't be imported without it.
    """
    from tenv.cli.edit import drop_packages
    from tenv.project.context import Context
    from tenv.verbs.edited_target import is_package_of_default
    from tenv.verbs.remove import remove_environment

    context = Context()
    if target is not None and packages:
        _require_packages(context, (target, *packages), alone=bool(prefix or no_wait or yes or dry_run))
        return drop_packages(voice, (target, *packages))
    if target is None:
        target = _of_prefix(context, prefix) if prefix else context.default_target()
        if not (prefix or yes or dry_run):
            _ask(context, target, voice)
    try:
        removed = remove_environment(context, target, prefix, wait=not no_wait, say=voice.say, dry_run=dry_run)
    except UnknownTargetError as error:
        if not (prefix or no_wait or yes or dry_run) and is_package_of_default(context, target):
            return drop_packages(voice, (target,))
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


def _require_packages(context: "Context", words: tuple[str, ...], *, alone: bool) -> None:
    """Refuse targets in the place of packages, and options that are for an environment alone.

    Args:
        context: The context of the verb.
        words: The words after `tenv remove`.
        alone: Whether such an option is given.

    Raises:
        UsageError: There is one of them.
    """
    names = set(context.places.names())
    if targets := [word for word in words[1:] if word in names]:
        lines = ", then ".join(f"`tenv remove {shlex.quote(word)}`" for word in (words[0], *targets))
        raise UsageError(f"`tenv remove` removes one environment, and `{targets[0]}` is a target", hint=lines)
    if alone:
        hint = f"`{shlex.join(['tenv', 'drop', *words])}` takes {shlex.join(words[1:])} out of the target"
        raise UsageError("the options of `tenv remove` are for environments, not for packages", hint=hint)


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


def _source_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add an option for each source that has a cache."""
    for section in reversed(SECTIONS):
        if section.cache:
            function = click.option(f"--{section.key}", is_flag=True, help=section.cache)(function)
    return function


@command("clean", short_help="Show the size of the caches, and empty them.")
@click.option("--leftovers", is_flag=True, help="Remove files that interrupted commands left.")
@_source_options
@click.option("--all", "everything", is_flag=True, help="Empty all caches and remove leftovers.")
def clean(voice: Voice, *, leftovers: bool, everything: bool, **named: bool) -> Result:  # noqa: ARG001
    """Show the size of the caches. With an option, empty them. Environments do not change."""
    from tenv.project.context import Context
    from tenv.verbs.remove import clean_caches

    keys = [key for key, wanted in named.items() if wanted or everything]
    rows = clean_caches(Context(), keys, leftovers=leftovers or everything, notes=everything)
    data = [
        {"name": row.name, "path": str(row.path), "bytes": row.bytes, "freed": row.freed}
        | {"left": [str(path) for path in row.left]}
        for row in rows
    ]

    def show() -> None:
        print_table(
            ("CACHE", "SIZE", "", "FOLDER"),
            [(row.name, format_bytes(row.bytes), "freed" if row.freed else "", row.path) for row in rows],
        )

    options = ", ".join(f"`--{key}`" for key in named)
    left = [f"left, since tenv did not make it: {path}" for row in rows for path in row.left]
    hint = (
        []
        if left or any(row.freed for row in rows)
        else [f"`tenv clean --leftovers`, {options} or `--all` empties them"]
    )
    return Result(data, text=show, summary=[*left, *hint])
