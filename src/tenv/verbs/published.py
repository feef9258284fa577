"""The published versions of a package on the indexes and channels in use, and the newest ones of a lock's packages."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError, UsageError
from tenv.core.names import channel_urls, channel_word, normalize
from tenv.core.versions import Range, Version, fits, is_release, same_release
from tenv.core.wheel_platforms import DEFAULT_GLIBC, accepted_tags
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.sources.interface import sources
from tenv.targets.manifest import PLATFORMS, Manifest, with_features
from tenv.targets.search import Target
from tenv.verbs.lock import lock_target

if TYPE_CHECKING:
    from tenv.sources.wheels.pages import PublishedWheel

CHANNEL = "conda-forge"
"""The channel that is asked without a target."""

_RANGED = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(?P<range>[<>=!~].*)")

_OLDER_PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
_PYTHONS = _OLDER_PYTHONS[3:]
"""The Pythons that wheels without a target are looked at for."""


@dataclass(frozen=True, slots=True)
class Published:
    """A published version of a package."""

    name: str
    """The package."""
    kind: str
    """``wheel`` or ``conda``."""
    version: str
    """The version."""
    source: str
    """The address of the index, or the channel."""
    platforms: tuple[str, ...]
    """The platforms of the target that it serves with every Python of the target."""
    fits: bool
    """Whether it serves all of them and the target accepts this version."""


def search_package(context: Context, name: str, target: Target | None, channels: Sequence[str] = ()) -> list[Published]:
    """Return the published versions of a package, wheels first, the newest first.

    Args:
        context: The context of the verb.
        name: The package, with or without a range of versions: ``numpy``, ``numpy>=2,<3``.
        target: The target whose indexes, channels, platforms and Pythons count; None for all platforms and `CHANNEL`.
        channels: More channels to ask.

    Raises:
        UsageError: No index and no channel has the package, or it has no version in the range.
        NetworkError: An index does not respond, or no channel does.
    """
    manifest = with_features(target.manifest) if target else None
    typed = _RANGED.fullmatch(name.strip())
    name, asked = (typed["name"], _range(name, typed["range"])) if typed else (name, None)
    found = _wheels(context, manifest, name)
    try:
        found += _conda(context, manifest, name, channels)
    except NetworkError as error:
        if not found:
            raise
        context.progress.say(f"warning: {error.message}")
    if not found:
        label = shlex.join(["tenv", "search", name, *([target.name] if target else [])])
        hint = f"`{label} --channel NAME` asks another channel"
        raise UsageError(f"no index and no channel in use has a package `{name}`", hint=hint)
    ranged = [row for row in found if asked is None or row.version in asked]
    if not ranged:
        line = shlex.join(["tenv", "search", name, *([target.name] if target else [])])
        raise UsageError(f"no version of {name} is {asked}; the newest is {found[0].version}", hint=f"`{line}`")
    return ranged


def _range(typed: str, text: str) -> Range:
    """Return the range of a typed package; `==2.1` means that version; raises UsageError for what is none."""
    try:
        return Range(text.removeprefix("==") if "," not in text else text)
    except ValueError as error:
        raise UsageError(
            f"`{typed}` is no package with a range: {error}", hint="`tenv search 'numpy>=2,<3'`"
        ) from error


def pythons_of_pins(context: Context, manifest: Manifest, pins: Mapping[str, str]) -> tuple[str, ...]:
    """Return the newest Pythons with a wheel of each pin on every platform; none if no index has them or responds.

    A release without any wheel for these Pythons does not count: a build can serve all of them.

    Args:
        context: The context of the verb.
        manifest: The manifest whose indexes come before the user's.
        pins: The version of each pinned package.
    """
    from tenv.sources.wheels.pages import wheels_by_name  # late: as in all verbs

    context.progress.step("asking the indexes for the Pythons of the pins")
    try:
        found = wheels_by_name(context.uv(), manifest, list(pins))
    except NetworkError:
        return ()
    served = []
    for name, version in pins.items():
        wheels = [wheel for wheel in found[name] if same_release(wheel.file.version, version)]
        minors = {
            minor
            for minor in _OLDER_PYTHONS
            if all(_serves_one(wheels, minor, manifest, platform) for platform in manifest.platforms)
        }
        if minors:
            served.append(minors)
    both = set.intersection(*served) if served else set()
    newest = next((place for place in range(len(_OLDER_PYTHONS), 0, -1) if _OLDER_PYTHONS[place - 1] in both), 0)
    first = next((place for place in range(newest, 0, -1) if _OLDER_PYTHONS[place - 1] not in both), 0)
    return _OLDER_PYTHONS[first:newest]


def _serves_one(wheels: "Iterable[PublishedWheel]", minor: str, manifest: Manifest | None, platform: str) -> bool:
    glibc = manifest.on(platform).requirements.glibc if manifest else None
    tags = accepted_tags(platform, minor, glibc or DEFAULT_GLIBC)
    files = [wheel.file for wheel in wheels if _accepts(wheel.pythons, minor)]
    return any(tag in tags for file in files for tag in file.all_tags())


def _wheels(context: Context, manifest: Manifest | None, name: str) -> list[Published]:
    from packaging.version import Version  # late: 15 ms

    from tenv.sources.wheels.pages import PublishedWheel, wheels_by_name  # late: as in all verbs

    context.progress.step(f"asking the indexes for {name}")
    by_version: dict[tuple[str, str], list[PublishedWheel]] = {}
    for wheel in wheels_by_name(context.uv(), manifest, [name])[name]:
        if is_release(wheel.file.version):
            by_version.setdefault((wheel.file.version, wheel.index), []).append(wheel)
    platforms = manifest.platforms if manifest else PLATFORMS
    found = []
    for (version, index), wheels in by_version.items():
        served = tuple(on for on in platforms if _serves(wheels, manifest, on))
        asked = [manifest.on(on).wheels.get(normalize(name)) for on in served] if manifest else []
        accepted = all(version in row.version for row in asked if row) and not Version(version).is_prerelease
        found.append(Published(name, "wheel", version, index, served, accepted and served == (*platforms,)))
    return sorted(found, key=lambda row: Version(row.version), reverse=True)


def _serves(wheels: "Iterable[PublishedWheel]", manifest: Manifest | None, platform: str) -> bool:
    """Return whether wheels of one release serve a platform with all Pythons of a target; without one, with any."""
    minors = manifest.python_minors() if manifest else ()
    served = [_serves_one(wheels, minor, manifest, platform) for minor in minors or _PYTHONS]
    return all(served) if minors else any(served)


def _accepts(pythons: str, minor: str) -> bool:
    """Return whether a `requires-python` accepts a minor; one that can't be read accepts all, as for uv."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # late: 15 ms

    try:
        return not pythons or fits(SpecifierSet(pythons), f"{minor}.99")
    except InvalidSpecifier:
        return True


def _conda(context: Context, manifest: Manifest | None, name: str, channels: Sequence[str]) -> list[Published]:
    words = (*(manifest.channels if manifest else (CHANNEL,)), *channels)
    if not words:
        return []
    from tenv.rattler_api.records import fits as fits_spec  # late: heavy
    from tenv.rattler_api.solver import Solver
    from tenv.sources.conda.queries import newest_first

    platforms = manifest.platforms if manifest else PLATFORMS
    context.progress.step(f"asking {', '.join(words)} for {name}")
    solver = Solver(context.network())
    served: dict[str, dict[str, set[str]]] = {}
    accepted: set[tuple[str, str]] = set()
    for platform in platforms:
        asked = manifest.on(platform).dependencies.get(name) if manifest else None
        for url in dict.fromkeys(url for word in words for url in channel_urls(word, platform)):
            for record in solver.candidates([url], platform, name.lower()):
                channel = channel_word(url)
                served.setdefault(channel, {}).setdefault(record.version, set()).add(platform)
                if asked is None or fits_spec(asked.spec(name), record):
                    accepted.add((channel, record.version))
    found = []
    for channel, versions in served.items():
        for version in newest_first(versions):
            here = tuple(platform for platform in platforms if platform in versions[version])
            whole = here == (*platforms,) and (channel, version) in accepted
            found.append(Published(name, "conda", version, channel, here, whole))
    return found


@dataclass(frozen=True, slots=True)
class Outdated:
    """A package of a lock with a newer version."""

    name: str
    """The package."""
    kind: str
    """Its kind, as in `tenv packages`."""
    locked: tuple[str, ...]
    """Its versions in the lock: several where platforms or Pythons differ."""
    allowed: tuple[str, ...]
    """Its versions in a lock of today, which `tenv update` writes; empty where it would not be in it."""
    newest: str | None
    """The newest published version; None if unknown."""


def find_outdated(context: Context, target: Target) -> list[Outdated]:
    """Return the packages of a lock that have newer versions, allowed by the manifest or not.

    Raises:
        LockMissingError, LockCorruptError: There is no lock, or none that can be read.
        NoSolutionError: No set of files satisfies the manifest today.
        NetworkError: An index or a channel does not respond.
    """
    old = read_lock(target.lock_file, target.name)
    new = lock_target(context, target, upgrade=None, dry_run=True).lock
    manifest = with_features(target.manifest)
    before, after = _versions(old), _versions(new)
    newest = _newest_wheels(context, manifest, old) | _newest_conda(context, manifest, old)
    found = []
    for (kind, name), locked in sorted(before.items(), key=lambda row: (row[0][1], row[0][0])):
        allowed, latest = after.get((kind, name), ()), newest.get((kind, name))
        if locked != allowed or (latest and latest not in locked):
            found.append(Outdated(name, kind, locked, allowed, latest))
    return found


def _versions(lock: Lock) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the versions of each package of a lock, by kind and name."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for source in sources():
        for platform in lock.platforms if source.section.noun else ():
            for file in lock.files(source.section.key, platform):
                found.setdefault((source.section.kind, file.name), {})[file.version] = None
    return {key: tuple(sorted(versions, key=_numbers)) for key, versions in found.items()}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part[:18]) for part in re.findall(r"\d+", version))


def _newest_wheels(context: Context, manifest: Manifest, lock: Lock) -> dict[tuple[str, str], str]:
    """Return the newest release of each wheel of a lock for a Python of the target, by kind and name."""
    rows = [wheel for wheels in lock.wheels.values() for wheel in wheels if not wheel.url and not wheel.path]
    if not rows or context.offline:
        return {}
    python = min((minor for wheel in rows for minor in wheel.python), key=Version)
    context.progress.step("asking the indexes for newer versions")
    indexes = {wheel.name: wheel.index for wheel in rows if wheel.index}
    names = sorted({wheel.name for wheel in rows})
    found = context.uv().releases(names, python, indexes=indexes, manifest=manifest)
    return {("wheel", normalize(row["name"])): str(row.get("version", "")) for row in found}


def _newest_conda(context: Context, manifest: Manifest, lock: Lock) -> dict[tuple[str, str], str]:
    """Return the newest version of each conda package of a lock, by kind and name."""
    names = sorted({package.name for packages in lock.conda.values() for package in packages})
    if not names:
        return {}
    from tenv.rattler_api.solver import Solver  # late: heavy
    from tenv.sources.conda.queries import newest_first

    context.progress.step("asking the channels for newer versions")
    solver = Solver(context.network())
    versions: dict[str, set[str]] = {}
    for platform in manifest.platforms:
        for record in solver.candidates(manifest.on(platform).sources(platform), platform, *names):
            versions.setdefault(record.name, set()).add(record.version)
    return {("conda", name): newest_first(found)[0] for name, found in versions.items()}
