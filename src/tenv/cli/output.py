"""How every command speaks: data to standard output, talk to standard error, and one JSON envelope."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from tenv import __version__
from tenv.core.errors import Exit, TenvError
from tenv.core.size_text import format_bytes
from tenv.core.untrusted import printable

__all__ = [
    "Result",
    "Voice",
    "count",
    "format_bytes",
    "format_seconds",
    "is_terminal",
    "out",
    "paint",
    "print_findings",
    "tell",
]


_COLOUR = f"\ue000{os.urandom(8).hex()}\ue000"
"""Begins a colour of ours; what comes from elsewhere can't know it."""

_COLOURS = {"error": "1;31", "warning": "1;33", "note": "1;36"}


@dataclass(frozen=True, slots=True)
class Result:
    """What a command returns.

    Attributes:
        data: What ``--json`` prints under ``data``.
        text: What is printed to standard output without ``--json``: the text of a file or a script, as it is, or a
            function that prints for people.
        summary: What is said to standard error at the end, unless ``--quiet``.
        findings: The findings as plain values.
        status: The exit status.
    """

    data: Any = None
    text: str | Callable[[], None] = ""
    summary: Sequence[str] = ()
    findings: Sequence[dict[str, str]] = field(default=())
    status: Exit = Exit.DONE


class Voice:
    """Where a command's words go.

    Attributes:
        json: Print one JSON envelope and nothing else to standard output.
        quiet: Say nothing but errors.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json = json
        self.quiet = quiet

    def say(self, sentence: str) -> None:
        """Say something on standard error, unless told to be quiet."""
        if not self.quiet:
            tell(sentence)

    def finish(self, command: str, result: Result) -> Exit:
        """Print what a command returned."""
        if self.json:
            self._envelope(command, result.status == Exit.DONE, result.data, result.findings, None)
            return result.status
        if callable(result.text):
            result.text()
        elif result.text:
            print(result.text, end="" if result.text.endswith("\n") else "\n")
        for line in result.summary:
            self.say(line)
        return result.status

    def fail(self, command: str, error: TenvError) -> Exit:
        """Print an error."""
        if self.json:
            described = {"code": error.code, "message": error.message, "hint": error.hint}
            if error.detail:
                described["detail"] = error.detail
            if error.step:
                described["step"] = error.step
            self._envelope(command, False, error.data, error.findings, described)
        elif error.findings:
            print_findings(error.findings, tell, sys.stderr)
            tell("")
        label = paint(f"error[{error.code}]", "1;31", sys.stderr)
        tell(f"{label}: {error.message}")
        if error.step:
            tell(f"{paint('step', '1;36', sys.stderr)}: {error.step}")
        if error.hint:
            tell(f"{paint('hint', '1;36', sys.stderr)}: {error.hint}")
        return error.status

    def _envelope(
        self, command: str, ok: bool, data: Any, findings: Sequence[dict[str, str]], error: dict[str, str] | None
    ) -> None:
        envelope = {
            "tenv": __version__,
            "command": command,
            "ok": ok,
            "data": data,
            "findings": list(findings),
            "error": error,
        }
        print(json.dumps(envelope, indent=2))


def tell(text: str) -> None:
    """Write a line to standard error; where nobody can hear it (closed, full), the work goes on all the same."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(_cleaned(text), file=sys.stderr, flush=True)


def out(text: str = "") -> None:
    """Write a line for people to standard output."""
    print(_cleaned(text))


def _cleaned(text: str) -> str:
    """Return a text for a terminal: with our colours, and what else would steer it escaped."""
    return "\x1b[".join(map(printable, text.split(_COLOUR)))


def paint(text: str, code: str, stream: TextIO | None) -> str:
    """Colour a text for `tell` or `out` where the stream is a terminal and the user has not said no (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not is_terminal(stream)
    return text if plain else f"{_COLOUR}{code}m{text}{_COLOUR}0m"


def print_findings(
    findings: Sequence[dict[str, str]], write: Callable[[str], None] = out, stream: TextIO | None = None
) -> None:
    """Print findings in full, each below a blank line.

    Args:
        findings: The findings.
        write: Writes a line.
        stream: Where `write` leads, which decides about colours; None for standard output.
    """
    for finding in findings:
        label = paint(f"{finding['severity']}[{finding['code']}]", _COLOURS[finding["severity"]], stream or sys.stdout)
        lines = [f"\n{label}: {finding['subject']}: {finding['message']}"]
        write("\n".join([*lines, *(f"  {key}: {finding[key]}" for key in ("evidence", "source", "fix"))]))


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream leads to a terminal; one that is closed does not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def format_seconds(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f} min {rest:.0f} s" if minutes else f"{rest:.1f} s"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 wheel`` or ``2 wheels``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
