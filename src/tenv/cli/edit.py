"""``tenv add`` and ``tenv drop``."""

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import command, offline_option
from tenv.cli.output import Result, Voice, print_findings
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import UnknownTargetError, UsageError
from tenv.core.toml_reader import nearest

if TYPE_CHECKING:
    from tenv.checks.rules.interface import Finding
    from tenv.project.context import Context
    from tenv.verbs.edit_manifest import Edited

__all__ = ["add", "drop"]

_Tell = Callable[[Sequence[Any]], None]

no_create_option = click.option("--no-create", is_flag=True, help="Do not update an existing environment.")


def _source_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add an option for each source of packages."""
    from tenv.targets.sections import SECTIONS

    for section in reversed([section for section in SECTIONS if section.option]):
        said = f"They are {section.noun}s ([{section.name}])."
        function = click.option(f"--{section.option}", "key", flag_value=section.key, help=said)(function)
    return function


@command("add", short_help="Add packages to a manifest, and lock it.")
@click.argument("target")
@click.argument("specs", nargs=-1, metavar="SPEC...")
@_source_options
@no_create_option
@offline_option
def add(
    voice: Voice, *, target: str, specs: tuple[str, ...], key: str | None, no_create: bool, offline: bool
) -> Result:
    """Add each SPEC to the manifest of TARGET, lock it, and update an existing environment.

    Without an option, a package stays in its present section. A new one is a conda package if the target's Python is
    one, else a wheel. An existing range is replaced. Without a solution, tenv writes nothing.
    """
    from tenv.verbs.edit_manifest import add as edit  # late: loads what it needs

    def work(context: "Context", tell: _Tell) -> "Edited":
        _require(context, "add", target, specs)
        return edit(context, target, specs, key, tell, made=not no_create)

    return _edited(voice, work, offline=offline)


@command("drop", short_help="Remove packages from a manifest, and lock it.")
@click.argument("target")
@click.argument("packages", nargs=-1, metavar="PACKAGE...")
@no_create_option
@offline_option
def drop(voice: Voice, *, target: str, packages: tuple[str, ...], no_create: bool, offline: bool) -> Result:
    """Remove each PACKAGE from the manifest of TARGET, lock it, and update an existing environment.

    `PACKAGE = false` drops a request of a parent. `tenv remove TARGET` removes an environment.
    """
    from tenv.verbs.edit_manifest import drop as edit  # late: loads what it needs

    def work(context: "Context", tell: _Tell) -> "Edited":
        _require(context, "drop", target, packages)
        return edit(context, target, packages, tell, made=not no_create)

    return _edited(voice, work, offline=offline)


def _require(context: "Context", verb: str, target: str, packages: Sequence[str]) -> None:
    """Raise an error without a package, or where the first word is no target: the hint takes it for a package."""
    names = [*context.places.names()]
    if packages:
        if target in names or nearest(target, names):  # else the first package stands in its place
            return
        hint = f"`tenv {verb} {context.default_word()} {shlex.join([target, *packages])}`: the target comes first"
        raise UnknownTargetError(f"there is no target `{target}`", hint=hint)
    if target in names:
        raise UsageError(f"no package is given after the target {target}", hint=f"`tenv {verb} {target} PACKAGE`")
    raise UsageError(
        f"`{target}` is no target, and no package is given after it",
        hint=f"`tenv {verb} {context.default_word()} {shlex.quote(target)}`: the target comes first",
    )


def _edited(voice: Voice, work: "Callable[[Context, _Tell], Edited]", *, offline: bool) -> Result:
    from tenv.project.context import Context

    def tell(findings: "Sequence[Finding]") -> None:
        print_findings([finding.to_json() for finding in findings], progress.say, sys.stderr)

    with Terminal(voice) as progress:
        done = work(Context(progress=progress, offline=offline), tell)
    data = {
        "target": done.target.name,
        "manifest": str(done.target.file),
        "section": done.section,
        "lines": list(done.lines),
        "lock": str(done.locked.path),
        "changed": done.locked.changed,
        "prefix": str(done.created.prefix) if done.created else None,
    }
    lines = [f"{done.target.file} [{done.section}]: {line}" for line in done.lines]
    lines.append(f"{done.locked.path} {'written' if done.locked.changed else 'is up to date'}")
    if done.created:
        lines.append(f"{done.target.name} is ready in {done.created.prefix}")
    return Result(data, summary=lines)
