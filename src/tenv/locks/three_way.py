"""The starting point for the merge of two locks of one target.

A text merge of two locks need not be consistent. This module collects the preferred packages of both sides; the solver
decides.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tenv.core.versions import Version
from tenv.core.yaml_reader import load
from tenv.locks.lock import Archive, CondaPackage, Lock, LockedTree, OtherFile, Wheel
from tenv.locks.lock_file import parse_lock, render_lock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def begin_with(base: Lock | None, ours: Lock, theirs: Lock) -> Lock:
    """Return a lock of the common packages, those that one side changed, and the newer of those that both changed.

    Args:
        base: The common ancestor; None without one.
        ours: Our side, which also gives the requests.
        theirs: Their side.
    """
    platforms = tuple(dict.fromkeys((*ours.platforms, *theirs.platforms)))
    sides = (base, ours, theirs)
    wheels = {platform: _wheels(sides, platform) for platform in platforms}
    conda = {platform: _conda(sides, platform) for platform in platforms}
    archives = {platform: _archives(sides, platform) for platform in platforms}
    trees = {platform: _trees(sides, platform) for platform in platforms}
    others = {
        key: {platform: _others(sides, key, platform) for platform in platforms}
        for key in sorted({*ours.others, *theirs.others})
    }
    joined = replace(
        ours,
        platforms=platforms,
        wheels=wheels,
        conda=conda,
        archives=archives,
        others=others,
        trees=trees,
        manifest="0" * 64,
    )
    text = render_lock(joined, _conda_text(joined, ours.text, theirs.text))
    return parse_lock(text, f"the merged lock of {ours.target}", ours.target)


def _three_way(
    base: Mapping[K, V],
    ours: Mapping[K, V],
    theirs: Mapping[K, V],
    name: Callable[[V], str],
    version: Callable[[V], str],
) -> dict[K, V]:
    """Merge three mappings; `name` identifies a file, `version` decides which is newer."""
    found: dict[K, V] = {}
    for key in dict.fromkeys((*ours, *theirs)):
        mine, other, before = ours.get(key), theirs.get(key), base.get(key)
        names = [None if value is None else name(value) for value in (mine, other, before)]
        if names[0] in (names[1], names[2]):
            chosen = other
        elif names[1] == names[2] or other is None:
            chosen = mine
        else:
            chosen = mine if mine is not None and newer(version(mine), version(other)) else other
        if chosen is not None:
            found[key] = chosen
    return found


def newer(one: str, other: str) -> bool:
    """Return whether a version is newer than another, by PEP 440, else by the numbers in it."""
    from packaging.version import InvalidVersion  # late: 11 ms
    from packaging.version import Version as Release

    try:
        return Release(one) > Release(other)
    except InvalidVersion:  # a version of a conda package, such as 2023.2.0a_1 or 9e
        return _numbers(one) > _numbers(other)


def _numbers(version: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d{1,18}|[a-z]+", version.lower())
    ]


def _wheels(sides: tuple[Lock | None, Lock, Lock], platform: str) -> tuple[Wheel, ...]:
    """Return the wheels of one platform, merged separately for each Python minor."""

    def rows(lock: Lock | None) -> dict[tuple[str, str], Wheel]:
        found = lock.wheels.get(platform, ()) if lock else ()
        return {(wheel.name, minor): wheel for wheel in found for minor in wheel.python}

    base, ours, theirs = map(rows, sides)
    chosen = _three_way(base, ours, theirs, lambda wheel: wheel.sha256, lambda wheel: wheel.version)
    files: dict[str, tuple[Wheel, set[str]]] = {}
    for (_, minor), wheel in chosen.items():
        files.setdefault(wheel.sha256, (wheel, set()))[1].add(minor)
    found = [replace(wheel, python=tuple(sorted(minors, key=Version))) for wheel, minors in files.values()]
    return tuple(sorted(found, key=lambda wheel: (wheel.name, wheel.file)))


def _conda(sides: tuple[Lock | None, Lock, Lock], platform: str) -> tuple[CondaPackage, ...]:
    def rows(lock: Lock | None) -> dict[str, CondaPackage]:
        return {package.name: package for package in (lock.conda.get(platform, ()) if lock else ())}

    base, ours, theirs = map(rows, sides)
    chosen = _three_way(base, ours, theirs, lambda package: package.url, lambda package: package.version)
    return tuple(chosen[name] for name in sorted(chosen))


def _archives(sides: tuple[Lock | None, Lock, Lock], platform: str) -> tuple[Archive, ...]:
    def rows(lock: Lock | None) -> dict[str, Archive]:
        return {archive.name: archive for archive in (lock.archives.get(platform, ()) if lock else ())}

    base, ours, theirs = map(rows, sides)
    chosen = _three_way(base, ours, theirs, lambda archive: archive.sha256, lambda archive: archive.version)
    return tuple(chosen.values())


def _trees(sides: tuple[Lock | None, Lock, Lock], platform: str) -> tuple[LockedTree, ...]:
    """Return the source trees and archives of one platform, merged separately for each Python minor."""

    def rows(lock: Lock | None) -> dict[tuple[str, str], LockedTree]:
        found = lock.trees.get(platform, ()) if lock else ()
        return {(tree.name, minor): replace(tree, python=()) for tree in found for minor in tree.python}

    base, ours, theirs = map(rows, sides)
    minors: dict[LockedTree, list[str]] = {}
    for (_, minor), tree in _three_way(base, ours, theirs, repr, lambda tree: tree.version).items():
        minors.setdefault(tree, []).append(minor)
    found = [replace(tree, python=tuple(sorted(here, key=Version))) for tree, here in minors.items()]
    return tuple(sorted(found, key=lambda tree: (tree.name, tree.python)))


def _others(sides: tuple[Lock | None, Lock, Lock], key: str, platform: str) -> tuple[OtherFile, ...]:
    def rows(lock: Lock | None) -> dict[str, OtherFile]:
        return {row.name: row for row in (lock.others.get(key, {}).get(platform, ()) if lock else ())}

    base, ours, theirs = map(rows, sides)
    chosen = _three_way(base, ours, theirs, repr, lambda file: file.version)
    return tuple(chosen.values())


def _conda_text(lock: Lock, *texts: bytes) -> str:
    """Return the conda part of a lock, with the rows of one of the texts."""
    import yaml  # late: 15 ms

    urls = {package.url for packages in lock.conda.values() for package in packages}
    described: dict[str, Any] = {}
    for text in texts if urls else ():
        rows = load(text).get("packages") or []
        described |= {row["conda"]: row for row in rows if row.get("conda") in urls}
    environment = {
        "channels": [{"url": f"{channel}/"} for channel in lock.channels],
        "packages": {name: [{"conda": row.url} for row in rows] for name, rows in lock.conda.items() if rows},
    }
    data = {
        "version": 7,
        "platforms": [{"name": platform} for platform in lock.platforms],
        "environments": {lock.target: environment},
        "packages": list(described.values()),
    }
    return str(yaml.safe_dump(data, sort_keys=False))
