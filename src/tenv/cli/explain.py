"""``tenv explain``."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command, not_empty
from tenv.cli.fold import fold_beside, terminal_width
from tenv.cli.output import Result, Voice, out, paint, print_findings
from tenv.cli.page_text import render_page

if TYPE_CHECKING:
    from tenv.verbs.explain_log import ExplainedLog

__all__ = ["explain"]


@command("explain", short_help="Explain a finding, or why a build failed.")
@click.argument("code", required=False)
@click.option("--log", default="", callback=not_empty, metavar="FILE", help="The log of a build; `-` for stdin.")
def explain(voice: Voice, *, code: str | None, log: str) -> Result:  # noqa: ARG001
    """Print the page of the rule CODE, such as TE103: its meaning, an example, the fix and the sources.

    With --log, print the first failed step in the log of a build, its first error, the cause and the fix. The status
    is 0 with or without a cause.
    """
    if (code is None) is not bool(log):
        raise click.UsageError("expected either a CODE or `--log FILE`")
    if code is None:
        return _log(log)
    from tenv.verbs.explain import explain as find

    page = find(code)
    width = terminal_width(sys.stdout)
    return Result(page.to_json(), text=page.text if width is None else lambda: _print_page(page.text, width))


def _print_page(text: str, width: int) -> None:
    """Print a page as text of a width in columns."""
    for line in render_page(text.rstrip("\n"), width, paint("{}", "1", sys.stdout)):
        out(line)


def _log(name: str) -> Result:
    from tenv.project.context import Context
    from tenv.verbs.explain_log import explain_log

    found = explain_log(Context(), name)
    findings = [finding.to_json() for finding in found.findings]

    def show() -> None:
        for line in _lines(found):
            out(line)
        print_findings(findings)

    return Result(found.to_json(), text=show, findings=findings)


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
