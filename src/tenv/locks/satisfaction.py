"""Whether a lock still satisfies its manifest.

What counts is whether the locked files answer what is asked now, not whether the question is the same text: a looser
range that the locked version still meets makes no lock stale.
"""

from tenv.core.versions import Range
from tenv.locks.lock import CondaPackage, Lock
from tenv.rattler_api.records import satisfies
from tenv.targets.manifest import ArchiveRequest, CondaRequest, Manifest

__all__ = ["conda_differences", "differences"]


def differences(lock: Lock, manifest: Manifest) -> list[str]:
    """Return what keeps a lock from satisfying a manifest, one sentence each; an empty list when it satisfies it.

    What counts is whether the locked files answer what is asked now, not whether the question is the same text: a
    looser range that the locked version still meets makes no lock stale.
    """
    if lock.manifest == manifest.digest():
        return []
    found = _host_differences(lock, manifest)
    for platform in manifest.platforms:
        if platform not in lock.platforms:
            found.append(f"platform {platform} is not in the lock")
            continue
        found += _conda_differences(lock, manifest.on(platform), platform)
        found += _wheel_differences(lock, manifest.on(platform), platform)
        found += _system_differences(lock, manifest.on(platform), platform)
        found += _archive_differences(lock, manifest.on(platform), platform)
    return found


def conda_differences(lock: Lock, manifest: Manifest) -> list[str]:
    """Return what keeps the conda packages of a lock from satisfying a manifest, one sentence each."""
    found = _host_differences(lock, manifest)
    for platform in manifest.platforms:
        found += _conda_differences(lock, manifest.on(platform), platform)
    return found


def _host_differences(lock: Lock, manifest: Manifest) -> list[str]:
    found = []
    for key, wanted in (("cuda", manifest.requirements.cuda), ("glibc", manifest.requirements.glibc)):
        had = lock.requirements.get(key, "")
        if had != str(wanted or ""):
            found.append(f"requirements.{key} is {wanted or 'not given'}, the lock was made for {had or 'none'}")
    return found


def _conda_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    asked_then = lock.requests.get(platform, {}).get("dependencies", {})
    locked = {package.name: package for package in lock.conda.get(platform, ())}
    found = []
    for name, request in manifest.dependencies.items():
        package = locked.get(name)
        if package is None:
            found.append(f"{platform}: {name} is not in the lock")
        elif list(asked_then.get(name, [])) != request.asked() and not _answers(package, request):
            found.append(f"{platform}: {name} {package.version} {package.build} is locked, {request} is wanted")
    found += [
        f"{platform}: {name} is locked but no longer wanted"
        for name in asked_then
        if name not in manifest.dependencies and name in locked
    ]
    sources = manifest.sources(platform)
    gone = {package.channel for package in locked.values() if package.channel not in sources}
    return found + [f"{platform}: packages of {channel} are locked, which is no longer a channel" for channel in gone]


def _answers(package: CondaPackage, request: CondaRequest) -> bool:
    return satisfies(
        request.spec(package.name),
        name=package.name,
        version=package.version,
        build=package.build,
        channel=package.channel,
        subdir=package.subdir,
    )


def _system_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    """Return where the ranges of what is taken from the host are others than those that the lock records."""
    had = {name: row[0] for name, row in lock.requests.get(platform, {}).get("system", {}).items()}
    now = {name: str(accepted) for name, accepted in manifest.system.items()}
    return [
        f"{platform}: system.{name} is {now.get(name, 'not asked for')}, the lock has {had.get(name, 'nothing of it')}"
        for name in sorted({*had, *now})
        if had.get(name) != now.get(name)
    ]


def _archive_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    asked_then = lock.requests.get(platform, {}).get("archives", {})
    found = []
    for name, request in manifest.archives.items():
        asked = [str(part) for part in request.asked()]
        then = list(asked_then.get(name, []))
        if not then:
            found.append(f"{platform}: {name} is not in the lock")
        elif then[1:] != asked[1:] and request.sha256 not in _locked_digests(lock, platform, request, then):
            found.append(f"{platform}: {name} is asked for in another way than when it was locked")
        elif then[:1] != asked[:1] and not request.url:
            locked = [archive.version for archive in lock.archives.get(platform, ()) if archive.name == name]
            if not locked or not all(_is_of(version, request.version) for version in locked):
                found.append(f"{platform}: {name} {', '.join(locked)} is locked, {request.version} is wanted")
    return found + [
        f"{platform}: {name} is locked but no longer wanted" for name in asked_then if name not in manifest.archives
    ]


def _locked_digests(lock: Lock, platform: str, request: ArchiveRequest, then: list[str]) -> set[str]:
    """Return the digests that a file by its address was locked with; none when it goes elsewhere or is another."""
    asked = [str(part) for part in request.asked()]
    same = then[:2] == asked[:2] and then[3:] == asked[3:]
    return {archive.sha256 for archive in lock.archives.get(platform, ()) if same and archive.url == request.url}


def _is_of(version: str, wanted: str) -> bool:
    """Tell whether a locked version answers a request: ``auto``, a label that it belongs to, or a range."""
    return wanted == "auto" or version.startswith(f"{wanted}.") or version in Range(wanted)


def _wheel_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    found = []
    asked_then = lock.requests.get(platform, {}).get("pypi-dependencies", {})
    minors = manifest.python_minors() or ([minor] if (minor := lock.conda_python(platform)) else ())
    missing = [minor for minor in minors if minor not in lock.python_minors(platform)]
    if missing and manifest.wheels:
        found.append(f"{platform}: Python {', '.join(missing)} is not in the lock")
    for name, request in manifest.wheels.items():
        locked = [wheel for wheel in lock.wheels[platform] if wheel.name == name]
        extras = [extra for extra in request.extras if extra not in asked_then.get(name, [])[1:]]
        served = {minor for wheel in locked for minor in wheel.python}
        lacking = [minor for minor in minors if minor not in served and minor not in missing]
        if locked and lacking:
            found.append(f"{platform}: {name} is not in the lock for Python {', '.join(lacking)}")
        if not locked:
            found.append(f"{platform}: {name} is not in the lock")
        elif extras:
            found.append(f"{platform}: {name} was locked without the extra {', '.join(extras)}")
        else:
            found += [
                f"{platform}: {name} {wheel.version} is locked, {request.version} is wanted"
                for wheel in locked
                if set(wheel.python) & set(minors) and wheel.version not in request.version
            ]
    found += [
        f"{platform}: {name} is locked but no longer wanted" for name in asked_then if name not in manifest.wheels
    ]
    return found
