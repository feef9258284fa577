"""``tenv targets``."""

from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import command
from tenv.cli.here import row_of, yes
from tenv.cli.output import Result, Voice, out, print_table, prose
from tenv.core.errors import ManifestError

if TYPE_CHECKING:
    from tenv.targets.search import SearchPath, Target


@command("targets", short_help="List the targets and their origins.")
@click.option("--here", is_flag=True, help="Add whether each target builds and runs on this machine, as `tenv check`.")
def targets(voice: Voice, *, here: bool) -> Result:
    """List the targets of the project, of your configuration folder, and the built-in ones, newest first.

    KIND is the source of the toolkit: conda packages, NVIDIA's archives, wheels, or the system. TRIED has the
    systems on which an environment was created from the built-in lock, of this platform or of the one in parentheses;
    for the others the files are locked, and no environment was created. Last come the targets whose manifest or lock
    is not the built-in one: of the project, or yours (in your configuration folder).
    """
    from tenv.host.machine import current_platform
    from tenv.project.context import Context
    from tenv.targets.order import newest_first

    context = Context()
    found: list[Target] = []
    for name in context.places.names():
        try:
            found.append(context.places.find(name))
        except ManifestError as error:  # one bad manifest must not hide the others
            voice.say(f"{name}: {error.message}")
    platform = current_platform()
    ordered = newest_first(found, platform)
    rows = [_row(target, context.places, platform) for target in ordered]
    if here:
        from tenv.checks.host_options import HostOptions
        from tenv.checks.judge_targets import check

        for row, verdicts in zip(rows, check(context, [row["name"] for row in rows], "", HostOptions()), strict=True):
            row |= {"build": verdicts.build, "run": verdicts.run}
    return Result(rows, text=lambda: _print(rows, platform, here=here))


def _row(target: "Target", places: "SearchPath", platform: str) -> dict[str, Any]:
    created, locked = _created(target, places), target.lock_file.is_file()
    return {
        "name": target.name,
        "description": target.manifest.description,
        "origin": target.origin.value,
        "lock_origin": target.lock_origin.value if target.lock_origin else None,
        "owners": target.owners if target.lock_origin else f"{target.owners}, not locked",
        **row_of(target, platform),
        "platforms": list(target.manifest.platforms),
        "created": created,
        "resolved": [one for one in target.manifest.platforms if locked and one not in created],
        "locked": locked,
        "manifest": str(target.file),
    }


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


def _print(rows: list[dict[str, Any]], platform: str, *, here: bool) -> None:
    verdicts = ("BUILD", "RUN") if here else ()
    print_table(
        ("TARGET", "PYTORCH", "CUDA", "KIND", *verdicts, "TRIED"),
        [
            (
                row["name"],
                row["pytorch"] or "any",
                row["cuda"] or "-",
                row["kind"],
                *(yes(row[name.lower()]) for name in verdicts),
                ", ".join(
                    place if one == platform else f"{place} ({one})" for one, place in row["created"].items()
                ) or "-",
            )
            for row in rows
        ],
    )  # fmt: skip
    owners: dict[str, list[str]] = {}
    for row in rows:
        owners.setdefault(row["owners"], []).append(row["name"])
    others = {owner: names for owner, names in owners.items() if owner != "built-in"}
    if others:
        out()
    for owner, names in others.items():
        prose(f"{owner}: {', '.join(names)}" if len(names) < len(rows) else f"{owner}: all of them")
