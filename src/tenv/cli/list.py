"""``tenv list``."""

from typing import Any

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, format_bytes
from tenv.cli.table import print_table

__all__ = ["list_environments"]


@command("list", short_help="List the environments.")
def list_environments(voice: Voice) -> Result:  # noqa: ARG001 (every command has a voice)
    """List the environments of the project and of your data folder, with their states."""
    from tenv.project.context import Context
    from tenv.verbs.list import find_environments

    found = find_environments(Context())
    rows = [
        {
            "target": state.target,
            "prefix": str(environment.prefix),
            "state": state.status.value,
            "lock_digest": state.lock,
            "bytes": state.bytes,
            "python": state.python,
        }
        for environment, state in found
    ]
    return Result(rows, text=lambda: _print(rows))


def _print(rows: list[dict[str, Any]]) -> None:
    print_table(
        ("TARGET", "STATE", "PYTHON", "SIZE", "PREFIX"),
        [(row["target"], row["state"], row["python"], format_bytes(row["bytes"]), row["prefix"]) for row in rows],
    )
