"""``tenv search`` and ``tenv outdated``."""

import shlex
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command, offline_option, target_argument
from tenv.cli.output import Result, Voice, count, print_table
from tenv.cli.progress_bar import Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenv.verbs.published import Outdated, Published

_SHOWN = 10
"""The versions of a package of an index or a channel that are printed."""


@command("search", short_help="List the published versions of a package.")
@click.argument("name")
@target_argument
@click.option("--channel", "channels", multiple=True, metavar="NAME", help="Ask this conda channel, too.")
@click.option("--all", "every", is_flag=True, help=f"Print all versions, not the newest {_SHOWN} of each kind.")
def search(voice: Voice, *, name: str, target: str | None, channels: tuple[str, ...], every: bool) -> Result:
    """Ask the indexes and the channels of TARGET for the versions of package NAME, the newest first.

    FITS is `yes` for a version with files for every platform and Python of TARGET that its manifest accepts, else the
    platforms that it has. NAME may have a range: 'numpy<2'. Without TARGET, it is the default target; where there is
    none, conda-forge is the channel.
    `tenv add TARGET NAME` adds the package.
    """
    from tenv.core.errors import TenvError
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs.published import search_package

    with Terminal(voice) as progress:
        context = Context(progress=progress)
        try:
            chosen = context.find_target(target)
        except TenvError:
            if target:
                raise
            chosen = None
        found = search_package(context, name, chosen, channels)
    label = chosen.name if chosen else ""
    adds = f"tenv add {shlex.quote(label or 'TARGET')} {shlex.quote(name)}"
    summary = [f"{count(len(found), 'version')}; `{adds}` asks for it"]
    return Result([asdict(row) for row in found], text=lambda: _print(found, label, every=every), summary=summary)


def _print(found: "Sequence[Published]", target: str, *, every: bool) -> None:
    rows = []
    for _, group in groupby(found, key=lambda row: (row.kind, row.source)):
        several = list(group)
        shown = several if every else several[:_SHOWN]
        if not any(row.fits for row in shown):  # the newest that fits is what the reader looks for
            shown += [row for row in several[len(shown) :] if row.fits][:1]
        rows += [(row.version, row.kind, _fits(row), row.source) for row in shown]
        if left := len(several) - len(shown):
            rows.append((f"… {left} more", several[0].kind, "", "`--all` prints them"))
    print_table(("VERSION", "KIND", f"FITS {target}".strip(), "SOURCE"), rows)


def _fits(row: "Published") -> str:
    if row.fits:
        return "yes"
    return f"{', '.join(row.platforms)} only" if row.platforms else "no"


@command("outdated", short_help="List the packages of a lock that have newer versions.")
@target_argument
@offline_option
def outdated(voice: Voice, *, target: str | None, offline: bool) -> Result:
    """List the packages of the lock of TARGET with a newer version: allowed by its manifest, or published at all.

    ALLOWED is the version that `tenv update TARGET` locks. Without TARGET, it is the default target.
    """
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs.published import find_outdated

    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=offline)
        chosen = context.find_target(target)
        found = find_outdated(context, chosen)
    moves = [row for row in found if row.locked != row.allowed]
    word = shlex.quote(chosen.name)
    summary = [f"`tenv update {word}` takes {count(len(moves), 'newer version')}"] if moves else []
    summary = summary if found else [f"every package of {chosen.name} has its newest version"]
    return Result([asdict(row) for row in found], text=lambda: _list(found), summary=summary)


def _list(found: "Sequence[Outdated]") -> None:
    rows = [(row.name, ", ".join(row.locked), ", ".join(row.allowed), row.newest or "", row.kind) for row in found]
    if rows:
        print_table(("PACKAGE", "LOCKED", "ALLOWED", "NEWEST", "KIND"), rows)
