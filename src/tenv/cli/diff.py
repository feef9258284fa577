"""``tenv diff``, and the text with which every command reports a change of a lock."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

import click

from tenv.cli.command import command
from tenv.cli.fold import fold_beside, fold_pieces, terminal_width
from tenv.cli.output import Result, Voice, format_bytes, out, paint
from tenv.core.errors import Exit
from tenv.core.names import is_sha256

if TYPE_CHECKING:
    from tenv.locks.difference import Difference, PackageChange, ValueChange
    from tenv.verbs.diff import Compared

_SHOWN = 20
_DIGITS = 12
_INDENT = "      "
_GREEN, _RED, _YELLOW, _BOLD = "32", "31", "33", "1"


@command("diff", short_help="Print what changes between two locks.")
@click.argument("old", required=False)
@click.argument("new", required=False)
@click.option("--rev", metavar="REVISION", help="With one lock: the git revision to compare it with; default: HEAD.")
@click.option("--platform", "platforms", multiple=True, metavar="PLATFORM", help="Compare this platform alone.")
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="Markdown is for code review."
)
@click.option("--exit-code", is_flag=True, help="End with status 1 if the locks differ.")
def diff(
    voice: Voice,  # noqa: ARG001 (every command has a voice)
    *,
    old: str | None,
    new: str | None,
    rev: str | None,
    platforms: tuple[str, ...],
    form: str,
    exit_code: bool,
) -> Result:
    """Print the changes from OLD to NEW: requirements of the host, toolchain, packages, download size.

    OLD and NEW are lock files, targets, or files of a git revision (HEAD~1:locks/cuda130.lock). With OLD alone, tenv
    compares its last commit with its present state. Without OLD, it is the default target.
    """
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs.diff import diff as compare

    context = Context()
    found = compare(context, old or context.default_target(), new, rev, platforms)
    return Result(
        {"old": found.old, "new": found.new, **found.difference.to_json()},
        text=lambda: out(_markdown(found)) if form == "markdown" else print_difference(found),
        summary=() if found.difference else (f"{found.old} and {found.new} are equal",),
        status=Exit.CHECK if exit_code and found.difference else Exit.DONE,
    )


def print_difference(found: "Compared") -> None:
    """Print a difference as text to standard output."""
    if found.difference:
        out(f"{found.old} → {found.new}")
    for line in _lines(found.difference):
        out(line)


def outline(difference: "Difference") -> list[str]:
    """Return a difference as a few lines for standard error."""
    everywhere = tuple(difference.download)
    values = [
        *_reaching(difference, everywhere, sys.stderr),
        *_values("host: ", difference.host, everywhere, sys.stderr),
        *_values("toolchain: ", difference.toolchain, everywhere, sys.stderr),
    ]
    rows = list(_packages(difference, sys.stderr))
    return [*values, *rows[:_SHOWN], *([f"  … and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else [])]


def _lines(difference: "Difference") -> Iterator[str]:
    def headed(title: str, lines: list[str]) -> Iterator[str]:
        if lines:
            yield paint(title, _BOLD, sys.stdout)
            yield from lines

    everywhere = tuple(difference.download)
    yield from headed("origins and destinations of files", _reaching(difference, everywhere, sys.stdout))
    yield from headed("host", _values("", difference.host, everywhere, sys.stdout))
    yield from headed("toolchain", _values("", difference.toolchain, everywhere, sys.stdout))
    yield from headed("requests", _values("", difference.lock, everywhere, sys.stdout))
    yield from headed(f"packages: {_tally(difference)}", list(_packages(difference, sys.stdout)))
    if difference:
        yield from headed("download", [_beside("  ", row, sys.stdout) for row in _downloads(difference)])


def _reaching(difference: "Difference", everywhere: tuple[str, ...], stream: TextIO | None) -> list[str]:
    """Return a line for each changed origin or destination of a file, and for each file of a new package."""
    cells = [
        (row.name, one.name, f"{one.old or 'none'} → {one.new or 'none'}", _only(one.platforms, everywhere))
        for row, one in difference.reaching
    ]
    for row in difference.added:
        pieces = {platform: new.values for platform, (_, new) in row.pieces.items() if new}
        for key in ("url", "to") if row.kind != "wheel" else ():
            for value in dict.fromkeys(values[key] for values in pieces.values() if key in values):
                where = tuple(platform for platform, values in pieces.items() if values.get(key) == value)
                cells.append((row.name, key, value, _only(where, everywhere)))
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(2)]
    return [
        _beside(f"  {name.ljust(widths[0])}  {key.ljust(widths[1])}  ", change + where, stream)
        for name, key, change, where in cells
    ]


def _only(platforms: tuple[str, ...], everywhere: tuple[str, ...]) -> str:
    return f"  ({', '.join(platforms)})" if platforms and platforms != everywhere else ""


def _tally(difference: "Difference") -> str:
    parts = (("added", difference.added), ("removed", difference.removed), ("changed", difference.changed))
    return ", ".join(f"{len(rows)} {word}" for word, rows in parts)


def _values(prefix: str, rows: "Sequence[ValueChange]", everywhere: tuple[str, ...], stream: TextIO) -> list[str]:
    width = max((len(row.title) for row in rows), default=0)
    return [_beside(f"  {prefix}{row.title.ljust(width)}  ", change_text(row, everywhere), stream) for row in rows]


def _beside(label: str, value: str, stream: TextIO | None) -> str:
    """Return a value after its label; on a terminal folded beside it, where there is room."""
    columns = terminal_width(stream)
    if columns is None:
        return label + value
    return "\n".join(fold_beside(label, value, columns))


def change_text(row: "ValueChange", everywhere: tuple[str, ...]) -> str:
    """Return a changed value as text, with its platforms unless it is for all; different values look different."""
    parts = [f"{word} {', '.join(items)}" for word, items in (("dropped", row.dropped), ("added", row.added)) if items]
    old, new = (_short(text) for text in (row.old, row.new))
    if old == new:  # values that differ in omitted parts
        old, new = row.old, row.new
    change = "; ".join(parts) or f"{old or 'none'} → {new or 'none'}"
    return change + _only(row.platforms, everywhere)


def _short(text: str) -> str:
    """Return a request of a lock, a list of range and details, without empty details; a digest by its beginning."""
    if is_sha256(text):
        return text[:_DIGITS]
    if not text.startswith("["):
        return text
    try:
        first, *details = json.loads(text) or [""]
    except (ValueError, RecursionError):
        return text
    texts = [one for one in (first, *details) if isinstance(one, str)]
    if not first or len(texts) != 1 + len(details):
        return text
    details = [one for one in details if one]
    return f"{first} ({', '.join(details)})" if details else str(first)


def _packages(difference: "Difference", stream: TextIO) -> Iterator[str]:
    rows = [*difference.added, *difference.removed, *difference.changed]
    everywhere = tuple(difference.download)
    cells = [(row.name, _versions(row), _sizes(row), _where(row, everywhere)) for row in rows]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(4)]
    columns = terminal_width(stream)
    narrow = columns is not None and sum(widths) + len(_INDENT) + len("    ") > columns
    for row, texts in zip(rows, cells, strict=True):
        sign, color = ("~", _YELLOW) if row.old and row.new else ("+", _GREEN) if row.new else ("-", _RED)
        line = "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip()
        pieces = [text for text in texts[1:] if text]
        if narrow:  # the row that is too wide is folded, the others stay in one line
            line = "  ".join([texts[0].ljust(widths[0]), *pieces])
        folded = narrow and len(_INDENT) + len(line) > (columns or 0)
        yield f"  {paint(f'{sign} {texts[0] if folded else line}', color, stream)}"
        if folded:
            yield from (_INDENT + one for one in fold_pieces(pieces, (columns or 0) - len(_INDENT)))


def _versions(row: "PackageChange") -> str:
    if not (row.old and row.new):
        return row.old or row.new
    if row.old != row.new:
        return f"{row.old} → {row.new}"
    builds = {(old.build, new.build) for old, new in row.pieces.values() if old and new and old.build != new.build}
    if len(builds) == 1:
        return f"{row.new}, build {' → '.join(builds.pop())}"
    if any(old and new and old.digest != new.digest for old, new in row.pieces.values()):
        return f"{row.new}, another file"
    return f"{row.new}, changed: {', '.join(dict.fromkeys(one.name for one in row.fields))}"


def _sizes(row: "PackageChange") -> str:
    """Return the old and the new size on the first platform."""
    old, new = next(iter(row.pieces.values()))
    texts = [format_bytes(piece.size) if piece.size is not None else "?" for piece in (old, new) if piece]
    return " → ".join(dict.fromkeys(texts))


def _where(row: "PackageChange", everywhere: tuple[str, ...]) -> str:
    """Return the kind of the package, and its platforms and Python minors unless it is for all."""
    platforms = [] if tuple(row.pieces) == everywhere else [*row.pieces]
    python = [f"Python {' '.join(row.python)}"] if row.python else []
    return ", ".join([row.kind, *platforms, *python])


def _downloads(difference: "Difference") -> Iterator[str]:
    for platform, row in difference.download.items():
        sign = "+" if row.new >= row.old else "-"
        change = f"{sign}{format_bytes(abs(row.new - row.old))}"
        sizes = f"{format_bytes(row.old)} → {format_bytes(row.new)} ({change})"
        yield f"{platform}: {sizes}, {format_bytes(row.fetch)} of it new"


def _markdown(found: "Compared") -> str:
    difference = found.difference
    everywhere = tuple(difference.download)
    lines = [f"### `{found.old}` → `{found.new}`", ""]
    if not difference:
        return "\n".join([*lines, "The locks are equal."])
    if reaching := _reaching(difference, everywhere, None):
        lines += ["**origins and destinations of files**", "", "```text", *reaching, "```", ""]
    tables = (("the host must offer", difference.host), ("toolchain", difference.toolchain))
    for title, rows in (*tables, ("requests", difference.lock)):
        if rows:
            lines += [
                f"| {title} | |",
                "|---|---|",
                *(f"| {_cell(row.title)} | {_cell(change_text(row, everywhere))} |" for row in rows),
                "",
            ]
    if difference.packages:
        kinds = (("added", difference.added), ("removed", difference.removed), ("changed", difference.changed))
        lines += [f"<details><summary>packages: {_tally(difference)}</summary>", ""]
        lines += ["| | package | version | size | for |", "|---|---|---|--:|---|"]
        lines += [
            f"| {word} | `{_cell(row.name)}` | {_cell(_versions(row))} | {_sizes(row)} | {_where(row, everywhere)} |"
            for word, rows in kinds
            for row in rows
        ]
        lines += ["", "</details>", ""]
    lines += [f"- download, {row}" for row in _downloads(difference)]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return a text escaped for a cell of a Markdown table."""
    return re.sub(r"([|<>\[\]`\\])", r"\\\1", text)
