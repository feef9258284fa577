"""``tenv targets``."""

from typing import TYPE_CHECKING, Any

from tenv.cli.command import command
from tenv.cli.output import Result, Voice
from tenv.cli.table import print_table

if TYPE_CHECKING:
    from tenv.targets.search import SearchPath, Target

__all__ = ["targets"]


@command("targets", short_help="List the targets and their origins.")
def targets(voice: Voice) -> Result:
    """List the targets of the project, of your configuration folder, and the built-in ones.

    KIND is the source of the toolkit: conda packages, NVIDIA's archives, wheels, or the system. CREATED has
    the platforms, each with its system, on which an environment was created from the built-in lock; on those
    of RESOLVED the files are locked, and no environment was created. ORIGIN says whose manifest and lock count:
    those of the project, yours (in your configuration folder), or the built-in ones.
    """
    from tenv.core.errors import ManifestError
    from tenv.project.context import Context
    from tenv.targets.manifest import toolkit_kind

    places = Context().places
    rows = []
    for name in places.names():
        try:
            target = places.find(name)
        except ManifestError as error:  # one bad manifest must not hide the others
            voice.say(f"{name}: {error.message}")
            continue
        created, locked = _created(target, places), target.lock_file.is_file()
        rows.append(
            {
                "name": name,
                "description": target.manifest.description,
                "origin": target.origin.value,
                "lock_origin": target.lock_origin.value if target.lock_origin else None,
                "owners": target.owners if target.lock_origin else f"{target.owners}, not locked",
                "kind": toolkit_kind(target.manifest).value,
                "platforms": list(target.manifest.platforms),
                "created": created,
                "resolved": [one for one in target.manifest.platforms if locked and one not in created],
                "pytorch": str(target.manifest.pytorch or ""),
                "locked": locked,
                "manifest": str(target.file),
            }
        )
    return Result(rows, text=lambda: _print(rows))


def _created(target: "Target", places: "SearchPath") -> dict[str, str]:
    """Return where environments were created from the lock of a target, by platform, if it is the built-in one."""
    from tenv.facts.tables import load_facts
    from tenv.targets.search import Origin

    found = load_facts().created_targets.places(target.name)
    if not found or target.origin is Origin.BUILT_IN is target.lock_origin:
        return found
    shipped = next(place for place in places.places if place.origin is Origin.BUILT_IN).lock_file(target.name)
    same = target.lock_file.is_file() and shipped.is_file() and shipped.read_bytes() == target.lock_file.read_bytes()
    return found if same else {}


def _print(rows: list[dict[str, Any]]) -> None:
    print_table(
        ("TARGET", "FOR PYTORCH", "KIND", "CREATED", "RESOLVED", "ORIGIN", "DESCRIPTION"),
        [
            (
                row["name"],
                row["pytorch"],
                row["kind"],
                ", ".join(f"{platform} ({place})" for platform, place in row["created"].items()) or "-",
                ", ".join(row["resolved"]) or "-",
                row["owners"],
                row["description"],
            )
            for row in rows
        ],
    )
