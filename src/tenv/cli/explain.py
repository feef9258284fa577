"""``tenv explain``."""

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice

__all__ = ["explain"]


@command("explain", short_help="Print what a finding means: tenv explain CODE.")
@click.argument("code")
def explain(voice: Voice, *, code: str) -> Result:  # noqa: ARG001
    """Print the page of the rule CODE, such as TE103: what it says, why, an example, the fix and the sources."""
    from tenv.verbs.explain import explain as find  # noqa: PLC0415

    page = find(code)
    return Result(page.to_json(), text=page.text)
