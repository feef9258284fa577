"""``tenv list``."""

from typing import Any

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, format_bytes
from tenv.cli.table import print_table

__all__ = ["list_environments"]


@command("list", short_help="List the environments here.")
def list_environments(voice: Voice) -> Result:  # noqa: ARG001 (every command has a voice)
    """List the environments of the project and of your data folder, with their states."""
    from tenv.project.context import Context
    from tenv.verbs.list import find_environments

    found = find_environments(Context())
    rows = [
        {
            "target": row.state.target,
            "prefix": str(row.environment.prefix),
            "state": row.word,
            "reason": row.fault.reason.value if row.fault else "",
            "lock_digest": row.state.lock,
            "bytes": row.state.bytes,
            "python": row.state.python,
        }
        for row in found
    ]
    return Result(rows, text=lambda: _print(rows))


def _print(rows: list[dict[str, Any]]) -> None:
    print_table(
        ("TARGET", "STATE", "PYTHON", "SIZE", "PREFIX"),
        [
            (
                row["target"],
                f"{row['state']} ({row['reason']})" if row["reason"] else row["state"],
                row["python"],
                format_bytes(row["bytes"]),
                row["prefix"],
            )
            for row in rows
        ],
    )
