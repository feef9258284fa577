"""The format ``pyproject.toml``: ``[project]``, dependency groups, ``[tool.uv]`` and ``[tool.pixi]``, as requests.

Sources: https://packaging.python.org/en/latest/specifications/pyproject-toml/ and …/dependency-groups/,
https://docs.astral.sh/uv/concepts/projects/dependencies/, https://pixi.prefix.dev/latest/python/pyproject_toml/.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError, ManifestError
from tenv.core.names import normalize
from tenv.core.toml_reader import Table, read_toml
from tenv.core.untrusted import without_login
from tenv.core.versions import Range, Version
from tenv.interop.drafts import DEFAULT_MINORS
from tenv.interop.interface import Draft, Format, GivenFile, Imported
from tenv.interop.pip_lines import PipLines, project_name, with_version
from tenv.interop.pixi_workspace import read_workspace
from tenv.interop.poetry import with_poetry
from tenv.interop.requests import holds, meet, minors_of_range, platforms_of, wheel_request
from tenv.interop.typed_values import flat, rows_of, strings_of, table_of, valid
from tenv.targets.manifest import WheelRequest
from tenv.targets.tree_request import REVISIONS, TreeRequest, git_fault
from tenv.targets.wheel_origin import Index, is_wheel_file, read_file_request

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FORMAT", "bounded_python", "newest_run", "python_of", "read_project", "read_pyproject"]

Features = dict[str, dict[str, dict[str, WheelRequest]]]
"""The requests of features, by name, platform and package."""

_NEWEST = "3.15"
_OTHER_TOOLS = ("pdm", "hatch", "conda-lock")
_OTHER_REQUESTS = (
    ("conda-lock", "dependencies"),
    ("pdm", "dev-dependencies"),
)
"""The tables below ``[tool]`` with requests that tenv does not read."""


def newest_run(minors: Iterable[str]) -> tuple[str, ...]:
    """Return the newest minors without a gap between them, which a range can have."""
    found: list[str] = []
    for minor in sorted(minors, key=Version, reverse=True):
        if not found or int(found[-1].partition(".")[2]) == int(minor.partition(".")[2]) + 1:
            found.append(minor)
    return tuple(reversed(found))


def python_of(minors: Sequence[str], accepted: str, notes: list[str]) -> str:
    """Return the range of Pythons of a lock, or the one that the file accepts if there is no lock.

    Args:
        minors: The minors of the lock.
        accepted: The Pythons that the file accepts.
        notes: Receives a note if the range is narrower.
    """
    if not minors:
        return bounded_python(accepted, notes)
    found = f">={minors[0]},<3.{int(minors[-1].partition('.')[2]) + 1}"
    if tuple(minors) != minors_of_range(accepted.replace(" ", "") or "*"):
        notes.append(f"`python` is set to {found}: the file has a wheel of each package for these Pythons")
    return found


def bounded_python(text: str, notes: list[str]) -> str:
    """Return a range of Pythons that ends and begins with a minor, since a lock has wheels for each minor of it."""
    text = text.replace(" ", "")
    text = re.sub(r"(>=\d+\.\d+)\.\d+", r"\1", text if "," in text else text.removeprefix("=="))
    try:
        open_ = "3.29.0" in Range(text)
    except ValueError:
        return ""
    if not open_:
        return text
    bounded = f"{text},<{_NEWEST}".lstrip(",")
    notes.append(f"`python` is set to {bounded}: the file names no newest Python, and a lock serves each one")
    return bounded


def read_pyproject(source: GivenFile, *, locked: bool = False) -> Imported:
    """Read a ``pyproject.toml``.

    Args:
        source: The file.
        locked: Whether a lock has its Pythons, so that they are not narrowed.

    Raises:
        ManifestError: It is invalid, or has no requests.
        FormatError: It has no group of the given name.
    """
    data = read_toml(source.path, ManifestError).data
    with valid(source.path, "pyproject.toml"):
        if workspace := read_workspace(source.path):
            return _of_pixi(source, workspace, data)
        data, lost = with_poetry(data)
    return read_project(source, data, lost=lost, locked=locked)


def read_project(
    source: GivenFile,
    data: Mapping[str, Any],
    what: str = "a pyproject.toml",
    lost: Sequence[str] = (),
    *,
    locked: bool = False,
) -> Imported:
    """Read the tables of a project that uv reads.

    Args:
        source: The file.
        data: The tables.
        what: The file's format, with an article.
        lost: The losses that are known.
        locked: Whether a lock has its Pythons, so that they are not narrowed.

    Raises:
        ManifestError: They are invalid, or have no requests.
        FormatError: They have no group of the given name.
    """
    with valid(source.path, what.partition(" ")[2]):
        return _Project(source, data, what, list(lost)).imported(locked=locked)


def _of_pixi(source: GivenFile, workspace: Any, data: Mapping[str, Any]) -> Imported:
    lost: list[str] = []
    environment = source.environment or "default"
    others = [name for name in workspace.environments() if name != environment]
    notes = [f"a target is one environment: `{environment}` is imported, {', '.join(others)} are not"] if others else []
    draft = workspace.draft(source, environment, lost)
    name = normalize(str(workspace.name or (data.get("project") or {}).get("name", "")))
    notes.append("a pyproject.toml has no hashes, so no lock is written: `tenv lock` writes one")
    name = name if environment == "default" else f"{name}-{environment}"
    return Imported(name, draft, None, tuple(dict.fromkeys(lost)), tuple(notes))


@dataclass(slots=True)
class _Project:
    """The project of a file without pixi's tables.

    Attributes:
        source: The file.
        data: Its content.
        what: Its format, with an article.
        lost: Receives the losses in a manifest.
        notes: Receives what a reader may want to know.
        python: The range of its Pythons.
    """

    source: GivenFile
    data: Mapping[str, Any]
    what: str
    lost: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    python: str = ""

    @property
    def _project(self) -> Mapping[str, Any]:
        return table_of(self.data, "project")

    @property
    def _uv(self) -> Mapping[str, Any]:
        return table_of(table_of(self.data, "tool"), "uv")

    @property
    def _name(self) -> str:
        return normalize(str(self._project.get("name", "")))

    def imported(self, *, locked: bool) -> Imported:
        """Return the requests: the groups and extras as features, those of `--environment` in the target itself."""
        groups = {**self._extras(), **self._groups()}
        chosen = self.source.environment
        if chosen and chosen not in groups:
            hint = f"its groups and extras: {', '.join(groups) or 'none'}"
            raise FormatError(f"{self.source.path}: has no group or extra `{chosen}`", hint=hint)
        platforms = self._platforms()
        accepted = str(self._project.get("requires-python", ""))
        self.python = bounded_python(accepted, self.notes) if accepted else ""
        if accepted and not self.python:
            self.lost.append(f"its Python `{accepted}`, which is not a range")
        if not locked:
            self._narrow(platforms, [*self._own(), *(row for rows in groups.values() for row in rows)])
        lines = self._lines(platforms, [*self._own(), *groups.pop(chosen, [])], chosen)
        self._dynamic(lines)
        lines.finish()
        self._of_others()
        features = self._features(platforms, self._without_conflicts(groups), lines)
        if not any(lines.tables.values()) and not features:
            raise self._empty()
        if self.data.get("build-system") and self._name:
            self.notes.append(f"{self._name} itself is no request: `tenv add --editable .` adds it")
        self.notes.append(f"{self.what} has no hashes, so no lock is written: `tenv lock` writes one")
        used = {
            request.index
            for tables in (lines.tables, *features.values())
            for table in tables.values()
            for request in table.values()
        }
        unused = [str(index) for index in lines.indexes if index.explicit and index.name not in used]
        if unused:
            self.notes.append(f"no request names the indexes: {', '.join(unused)}")
        draft = Draft(
            platforms=platforms,
            python=self.python,
            wheels=lines.tables,
            indexes=tuple(index for index in lines.indexes if not index.explicit or index.name in used),
            features=features,
            sdists=tuple(map(normalize, strings_of(self._uv, "no-binary-package"))),
            description=" ".join(str(self._project.get("description", "")).split())[:200],
        )
        name = "-".join(filter(None, (self._name, chosen)))
        return Imported(name, draft, None, tuple(dict.fromkeys(self.lost)), tuple(dict.fromkeys(self.notes)))

    def _of_others(self) -> None:
        """Report the requests in tables of other tools."""
        tools = table_of(self.data, "tool")
        for tool, key in _OTHER_REQUESTS:
            rows = [name for name in table_of(table_of(tools, tool), key) if name != "python"]
            if rows:
                self.lost.append(f"[tool.{tool}.{key}], which tenv does not read: {', '.join(rows)}")

    def _empty(self) -> ManifestError:
        tools = [name for name in _OTHER_TOOLS if name in (self.data.get("tool") or {})]
        hint = ""
        if "conda-lock" in tools:
            hint = "`tenv import conda-lock.yml` reads its lock"
        elif files := sorted(path.name for path in self.source.path.absolute().parent.glob("requirements*.txt")):
            hint = f"`tenv import {files[0]}` reads its requirements"
        return ManifestError(f"{self.source.path}: has no requests", hint=hint)

    def _platforms(self) -> tuple[str, ...]:
        from packaging.markers import Marker  # late: 34 ms

        marked = platforms_of([Marker(text) for text in strings_of(self._uv, "environments")])
        if found := self.source.choose(marked)[0]:
            return found
        if not self.source.platforms:
            self.notes.append("the file has no platforms: linux-64 is used (`--platform` sets others)")
        return self.source.platforms or ("linux-64",)

    def _own(self) -> list[str]:
        return strings_of(self._project, "dependencies")

    def _extras(self) -> dict[str, list[str]]:
        extras = table_of(self._project, "optional-dependencies")
        own = re.compile(rf"{re.escape(str(self._project.get('name', '')))}\s*\[([^\]]*)\]", re.IGNORECASE)

        def named(line: str) -> list[str] | None:
            found = own.match(line)
            return [normalize(name.strip()) for name in found[1].split(",")] if found else None

        return flat({normalize(name): strings_of(extras, name) for name in extras}, named)

    def _groups(self) -> dict[str, list[str]]:
        groups = table_of(self.data, "dependency-groups")
        tables = {normalize(name): rows_of(groups, name) for name in groups}
        if old := strings_of(self._uv, "dev-dependencies"):
            tables["dev"] = [*tables.get("dev", []), *old]

        def named(row: Any) -> list[str] | None:
            return [normalize(str(row.get("include-group", "")))] if isinstance(row, Mapping) else None

        return flat(tables, named)

    def _without_conflicts(self, groups: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """Return the groups that can be locked together; the others are reported."""
        chosen = {self.source.environment} - {""}
        sets = [
            {normalize(str(row.get("extra") or row.get("group") or "")) for row in rows} & {*groups, *chosen}
            for rows in self._uv.get("conflicts") or []
        ]
        if beside := {name for names in sets if chosen & names for name in names} - chosen:
            self.notes.append(f"{', '.join(sorted(chosen))} excludes {', '.join(sorted(beside))}")
            groups = {name: lines for name, lines in groups.items() if name not in beside}
        apart = {name for names in sets if len(names & groups.keys()) > 1 for name in names}
        if apart:
            named = ", ".join(sorted(apart))
            self.lost.append(
                f"{named}: they exclude each other, and a lock has all features (`--environment` takes one)"
            )
        return {name: lines for name, lines in groups.items() if name not in apart}

    def _features(self, platforms: tuple[str, ...], groups: Mapping[str, list[str]], base: PipLines) -> Features:
        found: Features = {}
        for name, rows in groups.items():
            lines = self._lines(platforms, rows, name)
            lines.finish()
            found[name] = {platform: lines.tables[platform] for platform in platforms}
            known = {index.key for index in base.indexes}
            base.indexes.extend(index for index in lines.indexes if index.key not in known)
        apart = self._apart(platforms, found)
        new = {
            name: {platform: self._added(name, tables[platform], base.tables[platform]) for platform in platforms}
            for name, tables in found.items()
            if name not in apart
        }
        self.notes += [f"the group `{name}` adds nothing" for name, tables in new.items() if not any(tables.values())]
        return self._together(platforms, {name: tables for name, tables in new.items() if any(tables.values())})

    def _apart(self, platforms: tuple[str, ...], features: Features) -> set[str]:
        """Return the features that ask for what another one excludes, and report them."""
        names, packages = set[str](), set[str]()
        for (feature, tables), (other, others) in combinations(features.items(), 2):
            pairs = [(tables[platform], others[platform]) for platform in platforms]
            both = [(name, one[name], two[name]) for one, two in pairs for name in one.keys() & two.keys()]
            found = {f"{name} {one.version}" for name, one, two in both if meet(one, two) is None}
            found |= {f"{name} {two.version}" for name, one, two in both if meet(one, two) is None}
            packages |= found
            names |= {feature, other} if found else set()
        if names:
            self.lost.append(
                f"{', '.join(sorted(names))}: they exclude each other by {', '.join(sorted(packages))}, "
                "and a lock has all features (`--environment` takes one)"
            )
        return names

    def _together(self, platforms: tuple[str, ...], features: Features) -> Features:
        """Return features with one request for each package."""
        names = set[str]()
        for platform in platforms:
            every: dict[str, WheelRequest] = {}
            rows = [row for tables in features.values() for row in tables[platform].items()]
            for name, request in rows:
                every[name] = meet(every.get(name, request), request) or request
            names |= {name for name, request in rows if every[name] != request}
            for tables in features.values():
                tables[platform] = {name: every[name] for name in tables[platform]}
        if names:
            self.notes.append(f"one request for all features, as a lock has it: {', '.join(sorted(names))}")
        return features

    def _added(
        self, feature: str, new: Mapping[str, WheelRequest], base: dict[str, WheelRequest]
    ) -> dict[str, WheelRequest]:
        """Return the requests that a feature adds; its versions bound the target's, since a lock has one of each."""
        other = []
        for name in sorted(new.keys() & base.keys()):
            both = meet(base[name], new[name])
            if both is None or replace(both, version=base[name].version) != base[name]:
                other.append(name)
            elif both != base[name]:
                self.notes.append(f"`{name}` is {both.version} in the target itself, too, as `{feature}` requests it")
                base[name] = both
        if other:
            self.lost.append(f"of `{feature}`, other requests for {', '.join(other)}: the target's own count")
        return {name: request for name, request in new.items() if name not in base}

    def _narrow(self, platforms: tuple[str, ...], rows: Iterable[str]) -> None:
        """Narrow the Pythons to those for which the lines of a package ask for one version."""
        minors = minors_of_range(self.python) if self.python else DEFAULT_MINORS
        trial = PipLines(platforms, self.source.path.parent, [], minors=minors)
        for row in rows:
            trial.add(row, platforms, self.source.path.parent)
        self.python = trial.narrowed(self.notes) or self.python

    def _lines(self, platforms: tuple[str, ...], rows: Iterable[str], group: str) -> PipLines:
        minors = minors_of_range(self.python) if self.python else DEFAULT_MINORS
        lines = PipLines(platforms, self.source.path.parent, self.lost, minors=minors, notes=self.notes)
        lines.tables |= {platform: {} for platform in platforms}
        lines.indexes += self._indexes()
        for row in rows:
            lines.add(row, platforms, self.source.path.parent)
        for platform in platforms:
            table = lines.tables[platform]
            for name, request in table.items():
                table[name] = self._sourced(name, request, platform, group)
        self._bound(lines, group)
        return lines

    def _indexes(self) -> list[Index]:
        uv = self._uv
        found = [
            Index(
                without_login(str(row["url"])).rstrip("/"),
                str(row.get("name", "")),
                explicit=bool(row.get("explicit")),
                default=bool(row.get("default")),
                flat=row.get("format") == "flat",
                base=self.source.path.parent,
            )
            for row in uv.get("index") or []
        ]
        found += [Index(without_login(str(url)).rstrip("/")) for url in strings_of(uv, "extra-index-url")]
        found += [
            Index(str(url).rstrip("/"), flat=True, base=self.source.path.parent) for url in strings_of(uv, "find-links")
        ]
        found += [Index(without_login(str(uv["index-url"])).rstrip("/"), default=True)] if uv.get("index-url") else []
        return found

    def _sourced(self, name: str, request: WheelRequest, platform: str, group: str) -> WheelRequest:
        """Return a request with its source of ``[tool.uv.sources]``."""
        from packaging.markers import Marker  # late: 34 ms

        sources = {normalize(key): value for key, value in (self._uv.get("sources") or {}).items()}
        rows = sources.get(name) or []
        for row in [rows] if isinstance(rows, Mapping) else rows:
            only = normalize(str(row.get("extra") or row.get("group") or ""))
            marker = Marker(str(row["marker"])) if row.get("marker") else None
            if (only and only != group) or holds(marker, platform, "") is False:
                continue
            return self._from(name, request, row)
        return request

    def _from(self, name: str, request: WheelRequest, row: Mapping[str, Any]) -> WheelRequest:
        home = self.source.path.parent
        if row.get("index"):
            return replace(request, index=str(row["index"]))
        if row.get("git") and not git_fault(str(row["git"])):
            given: dict[str, Any] = {key: str(row[key]) for key in (*REVISIONS, "subdirectory") if row.get(key)}
            return replace(request, version=Range("*"), tree=TreeRequest(git=str(row["git"]), **given))
        if is_wheel_file(row, row.get("path")):
            given = {key: row[key] for key in ("url", "path") if key in row}
            with suppress(ManifestError):  # a source archive, which the losses name
                file = replace(read_file_request(Table(given, path=(name,)), name), base=home)
                return replace(request, version=Range("*"), file=file)
        path = str(row.get("path", "")) or (self._member(name) if row.get("workspace") else "")
        if path and (home / path).is_dir():
            editable = bool(row.get("editable", row.get("workspace", False)))
            return replace(request, version=Range("*"), tree=TreeRequest(path=path, editable=editable, base=home))
        self.lost.append(f"the source of `{name}`, {without_login(str(dict(row)))}: it is requested from the indexes")
        return request

    def _member(self, name: str) -> str:
        home = self.source.path.parent
        patterns = strings_of(table_of(self._uv, "workspace"), "members")
        below = [pattern for pattern in patterns if not pattern.startswith("/") and ".." not in pattern.split("/")]
        folders: list[Path] = [folder for pattern in below for folder in sorted(home.glob(pattern))]
        return next((folder.relative_to(home).as_posix() for folder in folders if project_name(folder) == name), "")

    def _bound(self, lines: PipLines, group: str) -> None:
        """Apply the overrides and constraints of uv to what is requested; the others are reported once."""
        for key in ("override-dependencies", "constraint-dependencies"):
            free = []
            for text in strings_of(self._uv, key):
                name = normalize(re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0])
                tables = [table for table in lines.tables.values() if name in table]
                if " @ " in text or not tables:
                    free.append(name)
                    continue
                bound = wheel_request(text).request
                for table in tables:
                    own = table[name]
                    table[name] = (
                        replace(own, version=bound.version) if key[0] == "o" else with_version(own, bound.version)
                    )
            if free and group == self.source.environment:
                self.lost.append(f"`{key}` of packages that are not requested: {', '.join(free)}")

    def _dynamic(self, lines: PipLines) -> None:
        """Add dependencies that a build backend reads from requirements files; others are reported."""
        if "dependencies" not in strings_of(self._project, "dynamic"):
            return
        tool = self.data.get("tool") or {}
        setuptools = ((tool.get("setuptools") or {}).get("dynamic") or {}).get("dependencies") or {}
        hatch = (((tool.get("hatch") or {}).get("metadata") or {}).get("hooks") or {}).get("requirements_txt") or {}
        files = setuptools.get("file") or hatch.get("files") or []
        for name in [files] if isinstance(files, str) else files:
            lines.add(f"-r {name}", lines.platforms, self.source.path.parent)
        if not files:
            self.lost.append("its dependencies, which its build backend computes")


FORMAT = Format(name="pyproject.toml", read=read_pyproject, recognize=lambda name, _: name == "pyproject.toml")
