"""``tenv show``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.cli.command import command, of_part, prefix_option, target_argument
from tenv.cli.output import Result, Voice, format_bytes, out, print_labelled, print_table, prose

if TYPE_CHECKING:
    from tenv.targets.manifest import Manifest, Requirements
    from tenv.verbs.show import Shown


@command("show", short_help="Print a target: manifest, lock and environment.")
@target_argument
@of_part
@prefix_option
def show(
    voice: Voice,  # noqa: ARG001 (every command has a voice)
    *,
    target: str | None,
    platform: str,
    feature: str,
    prefix: Path | None,
) -> Result:
    """Print the requests of TARGET, its locked files for this platform, and the state of its environment."""
    from tenv.project.context import Context
    from tenv.verbs.show import describe

    context = Context()
    shown = describe(context, target or context.default_target(), prefix, platform, feature)
    return Result(shown.to_json(), text=lambda: _print(shown))


def _state(shown: "Shown") -> str:
    """Return the state of the environment, with the reason if it is stale."""
    if shown.fault:
        return f"{shown.word}: {shown.fault.message}; {shown.fault.hint}"
    if shown.state is None:
        return "not created"
    word = shown.to_json()["state"]
    return f"{word}: {shown.standing.reason}; {shown.standing.hint}" if shown.standing.reason else str(word)


def _glibc(manifest: "Manifest") -> str:
    from tenv.core.wheel_platforms import DEFAULT_GLIBC  # late: few commands need it

    on_linux = any(platform.startswith("linux") for platform in manifest.platforms)
    return str(manifest.requirements.glibc or (f"{DEFAULT_GLIBC} (the default)" if on_linux else ""))


def _beside(path: str) -> str:
    """Return the environment that a toolkit is beside, with its torch; empty for another target."""
    if not path:
        return ""
    from tenv.host.interface import Missing
    from tenv.targets.torch_beside import find_beside

    found = find_beside(Path(path))
    return f"{path} ({found.reason if isinstance(found, Missing) else f'torch {found.version}'})"


def _cuda(required: "Requirements", *, beside: bool) -> str:
    if required.waits:
        return f"that of {required.cuda_from}, which is not {'there' if beside else 'locked'}"
    return f"{required.cuda or 'none'}{f' (that of {required.cuda_from})' if required.cuda_from else ''}"


def _print(shown: "Shown") -> None:
    manifest = shown.target.manifest
    lines = [
        ("target", f"{shown.target.name} ({shown.target.owners})"),
        ("description", manifest.description),
        ("manifest", str(shown.target.file)),
        ("pytorch", str(manifest.pytorch or "any")),
        ("platforms", ", ".join(manifest.platforms)),
        ("python", str(manifest.python or "")),
        ("for", _beside(manifest.beside)),
        ("cuda", _cuda(manifest.requirements, beside=bool(manifest.beside))),
        ("glibc", _glibc(manifest)),
        (
            "indexes",
            ", ".join(f"{index}{' (explicit)' * index.explicit}" for index in manifest.on(shown.platform).indexes),
        ),
        ("system", ", ".join(f"{name} {accepted}" for name, accepted in manifest.on(shown.platform).system.items())),
        ("features", _features(shown)),
        ("lock", shown.lock_state),
        ("environment", f"{shown.environment.prefix} ({_state(shown)})"),
    ]
    if shown.state and shown.state.bytes:
        lines.append(("size", format_bytes(shown.state.bytes)))
    for name, value in lines:
        if value:
            print_labelled(f"{name}:", 13, value)
    out("")
    features = any(row["features"] for row in shown.packages)
    print_table(
        ("PACKAGE", "KIND", "REQUESTED", f"LOCKED ({shown.platform})", "SIZE", *(["FEATURE"] if features else [])),
        [_row(row, with_features=features) for row in shown.packages],
    )
    offered = shown.offered
    for row in shown.packages:
        if row.get("licence"):
            out(f"license of {row['name']}: {row['licence']}")
        if row.get("trust") == "first-use":
            prose(f"{row['name']}: its sha256 was recorded at the first download; no publisher names one")
        if row["name"] in offered:
            prose(f"{row['name']}: optional; `tenv lock {shown.target.name} --trust-first-use` adds it")


def _row(row: Mapping[str, Any], *, with_features: bool) -> tuple[str, ...]:
    """Return the cells of a package."""
    size = format_bytes(row["size"]) if row["size"] else ""
    cells = (row["name"], row["kind"], row["wanted"], row["locked"], size)
    return (*cells, ", ".join(row["features"])) if with_features else cells


def _features(shown: "Shown") -> str:
    """Return the features that the target has, and those that its environment holds."""
    names, held = ", ".join(shown.target.manifest.features), ", ".join(shown.state.features) if shown.state else ""
    return f"{names} (the environment holds {held})" if held else names and f"{names} (`tenv create --with`)"
