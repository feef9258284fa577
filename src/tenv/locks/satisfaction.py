"""Whether what a lock holds of each source still satisfies its manifest.

`tenv.sources.staleness` asks for every source. What counts is whether the locked files answer what is asked now, not
whether the question is the same text: a looser range that the locked version still meets makes no lock stale. Nothing
that the lock says of itself (what it was asked for, the digest of its manifest) counts in its favor: a lock may be
anybody's.
"""

from tenv.locks.conda_answers import conda_faults
from tenv.locks.lock import Lock
from tenv.locks.wheel_answers import wheel_faults
from tenv.targets.manifest import Manifest

__all__ = [
    "conda_differences",
    "conda_satisfies",
    "host_differences",
    "system_differences",
    "wheel_differences",
]


def conda_satisfies(lock: Lock, manifest: Manifest) -> bool:
    """Tell whether the conda packages of a lock satisfy a manifest on every platform."""
    return not host_differences(lock, manifest) and not any(
        conda_differences(lock, manifest.on(platform), platform) for platform in manifest.platforms
    )


def host_differences(lock: Lock, manifest: Manifest) -> list[str]:
    """Return what a lock was made for that a manifest no longer asks of the host, one sentence each."""
    found = []
    for key, wanted in (("cuda", manifest.requirements.cuda), ("glibc", manifest.requirements.glibc)):
        had = lock.requirements.get(key, "")
        if had != str(wanted or ""):
            found.append(f"requirements.{key} is {wanted or 'not given'}, the lock was made for {had or 'none'}")
    return found


def conda_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return what keeps the conda packages of a lock from satisfying a manifest on a platform, one sentence each."""
    return [f"{platform}: {fault}" for fault in conda_faults(lock, manifest, platform)]


def system_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return where the ranges of what is taken from the host are others than those that the lock records."""
    had = {name: row[0] for name, row in lock.requests.get(platform, {}).get("system", {}).items()}
    now = {name: str(accepted) for name, accepted in manifest.system.items()}
    return [
        f"{platform}: system.{name} is {now.get(name, 'not asked for')}, the lock has {had.get(name, 'nothing of it')}"
        for name in sorted({*had, *now})
        if had.get(name) != now.get(name)
    ]


def wheel_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return what keeps the wheels of a lock from satisfying a manifest on a platform, one sentence each."""
    found = list(wheel_faults(lock, manifest, platform))
    if any(wheel.requires is None for wheel in lock.wheels.get(platform, ())):
        known = set(found)
        found += [fault for fault in _of_requests(lock, manifest, platform) if fault not in known]
    return [f"{platform}: {fault}" for fault in found]


def _of_requests(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return what a lock that does not say what its wheels require was not made for; this refuses, and excuses nothing.

    A lock of schema 1 has no more to go by: an extra wheel in one is not seen.
    """
    asked_then = lock.requests.get(platform, {}).get("pypi-dependencies", {})
    extras = {
        name: [extra for extra in request.extras if extra not in asked_then.get(name, [])[1:]]
        for name, request in manifest.wheels.items()
        if name in asked_then
    }
    found = [f"{name} was locked without the extra {', '.join(lacking)}" for name, lacking in extras.items() if lacking]
    return found + [f"{name} is locked and nothing asks for it" for name in asked_then if name not in manifest.wheels]
