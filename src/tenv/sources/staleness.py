"""Whether a lock satisfies its manifest, as each source sees it."""

from tenv.locks.lock import Lock
from tenv.locks.satisfaction import host_differences
from tenv.sources.interface import sources
from tenv.targets.layers import with_features
from tenv.targets.manifest import Manifest

__all__ = ["differences"]


def differences(lock: Lock, manifest: Manifest) -> list[str]:
    """Return what keeps a lock from satisfying a manifest, one sentence each; an empty list when it satisfies it.

    What counts is whether the locked files answer what is asked now, not whether the question is the same text: a
    looser range that the locked version still meets makes no lock stale.

    Args:
        lock: The lock.
        manifest: The manifest; what its features ask for counts, too.
    """
    manifest = with_features(manifest)
    found = host_differences(lock, manifest)
    for platform in manifest.platforms:
        if platform not in lock.platforms:
            found.append(f"platform {platform} is not in the lock")
            continue
        for source in sources():
            found += source.differences(lock, manifest.on(platform), platform)
    return found
