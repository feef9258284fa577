"""Resolves the system tools of a manifest, or reports all missing ones at once."""

from collections.abc import Callable, Mapping

from tenv.core.errors import HostError
from tenv.host.places import Places
from tenv.sources.system.debugging import find_debug_python, find_gdb
from tenv.sources.system.gpu_toolkits import find_rocm, find_toolkit
from tenv.sources.system.host_compilers import find_gcc, find_msvc
from tenv.sources.system.interface import Kind, Lack, Tool, ToolRequest
from tenv.sources.system.shared_libraries import LIBRARIES, find_library, find_mpi
from tenv.targets.manifest import DEBUG_PYTHON, Manifest

KINDS: Mapping[str, Kind] = {
    "cuda-toolkit": find_toolkit,  # first: the others search beside it, and must fit it
    "rocm": find_rocm,
    "gcc": find_gcc,
    "msvc": find_msvc,
    **dict.fromkeys(LIBRARIES, find_library),
    "mpi": find_mpi,
    DEBUG_PYTHON: find_debug_python,
    "gdb": find_gdb,
}
"""The finder of each tool of ``[system]``, in search order; the reader of manifests refuses other names."""


def take(
    manifest: Manifest, places: Places, kept: Mapping[str, str], most: Callable[[str], int | None]
) -> tuple[Tool, ...]:
    """Return the system tools of a manifest.

    Args:
        manifest: The manifest for this platform.
        places: The places to search.
        kept: The paths of the tools that the environment uses, by name; they stay if they still match.
        most: Returns the highest GCC major that a CUDA release accepts; None if unknown.

    Raises:
        HostError: The system lacks tools; the message lists all of them.
    """
    taken: dict[str, Tool] = {}
    lacks = []
    for name, find in KINDS.items():
        if name in manifest.system:
            found = find(ToolRequest(name, manifest.system[name], places, kept.get(name, ""), taken, most))
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
        lines.append(f"{target} resolves {wanted} from the system, which has no match")
        lines += [f"  {sentence}" for sentence in lack.refused]
        lines.append(f"  searched: {lack.looked_at}")
    return HostError("\n".join(lines), hint="; ".join(lack.install for lack in lacks))
