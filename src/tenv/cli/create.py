"""``tenv create``."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import command
from tenv.cli.host import host_options, pytorch_option
from tenv.cli.output import Result, Voice, count, format_bytes, format_seconds, print_findings
from tenv.cli.progress_bar import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenv.checks.before_create import Surroundings
    from tenv.checks.choose_target import Choice
    from tenv.checks.rules.interface import Finding
    from tenv.project.context import Context
    from tenv.verbs.create import Created, LockMode

__all__ = ["create"]


@command("create", short_help="Create or repair the environment of a target.")
@click.argument("target")
@click.option("--prefix", type=click.Path(path_type=Path), help="The folder to create it in.")
@click.option("--locked", is_flag=True, help="Stop (status 7) when the lock does not satisfy the manifest.")
@click.option("--frozen", is_flag=True, help="Use the lock as it is, whatever the manifest says.")
@click.option(
    "--lock-file", type=click.Path(path_type=Path, dir_okay=False), help="The lock to use, such as one you were sent."
)
@click.option("--python", metavar="VERSION|PROGRAM", help="The Python to use, such as 3.12 or /usr/bin/python3.12.")
@click.option("--exact", is_flag=True, help="Also remove what tenv did not install.")
@click.option("--repair", is_flag=True, help="Look at every file, and install again what was changed.")
@click.option("--offline", is_flag=True, help="Never use the network; take everything from the cache.")
@click.option("--no-wait", is_flag=True, help="Stop (status 8) when another process holds the environment.")
@pytorch_option
@click.option("--no-check", is_flag=True, help="Create it even where the rules say that it can't be built here.")
@host_options
def create(
    voice: Voice,
    *,
    target: str,
    prefix: Path | None,
    locked: bool,
    frozen: bool,
    lock_file: Path | None,
    python: str | None,
    exact: bool,
    repair: bool,
    offline: bool,
    no_wait: bool,
    pytorch: str,
    no_check: bool,
    **host: str,
) -> Result:
    """Create the environment of TARGET from its lock, or repair one, or find that there is nothing to do.

    Without a lock, or with one that no longer satisfies the manifest, the target is locked first. The rules are asked
    before anything is done (see `tenv check`): an error about building stops it with status 4.

    TARGET `auto` takes the best one for this machine and the PyTorch checkout here, and says why.
    """
    from tenv.project.context import Context  # noqa: PLC0415
    from tenv.targets.search import AUTO  # noqa: PLC0415 (late: loads what it needs)
    from tenv.verbs import create as workflow  # noqa: PLC0415

    mode = _mode(locked=locked, frozen=frozen)
    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=offline)

        def tell(findings: "Sequence[Finding]") -> None:
            print_findings([finding.to_json() for finding in findings], progress.say, sys.stderr)

        around, choice = None, None
        if target == AUTO or pytorch or any(host.values()):
            around, choice = _look(context, pytorch, host, progress.say if target == AUTO else None)
        if choice:
            target = choice.target
            progress.say("\n".join(choice.lines()))
        request = workflow.Request(
            target,
            prefix,
            mode,
            lock_file,
            python,
            exact,
            wait=not no_wait,
            repair=repair,
            check=not no_check,
            around=around,
        )
        made = workflow.create(context, request, tell)
    findings = [finding.to_json() for finding in made.findings]
    return Result(_data(made, choice), summary=_summary(made, prefix), findings=findings)


def _mode(*, locked: bool, frozen: bool) -> "LockMode":
    from tenv.verbs.create import LockMode  # noqa: PLC0415

    if locked and frozen:
        raise click.UsageError("--locked and --frozen exclude each other")
    return LockMode.LOCKED if locked else LockMode.FROZEN if frozen else LockMode.UPDATE


def _look(
    context: "Context", pytorch: str, host: dict[str, str], say: "Callable[[str], None] | None"
) -> "tuple[Surroundings, Choice | None]":
    """Return what the target is judged by, and the best one where `say` is to hear of it."""
    from tenv.checks.before_create import look_around  # noqa: PLC0415
    from tenv.checks.choose_target import choose  # noqa: PLC0415
    from tenv.checks.host_options import HostOptions  # noqa: PLC0415

    around = look_around(context, pytorch, HostOptions(**host))
    return around, choose(context, around, say) if say else None


def _data(made: "Created", choice: "Choice | None") -> dict[str, Any]:
    state = made.state
    data = {
        "target": made.target,
        "prefix": str(made.prefix),
        "state": state.status.value,
        "lock": str(made.lock),
        "lock_digest": state.lock,
        "counts": {"conda": len(state.conda), "wheels": len(state.packages), "archives": len(state.archives)},
        "bytes": state.bytes,
        "seconds": round(made.seconds, 3),
        "changed": made.changed,
        "python": state.python,
    }
    return {**data, "auto": choice.to_json()} if choice else data


def _summary(made: "Created", prefix: Path | None) -> list[str]:
    lines = [f"note: {note}" for note in made.notes]
    if not made.changed:
        return [*lines, f"{made.target} is ready in {made.prefix}: nothing to do"]
    name = made.target if prefix is None else f"--prefix {shlex.quote(str(prefix))} {made.target}"
    state = made.state
    kinds = ((state.conda, "conda package"), (state.packages, "wheel"), (state.archives, "archive"))
    parts = [count(len(rows), noun) for rows, noun in kinds if rows] or ["0 wheels"]
    parts += [f"Python {state.python}"] if state.python else []
    size, seconds = format_bytes(made.state.bytes), format_seconds(made.seconds)
    return [
        *lines,
        f"{made.target} is ready in {made.prefix}",
        f"  {', '.join(parts)}, {size}, {seconds}, from {made.lock}",
        f'  use it: eval "$(tenv activate {name})"  or  tenv run {name} -- COMMAND',
    ]
