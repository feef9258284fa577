"""Whether a lock satisfies its manifest, by the judgment of each source."""

from tenv.locks.lock import Lock
from tenv.locks.satisfaction import host_differences
from tenv.sources.interface import sources
from tenv.targets.manifest import Manifest, with_features

__all__ = ["differences"]


def differences(lock: Lock, manifest: Manifest) -> list[str]:
    """Return why a lock does not satisfy a manifest, one sentence each; empty if it does.

    The locked files are compared with the present requests: a looser range that the locked version satisfies does not
    make a lock stale.

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
