"""The features of a target in its lock: the files that each brings, and the lock without some of them.

A lock is chosen for the target and all of its features together. A file belongs to the target if the target's own
requests bring it, by the dependencies of packages. Any other file belongs to the features whose requests bring it. So a
feature adds files and changes no version.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tenv.core.names import normalize
from tenv.core.versions import Version
from tenv.core.wheel_platforms import marker_values
from tenv.locks.lock import Archive, CondaPackage, Lock, LockedTree, Wheel
from tenv.locks.wheel_answers import locked_wheels, python_packages, reach
from tenv.targets.manifest import Manifest, with_features

_WHEELS = "pypi-dependencies"

Files = Mapping[str, Mapping[str, tuple[Any, ...]]]


def divide(manifest: Manifest, files: Files) -> Files:
    """Return the files of a lock, each with the features that bring it.

    Args:
        manifest: The manifest, with its features.
        files: The files chosen for all of it, by the key of their source and by platform.
    """
    if not manifest.features:
        return files
    conda, wheels, archives, trees = (files.get(key, {}) for key in ("conda", "wheels", "archives", "trees"))
    reached = {
        on: _reached(
            (*wheels.get(on, ()), *trees.get(on, ())),
            _requests(manifest, on, "wheels"),
            on,
            conda.get(on, ()),
            manifest.overrides,
        )
        for on in {*wheels, *trees}
    }
    return {
        **files,
        "conda": {
            on: _divide_conda(rows, _requests(manifest, on, "conda"), reached.get(on, {})) for on, rows in conda.items()
        },
        "wheels": {
            on: tuple(row for wheel in rows for row in _split(wheel, reached[on])) for on, rows in wheels.items()
        },
        "archives": {on: _divide_archives(rows, _requests(manifest, on, "archives")) for on, rows in archives.items()},
        "trees": {on: tuple(_of_features(tree, reached[on]) for tree in rows) for on, rows in trees.items()},
    }


def _requests(manifest: Manifest, platform: str, key: str) -> dict[str, Mapping[str, Any]]:
    """Return the requests to a source: the target's by an empty name, and each feature's by its name."""
    own = {"": manifest.on(platform).wanted(key)}
    return own | {name: feature.on(platform).wanted(key) for name, feature in sorted(manifest.features.items())}


def _features(name: str, reached: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the features that bring a file; an empty tuple where the target itself does."""
    return () if name in reached[""] else tuple(feature for feature, names in reached.items() if name in names)


def _divide_conda(
    packages: tuple[CondaPackage, ...],
    asked: Mapping[str, Mapping[str, Any]],
    by_wheels: Mapping[str, Mapping[str, Iterable[str]]],
) -> tuple[CondaPackage, ...]:
    """Return conda packages with their features: those whose requests bring them, or whose wheels require them."""
    from tenv.rattler_api.records import Matcher  # late: a target without features needs none

    matcher = Matcher()
    depends = {package.name: [matcher.name(spec) for spec in package.depends] for package in packages}
    required: dict[str, set[str]] = {feature: set() for feature in asked}
    for by_feature in by_wheels.values():
        for feature, names in by_feature.items():
            required[feature] |= set(names)
    reached = {
        feature: _closure({*requests, *(name for name in depends if normalize(name) in required[feature])}, depends)
        for feature, requests in asked.items()
    }
    return tuple(replace(package, features=_features(package.name, reached)) for package in packages)


def _closure(roots: Iterable[str], depends: Mapping[str, Iterable[str]]) -> set[str]:
    reached, waiting = set(roots), list(roots)
    while waiting:
        new = set(depends.get(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    return reached


def _of_features(tree: LockedTree, by_minor: Mapping[str, Mapping[str, Iterable[str]]]) -> LockedTree:
    """Return a source tree with its features; one that the target needs for any Python is the target's."""
    found = [_features(tree.name, by_minor[minor]) for minor in tree.python]
    names = tuple(sorted({name for features in found for name in features})) if all(found) else ()
    return replace(tree, features=names)


def _reached(
    files: tuple[Wheel | LockedTree, ...],
    asked: Mapping[str, Mapping[str, Any]],
    platform: str,
    conda: tuple[CondaPackage, ...],
    overrides: tuple[str, ...],
) -> dict[str, dict[str, Iterable[str]]]:
    """Return the names that the target and each feature bring, by Python minor and feature."""
    given = {normalize(name): version for name, version in python_packages(conda).items()}
    by_minor = {}
    for minor in {minor for file in files for minor in file.python}:
        rows = locked_wheels((file for file in files if minor in file.python), overrides)
        found = {name: reach(rows, requests, given, marker_values(platform, minor)) for name, requests in asked.items()}
        names: dict[str, Iterable[str]] = {name: reached.names for name, reached in found.items()}
        if not found[""].complete:  # in doubt, a file is the target's
            of_features = {name for feature, requests in asked.items() if feature for name in requests}
            names[""] = rows.keys() - (of_features - found[""].names)
        by_minor[minor] = names
    return by_minor


def _split(wheel: Wheel, by_minor: Mapping[str, Mapping[str, Iterable[str]]]) -> Iterator[Wheel]:
    """Yield a wheel with its features; one that is in different ones by Python has a row for each."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for minor in wheel.python:
        rows.setdefault(_features(wheel.name, by_minor[minor]), []).append(minor)
    for features, minors in sorted(rows.items()):
        yield replace(wheel, python=tuple(minors), features=features)


def _divide_archives(archives: tuple[Archive, ...], asked: Mapping[str, Mapping[str, Any]]) -> tuple[Archive, ...]:
    def bringing(archive: Archive) -> tuple[str, ...]:
        found = [feature for feature, names in asked.items() if any(map(archive.answers_for, names))]
        return () if "" in found else tuple(found)

    return tuple(replace(archive, features=bringing(archive)) for archive in archives)


def division_faults(lock: Lock, manifest: Manifest) -> list[str]:
    """Return where the features that a lock notes at its files are not those that bring them, one sentence each.

    An edit of a feature may ask for a file that is in the lock already, for the target or for another feature: then
    only these notes change.

    Args:
        lock: The lock, which satisfies the manifest with all of its features.
        manifest: The manifest, with its features.
    """
    had: Files = {"conda": lock.conda, "wheels": lock.wheels, "archives": lock.archives, "trees": lock.trees}
    whole = {
        key: {platform: tuple(_without_features(rows)) for platform, rows in files.items()}
        for key, files in had.items()
    }
    now = divide(manifest, whole)
    known = all(wheel.requires is not None for wheels in lock.wheels.values() for wheel in wheels)
    return [
        f"{platform}: {name} is brought by {_brought_by(right)}, the lock has it for {_brought_by(noted)}"
        for key, files in had.items()
        for platform in files
        for name, noted, right in _moved(files[platform], now[key][platform])
        if known or key == "conda" or _contradicts(noted, right, asked=name in manifest.on(platform).wheels)
    ]


def _contradicts(noted: tuple[str, ...] | None, right: tuple[str, ...] | None, *, asked: bool) -> bool:
    """Return whether the features noted at a file are not those that request it; what packages require is unknown.

    Args:
        noted: The features that the lock notes; empty for the target.
        right: The features that request the file.
        asked: Whether the target requests it.
    """
    return bool(noted) and (asked or not set(right or ()) <= set(noted or ()))


def _without_features(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield rows without their features; rows of one wheel for different features become one."""
    merged: dict[Any, set[str]] = {}
    for row in rows:
        bare = replace(row, features=(), python=()) if isinstance(row, Wheel) else replace(row, features=())
        merged.setdefault(bare, set()).update(getattr(row, "python", ()))
    for bare, minors in merged.items():
        yield replace(bare, python=tuple(sorted(minors, key=Version))) if isinstance(bare, Wheel) else bare


def _moved(
    before: Iterable[Any], after: Iterable[Any]
) -> Iterator[tuple[str, tuple[str, ...] | None, tuple[str, ...] | None]]:
    """Yield the name of each file whose features differ, with those before and after; once for all Pythons."""

    def by_file(rows: Iterable[Any]) -> dict[tuple[str, str], tuple[str, ...]]:
        return {(row.name, minor): row.features for row in rows for minor in getattr(row, "python", ()) or ("",)}

    had, now = by_file(before), by_file(after)
    yield from dict.fromkeys((key[0], had.get(key), now.get(key)) for key in had if had.get(key) != now.get(key))


def _brought_by(features: tuple[str, ...] | None) -> str:
    if not features:
        return "the target"
    return ("feature " if len(features) == 1 else "features ") + ", ".join(features)


def features_of(lock: Lock) -> tuple[str, ...]:
    """Return the features that a lock has files of, sorted."""
    kinds: tuple[Mapping[str, tuple[Any, ...]], ...] = (lock.conda, lock.wheels, lock.archives, lock.trees)
    return tuple(sorted({name for kind in kinds for rows in kind.values() for row in rows for name in row.features}))


def take(lock: Lock, names: Iterable[str] = ()) -> Lock:
    """Return a lock with the files of the target and of some of its features alone; its bytes stay."""
    chosen = set(names)
    if chosen >= set(features_of(lock)):
        return lock

    def taken(files: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        return {
            platform: tuple(row for row in rows if not row.features or not chosen.isdisjoint(row.features))
            for platform, rows in files.items()
        }

    conda = taken(lock.conda)
    kept = {package.url for rows in conda.values() for package in rows}
    left = {package.url for rows in lock.conda.values() for package in rows} - kept
    return replace(
        lock,
        conda=conda,
        wheels=taken(lock.wheels),
        archives=taken(lock.archives),
        trees=taken(lock.trees),
        left_out=lock.left_out | left,
    )


def part(lock: Lock, manifest: Manifest, names: Iterable[str] = ()) -> tuple[Lock, Manifest]:
    """Return a lock and a manifest of the target and some of its features alone.

    The lock keeps the requests that it was made for, but for those of the other features.
    """
    whole, chosen = with_features(manifest), with_features(manifest, names)
    requests = {}
    for platform, sections in lock.requests.items():
        others = whole.on(platform).wheels.keys() - chosen.on(platform).wheels.keys()
        requests[platform] = {
            key: {name: row for name, row in rows.items() if key != _WHEELS or name not in others}
            for key, rows in sections.items()
        }
    return replace(take(lock, names), requests=requests), chosen
