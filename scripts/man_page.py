"""Write docs/tenv.1, the man page, from the help of the commands: ``python scripts/man_page.py``."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tenv.cli.main import GROUPS
from tenv.core.errors import Exit

PAGE = Path(__file__).parents[1] / "docs" / "tenv.1"
_MARKS = re.compile(r"^\s*\x08\s*$", re.MULTILINE)
_STATUSES = "`tenv help COMMAND` and docs/commands.md of the project explain each of them."


def text_of(text: str) -> str:
    """Return a text for roff: its own characters stay, and no line begins a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    escaped = re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", escaped)
    return re.sub(r"^([.\'])", r"\\&\1", escaped, flags=re.MULTILINE)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a help text; a paragraph after the mark of click keeps its lines."""
    for part in filter(None, map(str.strip, re.split(r"\n\s*\n", text.replace("\x08\n", "\x08")))):
        if part.startswith("\x08"):
            yield from (".PP", ".nf", *(text_of(line.strip()) for line in part.lstrip("\x08").splitlines()), ".fi")
        else:
            yield from (".PP", text_of(" ".join(part.split())))


def _command(name: str, command: click.Command) -> Iterator[str]:
    # A command keeps the first help option that it is asked for, so this one has the program's own names.
    context = click.Context(command, info_name=f"tenv {name}", help_option_names=["-h", "--help"])
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f".SS {text_of(name)}", ".PP", f"\\fBtenv {text_of(name)}\\fR {text_of(usage)}")
    yield from _paragraphs(_MARKS.sub("", command.help or ""))
    for param in command.params:
        if isinstance(param, click.Option) and (row := param.get_help_record(context)):
            yield from (".TP", f"\\fB{text_of(row[0])}\\fR", text_of(row[1]))
    yield from _paragraphs(command.epilog or "")


def page() -> str:
    """Return the man page."""
    lines = [
        '.\\" Written by scripts/man_page.py from the help of the commands.',
        '.TH TENV 1 "" tenv',
        ".SH NAME",
        "tenv \\- the toolchain that a PyTorch checkout needs, the same on every machine",
        ".SH SYNOPSIS",
        "\\fBtenv\\fR [\\-C DIR] COMMAND [ARGS]...",
        ".SH DESCRIPTION",
        text_of("Start with `tenv check --here`, then `tenv create auto`."),
    ]
    for heading, group in GROUPS.items():
        lines.append(f".SH {heading.upper()}")
        for name, (module, attribute) in group.items():
            lines += _command(name, getattr(importlib.import_module(f"tenv.cli.{module}"), attribute))
    lines += [".SH EXIT STATUS", text_of(f"{', '.join(str(status.value) for status in Exit)}: {_STATUSES}")]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
