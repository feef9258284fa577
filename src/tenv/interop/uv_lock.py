"""The format ``uv.lock``: the requests of its project, and the wheels that its resolution has for each Python.

Source: uv's lock of version 1, https://docs.astral.sh/uv/concepts/projects/layout/#the-lockfile. It has wheels for
every platform and Python; a lock of tenv names the one wheel of each.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tenv.core import files
from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError, LockCorruptError, TenvError
from tenv.core.names import normalize
from tenv.core.toml_reader import read_toml
from tenv.core.untrusted import place_fault, without_login
from tenv.core.wheel_platforms import at_patches, evaluated, evaluated_for_patches, marker_values
from tenv.interop.chosen_files import LockFiles, Offer, Offered, served_alone, take_files, with_glibc
from tenv.interop.interface import Format, GivenFile, Imported, read_source
from tenv.interop.pip_lines import of_torch
from tenv.interop.pyproject import bounded_python, python_of, read_project, read_pyproject
from tenv.interop.python_ranges import alike, minors_of_range, python_within
from tenv.interop.requests import (
    sdist_at,
    with_trees,
)
from tenv.locks.lock import LockedTree
from tenv.targets.tree_request import commit_fault, git_fault

if TYPE_CHECKING:
    from packaging.markers import Marker

_VERSION = 1
_EXTRA = re.compile(r"(\s*\band\b\s*)?\bextra\s*==\s*['\"][^'\"]*['\"]")
_CONFLICT = re.compile(r"\bextra\s*([!=]=)\s*'((?:extra|group|project)-\d+-[^']*)'")
"""A comparison that uv writes where extras, groups or projects exclude each other: whether this one is installed."""


def _offered(package: Mapping[str, Any], home: Path) -> Offered:
    source, name, version = package.get("source") or {}, str(package["name"]), str(package.get("version", ""))
    reason = next((text for key, text in _TREES.items() if key in source), "")
    if reason:
        return Offered(name, version, (), reason, _tree(source, normalize(name), version, home))
    rows = package.get("wheels") or []
    wheels = [_offer(row, source, home) for row in rows]
    url, digest, size = _offer(package.get("sdist") or {}, source, home)
    archive = sdist_at(url, name, version, digest, size, ())
    return Offered(name, version, wheels, "" if wheels else "a source archive", archive)


def _offer(row: Mapping[str, Any], source: Mapping[str, Any], home: Path) -> Offer:
    """Return a file of a package; one in a folder that is an index has no digest, so that it is read."""
    size, digest = row.get("size"), str(row.get("hash", "")).removeprefix("sha256:")
    url = str(row.get("url") or source.get("url") or "")
    if not url and ("filename" in row or "path" in row):
        place = (str(source.get("registry", "")), str(row["path"])) if "path" in row else (str(source.get("path", "")),)
        file = home.absolute().joinpath(*place)
        url, digest = file.as_uri(), digest or (files.digest(file) if file.is_file() else "")
    return url, digest, size if isinstance(size, int) else None


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
    """A ``uv.lock``."""

    data: Mapping[str, Any]
    """Its content."""
    root: Mapping[str, Any]
    """The package of the project."""

    def walk(self, platform: str, minor: str, groups: Collection[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the packages of an environment with some groups, without the project."""
        values, chosen = _values(platform, minor), self._chosen(groups)
        waiting = [(row, extra) for row in self._asked(platform, minor, groups) for extra in ("", *_extras(row))]
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

    def asked(self, platform: str, minor: str, groups: Collection[str]) -> set[str]:
        """Return the names of the packages that the project itself and some of its groups ask for."""
        return {str(row["name"]) for row in self._asked(platform, minor, groups)}

    def added(
        self, minors: Iterable[str], platforms: Iterable[str], group: str, feature: str
    ) -> dict[str, dict[str, list[Mapping[str, Any]]]]:
        """Return the packages that a feature adds to an environment, by Python minor and platform.

        Raises:
            ValueError: It has other requests for other Pythons, or other versions of the environment's packages.
            KeyError: The lock lacks a package.
        """
        found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
        asked = set[tuple[str, ...]]()
        for minor in minors:
            asked.add(tuple(sorted({f"{on} {name}" for on in platforms for name in self.asked(on, minor, [feature])})))
            for on in platforms:
                base = {_release(row) for row in self.walk(on, minor, [group])}
                rows = list(self.walk(on, minor, [group, feature]))
                found.setdefault(minor, {})[on] = [row for row in rows if _release(row) not in base]
                if not base <= set(map(_release, rows)):
                    message = "it has other versions of the target's packages"
                    raise ValueError(message)
        if len(asked) > 1:
            message = "its requests differ by Python"
            raise ValueError(message)
        return found

    def _asked(self, platform: str, minor: str, groups: Collection[str]) -> list[Mapping[str, Any]]:
        named = [*(self.root.get("dependencies") or []), *(row for group in groups for row in self._of_group(group))]
        values, chosen = _values(platform, minor), self._chosen(groups)
        return [row for row in named if _holds(row, values, chosen)]

    def _chosen(self, groups: Collection[str]) -> set[str]:
        name = str(self.root.get("name", ""))
        kinds = {_installed(kind, name, group) for group in groups for kind in ("extra", "group")}
        return {_installed("project", name), *kinds}

    def _of_group(self, group: str) -> list[Mapping[str, Any]]:
        tables = [self.root.get(key) or {} for key in _GROUPS]
        named = [rows for table in tables for name, rows in table.items() if normalize(name) == group]
        return [row for rows in named for row in rows or []]

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
    return at_patches(marker_values(platform, minor))[1]


def _release(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["name"]), str(row.get("version", ""))


def _installed(kind: str, project: str, name: str = "") -> str:
    """Return uv's word in markers for a project, or an extra or a group of one.

    Source: `encode_package_extra` and its like in uv's `universal_marker.rs`.
    """
    return "-".join(filter(None, (kind, str(len(project)), project, name)))


def _holds(row: Mapping[str, Any], values: Mapping[str, str], chosen: Collection[str]) -> bool:
    text = str(row.get("marker", ""))
    forked = "version" in row  # of two releases of a package, one alone is for a Python
    return not text or _any([text], values, chosen, evaluated if forked else evaluated_for_patches)


def _any(
    markers: Iterable[str],
    values: Mapping[str, str],
    chosen: Collection[str],
    judge: Callable[["Marker", Mapping[str, str]], bool] = evaluated,
) -> bool:
    from packaging.markers import Marker  # late: 34 ms

    def compared(found: re.Match[str]) -> str:  # a marker has one extra, and several are installed
        return f"extra {found[1]} '{'chosen' if found[2] in chosen else 'other'}'"

    listed = [Marker(_CONFLICT.sub(compared, str(text))) for text in markers]
    return not listed or any(judge(marker, {**values, "extra": "chosen"}) for marker in listed)


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
    project = partial(_project, source, data, root)
    platforms = project().draft.platforms
    accepted = _accepted(data, platforms)
    lock, home = _Lock(data, root), source.path.parent
    features = [*project(accepted).draft.features]
    asked = {
        one: {(on, name) for on in platforms for each in (group, *features) for name in lock.asked(on, one, [each])}
        for one in minors_of_range(accepted)
    }
    every, accepted = alike(asked, accepted, notes)
    offers = {
        minor: {on: [_offered(row, home) for row in lock.walk(on, minor, [group])] for on in platforms}
        for minor in every
    }
    if not source.platforms and (served := served_alone(offers, lost)):
        again = _imported(replace(source, platforms=served), data)
        return replace(again, lost=(*lost, *again.lost))
    taken = take_files(offers)
    apart: dict[str, str] = {}
    if taken.minors:
        taken, apart = _with_features(lock, taken, platforms, group, features, home)
    python, minors = python_of(taken.minors, accepted, notes), taken.minors
    found = project(python, apart if taken.has_some else ())  # without files, the manifest alone has all groups
    if taken.has_some:
        lost += [f"the group `{name}` ({reason}): `--environment {name}` takes it" for name, reason in apart.items()]
    draft = with_trees(with_glibc(found.draft, taken.glibc, notes), taken.part, home, notes)
    lost += found.lost
    notes += [line for line in found.notes if not line.startswith(("`python` is set to", "a uv.lock", "a pyproject"))]
    part = None
    if minors and taken.has_some:
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
_BOUNDS = ("constraint", "override")


def _root(source: GivenFile, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the package of the project: the one in the folder of the lock.

    A workspace whose root is no project has its members for requests, and the groups of its root.
    """
    own = [row for row in data["package"] if {"editable", "virtual"} & (row.get("source") or {}).keys()]
    here = [row for row in own if "." in row["source"].values()]
    manifest = data.get("manifest") or {}
    if not (own or manifest.get("dependency-groups")):
        raise FormatError(f"{source.path}: has no project, whose requests a target could have")
    if here:
        return dict(here[0])
    listed, groups = manifest.get("members") or (), manifest.get("dependency-groups") or {}
    members = [row for row in own if row["name"] in listed] or own
    asked = list[Mapping[str, Any]]()
    for row in members:
        if "editable" in row["source"]:
            asked.append({"name": row["name"], "editable": row["source"]["editable"]})
            continue
        own_rows = (row.get("metadata") or {}).get("requires-dist") or []
        asked += [one for one in own_rows if "extra ==" not in str(one.get("marker", ""))]
    return {
        "source": {"virtual": "."},
        "dependencies": [{"name": str(row["name"])} for row in members],
        "dev-dependencies": groups,
        "metadata": {"requires-dist": asked, "requires-dev": groups},
    }


def _require_group(source: GivenFile, root: Mapping[str, Any], group: str) -> None:
    known = sorted({name for key in _GROUPS for name in root.get(key) or {}})
    if group and group not in known:
        hint = f"its groups and extras: {', '.join(known) or 'none'}"
        raise FormatError(f"{source.path}: has no group or extra `{group}`", hint=hint)


def _with_features(
    lock: _Lock, base: LockFiles, platforms: tuple[str, ...], group: str, names: Iterable[str], home: Path
) -> tuple[LockFiles, dict[str, str]]:
    """Return the files of a target and of its features, and the features that can't be in its lock.

    Args:
        lock: The lock.
        base: The files of the target itself.
        platforms: The platforms.
        group: The group that is in the target itself; empty for none.
        names: The features.
        home: The folder of the lock.

    Returns:
        The files, and the reason for each feature without files.
    """
    offers: dict[str, dict[str, dict[tuple[str, str], Offered]]] = {}
    for minor in base.minors:
        rows = {on: [_offered(row, home) for row in lock.walk(on, minor, [group])] for on in platforms}
        offers[minor] = {on: {(row.name, row.version): row for row in here} for on, here in rows.items()}
    apart: dict[str, str] = {}
    minors = base.minors
    for name in sorted(names):
        try:
            found = lock.added(minors, platforms, group, name)
        except (ValueError, KeyError) as error:
            apart[name] = f"the lock has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
            continue
        added = {
            minor: {on: [_offered(row, home) for row in rows] for on, rows in here.items()}
            for minor, here in found.items()
        }
        files = take_files(added)
        if minors[-1] not in files.minors:
            lacking = files.left or {"it": f"not each package has a file for Python {minors[-1]}"}
            apart[name] = "; ".join(f"{package}: {reason}" for package, reason in sorted(lacking.items()))
            continue
        minors = tuple(minor for minor in minors if minor in files.minors)
        cases = [(offers[minor][on], row) for minor, here in added.items() for on, rows in here.items() for row in rows]
        for table, row in cases:
            known = table.get((row.name, row.version), row)
            table[row.name, row.version] = replace(row, features=(*known.features, name))
    every = {minor: {on: [*rows.values()] for on, rows in offers[minor].items()} for minor in minors}
    return take_files(every), apart


def _project(
    source: GivenFile, data: Mapping[str, Any], root: Mapping[str, Any], python: str = "", without: Collection[str] = ()
) -> Imported:
    """Return the requests of the pyproject.toml beside a lock, or those that the lock notes, its groups as features.

    Args:
        source: The lock.
        data: Its content.
        root: The package of the project.
        python: The range of Pythons; empty for the range in the file.
        without: The groups that are left out.
    """
    path = source.path.with_name("pyproject.toml")
    if path.is_file():
        beside = read_source(path, source.environment, source.platforms)
        return read_pyproject(beside, locked=python, without=without)
    return read_project(source, _tables(data, root), "a uv.lock", locked=python, without=without)


def _markers(data: Mapping[str, Any]) -> "list[Marker]":
    """Return the markers of the environments that the lock is for; none for all of them."""
    from packaging.markers import Marker  # late: 34 ms

    return [Marker(str(text)) for text in data.get("supported-markers") or []]


def _accepted(data: Mapping[str, Any], platforms: tuple[str, ...]) -> str:
    """Return the range of Pythons that the lock is for."""
    return python_within(bounded_python(str(data.get("requires-python", "")), []), _markers(data), platforms)


def _tables(data: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of the pyproject.toml that a lock was made of, as far as it notes them."""
    sources = dict[str, list[dict[str, Any]]]()
    own = [{**row, "extras": row.get("extra")} for row in root.get("dependencies") or []]
    metadata = root.get("metadata") or {"requires-dist": own, "requires-dev": root.get("dev-dependencies")}
    lines: dict[tuple[str, str], list[str]] = {("dependencies", ""): []}
    for row in metadata.get("requires-dist") or []:
        found = re.search(r"extra\s*==\s*['\"]([^'\"]+)", str(row.get("marker", "")))
        key = ("optional-dependencies", found[1]) if found else ("dependencies", "")
        lines.setdefault(key, []).append(_line(row, key[1], sources))
    for group, rows in (metadata.get("requires-dev") or {}).items():
        lines["dependency-groups", group] = [_line(row, group, sources) for row in rows]
    tables = {kind: {name: rows for (one, name), rows in lines.items() if one == kind} for kind, _ in lines}
    urls = sorted({row["index"] for rows in sources.values() for row in rows if "index" in row})
    names = {url: of_torch(url) or f"index-{place}" for place, url in enumerate(urls, 1)}
    for row in (row for rows in sources.values() for row in rows if "index" in row):
        row["index"] = names[row["index"]]
    project = {
        "name": root.get("name", ""),
        "requires-python": data.get("requires-python", ""),
        "dependencies": lines["dependencies", ""],
        "optional-dependencies": tables.get("optional-dependencies", {}),
    }
    bounds = data.get("manifest") or {}
    uv = {
        **{f"{key}-dependencies": [_line(row, "", {}) for row in bounds.get(f"{key}s") or []] for key in _BOUNDS},
        "sources": sources,
        "index": [{"name": name, "url": url, "explicit": True} for url, name in names.items()],
        "conflicts": data.get("conflicts") or [],
        "environments": data.get("supported-markers") or [],
    }
    return {"project": project, "dependency-groups": tables.get("dependency-groups", {}), "tool": {"uv": uv}}


def _line(row: Mapping[str, Any], group: str, sources: dict[str, list[dict[str, Any]]]) -> str:
    """Return the line of a request that a lock notes; its place is added to the sources."""
    name, marker = str(row["name"]), _EXTRA.sub("", str(row.get("marker", ""))).strip()
    place: dict[str, Any] = {}
    if "git" in row:
        address, _, query = str(row["git"]).partition("?")
        place = {"git": address, **{key: value[0] for key, value in parse_qs(query).items()}}
    elif path := row.get("editable") or row.get("directory") or row.get("path"):
        place = {"path": str(path), "editable": "editable" in row}
    elif "url" in row:
        place = {"url": str(row["url"])}
    elif row.get("index"):
        place = {"index": without_login(str(row["index"])).rstrip("/")}
    if place:
        only = {"extra": group} if group else {}
        sources.setdefault(normalize(name), []).append({**place, **({"marker": marker} if marker else {}), **only})
    extras = f"[{','.join(map(str, row['extras']))}]" if row.get("extras") else ""
    return f"{name}{extras}{row.get('specifier', '')}" + (f" ; {marker}" if marker else "")


FORMAT = Format(name="uv.lock", read=_read, recognize=lambda name, _: name == "uv.lock")
