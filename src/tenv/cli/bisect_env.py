"""``tenv bisect-env``."""

import sys
from pathlib import Path
from typing import Any

import click

from tenv.cli.build import tell_step
from tenv.cli.command import FilePath, SplitCommand, command, offline_option
from tenv.cli.output import Result, Voice
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import Exit, TenvError

_SKIP = 125


@command(
    "bisect-env",
    short_help="Build the checked-out commit and try it, for `git bisect run`.",
    cls=SplitCommand,
)
@click.argument("targets", required=False, metavar="[TARGET,...]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--pytorch", type=FilePath(), metavar="DIR", help="The checkout; default: this folder's.")
@click.option("--only", default="", metavar="NINJA_TARGET", help="Build this Ninja target alone, and no package.")
@click.option("--allow", multiple=True, metavar="NAME", help="Continue despite the finding NAME (repeatable).")
@offline_option
def bisect_env(
    voice: Voice,
    *,
    targets: str | None,
    arguments: tuple[str, ...],
    pytorch: Path | None,
    only: str,
    allow: tuple[str, ...],
    offline: bool,
) -> Result:
    """Build the commit that `git bisect run` has checked out, then run COMMAND in its environment.

    Of the TARGETs, the first one that builds the revision is taken; without one, the best one for it. Submodules are
    brought to what the commit pins. The status is that of COMMAND, 0 without one, 1 if the commit does not build or
    import, and 125 (git skips the commit) if the toolchain or the machine is at fault.
    """
    from tenv.builds.build_job import BuildRequest
    from tenv.project.context import Context
    from tenv.verbs.bisect_env import bisect_env as work
    from tenv.verbs.build import find_checkout

    names = tuple(name for name in (targets or "").split(",") if name)
    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=True) if offline else Context(progress=progress)
        try:
            checkout = pytorch.absolute() if pytorch else find_checkout(Path.cwd(), "bisect-env")
            request = BuildRequest(checkout, None, frozenset(allow), only=only)
            found = work(context, request, names, arguments, lambda step: tell_step(step, progress.say, sys.stderr))
        except TenvError as error:
            if error.status is not Exit.INTERRUPTED:  # that ends the whole bisection
                error.status = _status(_SKIP)  # type: ignore[misc]
            raise
    return Result(
        found.to_json(), summary=[found.sentence], findings=found.built.findings, status=_status(found.status)
    )


def _status(status: int) -> Any:
    """Return the status for git, which is none of tenv's own."""
    return status
