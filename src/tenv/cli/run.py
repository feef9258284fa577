"""``tenv run``, ``tenv shell`` and ``tenv gdb``."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import (
    SplitCommand,
    command,
    locked_option,
    named_features,
    not_empty,
    prefix_option,
    target_argument,
)
from tenv.cli.output import Result, Voice
from tenv.core.errors import Exit, UnknownTargetError, UsageError

if TYPE_CHECKING:
    from tenv.project.context import Context
    from tenv.verbs.run import StartPlan

FEATURE_OPTIONS = ("--with", "--features", "--feature", "--extra", "--group")
"""The option of `tenv create` for features, and the words of other tools for it."""

_VALUED = ("--prefix", "--with")
_OWN = (*_VALUED, "--sync", "--no-sync", "--locked", "--json", "--quiet")
"""The options of `tenv run`; the first ones have a value."""

_DEFAULT = "\0"
"""Marks a missing target before ``--``."""


class _WithDefault(click.Command):
    """A command with an optional target before ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the mark for a missing target."""
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            at += 2 if args[at] in _VALUED else 1
        if args[at : at + 1] == ["--"]:
            args = [*args[:at], _DEFAULT, *args[at:]]
        return super().parse_args(ctx, args)


@command(
    "run",
    cls=_WithDefault,
    short_help="Run a program in an environment: tenv run TARGET -- COMMAND.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("target", metavar="[TARGET]", callback=not_empty)
@prefix_option
@locked_option
@click.option("--sync/--no-sync", default=None, help="Update the environment to its lock first, or do not.")
@click.option("--with", "features", metavar="FEATURES", help="The features that it must hold; --sync installs them.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...")
def run_program(
    voice: Voice,
    *,
    target: str,
    prefix: Path | None,
    locked: bool,
    sync: bool | None,
    features: str | None,
    arguments: tuple[str, ...],
) -> Result:
    """Run COMMAND in the environment of TARGET; its exit status and signals are its own.

    Without TARGET (`tenv run -- COMMAND`), it is the default target. `sync = true` in tenv.toml or config.toml
    has the effect of --sync. With --json, print what would be started, and start nothing. An environment that lacks a
    feature of --with is status 8, unless --sync installs it.
    """
    from tenv.project.context import Context
    from tenv.verbs.run import plan_run, require_held

    target = "" if target == _DEFAULT else target
    words = arguments[1:] if arguments[:1] == ("--",) else arguments
    if not words:
        raise UsageError(
            "no command is given",
            hint=f"`tenv run {target or Context().default_word()} -- cmake --version` is an example",
        )
    if arguments[0].partition("=")[0] in _OWN:
        raise _too_late(target, arguments)
    named = named_features(features)
    context = Context(locked=locked)
    if not voice.json and (context.syncs() if sync is None else sync):
        _sync(voice, context, target or None, prefix, named or ())
    try:
        if named:
            require_held(context, target or None, prefix, named)
        plan = plan_run(context, target or None, prefix, words, voice.say)
    except UnknownTargetError as error:
        if not target:  # the default one, which tenv.toml names
            raise
        if target.startswith("-"):
            raise _no_option(context, target, words) from error
        if arguments[:1] == ("--",):  # it stands where a target stands
            raise UnknownTargetError(error.message, hint=_elsewhere(target, error.hint)) from error
        raise UnknownTargetError(error.message, hint=_forms(context, target, words, error.hint)) from error
    return begin(voice, context, plan)


def _too_late(target: str, arguments: Sequence[str]) -> UsageError:
    """Return the error for options of tenv after the target, with the command that has them before it."""
    options, rest = [], [*arguments]
    while rest and rest[0].partition("=")[0] in _OWN:
        options.append(rest.pop(0))
        if options[-1] in _VALUED and rest and rest[0] != "--":
            options.append(rest.pop(0))
    rest = rest[1:] if rest[:1] == ["--"] else rest
    line = shlex.join(["tenv", "run", *options, *filter(None, [target]), "--", *(rest or ["COMMAND"])])
    return UsageError(
        f"`{options[0]}` is an option of tenv, but stands after the target", hint=f"`{line}` has it before the target"
    )


def _no_option(context: "Context", option: str, words: Sequence[str]) -> UsageError:
    """Return the error for an option that `tenv run` does not have; features are installed by `tenv create`."""
    from tenv.cli.other_words import way_of_option  # late: only for an error

    name, _, value = option.partition("=")
    rest = [word for word in (words if value or name not in FEATURE_OPTIONS else words[1:]) if word != _DEFAULT]
    target = rest.pop(0) if rest and rest[0] in context.places.names() else context.default_word()
    rest = rest[1:] if rest[:1] == ["--"] else rest
    run = f"`tenv run {target} -- {shlex.join(rest) or 'COMMAND'}`"
    if name in FEATURE_OPTIONS:
        features = shlex.quote(value or (words[0] if words else "FEATURES"))
        hint = f"`tenv create {target} --with {features}` installs features, then {run} has them"
    else:
        way = way_of_option("run", name, [option, *words])
        hint = way or f"{run} starts a command; `tenv run --help` shows its options"
    return UsageError(f"`tenv run` has no option `{name}`", hint=hint)


def _elsewhere(target: str, nearest: str) -> str:
    """Return a hint for a target that this folder does not have; the active environment may be of another one."""
    prefix = os.environ.get("TENV_PREFIX", "")
    if not prefix or os.environ.get("TENV_TARGET") != target:
        return nearest
    at = shlex.quote(prefix)
    return (
        f"the active environment is of another folder: `tenv run --prefix {at} {target} -- COMMAND` uses it; {nearest}"
    )


def _forms(context: "Context", target: str, words: Sequence[str], nearest: str) -> str:
    """Return a hint with both forms of the command for a first word that is not a target."""
    typed = shlex.join([target, *words])
    forms = f"`tenv run {context.default_word()} -- {typed}` names a target, `tenv run -- {typed}` uses the default"
    return f"{forms}; {nearest}" if nearest.startswith("`tenv targets`") else f"{nearest}; {forms}"


def _sync(voice: Voice, context: "Context", target: str | None, prefix: Path | None, features: Sequence[str]) -> None:
    """Update the environment, with progress on standard error."""
    from tenv.cli.progress_bar import Terminal
    from tenv.verbs.create import sync  # late: loads the modules of `create`

    with Terminal(voice) as progress:
        sync(replace(context, progress=progress), target, prefix, progress.report, features)


@command("shell", short_help="Start a shell with an active environment.")
@target_argument
@prefix_option
@locked_option
def shell(voice: Voice, *, target: str | None, prefix: Path | None, locked: bool) -> Result:
    """Start your shell with the environment of TARGET active; `exit` leaves it.

    With --json, print what would be started, and start nothing.
    """
    from tenv.project.context import Context
    from tenv.verbs.run import plan_shell

    context = Context(locked=locked)
    say: Callable[[str], None] = (lambda _: None) if voice.json else voice.say
    return begin(voice, context, plan_shell(context, target, prefix, say, program_words()))


def program_words() -> list[str]:
    """Return the words that start this tenv from anywhere."""
    program = os.path.abspath(sys.argv[0])  # noqa: PTH100 (a link must stay a link)
    return [sys.executable, "-P", "-m", "tenv"] if program.endswith("__main__.py") else [program]


def begin(voice: Voice, context: "Context", plan: "StartPlan") -> Result:
    """Replace this process by the program of a plan; with ``--json``, return the plan."""
    if not voice.json:
        return Result(status=_status(plan.start()))
    for folder in {Path(file).parent for file in plan.files}:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(plan.to_data(context.environ))


def _status(status: int) -> Exit:
    """Return the exit status of the program (only on Windows, where exec is not available)."""
    return status  # type: ignore[return-value]


@command(
    "gdb",
    short_help="Debug a program in an environment with gdb: tenv gdb TARGET -- COMMAND.",
    cls=SplitCommand,
)
@click.argument("target", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--attach", metavar="PID|NAME", help="Attach to a process, by its id or a part of its command line.")
@click.option("--cuda", is_flag=True, help="Use cuda-gdb, which also stops in kernels.")
@click.option("--gdb-arg", "extra", multiple=True, metavar="ARG", help="An argument of gdb itself, such as -tui.")
@prefix_option
@locked_option
def gdb(
    voice: Voice,
    *,
    target: str | None,
    arguments: tuple[str, ...],
    attach: str | None,
    cuda: bool,
    extra: tuple[str, ...],
    prefix: Path | None,
    locked: bool,
) -> Result:
    """Start COMMAND under gdb in the environment of TARGET; the status is gdb's.

    `py-bt` shows the Python frames. `os.kill(os.getpid(), signal.SIGTRAP)` in a script is a breakpoint. Without
    COMMAND, it is the environment's Python. With --json, print the command and its variables, and start nothing.
    """
    from tenv.project.context import Context
    from tenv.verbs.gdb import GdbRequest, plan_gdb

    if attach and arguments:
        raise UsageError("`--attach` and a COMMAND exclude each other", hint="remove the words after `--`")
    context = Context(locked=locked)
    plan = plan_gdb(context, GdbRequest(target, prefix, arguments, attach, cuda, extra), voice.say)
    return begin(voice, context, plan)
