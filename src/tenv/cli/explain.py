"""``tenv explain`` and ``tenv facts``; pages in Markdown on a terminal: folded, with headings in bold and addresses."""

import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import command, not_empty
from tenv.cli.fold import fold_beside, fold_line, terminal_width
from tenv.cli.output import Result, Voice, out, paint, print_findings, print_table
from tenv.cli.progress_bar import Terminal

if TYPE_CHECKING:
    from tenv.verbs.explain_log import ExplainedLog

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_FENCE = "```"
_HANG = 2
_CODE = "    "


@command("explain", short_help="Explain a finding, or why a build failed.")
@click.argument("code", required=False, metavar="[CODE|FILE]")
@click.option("--log", default="", callback=not_empty, metavar="FILE", help="The log of a build.")
def explain(voice: Voice, *, code: str | None, log: str) -> Result:
    """Print the page of the rule CODE, such as TE103: its meaning, an example, the fix and the sources.

    CODE may be the name of a cause that the log of a build led to, such as out-of-memory.

    With FILE or --log, print the first failed step in the log of a build, its first error, the cause and the fix; `-`
    is standard input. The status is 0 with or without a cause.
    """
    if (code is None) is not bool(log):
        raise click.UsageError("expected either a CODE or the FILE of a log")
    from tenv.project.context import Context
    from tenv.verbs.explain import codes
    from tenv.verbs.explain import explain as find

    if code in (None, "-") or (code.upper() not in codes() and Path(code).is_file()):
        return _log(voice, code or log)

    page = find(Context(), code)
    width = terminal_width(sys.stdout)
    return Result(asdict(page), text=page.text if width is None else lambda: _print_page(page.text, width))


def _print_page(text: str, width: int) -> None:
    """Print a page as text of a width in columns."""
    for line in render_page(text.rstrip("\n"), width, paint("{}", "1", sys.stdout)):
        out(line)


def _log(voice: Voice, name: str) -> Result:
    from tenv.project.context import Context
    from tenv.verbs.explain_log import explain_log

    with Terminal(voice) as progress:
        found = explain_log(Context(progress=progress), name)

    def show() -> None:
        for line in _lines(found):
            out(line)
        print_findings(found.findings)

    return Result(found.to_json(), text=show, findings=found.findings)


def _lines(found: "ExplainedLog") -> Iterator[str]:
    diagnosis = found.diagnosis
    if not diagnosis.failed:
        yield f"{found.log}: {'no step failed' if diagnosis.is_build else 'no build is recognized in it'}"
        return
    for label, line in (("step", diagnosis.step), ("error", diagnosis.error)):
        if line is not None:
            yield _beside(f"{label + ':':<8}", f"line {line.number}: {line.text.strip()}")
    if diagnosis.cause is None and diagnosis.place is not None:
        yield f"place:  {diagnosis.place}"
    if diagnosis.cause is None:
        yield f"cause:  unknown (none of the {found.known} known causes matches)"


def _beside(label: str, value: str) -> str:
    """Return a value after its label; on a terminal folded beside it."""
    width = terminal_width(sys.stdout)
    return label + value if width is None else "\n".join(fold_beside(label, value, width))


def render_page(text: str, width: int, bold: str = "{}") -> Iterator[str]:
    """Yield the lines of a page; no word is cut.

    Args:
        text: The page in Markdown: headings, paragraphs, lists, tables and fenced code.
        width: The columns of the terminal.
        bold: The format of a heading.
    """
    for in_code, part in _parts(text):
        if in_code:
            yield from (row for line in part for row in fold_line(_CODE + line, width, _HANG))
            continue
        for block in _blocks(part):
            if block.startswith("#"):
                yield from map(bold.format, fold_line(block.lstrip("# "), width))
            elif block.startswith("|"):
                yield block
            else:
                yield from fold_line(_LINK.sub(r"\1 (\2)", block), width, _HANG if block.startswith("- ") else 0)


def _parts(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield the lines between fences, each with whether they are code."""
    in_code = False
    for is_fence, lines in groupby(text.splitlines(), lambda line: line.startswith(_FENCE)):
        if is_fence:
            in_code = in_code is not bool(len(list(lines)) % 2)
        else:
            yield in_code, list(lines)


def _blocks(lines: list[str]) -> Iterator[str]:
    """Yield paragraphs, list items, headings and rows of tables as one line each; an empty line stays."""
    block = ""
    for line in lines:
        alone = not line or line.startswith(("#", "|"))
        if block and (alone or line.startswith("- ")):
            yield block
            block = ""
        if alone:
            yield line
        else:
            block = f"{block} {line.strip()}" if block else line
    if block:
        yield block


@command("facts", short_help="Show the compatibility tables and their sources.")
@click.argument("table", required=False)
def facts(voice: Voice, *, table: str | None) -> Result:  # noqa: ARG001
    """Print the rows of TABLE with their sources. Without TABLE, list the tables.

    tenv reads your own rows from TENV_FACTS (files and folders) and from `facts` in your configuration folder.
    """
    from tenv.project.context import Context
    from tenv.verbs.facts import list_tables, show_table

    if table is None:
        rows = list_tables(Context())
        return Result(rows, text=lambda: _print_list(rows), summary=("`tenv facts TABLE` prints the rows of a table",))
    data = show_table(Context(), table)
    return Result(data, text=lambda: _print_table(data))


def _print_list(rows: list[dict[str, Any]]) -> None:
    print_table(
        ("TABLE", "DATE", "ROWS", "NOT CONFIRMED", "OWN", "CONTENT"),
        [(row["name"], row["date"], row["rows"], row["unconfirmed"], row["own"], row["about"]) for row in rows],
    )


def _print_table(data: dict[str, Any]) -> None:
    from tenv.facts.table_files import LAYOUTS

    for number, (name, section) in enumerate(LAYOUTS[data["name"]].sections.items()):
        if number:
            out()
        columns = (*section.key, *section.columns)
        out(f"[{name}]")
        print_table(
            (*(column.upper() for column in columns), "CONFIRMED", "SOURCE"),
            [
                (*(_cell(row.get(column, "")) for column in columns), "yes" if row["confirmed"] else "NO", _source(row))
                for row in data["sections"][name]
            ],
        )


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}:{item}" for key, item in value.items())
    text = " ".join(str(item) for item in value) if isinstance(value, list) else str(value)
    return text or "-"


def _source(row: dict[str, Any]) -> str:
    own = "" if row["from"] == "built-in" else f" ({row['from']})"
    return f"{row['source']}{own}"
