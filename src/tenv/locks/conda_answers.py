"""Whether the conda packages of a lock satisfy a manifest, come from its channels, and are all needed."""

from collections.abc import Iterator, Mapping

from tenv.core.names import channel_word
from tenv.locks.lock import CondaPackage, Lock
from tenv.rattler_api.records import Matcher
from tenv.targets.manifest import CondaRequest, Manifest

__all__ = ["conda_faults"]


def conda_faults(lock: Lock, manifest: Manifest, platform: str) -> Iterator[str]:
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
        elif not _answers(matcher, package, request):
            yield f"{name} {package.version} {package.build} is locked, the manifest requests {request}"
    if not missing:
        yield from _closure(matcher, locked, manifest)


def _answers(matcher: Matcher, package: CondaPackage, request: CondaRequest) -> bool:
    return matcher.satisfies(request.spec(package.name), package, channel=package.channel)


def _closure(matcher: Matcher, locked: Mapping[str, CondaPackage], manifest: Manifest) -> Iterator[str]:
    """Yield missing dependencies, excluded packages, and packages that nothing requires."""
    reached = set(manifest.dependencies)
    waiting = sorted(reached)
    while waiting:
        package = locked[waiting.pop()]
        for spec in package.depends:
            name = matcher.name(spec)
            if name.startswith("__"):
                yield from _host_fault(matcher, spec, name, package, manifest)
            elif name not in locked:
                yield f"{package.name} {package.version} requires `{spec}`, which is not in the lock"
            elif not matcher.satisfies(spec, locked[name]):
                yield f"{name} {locked[name].version} is locked, {package.name} {package.version} requires `{spec}`"
            if name in locked and name not in reached:
                reached.add(name)
                waiting.append(name)
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
