"""Whether the files of each source in a lock satisfy the manifest.

`tenv.sources.interface.differences` calls this for every source. The locked files are compared with the present
requests: a looser range that the locked version satisfies does not make a lock stale. The requests and the manifest
digest stored in a lock count for nothing, since a lock may come from anywhere.
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
    """Return whether the conda packages of a lock satisfy a manifest on every platform."""
    return not host_differences(lock, manifest) and not any(
        conda_differences(lock, manifest.on(platform), platform) for platform in manifest.platforms
    )


def host_differences(lock: Lock, manifest: Manifest) -> list[str]:
    """Return the differences between the host requirements of a lock and a manifest, one sentence each."""
    found = []
    for key, wanted in (("cuda", manifest.requirements.cuda), ("glibc", manifest.requirements.glibc)):
        had = lock.requirements.get(key, "")
        if had != str(wanted or ""):
            found.append(f"requirements.{key} is {wanted or 'not set'}, the lock was made for {had or 'none'}")
    return found


def conda_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return why the conda packages of a lock do not satisfy a manifest on a platform, one sentence each."""
    return [f"{platform}: {fault}" for fault in conda_faults(lock, manifest, platform)]


def system_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return the differences between the system requests of a lock and a manifest, one sentence each."""
    had = {name: row[0] for name, row in lock.requests.get(platform, {}).get("system", {}).items()}
    now = {name: str(accepted) for name, accepted in manifest.system.items()}
    return [
        f"{platform}: system.{name} is {now.get(name, 'not requested')}, the lock has {had.get(name, 'none')}"
        for name in sorted({*had, *now})
        if had.get(name) != now.get(name)
    ]


def wheel_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return why the wheels of a lock do not satisfy a manifest on a platform, one sentence each."""
    found = list(wheel_faults(lock, manifest, platform))
    if any(wheel.requires is None for wheel in lock.wheels.get(platform, ())):
        known = set(found)
        found += [fault for fault in _of_requests(lock, manifest, platform) if fault not in known]
    return [f"{platform}: {fault}" for fault in found]


def _of_requests(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return the requests that a lock was not made for; for a lock whose wheels have unknown requirements."""
    asked_then = lock.requests.get(platform, {}).get("pypi-dependencies", {})
    extras = {
        name: [extra for extra in request.extras if extra not in asked_then.get(name, [])[1:]]
        for name, request in manifest.wheels.items()
        if name in asked_then
    }
    found = [f"{name} was locked without the extra {', '.join(lacking)}" for name, lacking in extras.items() if lacking]
    return found + [f"{name} is locked and nothing requires it" for name in asked_then if name not in manifest.wheels]
