"""The format ``uv.lock``: the requests of its project, and the wheels that its resolution has for each Python.

Source: uv's lock of version 1, https://docs.astral.sh/uv/concepts/projects/layout/#the-lockfile. It has wheels for
every platform and Python; a lock of tenv names the one wheel of each.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError, LockCorruptError, TenvError
from tenv.core.names import WheelFile, normalize
from tenv.core.toml_reader import read_toml
from tenv.core.untrusted import place_fault, without_login
from tenv.core.versions import Version
from tenv.core.wheel_platforms import DEFAULT_GLIBC, accepted_tags, evaluated, glibc_of, marker_values
from tenv.interop.interface import Draft, ForeignLock, Format, GivenFile, Imported, read_source
from tenv.interop.pip_lines import PipLines, of_torch
from tenv.interop.pyproject import bounded_python, python_of, read_pyproject
from tenv.interop.requests import (
    alike,
    minors_of_range,
    newest_run,
    platforms_of,
    python_within,
    sdist_at,
    wheel_at,
    with_glibc,
    with_trees,
)
from tenv.locks.lock import LockedTree, Wheel
from tenv.targets.tree_request import commit_fault, git_fault
from tenv.targets.wheel_origin import Index

if TYPE_CHECKING:
    from packaging.markers import Marker

_VERSION = 1
_NEWEST_GLIBC = Version("2.99")
_EXTRA = re.compile(r"(\s*\band\b\s*)?\bextra\s*==\s*['\"][^'\"]*['\"]")
_CONFLICT = re.compile(r"\bextra\s*([!=]=)\s*'((?:extra|group|project)-\d+-[^']*)'")
"""A comparison that uv writes where extras, groups or projects exclude each other: whether this one is installed."""


Offer = tuple[str, str, int | None]
"""The URL, the sha256 and the size in bytes of a file."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A package of a lock for all platforms and Pythons.

    Attributes:
        name: Its name.
        version: Its version.
        wheels: The URL, the sha256 and the size of each wheel; None for an unknown size.
        reason: Why it has none, for people; empty if it has some.
        other: Its source archive or source tree, for no Python; None without one.
    """

    name: str
    version: str
    wheels: Sequence[Offer]
    reason: str = ""
    other: LockedTree | None = None


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
    """The files of a lock for all platforms and Pythons that are chosen for a target.

    Attributes:
        minors: The Python minors for which each package has a file, the newest ones without a gap.
        part: The content of the lock for these.
        left: The packages without a file for the Python that lacks the fewest, each with the reason.
        glibc: The oldest C library that all wheels accept, if it is newer than the default one; else empty.
    """

    minors: tuple[str, ...]
    part: ForeignLock
    left: Mapping[str, str]
    glibc: str = ""


def take_files(offers: Mapping[str, Mapping[str, Sequence[Offered]]]) -> LockFiles:
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
    found: dict[str, list[tuple[str, Wheel | LockedTree]]] = {minor: [] for minor, *_ in cases}
    left: dict[str, dict[str, str]] = {minor: {} for minor in reversed(found)}
    for (minor, on, row), wheel in zip(cases, best, strict=True):
        other = None if (on, row.name, row.version) in fits else row.other
        if file := wheel or other:
            found[minor].append((on, replace(file, python=(minor,))))
        else:
            bare = bool(row.wheels) and not any(digest for _, digest, _ in row.wheels)
            reason = "no sha256 of its wheels" if bare else f"no wheel for Python {minor} on {on}"
            left[minor].setdefault(row.name, row.reason or reason)
    minors = newest_run(minor for minor, missing in left.items() if not missing)
    platforms = dict.fromkeys(on for rows in offers.values() for on in rows)
    taken = {on: _merged(row for minor in minors for where, row in found[minor] if where == on) for on in platforms}
    wheels = {on: tuple(row for row in rows if isinstance(row, Wheel)) for on, rows in taken.items()}
    trees = {on: tuple(row for row in rows if isinstance(row, LockedTree)) for on, rows in taken.items()}
    unread = frozenset(row.name for rows in trees.values() for row in rows)
    part = ForeignLock((), dict.fromkeys(wheels, ()), wheels, trees=trees, unread=unread)
    needed = [one for rows in wheels.values() for row in rows if (one := glibc_of(row.file)) and one > DEFAULT_GLIBC]
    glibc = str(max(needed)) if needed else ""
    return LockFiles(minors, part, min(left.values(), key=len, default={}), glibc)


def _merged(files: Iterable[Wheel | LockedTree]) -> tuple[Wheel | LockedTree, ...]:
    """Return one row for each file, with all Pythons that use it."""
    rows: dict[Wheel | LockedTree, list[str]] = {}
    for file in files:
        rows.setdefault(replace(file, python=()), []).extend(file.python)
    return tuple(replace(file, python=tuple(minors)) for file, minors in rows.items())


def _offered(package: Mapping[str, Any], home: Path) -> Offered:
    source, name, version = package.get("source") or {}, str(package["name"]), str(package.get("version", ""))
    reason = next((text for key, text in _TREES.items() if key in source), "")
    if reason:
        return Offered(name, version, (), reason, _tree(source, normalize(name), version, home))
    rows = package.get("wheels") or []
    wheels = list(map(_offer, rows))
    url, digest, size = _offer(package.get("sdist") or {})
    archive = sdist_at(url, name, version, digest, size, ())
    return Offered(name, version, wheels, "" if wheels else "a source archive", archive)


def _offer(row: Mapping[str, Any]) -> Offer:
    size = row.get("size")
    digest = str(row.get("hash", "")).removeprefix("sha256:")
    return str(row.get("url", "")), digest, size if isinstance(size, int) else None


def _tree(source: Mapping[str, Any], name: str, version: str, home: Path) -> LockedTree | None:
    """Return the source tree of a package; None for one that a lock can't have."""
    if "git" in source:
        address, _, commit = str(source["git"]).partition("#")
        address, _, query = address.partition("?")
        below = parse_qs(query).get("subdirectory", [""])[0]
        if git_fault(address) or commit_fault(commit) or place_fault(below):
            return None
        return LockedTree(name, version or "0", (), (), commit, git=address, subdirectory=below, dynamic=True)
    path = str(source.get("editable") or source.get("directory") or "")
    if not path or not (home / path).is_dir():
        return None
    return LockedTree(name, version or "0", (), (), path=path, editable="editable" in source)


@dataclass(frozen=True, slots=True)
class _Lock:
    """A ``uv.lock``.

    Attributes:
        data: Its content.
        root: The package of the project.
    """

    data: Mapping[str, Any]
    root: Mapping[str, Any]

    def walk(self, platform: str, minor: str, group: str) -> Iterator[Mapping[str, Any]]:
        """Yield the packages of an environment, without the project."""
        values, chosen = _values(platform, minor), self._chosen(group)
        waiting = [(row, extra) for row in self._asked(platform, minor, group) for extra in ("", *_extras(row))]
        seen: set[tuple[str, str, str]] = set()
        while waiting:
            asked, extra = waiting.pop()
            chosen |= {_installed("extra", str(asked["name"]), extra)} if extra else set()
            package = self._package(asked, values, chosen)
            key = (str(asked["name"]), str(package.get("version", "")), extra)
            if package is self.root or key in seen:
                continue
            if not any(one[:2] == key[:2] for one in seen) and "virtual" not in (package.get("source") or {}):
                yield package
            seen.add(key)
            rows = package.get("dependencies") or []
            if extra:
                rows = (package.get("optional-dependencies") or {}).get(extra) or []
            waiting += [(row, more) for row in rows if _holds(row, values, chosen) for more in ("", *_extras(row))]

    def asked(self, platform: str, minor: str, group: str) -> set[str]:
        """Return the names of the packages that the project itself asks for."""
        return {str(row["name"]) for row in self._asked(platform, minor, group)}

    def _asked(self, platform: str, minor: str, group: str) -> list[Mapping[str, Any]]:
        named = [*(self.root.get("dependencies") or []), *self._of_group(group)]
        values, chosen = _values(platform, minor), self._chosen(group)
        return [row for row in named if _holds(row, values, chosen)]

    def _chosen(self, group: str) -> set[str]:
        name = str(self.root.get("name", ""))
        return {_installed("project", name), _installed("extra", name, group), _installed("group", name, group)}

    def _of_group(self, group: str) -> list[Mapping[str, Any]]:
        tables = (self.root.get(key) or {} for key in ("optional-dependencies", "dev-dependencies"))
        return [row for table in tables for row in table.get(group) or []] if group else []

    def _package(
        self, asked: Mapping[str, Any], values: Mapping[str, str], chosen: Collection[str]
    ) -> Mapping[str, Any]:
        """Return the package that a dependency means: by its version and source, or by the markers of its fork."""
        rows: list[Mapping[str, Any]] = self.data["package"]
        found = [row for row in rows if row["name"] == asked["name"]]
        for key in ("version", "source"):
            if key in asked:
                found = [row for row in found if row.get(key) == asked[key]]
        forks = [row for row in found if _any(row.get("resolution-markers") or [], values, chosen)]
        if not found:
            raise KeyError(str(asked["name"]))
        return (forks or found)[0]


def _values(platform: str, minor: str) -> dict[str, str]:
    return {**marker_values(platform, minor), "python_full_version": f"{minor}.99"}


def _installed(kind: str, project: str, name: str = "") -> str:
    """Return uv's word in markers for a project, or an extra or a group of one.

    Source: `encode_package_extra` and its like in uv's `universal_marker.rs`.
    """
    return "-".join(filter(None, (kind, str(len(project)), project, name)))


def _holds(row: Mapping[str, Any], values: Mapping[str, str], chosen: Collection[str]) -> bool:
    text = str(row.get("marker", ""))
    return not text or _any([text], values, chosen)


def _any(markers: Iterable[str], values: Mapping[str, str], chosen: Collection[str]) -> bool:
    from packaging.markers import Marker  # late: 34 ms

    def compared(found: re.Match[str]) -> str:  # a marker has one extra, and several are installed
        return f"extra {found[1]} '{'chosen' if found[2] in chosen else 'other'}'"

    listed = [Marker(_CONFLICT.sub(compared, str(text))) for text in markers]
    return not listed or any(evaluated(marker, {**values, "extra": "chosen"}) for marker in listed)


def _extras(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, row.get("extra") or ()))


def _read(source: GivenFile) -> Imported:
    data = read_toml(source.path, LockCorruptError).data
    if data.get("version") != _VERSION or not isinstance(data.get("package"), list):
        raise LockCorruptError(f"{source.path}: is not a uv.lock of version {_VERSION}")
    try:
        return _imported(source, data)
    except TenvError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise LockCorruptError(f"{source.path}: invalid uv.lock: {error!r:.200}") from error


def _imported(source: GivenFile, data: Mapping[str, Any]) -> Imported:
    lost: list[str] = []
    notes: list[str] = []
    root, group = _root(source, data), source.environment
    _require_group(source, root, group)
    beside = _beside(source)
    platforms = beside.draft.platforms if beside else source.platforms or _platforms(source, data, notes)
    accepted = _accepted(data, platforms)
    lock, home = _Lock(data, root), source.path.parent
    asked = {
        one: {(on, name) for on in platforms for name in lock.asked(on, one, group)}
        for one in minors_of_range(accepted)
    }
    every, accepted = alike(asked, accepted, notes)
    taken = take_files(
        {
            minor: {on: [_offered(row, home) for row in lock.walk(on, minor, group)] for on in platforms}
            for minor in every
        }
    )
    minors = taken.minors
    python = python_of(minors, accepted, notes)
    beside = beside and _beside(source, python)
    draft = beside.draft if beside else _draft(root, platforms, minors or every, group, lost)
    draft = with_trees(with_glibc(draft, taken.glibc, notes), taken.part, home, notes)
    lost += beside.lost if beside else ()
    others = {normalize(name) for key in _GROUPS for name in root.get(key) or {}} - {group}
    if others and not draft.features:
        lost.append(f"the groups and extras {', '.join(sorted(others))} (`--environment` takes one)")
    if overridden := [str(row.get("name")) for row in (data.get("manifest") or {}).get("overrides") or []]:
        notes.append(f"uv overrides the requirements for {', '.join(overridden)}: tenv locks as the packages require")
    part = None
    if draft.features:
        notes.append("no lock is written, since a uv.lock has no requirements to divide it by features: `tenv lock`")
    elif minors:
        part = taken.part
    else:
        listed = "; ".join(f"{name}: {reason}" for name, reason in sorted(taken.left.items()))
        why = f"tenv can't lock each package ({listed})" if listed else "its project itself requires no package"
        lost.append(f"its lock, since {why}: `tenv lock` writes one")
    name = "-".join(filter(None, (normalize(str(root.get("name", ""))), group)))
    return Imported(name, replace(draft, python=python), part, tuple(dict.fromkeys(lost)), tuple(dict.fromkeys(notes)))


_TREES = {
    "git": "built from a git repository",
    "directory": "built from a folder",
    "editable": "built from a folder",
    "virtual": "built from a folder",
}
_GROUPS = ("optional-dependencies", "dev-dependencies")


def _root(source: GivenFile, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the package of the project: the one in the folder of the lock."""
    own = [row for row in data["package"] if {"editable", "virtual"} & (row.get("source") or {}).keys()]
    here = [row for row in own if "." in row["source"].values()]
    if not own:
        raise FormatError(f"{source.path}: has no project, whose requests a target could have")
    found: dict[str, Any] = {**(here or own)[0]}
    return found


def _require_group(source: GivenFile, root: Mapping[str, Any], group: str) -> None:
    known = sorted({name for key in _GROUPS for name in root.get(key) or {}})
    if group and group not in known:
        hint = f"its groups and extras: {', '.join(known) or 'none'}"
        raise FormatError(f"{source.path}: has no group or extra `{group}`", hint=hint)


def _beside(source: GivenFile, python: str = "") -> Imported | None:
    """Return the requests of the pyproject.toml beside the lock, for a range of Pythons; empty for those of the file.

    Its groups are features of a target without a lock.
    """
    path = source.path.with_name("pyproject.toml")
    if not path.is_file():
        return None
    found = read_pyproject(read_source(path, source.environment, source.platforms), locked=python)
    return replace(found, draft=replace(found.draft, features={}))


def _markers(data: Mapping[str, Any]) -> "list[Marker]":
    """Return the markers of the environments that the lock is for; none for all of them."""
    from packaging.markers import Marker  # late: 34 ms

    return [Marker(str(text)) for text in data.get("supported-markers") or []]


def _accepted(data: Mapping[str, Any], platforms: tuple[str, ...]) -> str:
    """Return the range of Pythons that the lock is for."""
    return python_within(bounded_python(str(data.get("requires-python", "")), []), _markers(data), platforms)


def _platforms(source: GivenFile, data: Mapping[str, Any], notes: list[str]) -> tuple[str, ...]:
    if found := source.choose(platforms_of(_markers(data)))[0]:
        return found
    notes.append("the file has no platforms: linux-64 is used (`--platform` sets others)")
    return ("linux-64",)


def _draft(
    root: Mapping[str, Any], platforms: tuple[str, ...], minors: tuple[str, ...], group: str, lost: list[str]
) -> Draft:
    """Return the requests that the lock has of its project."""
    metadata = root.get("metadata") or {}
    rows = [row for row in metadata.get("requires-dist") or [] if not _EXTRA.search(str(row.get("marker", "")))]
    rows += (metadata.get("requires-dev") or {}).get(group) or []
    if group:
        extra = re.compile(rf"extra == ['\"]{re.escape(group)}['\"]")
        rows += [row for row in metadata.get("requires-dist") or [] if extra.search(str(row.get("marker", "")))]
    lines = PipLines(platforms, Path(), lost, minors=minors)
    lines.tables |= {platform: {} for platform in platforms}
    for row in rows:
        marker = _EXTRA.sub("", str(row.get("marker", ""))).strip()
        extras = f"[{','.join(map(str, row['extras']))}]" if row.get("extras") else ""
        where = f"{row['name']}{extras}"
        if "git" in row:
            address, _, query = str(row["git"]).partition("?")
            given = {key: value[0] for key, value in parse_qs(query).items()}
            revision = given.get("rev") or given.get("tag") or given.get("branch")
            below = f"#subdirectory={given['subdirectory']}" if "subdirectory" in given else ""
            where += f" @ git+{address}{f'@{revision}' if revision else ''}{below}"
        elif "url" in row:
            where += f" @ {row['url']}"
        elif path := row.get("editable") or row.get("directory") or row.get("path"):
            lost.append(f"`{row['name']}` of the folder {path}: `tenv import pyproject.toml` takes its request")
            continue
        else:
            where += str(row.get("specifier", ""))
        lines.add(f"{where} ; {marker}" if marker else where, platforms, Path())
        if row.get("index"):
            _set_index(lines, normalize(str(row["name"])), str(row["index"]))
    lines.finish()
    named = {request.index for table in lines.tables.values() for request in table.values() if request.index}
    indexes = tuple(Index(url, of_torch(url), explicit=True) for url in sorted(named) if of_torch(url))
    names = {index.url: index.name for index in indexes}
    wheels = {
        platform: {name: replace(row, index=names.get(row.index, row.index)) for name, row in table.items()}
        for platform, table in lines.tables.items()
    }
    return Draft(platforms, wheels=wheels, indexes=indexes)


def _set_index(lines: PipLines, name: str, url: str) -> None:
    for table in lines.tables.values():
        if name in table:
            table[name] = replace(table[name], index=without_login(url).rstrip("/"))


FORMAT = Format(name="uv.lock", read=_read, recognize=lambda name, _: name == "uv.lock")
