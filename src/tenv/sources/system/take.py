"""Take what a manifest asks of the machine, or say all that it lacks at once."""

from collections.abc import Callable, Mapping

from tenv.core.errors import HostError, ManifestError
from tenv.core.names import normalize
from tenv.core.toml_reader import nearest
from tenv.host.places import Places
from tenv.sources.system.cuda import find_toolkit
from tenv.sources.system.debugging import find_debug_python, find_gdb
from tenv.sources.system.gcc import find_gcc
from tenv.sources.system.interface import Kind, Lack, Tool, ToolRequest
from tenv.sources.system.mpi import find_mpi
from tenv.sources.system.msvc import find_msvc
from tenv.sources.system.shared_libraries import LIBRARIES, find_library
from tenv.targets.manifest import DEBUG_PYTHON, Manifest

__all__ = ["KINDS", "check_names", "take"]

KINDS: Mapping[str, Kind] = {
    "cuda-toolkit": find_toolkit,  # first: the others look beside it, and must suit it
    "gcc": find_gcc,
    "msvc": find_msvc,
    **dict.fromkeys(LIBRARIES, find_library),
    "mpi": find_mpi,
    DEBUG_PYTHON: find_debug_python,
    "gdb": find_gdb,
}
"""Finds each tool that ``[system]`` may name, in the order in which they are looked for."""


def check_names(manifest: Manifest) -> None:
    """Raise ManifestError where ``[system]`` names what tenv does not know how to find."""
    for platform in manifest.platforms:
        for name in manifest.on(platform).system:
            if normalize(name) not in KINDS:
                hint = nearest(name, KINDS) or f"known: {', '.join(KINDS)}"
                raise ManifestError(f"{manifest.file}: system.{name}: tenv can't take that from a machine", hint=hint)


def take(
    manifest: Manifest, places: Places, kept: Mapping[str, str], most: Callable[[str], int | None]
) -> tuple[Tool, ...]:
    """Return the tools of the machine that a manifest asks for.

    Args:
        manifest: The manifest as it reads on this platform.
        places: Where to look.
        kept: The paths of those that the environment was made with, by name: they stay where they still fit.
        most: Returns the highest major of GCC that a release of CUDA accepts, None where it is not known.

    Raises:
        ManifestError: It asks for something that tenv does not know how to find.
        HostError: The machine has none that fits; all that is lacking is said.
    """
    check_names(manifest)
    asked = {normalize(name): accepted for name, accepted in manifest.system.items()}
    taken: dict[str, Tool] = {}
    lacks = []
    for name, find in KINDS.items():
        if name in asked:
            found = find(ToolRequest(name, asked[name], places, kept.get(name, ""), taken, most))
            if isinstance(found, Lack):
                lacks.append(found)
            else:
                taken[name] = found
    if lacks:
        raise _error(manifest.name, lacks)
    return tuple(taken.values())


def _error(target: str, lacks: list[Lack]) -> HostError:
    lines = []
    for lack in lacks:
        wanted = lack.name if lack.accepted == "*" else f"{lack.name} {lack.accepted}"
        lines.append(f"{target} takes {wanted} from this machine, which has none that fits")
        lines += [f"  {sentence}" for sentence in lack.refused]
        lines.append(f"  looked at: {lack.looked_at}")
    return HostError("\n".join(lines), hint="; ".join(lack.install for lack in lacks))
