"""``tenv targets``."""

from typing import Any

from tenv.cli.command import command
from tenv.cli.output import Result, Voice
from tenv.cli.table import print_table

__all__ = ["targets"]


@command("targets", short_help="List the targets and their origins.")
def targets(voice: Voice) -> Result:
    """List the targets of the project, of your configuration folder, and the built-in ones.

    KIND is the source of the toolkit: conda packages, NVIDIA's archives, wheels, or the system. MANIFEST
    and LOCK say whose counts: that of the project, yours (in your configuration folder), or the built-in one.
    """
    from tenv.core.errors import ManifestError
    from tenv.project.context import Context
    from tenv.targets.toolkit_kind import toolkit_kind

    places = Context().places
    rows = []
    for name in places.names():
        try:
            target = places.find(name)
        except ManifestError as error:  # one bad manifest must not hide the others
            voice.say(f"{name}: {error.message}")
            continue
        rows.append(
            {
                "name": name,
                "description": target.manifest.description,
                "origin": target.origin.value,
                "lock_origin": target.lock_origin.value if target.lock_origin else None,
                "kind": toolkit_kind(target.manifest).value,
                "platforms": list(target.manifest.platforms),
                "pytorch": str(target.manifest.pytorch or ""),
                "locked": target.lock_file.is_file(),
                "manifest": str(target.file),
            }
        )
    return Result(rows, text=lambda: _print(rows))


def _print(rows: list[dict[str, Any]]) -> None:
    from tenv.targets.search import Origin

    print_table(
        ("TARGET", "FOR PYTORCH", "KIND", "MANIFEST", "LOCK", "DESCRIPTION"),
        [
            (
                row["name"],
                row["pytorch"],
                row["kind"],
                Origin(row["origin"]).owner,
                Origin(row["lock_origin"]).owner if row["lock_origin"] else "not locked",
                row["description"],
            )
            for row in rows
        ],
    )
