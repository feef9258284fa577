"""The built-in targets with the same CUDA release as another one, for the platforms that it lacks."""

from collections.abc import Iterable

from tenv.targets.manifest import Manifest
from tenv.targets.search import built_in_manifests

__all__ = ["sister_hint", "sisters"]


def sisters(manifest: Manifest, platform: str, others: Iterable[Manifest]) -> list[str]:
    """Return the targets of the same CUDA release that serve a platform, those without system toolkits first.

    A name never turns into another kind by itself, so these are for a message.

    Args:
        manifest: The target without the platform.
        platform: The platform.
        others: The manifests of the other targets.
    """
    cuda = manifest.requirements.cuda
    found = [
        other
        for other in others
        if other.name != manifest.name and platform in other.platforms and other.requirements.cuda is not None
        if cuda is not None and other.requirements.cuda.major_minor == cuda.major_minor
    ]
    return [other.name for other in sorted(found, key=lambda other: ("cuda-toolkit" in other.system, other.name))]


def sister_hint(manifest: Manifest, platform: str) -> str:
    """Return the hint that names the built-in target of the same CUDA release on a platform; empty without one."""
    if manifest.requirements.cuda is None:
        return ""
    names = sisters(manifest, platform, built_in_manifests())
    return f"the same CUDA on {platform}: {', '.join(f'`{name}`' for name in names)}" if names else ""
