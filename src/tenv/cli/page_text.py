"""Pages in Markdown on a terminal: paragraphs folded to its width, headings in bold, links with their address."""

import re
from collections.abc import Iterator
from itertools import groupby

from tenv.cli.fold import fold_line

__all__ = ["render_page"]

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_FENCE = "```"
_HANG = 2
_CODE = "    "


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
