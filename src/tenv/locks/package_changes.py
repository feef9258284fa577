"""The difference of two locks package by package, with every changed value.

A change of the origin or destination of a file is marked, since a reviewer of a lock must see it first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.names import WheelFile
from tenv.locks.lock import CondaPackage, Lock, LockedFile, LockedTree, Wheel
from tenv.targets.sections import SECTIONS
from tenv.targets.tree_request import TREE_KEYS

_REACHING = {
    "archive": ("to", "strip", "kind", "trust", "licence", "url"),
    "conda": ("url", "channel", "subdir", "python_site_packages_path"),
    "wheel": ("file", "requires", "commit", "index", "url", "build", *TREE_KEYS),
}
"""The values of each kind of package that decide on a path, a server, or other packages."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a lock, with the values that a comparison shows."""

    version: str
    """Its version."""
    build: str
    """The part that distinguishes files of one version: conda's build string, a wheel's tags."""
    channel: str
    """The channel of a conda package."""
    size: int | None
    """Its size in bytes; None if unknown."""
    digest: str
    """The sha256 of its bytes; the MD5 of a conda package without a sha256."""
    values: Mapping[str, str]
    """All values of its row, by key."""

    def to_json(self) -> dict[str, Any]:
        """Return the file as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


Pair = tuple[Piece | None, Piece | None]
Pieces = Mapping[tuple[str, str], Piece]  # by the kind of their source and by name


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One changed value of a package."""

    name: str
    """Its key in the lock."""
    old: str
    """The old value as text; empty for none."""
    new: str
    """The new value as text; empty for none."""
    platforms: tuple[str, ...]
    """The platforms with this change."""
    reaching: bool
    """Whether the change concerns origin, destination or dependencies, and does not follow from the version alone."""


@dataclass(frozen=True, slots=True)
class PackageChange:
    """An added, removed or changed package."""

    kind: str
    """``conda``, ``wheel``, ``archive``, or the kind of a further source."""
    name: str
    """Its name."""
    old: str
    """Its old version; empty for an added package."""
    new: str
    """Its new version; empty for a removed package."""
    python: tuple[str, ...]
    """The Python minors with this change; empty for all."""
    pieces: Mapping[str, Pair]
    """The old and the new file, by platform; for a wheel, the files of the highest Python minor."""

    @property
    def fields(self) -> tuple[FieldChange, ...]:
        """The changed values, origins and destinations first; empty for an added package."""
        found: dict[tuple[str, str, str, bool], list[str]] = {}
        for platform, (old, new) in self.pieces.items():
            for key, was, now in _differing(old, new):
                found.setdefault((key, was, now, self._reaches(key, old, new)), []).append(platform)
        rows = [FieldChange(*key[:3], tuple(where), reaching=key[3]) for key, where in found.items()]
        return tuple(sorted(rows, key=lambda row: not row.reaching))

    def _reaches(self, name: str, old: Piece | None, new: Piece | None) -> bool:
        was, now = (piece.values if piece else {} for piece in (old, new))
        place = "file" if self.kind == "wheel" else "url"
        if name in ("sha256", "md5", "version"):  # the same file name with other bytes
            return was.get(place) == now.get(place)
        if name not in _REACHING.get(self.kind, ()):
            return False
        if name == place:  # another version has another file name
            folders = was.get(name, "").rpartition("/")[0], now.get(name, "").rpartition("/")[0]
            other = folders[0] != folders[1] or self.old == self.new
            return other and _without(was.get(name, ""), self.old) != _without(now.get(name, ""), self.new)
        return name != "requires" or self.old == self.new

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values."""
        platforms = {
            platform: {"old": old.to_json() if old else None, "new": new.to_json() if new else None}
            for platform, (old, new) in self.pieces.items()
        }
        row: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if not (self.old and self.new):
            return {**row, "version": self.old or self.new, "python": list(self.python), "platforms": platforms}
        fields = [
            {"name": one.name, "old": one.old, "new": one.new, "platforms": list(one.platforms)} for one in self.fields
        ]
        return {
            **row,
            "old": self.old,
            "new": self.new,
            "python": list(self.python),
            "fields": fields,
            "platforms": platforms,
        }


def _without(text: str, version: str) -> str:
    return text.replace(version, "") if version else text


def _differing(old: Piece | None, new: Piece | None) -> Iterator[tuple[str, str, str]]:
    """Yield the changed values of two files; a value that an older schema lacks counts as unchanged."""
    if old is None or new is None:
        return
    for key in dict.fromkeys((*old.values, *new.values)):
        was, now = old.values.get(key, ""), new.values.get(key, "")
        if was != now and not (key == "requires" and key not in old.values):
            yield key, was, now


def package_changes(old: Lock, new: Lock, platform: str) -> Iterator[PackageChange]:
    """Yield the changes on one platform: of each source, and of wheels for each Python minor."""
    minors = served(old, new, platform)
    rows: dict[tuple[Any, ...], dict[str, PackageChange]] = {}
    for was, now in minors:
        for row in _pairs(platform, _pieces(old, platform, was), _pieces(new, platform, now)):
            rows.setdefault((row.kind, row.name, row.old, row.new, row.fields), {})[now or was] = row
    for found in rows.values():
        last = list(found.values())[-1]
        yield replace(last, python=() if len(found) == len(minors) else tuple(found))
    seen = {wheel.sha256 for lock, minor in _both(old, new, minors) for wheel in lock.wheels_for(platform, minor)}
    yield from _alone(old, platform, seen, lambda piece: (piece, None))
    yield from _alone(new, platform, seen, lambda piece: (None, piece))


def _both(old: Lock, new: Lock, minors: Iterable[tuple[str, str]]) -> list[tuple[Lock, str]]:
    return [pair for was, now in minors for pair in ((old, was), (new, now))]


def _alone(lock: Lock, platform: str, seen: set[str], way: Callable[[Piece], Pair]) -> Iterator[PackageChange]:
    """Yield the wheels of Python minors that the other lock does not serve."""
    for wheel in lock.wheels.get(platform, ()):
        if wheel.sha256 not in seen:
            pair = way(_wheel(wheel))
            versions = (pair[0].version if pair[0] else "", pair[1].version if pair[1] else "")
            yield PackageChange("wheel", wheel.name, *versions, wheel.python, {platform: pair})


def served(old: Lock, new: Lock, platform: str) -> list[tuple[str, str]]:
    """Return the Python minors to compare: the common ones, else the highest of each lock."""
    had, has = old.python_minors(platform), new.python_minors(platform)
    common = [(minor, minor) for minor in has if minor in had]
    return common or [(had[-1] if had else "", has[-1] if has else "")]


def _pairs(platform: str, old: Pieces, new: Pieces) -> Iterator[PackageChange]:
    for kind, name in sorted({*old, *new}):
        was, now = old.get((kind, name)), new.get((kind, name))
        if was is None or now is None or any(_differing(was, now)):
            versions = was.version if was else "", now.version if now else ""
            yield PackageChange(kind, name, *versions, (), {platform: (was, now)})


def joined(rows: Iterable[PackageChange]) -> Iterator[PackageChange]:
    """Yield the rows, with platforms that have the same change joined."""
    found: dict[tuple[str, str, str, str, tuple[str, ...]], dict[str, Pair]] = {}
    for row in rows:
        found.setdefault((row.kind, row.name, row.old, row.new, row.python), {}).update(row.pieces)
    for key, pieces in found.items():
        yield PackageChange(*key, pieces)


def files_of(lock: Lock, platform: str, minor: str) -> dict[str, int]:
    """Return the size of every file of one environment, by digest."""
    return {piece.digest: piece.size or 0 for piece in _pieces(lock, platform, minor).values()}


def _pieces(lock: Lock, platform: str, minor: str) -> Pieces:
    return {(kind, row.name): _piece(row, lock) for kind, row in rows_of(lock, platform, minor)}


def rows_of(lock: Lock, platform: str, minor: str) -> Iterator[tuple[str, LockedFile]]:
    """Yield the files of one environment, each with the kind of its source."""
    for section in SECTIONS:
        for row in lock.files(section.key, platform):
            if not isinstance(row, Wheel | LockedTree) or minor in row.python:
                yield section.kind, row


def _piece(row: LockedFile, lock: Lock) -> Piece:
    if isinstance(row, Wheel):
        return _wheel(row)
    if isinstance(row, CondaPackage):
        values = {**_values(row), **lock.details.get(row.url, {})}
        return Piece(row.version, row.build, row.channel, row.size, row.sha256 or row.md5, values)
    return Piece(row.version or "(no version)", "", "", row.size, row.sha256, _values(row))


def _wheel(wheel: Wheel) -> Piece:
    file = WheelFile.parse(wheel.file)
    tags = "-".join(filter(None, (file.build, file.tags))) if file else ""
    return Piece(wheel.version, tags, "", wheel.size, wheel.sha256, _values(wheel))


_NONE = ("features", ())  # most files are a part of the target itself


def _values(row: Any) -> dict[str, str]:
    """Return all values of a row as text, by key."""
    known = {name: getattr(row, name) for name in row.__slots__ if name not in ("name", "python", "values")}
    known |= getattr(row, "values", {})
    return {
        name: _text(value)
        for name, value in known.items()
        if value not in ("", None) and value is not False and (name, value) != _NONE
    }


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else "true" if value is True else str(value)
