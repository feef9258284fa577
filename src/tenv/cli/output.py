"""The output of every command: data to standard output, messages to standard error, and one JSON envelope."""

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from tenv import __version__
from tenv.cli.fold import fold_beside, fold_line, fold_table, terminal_width
from tenv.core.dataclass import dataclass
from tenv.core.errors import Exit, TenvError
from tenv.core.size_text import format_bytes
from tenv.core.untrusted import json_without_login, printable, without_login

if TYPE_CHECKING:
    from tenv.checks.rules.interface import Finding

__all__ = ["format_bytes"]


_HANG = 2
"""The indent of the lines after the first line of a folded text."""

_COLOR = f"\ue000{os.urandom(8).hex()}\ue000"
"""Marks a color of tenv; text from other sources can't contain it."""

_VERDICTS = {"yes": "1;32", "no": "1;31", "unknown": "1;33"}
_COLORS = {"error": "1;31", "warning": "1;33", "note": "1;36"}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command."""

    data: Any = None
    """The value of ``data`` with ``--json``."""
    text: str | Callable[[], None] = ""
    """The standard output without ``--json``: text as it is (a file, a script), or a function that prints text for
    reading."""
    summary: Sequence[str] = ()
    """The last messages on standard error, unless ``--quiet``."""
    findings: Sequence["Finding"] = ()
    """The findings."""
    status: Exit = Exit.DONE
    """The exit status."""


class Pieces:
    """The text of a JSON value in pieces, for one that is too large for memory; as indented in an envelope.

    Attributes:
        texts: The pieces; no text of the value is in two of them.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = texts


class Voice:
    """The output streams of a command.

    Attributes:
        json: Print one JSON envelope and nothing else to standard output.
        quiet: Print no messages except errors.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json = json
        self.quiet = quiet

    def say(self, sentence: str) -> None:
        """Print a message to standard error, unless quiet."""
        if not self.quiet:
            tell(folded(sentence, sys.stderr))

    def finish(self, command: str, result: Result) -> Exit:
        """Print the result of a command."""
        if self.json:
            self._envelope(command, result.status == Exit.DONE, result.data, as_json(result.findings), None)
            return result.status
        if callable(result.text):
            result.text()
        elif result.text:
            print(result.text, end="" if result.text.endswith("\n") else "\n")
        for line in result.summary:
            self.say(line)
        return result.status

    def fail(self, command: str, error: TenvError) -> Exit:
        """Print an error; its status stays where standard output can't be written."""
        with contextlib.suppress(OSError):
            if self.json:
                described = {"code": error.code, "message": error.message, "hint": error.hint}
                if error.detail:
                    described["detail"] = error.detail
                if error.step:
                    described["step"] = error.step
                self._envelope(command, False, error.data, error.findings, described)
            else:
                _print_failure(command)
        if error.findings and not self.json:
            print_findings(error.findings, tell, sys.stderr)
            tell("")
        _tell_labelled(f"error[{error.code}]", "1;31", error.message)
        if error.step:
            _tell_labelled("step", "1;36", error.step)
        if error.hint:
            _tell_labelled("hint", "1;36", error.hint)
        return error.status

    def _envelope(
        self, command: str, ok: bool, data: Any, findings: Iterable[dict[str, str]], error: dict[str, str] | None
    ) -> None:
        before = {"tenv": __version__, "command": command, "ok": ok}
        behind = {"findings": list(findings), "error": error}
        if not isinstance(data, Pieces):
            print(json_without_login(json.dumps({**before, "data": data, **behind}, indent=2)))
            return
        print(json.dumps(before, indent=2).removesuffix("\n}"), end=',\n  "data": ')
        for text in data.texts:
            print(json_without_login(text), end="")
        print("," + json_without_login(json.dumps(behind, indent=2)).removeprefix("{"))


def _print_failure(command: str) -> None:
    """Print the output of a command that failed, for a shell that evaluates it."""
    if command != "activate" or is_terminal(sys.stdout):
        return
    from tenv.cli.activate import failing_script  # late: only a failed `activate` has an output

    print(failing_script(sys.argv[1:]), end="", flush=True)


def tell(text: str) -> None:
    """Write a line to standard error; a stream that is closed or full is no error."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(cleaned(text), file=sys.stderr, flush=True)


def _tell_labelled(label: str, code: str, text: str) -> None:
    rest = folded(f"{label}: {text}", sys.stderr).removeprefix(label)
    tell(f"{paint(label, code, sys.stderr)}{rest}")


def out(*lines: str) -> None:
    """Write lines of text to standard output; an empty one if none are given."""
    print("\n".join(map(cleaned, lines)))


def prose(text: str) -> None:
    """Write text to standard output, on a terminal folded to its width."""
    out(folded(text, sys.stdout))


def cleaned(text: str) -> str:
    """Return a text for a terminal: without logins, with tenv's colors, other control characters escaped."""
    if text.isascii() and text.isprintable() and "://" not in text:  # it has none of them
        return text
    return "\x1b[".join(map(printable, without_login(text).split(_COLOR)))


def paint(text: str, code: str, stream: TextIO | None) -> str:
    """Color a text for `tell` or `out` if the stream is a terminal.

    NO_COLOR turns colors off (no-color.org); FORCE_COLOR turns them on without a terminal (force-color.org).
    """
    if os.environ.get("NO_COLOR"):
        return text
    forced = os.environ.get("FORCE_COLOR", "") not in ("", "0")
    if not forced and (os.environ.get("TERM") == "dumb" or not is_terminal(stream)):
        return text
    return f"{_COLOR}{code}m{text}{_COLOR}0m"


def paint_verdict(text: str) -> str:
    """Color `yes`, `no` and `unknown` for standard output; blanks around the word stay, other texts too."""
    word = text.strip()
    return text.replace(word, paint(word, _VERDICTS[word], sys.stdout)) if word in _VERDICTS else text


_PARTS = re.compile(r"; (?![^()]*\))")
"""Between two parts of evidence; not in parentheses."""


def as_json(findings: "Iterable[Finding | dict[str, str]]") -> list[dict[str, str]]:
    """Return findings as JSON values; those of an error are such values."""
    return [one if isinstance(one, dict) else one.to_json() for one in findings]


def print_findings(
    findings: "Iterable[Finding | dict[str, str]]", write: Callable[[str], None] = out, stream: TextIO | None = None
) -> None:
    """Print findings in full, with a blank line before each.

    Args:
        findings: The findings.
        write: Writes a line.
        stream: The stream behind `write`, which decides about colors; None for standard output.
    """
    stream = stream or sys.stdout
    for finding in as_json(findings):
        label = f"{finding['severity']}[{finding['code']}]"
        lines = [f"{label}: {finding['subject']}: {finding['message']}"]
        for key in filter(finding.get, ("evidence", "source", "fix")):  # an unknown cause has no source
            parts = _PARTS.split(finding[key]) if key == "evidence" and is_terminal(stream) else [finding[key]]
            lines += [f"  {key}: {parts[0]}"] if len(parts) == 1 else [f"  {key}:", *(f"    - {one}" for one in parts)]
        rest = folded("\n".join(lines), stream).removeprefix(label)
        write(f"\n{paint(label, _COLORS[finding['severity']], stream)}{rest}")


def folded(text: str, stream: TextIO | None) -> str:
    """Return a text folded to the width of the terminal behind a stream; without a terminal, as it is."""
    if (width := terminal_width(stream)) is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in fold_line(line, width, _HANG))


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; a closed stream is not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def format_seconds(seconds: float) -> str:
    """Return a duration as text."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < 60:  # noqa: PLR2004 (seconds of a minute)
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 wheel`` or ``2 wheels``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a header. Each column is as wide as its widest cell; the last column is not padded."""
    table = [tuple(header), *(tuple(str(cell) for cell in row) for row in rows)]
    for cells in fold_table(table, terminal_width(sys.stdout)):
        out(_joined(cells))


def _joined(cells: Sequence[str]) -> str:
    end = max((number for number, cell in enumerate(cells, 1) if cell.strip()), default=0)
    shown = [*cells[: end - 1], *(cell.rstrip() for cell in cells[end - 1 : end])]
    return "  ".join(map(paint_verdict, shown))


def print_labelled(label: str, width: int, value: str) -> None:
    """Print a value after its label, which takes `width` columns; on a terminal, folded beside or below it."""
    columns = terminal_width(sys.stdout)
    label = f"{label:<{width}}"
    for line in [label + value] if columns is None else fold_beside(label, value, columns):
        out(line)
