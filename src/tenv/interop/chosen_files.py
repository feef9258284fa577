"""The files that a target has of a lock for all platforms and Pythons, such as a uv.lock: one of each package."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tenv.core.dataclass import dataclass
from tenv.core.names import WheelFile
from tenv.core.versions import Version
from tenv.core.wheel_platforms import DEFAULT_GLIBC, accepted_tags, glibc_of
from tenv.interop.interface import Draft, ForeignLock
from tenv.interop.python_ranges import newest_run
from tenv.interop.requests import wheel_at
from tenv.interop.typed_values import few
from tenv.locks.lock import LockedTree, Wheel

_NEWEST_GLIBC = Version("2.99")

Offer = tuple[str, str, int | None]
"""The URL, the sha256 and the size in bytes of a file."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A package of a lock for all platforms and Pythons."""

    name: str
    """Its name."""
    version: str
    """Its version."""
    wheels: Sequence[Offer]
    """The URL, the sha256 and the size of each wheel; None for an unknown size."""
    reason: str = ""
    """Why it has none, for people; empty if it has some."""
    other: LockedTree | None = None
    """Its source archive or source tree, for no Python; None without one."""
    features: tuple[str, ...] = ()
    """The features of the target that bring it; empty for a part of the target itself."""


Offers = Mapping[str, Mapping[str, Sequence[Offered]]]
"""The packages by Python minor and platform."""


def best_wheel(
    name: str,
    version: str,
    rows: Iterable[Offer],
    platform: str,
    minor: str,
    glibc: Version = DEFAULT_GLIBC,
) -> Wheel | None:
    """Return the wheel that fits a platform and a Python best; None if none does.

    Args:
        name: The name of the package.
        version: Its version.
        rows: The URL, the sha256 and the size of each wheel.
        platform: The platform.
        minor: The Python minor.
        glibc: The C library of the hosts.
    """
    tags = accepted_tags(platform, minor, glibc)
    ranked = []
    for url, sha256, size in rows:
        file = WheelFile.parse(url)
        rank = min((tags[tag] for tag in file.all_tags() if tag in tags), default=None) if file else None
        if rank is not None and (wheel := wheel_at(url, name, version, sha256, size, (minor,))):
            ranked.append((rank, wheel.file, wheel))
    return min(ranked, key=lambda row: row[:2])[2] if ranked else None


@dataclass(frozen=True, slots=True)
class LockFiles:
    """The files of a lock for all platforms and Pythons that are chosen for a target."""

    minors: tuple[str, ...]
    """The Python minors for which each package has a file, the newest ones without a gap."""
    part: ForeignLock
    """The content of the lock for these."""
    left: Mapping[str, str]
    """The packages without a file for the Python that lacks the fewest, each with the reason."""
    glibc: str = ""
    """The oldest C library that all wheels accept, if it is newer than the default one; else empty."""

    @property
    def has_some(self) -> bool:
        """Whether there is a file."""
        return any(self.part.wheels.values()) or any(self.part.trees.values())


def take_files(offers: Offers) -> LockFiles:
    """Choose the wheel of each package that fits best.

    A source archive or a source tree is taken where no Python has a wheel of that release on the platform.

    Args:
        offers: The packages by Python minor and platform.
    """
    cases = [(minor, on, row) for minor, rows in offers.items() for on, here in rows.items() for row in here]
    best = [
        best_wheel(row.name, row.version, row.wheels, on, minor)
        or best_wheel(row.name, row.version, row.wheels, on, minor, _NEWEST_GLIBC)
        for minor, on, row in cases
    ]
    fits = {(on, row.name, row.version) for (_, on, row), wheel in zip(cases, best, strict=True) if wheel}
    found: dict[str, list[tuple[str, Wheel | LockedTree]]] = {minor: [] for minor in offers}
    left: dict[str, dict[str, str]] = {minor: {} for minor in reversed(found)}
    for (minor, on, row), wheel in zip(cases, best, strict=True):
        other = None if (on, row.name, row.version) in fits else row.other
        if file := wheel or other:
            found[minor].append((on, replace(file, python=(minor,), features=row.features)))
        else:
            bare = bool(row.wheels) and not any(digest for _, digest, _ in row.wheels)
            reason = "no sha256 of its wheels" if bare else f"no wheel for Python {minor} on {on}"
            left[minor].setdefault(row.name, row.reason or reason)
    minors = newest_run(minor for minor, missing in left.items() if not missing)
    platforms = dict.fromkeys(on for rows in offers.values() for on in rows)
    taken = {on: _merged(row for minor in minors for where, row in found[minor] if where == on) for on in platforms}
    wheels = {on: tuple(row for row in rows if isinstance(row, Wheel)) for on, rows in taken.items()}
    trees = {on: _one_of_each(row for row in rows if isinstance(row, LockedTree)) for on, rows in taken.items()}
    unread = frozenset(row.name for rows in trees.values() for row in rows)
    part = ForeignLock((), dict.fromkeys(wheels, ()), wheels, trees=trees, unread=unread)
    needed = [one for rows in wheels.values() for row in rows if (one := glibc_of(row.file)) and one > DEFAULT_GLIBC]
    glibc = str(max(needed)) if needed else ""
    return LockFiles(minors, part, min(left.values(), key=len, default={}), glibc)


def with_glibc(draft: Draft, needed: str, notes: list[str]) -> Draft:
    """Return a draft whose hosts have the C library that the wheels of a lock need; empty for the default one."""
    if not needed or (draft.glibc and Version(draft.glibc) >= Version(needed)):
        return draft
    notes.append(f"`requirements.glibc` is set to {needed}, which a wheel of the file needs")
    return replace(draft, glibc=needed)


def served_alone(offers: Offers, lost: list[str]) -> tuple[str, ...]:
    """Return the platforms with a file of each package for some Python, where others have none; else nothing.

    Args:
        offers: The packages by Python minor and platform.
        lost: Receives a sentence about each other platform.
    """
    platforms = dict.fromkeys(on for rows in offers.values() for on in rows)
    alone = {on: take_files({minor: {on: rows.get(on, [])} for minor, rows in offers.items()}) for on in platforms}
    served = tuple(on for on, taken in alone.items() if taken.minors)
    if not served or len(served) == len(alone):
        return ()
    lost += [
        f"{on}, for which the file has no wheel of {few(sorted(taken.left))}: `--platform {on}` asks for it"
        for on, taken in alone.items()
        if on not in served
    ]
    return served


def without_features(part: ForeignLock, names: Iterable[str]) -> ForeignLock:
    """Return a lock without the files that some features alone bring."""
    gone = set(names)

    def kept(rows: Iterable[Wheel | LockedTree]) -> Iterable[Wheel | LockedTree]:
        for row in rows:
            others = tuple(name for name in row.features if name not in gone)
            if others or not row.features:
                yield replace(row, features=others)

    return replace(
        part,
        wheels={on: tuple(row for row in kept(rows) if isinstance(row, Wheel)) for on, rows in part.wheels.items()},
        trees={on: tuple(row for row in kept(rows) if isinstance(row, LockedTree)) for on, rows in part.trees.items()},
    )


def _merged(files: Iterable[Wheel | LockedTree]) -> tuple[Wheel | LockedTree, ...]:
    """Return one row for each file, with all Pythons that use it."""
    rows: dict[Wheel | LockedTree, list[str]] = {}
    for file in files:
        rows.setdefault(replace(file, python=()), []).extend(file.python)
    return tuple(replace(file, python=tuple(minors)) for file, minors in rows.items())


def _one_of_each(trees: Iterable[LockedTree]) -> tuple[LockedTree, ...]:
    """Return one row for each source tree; one that the target needs for any Python is the target's."""
    rows: dict[LockedTree, list[LockedTree]] = {}
    for tree in trees:
        rows.setdefault(replace(tree, python=(), features=()), []).append(tree)
    return tuple(
        replace(
            tree,
            python=tuple(sorted({minor for one in same for minor in one.python}, key=Version)),
            features=tuple(sorted({name for one in same for name in one.features}))
            if all(one.features for one in same)
            else (),
        )
        for tree, same in rows.items()
    )
