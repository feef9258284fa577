"""``tenv list``."""

from typing import TYPE_CHECKING

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, format_bytes, print_table
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from tenv.verbs.list import ListedEnvironment


@command("list", short_help="List the environments.")
@click.option("--check", is_flag=True, help="End with status 1 if an environment is stale, broken or incomplete.")
def list_environments(voice: Voice, *, check: bool) -> Result:  # noqa: ARG001 (every command has a voice)
    """List the environments of the project and of your data folder, with their states.

    An environment is stale if its lock has other files for this platform and Python. The torch that `tenv build`
    installed stands beside its environment.
    """
    from tenv.project.context import Context
    from tenv.verbs.list import find_environments

    found = find_environments(Context())
    unfit = [row for row in found if not row.fit]
    none = [] if found else ["there is no environment here; `tenv create TARGET` creates one"]
    return Result(
        [row.to_json() for row in found],
        text=lambda: _print(found),
        summary=[*none, *(row.sentence for row in unfit if row.reason)],
        status=Exit.CHECK if check and unfit else Exit.DONE,
    )


def _print(found: "list[ListedEnvironment]") -> None:
    built = any(row.torch for row in found)
    rows = []
    for one in found:
        row = one.to_json()
        torch = (str(one.torch or "-"),) if built else ()
        rows.append((row["target"], row["state"], row["python"], format_bytes(row["bytes"]), *torch, row["prefix"]))
    print_table(("TARGET", "STATE", "PYTHON", "SIZE", *(("BUILT TORCH",) if built else ()), "PREFIX"), rows)
