"""The order of targets by age: what `tenv targets` lists, and a part of the choice of `auto`."""

from collections.abc import Iterable

from tenv.core.versions import Version
from tenv.targets.manifest import Manifest
from tenv.targets.search import Target

NO_CUDA = Version("0")
_ANY_REVISION = Version("99")


def takes_toolkit(manifest: Manifest) -> bool:
    """Return whether the host's toolkit decides which CUDA a target is built with on the manifest's platform."""
    return "cuda-toolkit" in manifest.system and manifest.requirements.cuda is None


def newest_first(targets: Iterable[Target], platform: str) -> tuple[Target, ...]:
    """Return targets by their CUDA and then by the PyTorch revisions that they are for, the newest first.

    Args:
        targets: The targets.
        platform: The platform of the host; a target that is not for it counts as on its own first one.
    """

    def age(target: Target) -> tuple[Version, Version, bool, bool]:
        own = target.manifest.platforms
        manifest = target.manifest.on(platform if platform in own or not own else own[0])
        cuda = manifest.requirements.cuda or NO_CUDA
        return cuda, newest_pytorch(manifest), not takes_toolkit(manifest), not manifest.dependencies

    return tuple(sorted(targets, key=age, reverse=True))


def newest_pytorch(manifest: Manifest) -> Version:
    """Return the newest PyTorch version that a manifest names; a version after all others for one that names none."""
    numbers = [number for number in map(Version.find, str(manifest.pytorch or "").split(",")) if number]
    return max(numbers, default=_ANY_REVISION)
