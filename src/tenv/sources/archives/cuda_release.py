"""A CUDA release in NVIDIA's redist: selects its components, and checks that they are of one release."""

import difflib
from collections.abc import Sequence

from tenv.core.errors import NoSolutionError
from tenv.core.versions import Version
from tenv.facts.cuda_parts import CudaRedistTable
from tenv.locks.lock import Archive
from tenv.sources.archives.redist import RedistManifest
from tenv.sources.archives.version_choice import VersionQuery

__all__ = ["check_components", "check_one_release", "toolkit"]


def toolkit(
    table: CudaRedistTable, question: VersionQuery, release: str, live: RedistManifest, platform: str
) -> tuple[str, ...]:
    """Return the components of a release that a build of PyTorch uses.

    Args:
        table: The components and the releases that have them.
        question: The query, for messages.
        release: The release.
        live: NVIDIA's manifest of it.
        platform: NVIDIA's name of the platform.

    Raises:
        NoSolutionError: The release lacks a component, or has none for the platform.
    """
    parts = table.components_of(Version(release), platform)
    lacking = [part for part in parts if not live.files(part.name, platform)]
    if len(lacking) == len(parts):
        raise NoSolutionError(
            f"archives.{question.name}: NVIDIA has no CUDA {release} for {platform}",
            hint="remove the platform from `platforms`, or move the request to [platform.NAME.archives]",
        )
    if lacking:
        raise NoSolutionError(
            f"archives.{question.name}: CUDA {release} lacks {lacking[0].name} for {platform}: {lacking[0].use}",
            hint=f'name the components: `{question.name} = {{ version = "{release}", components = [...] }}`',
        )
    return tuple(part.name for part in parts)


def check_components(question: VersionQuery, names: Sequence[str], live: RedistManifest, platform: str) -> None:
    """Raise an error for a component that a release lacks on a platform."""
    lacking = next((name for name in names if not live.files(name, platform)), "")
    if not lacking:
        return
    there = [name for name in live.components() if live.files(name, platform)]
    near = difflib.get_close_matches(lacking, there, 1)
    raise NoSolutionError(
        f"archives.{question.name}: CUDA {live.label or question.wanted} has no component {lacking} for {platform}",
        hint=f"did you mean `{near[0]}`?" if near else f"it has {', '.join(there)}",
    )


def check_one_release(file: str, platform: str, archives: Sequence[Archive]) -> None:
    """Raise an error for components of two CUDA releases, since compiler, headers and libraries must match."""
    releases: dict[str, str] = {}
    for archive in archives:
        if archive.release:
            releases.setdefault(archive.release, archive.part_of or archive.name)
    if len(releases) > 1:
        parts = ", ".join(f"{name} {release}" for release, name in sorted(releases.items()))
        newest = max(releases, key=Version)
        raise NoSolutionError(
            f"{file}: [archives] mixes releases of CUDA on {platform}: {parts}",
            hint=f'request one release: `version = "{newest}"` for each',
        )
