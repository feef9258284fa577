"""``tenv packages`` and ``tenv tree``."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command, not_empty, of_part, prefix_option, target_argument
from tenv.cli.output import Result, Voice, count, format_bytes, out, print_table
from tenv.core.errors import UnknownTargetError

if TYPE_CHECKING:
    from tenv.project.context import Context
    from tenv.verbs.packages import PackageRow, PackageSet


@contextmanager
def _pointing_to(context: "Context", word: str | None, form: str, does: str) -> Iterator[None]:
    """Add the form of the command for a package to the error about a word that is no target."""
    try:
        yield
    except UnknownTargetError as error:
        default = context.default_word()
        if word is None or default in (word, "TARGET"):
            raise
        hint = f"`{form.format(default, shlex.quote(word))}` {does}; {error.hint}"
        raise UnknownTargetError(error.message, hint=hint) from error


@command("packages", short_help="List the packages of an environment.")
@target_argument
@click.argument("regex", required=False)
@click.option("--sort", type=click.Choice(["name", "size", "kind"]), default="name", help="The order (name).")
@of_part
@click.option("--python", default="", callback=not_empty, help="Those of the lock for this Python, such as 3.12.")
@prefix_option
def packages(
    voice: Voice,  # noqa: ARG001
    *,
    target: str | None,
    regex: str | None,
    sort: str,
    platform: str,
    feature: str,
    python: str,
    prefix: Path | None,
) -> Result:
    """List the packages of the environment of TARGET whose name matches REGEX, or those of the lock.

    The size is that of the installed files, without compiled Python files. Before they are installed, it is that of the
    download, which --json has as `download_bytes` in both cases.
    """
    from tenv.project.context import Context
    from tenv.verbs.packages import find_packages, matching

    context = Context()
    with _pointing_to(context, target, "tenv packages {} {}", "lists the packages of that name"):
        found = find_packages(context, target, prefix, platform, feature, python)
    rows = matching([row for row in found.rows if not feature or feature in row.features], regex)
    if sort == "size":
        rows.sort(key=lambda row: (-(row.bytes or 0), row.name))
    elif sort == "kind":
        rows.sort(key=lambda row: (row.kind, row.name))
    size = format_bytes(sum(row.bytes or 0 for row in rows))
    where = f"installed with {size}" if found.installed else f"locked, not installed; they are downloads of {size}"
    summary = [f"{count(len(rows), 'package')} {where}, by {found.lock}"]
    data = [asdict(row) for row in rows]
    return Result(data, text=lambda: _print(rows, installed=found.installed), summary=summary)


def _print(rows: "Sequence[PackageRow]", *, installed: bool) -> None:
    print_table(
        ("PACKAGE", "VERSION", "KIND", "SIZE" if installed else "DOWNLOAD", "SOURCE"),
        [(row.name, row.version, row.kind, format_bytes(row.bytes) if row.bytes else "", row.source) for row in rows],
    )


@command("tree", short_help="Print the packages as a tree of requirements.")
@target_argument
@click.option("--invert", metavar="PACKAGE", help="Print the packages that require PACKAGE.")
@of_part
@click.option("--python", default="", callback=not_empty, help="Those of the lock for this Python, such as 3.12.")
@prefix_option
def tree(
    voice: Voice,  # noqa: ARG001
    *,
    target: str | None,
    invert: str | None,
    platform: str,
    feature: str,
    python: str,
    prefix: Path | None,
) -> Result:
    """Print the requests of the manifest of TARGET, and below each package its requirements.

    The requirements of a package are printed once; `…` stands for them elsewhere.
    """
    from tenv.project.context import Context
    from tenv.verbs.packages import find_packages, find_row, requirers

    context = Context()
    with _pointing_to(context, target, "tenv tree {} --invert {}", "prints what requires a package"):
        found = find_packages(context, target, prefix, platform, feature, python)
    below: Mapping[str, Sequence[str]]
    if invert:
        below, tops = requirers(found), [find_row(found, invert).name]
    else:
        below = {row.name: row.requires for row in found.rows}
        required = {name for row in found.rows for name in row.requires}
        tops = [row.name for row in found.rows if row.asked or row.name not in required]
        if feature:
            tops = [row.name for row in found.rows if row.name in tops and feature in row.features]
    rows = _reached(found, below, tops) if invert or feature else found.rows
    return Result([asdict(row) for row in rows], text=lambda: _grow(found, below, tops))


def _reached(found: "PackageSet", below: Mapping[str, Sequence[str]], tops: Sequence[str]) -> "list[PackageRow]":
    """Return the packages that stand in the tree."""
    waiting, seen = list(tops), set(tops)
    while waiting:
        for name in below.get(waiting.pop(), ()):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return [row for row in found.rows if row.name in seen]


def _asked(row: "PackageRow") -> str:
    by = f" by {', '.join(row.features)}" if row.features else ""
    return f" (requested{by})" if row.asked else ""


def _grow(found: "PackageSet", below: Mapping[str, Sequence[str]], tops: Sequence[str]) -> None:
    rows = {row.name: row for row in found.rows}
    shown: set[str] = set()
    write: Callable[[str], None] = out

    def grow(name: str, lead: str, branch: str) -> None:
        row, names = rows[name], below.get(name, ())
        again = name in shown and names
        asked = _asked(row)
        write(f"{lead}{branch}{name} {row.version}{asked}{' …' if again else ''}")
        shown.add(name)
        if again:
            return
        deeper = lead + {"": "", "├── ": "│   ", "└── ": "    "}[branch]
        for at, child in enumerate(names, 1):
            grow(child, deeper, "└── " if at == len(names) else "├── ")

    for top in tops:
        grow(top, "", "")
