"""Whether the files of each source in a lock satisfy the manifest.

`tenv.sources.interface.differences` calls this for every source. The locked files are compared with the present
requests: a looser range that the locked version satisfies does not make a lock stale. The requests and the manifest
digest stored in a lock count for nothing, since a lock may come from anywhere.
"""

from collections.abc import Iterable, Iterator, Mapping

from tenv.core.names import channel_word
from tenv.locks.lock import CondaPackage, Lock
from tenv.locks.wheel_answers import required_by_wheels, unrequired_wheels, wheel_faults
from tenv.rattler_api.records import Matcher
from tenv.targets.manifest import Manifest


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
    return [f"{platform}: {fault}" for fault in _conda_faults(lock, manifest, platform)]


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


def _conda_faults(lock: Lock, manifest: Manifest, platform: str) -> Iterator[str]:
    """Yield why the conda packages of a platform do not satisfy a manifest, one sentence each.

    Args:
        lock: The lock.
        manifest: The manifest for the platform.
        platform: The platform.
    """
    locked = {package.name: package for package in lock.conda.get(platform, ())}
    if not locked and not manifest.dependencies:
        return
    sources = manifest.sources(platform)
    gone = {package.channel: package.name for package in locked.values() if package.channel not in sources}
    for channel, name in gone.items():
        yield f"{name} is locked from {channel_word(channel)}, which is not a channel of the manifest"
    matcher = Matcher()
    missing = False
    for name, request in manifest.dependencies.items():
        package = locked.get(name)
        if package is None:
            missing = True
            yield f"{name} is not in the lock"
        elif not matcher.satisfies(request.spec(package.name), package, channel=package.channel):
            yield f"{name} {package.version} {package.build} is locked, the manifest requests {request}"
    if not missing:
        yield from _closure(
            matcher, locked, manifest, {*manifest.dependencies, *required_by_wheels(lock, manifest, platform)}
        )


def unrequired(lock: Lock, manifest: Manifest, platform: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the conda packages and the wheels of a platform that no request of a manifest brings, by name."""
    locked = {package.name: package for package in lock.conda.get(platform, ())}
    asked = {*manifest.dependencies, *required_by_wheels(lock, manifest, platform)}
    reached = _reached(Matcher(), locked, asked)
    return frozenset(locked.keys() - reached), unrequired_wheels(lock, manifest, platform)


def _reached(matcher: Matcher, locked: Mapping[str, CondaPackage], asked: Iterable[str]) -> set[str]:
    """Return the names of the packages that requests bring."""
    reached = {name for name in asked if name in locked}
    waiting = sorted(reached)
    while waiting:
        new = {name for spec in locked[waiting.pop()].depends if (name := matcher.name(spec)) in locked} - reached
        reached |= new
        waiting += sorted(new)
    return reached


def _closure(
    matcher: Matcher, locked: Mapping[str, CondaPackage], manifest: Manifest, asked: Iterable[str]
) -> Iterator[str]:
    """Yield missing dependencies, excluded packages, and packages that nothing requires."""
    reached = _reached(matcher, locked, asked)
    for package in map(locked.__getitem__, sorted(reached)):
        for spec in package.depends:
            name = matcher.name(spec)
            if name.startswith("__"):
                yield from _host_fault(matcher, spec, name, package, manifest)
            elif name not in locked:
                yield f"{package.name} {package.version} requires `{spec}`, which is not in the lock"
            elif not matcher.satisfies(spec, locked[name]):
                yield f"{name} {locked[name].version} is locked, {package.name} {package.version} requires `{spec}`"
        for spec in package.constrains:
            other = locked.get(matcher.name(spec))
            if other is not None and not matcher.satisfies(spec, other):
                yield f"{other.name} {other.version} is locked, {package.name} {package.version} excludes it: `{spec}`"
    yield from (f"{name} is locked and nothing requires it" for name in locked if name not in reached)


def _host_fault(matcher: Matcher, spec: str, name: str, package: CondaPackage, manifest: Manifest) -> Iterator[str]:
    """Yield a requirement of a package on the host that the manifest does not have."""
    required = {"__glibc": manifest.requirements.glibc, "__cuda": manifest.requirements.cuda}.get(name)
    if required is not None and not matcher.has_version(spec, name, str(required)):
        yield f"{package.name} {package.version} requires `{spec}` of the host, the manifest requires {required}"
