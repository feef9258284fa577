"""The format ``pyproject.toml``: ``[project]``, dependency groups, ``[tool.uv]`` and ``[tool.pixi]``, as requests.

Sources: https://packaging.python.org/en/latest/specifications/pyproject-toml/ and …/dependency-groups/,
https://docs.astral.sh/uv/concepts/projects/dependencies/, https://pixi.prefix.dev/latest/python/pyproject_toml/.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError, ManifestError
from tenv.core.names import normalize
from tenv.core.toml_reader import read_toml
from tenv.core.versions import Range
from tenv.interop.build_tools import with_build_tools
from tenv.interop.interface import Draft, Format, GivenFile, Imported
from tenv.interop.pip_lines import PipLines
from tenv.interop.pixi_workspace import read_workspace
from tenv.interop.poetry import with_poetry
from tenv.interop.python_ranges import DEFAULT_MINORS, minors_of_range, python_within, range_of
from tenv.interop.requests import (
    meet,
    platforms_of,
)
from tenv.interop.typed_values import (
    flat,
    included_group,
    own_extras,
    rows_of,
    strings_of,
    table_of,
    valid,
    with_own_extras,
)
from tenv.interop.uv_tables import UvTables, indexes_of, losses_of, with_members, with_workspace
from tenv.targets.manifest import WheelRequest
from tenv.targets.wheel_origin import Index

Features = dict[str, dict[str, dict[str, WheelRequest]]]
"""The requests of features, by name, platform and package."""

_NEWEST = "3.15"
_IN_SETUP_CFG = re.compile(rb"^(install_requires|\[options\.extras_require\])", re.MULTILINE)
_BEFORE = ("3.10", "3.9", "3.8")
"""The Pythons before those that a target has by default, newest first."""
_NOT_NOW = re.compile(r"!=3\.(?:[89]|\d\d)\b")
_OF_MAJORS = re.compile(r",?<=?[4-9](\.0)*(?=,|$)")
"""A bound that leaves every minor of Python 3."""


def python_of(minors: Sequence[str], accepted: str, notes: list[str]) -> str:
    """Return the range of Pythons of a lock, or the one that the file accepts if there is no lock.

    Args:
        minors: The minors of the lock.
        accepted: The Pythons that the file accepts.
        notes: Receives a note if the range is narrower.
    """
    if not minors:
        return bounded_python(accepted, notes)
    found = range_of(minors)
    if tuple(minors) != minors_of_range(accepted.replace(" ", "") or "*"):
        notes.append(f"`python` is set to {found}: the file has a wheel of each package for these Pythons")
    return found


def bounded_python(text: str, notes: list[str]) -> str:
    """Return a range of Pythons that ends and begins with a minor, since a lock has wheels for each minor of it."""
    text = text.replace(" ", "") or f">={DEFAULT_MINORS[0]}"
    text = re.sub(r"(>=\d+\.\d+)\.\d+", r"\1", text if "," in text else text.removeprefix("=="))
    text = re.sub(r"^(?:~=|===?)?(\d+\.\d+)\.\d+$", r"\1.*", text)
    try:
        open_ = "3.29.0" in Range(text)
    except ValueError:
        return ""
    bounded, lacks = text, list[str]()
    if open_:
        bounded, lacks = f"{_OF_MAJORS.sub('', text)},<{_NEWEST}".lstrip(","), ["newest"]
    if "2.7.0" in Range(bounded) or "3.0.0" in Range(bounded):
        oldest = next(minor for minor in (*DEFAULT_MINORS, *_BEFORE, "3.0") if f"{minor}.0" in Range(bounded))
        kept = [clause for clause in bounded.split(",") if clause.startswith("<") or _NOT_NOW.match(clause)]
        bounded, lacks = ",".join([f">={oldest}", *kept]), ["oldest in use", *lacks]
    if lacks:
        why = f"the file names no {' and no '.join(lacks)} Python, and a lock serves each one"
        notes.append(f"`python` is set to {bounded}: {why}")
    return bounded


def _name_in(line: str) -> str:
    return normalize(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0])


def read_pyproject(source: GivenFile, *, locked: str = "", without: Collection[str] = ()) -> Imported:
    """Read a ``pyproject.toml``.

    Args:
        source: The file.
        locked: The range of the Pythons of its lock, which is not narrowed; empty without a lock.
        without: The groups and extras that are left out.

    Raises:
        ManifestError: It is invalid, or has no requests.
        FormatError: It has no group of the given name.
    """
    data = read_toml(source.path, ManifestError).data
    with valid(source.path, "pyproject.toml"):
        if workspace := read_workspace(source.path):
            return _of_pixi(source, workspace, data)
        data, lost = with_poetry(data)
        data, more = with_build_tools(data)
        lost, notes = [*lost, *more], list[str]()
        data = with_workspace(data, source.path.parent, notes)
        data = with_members(data, source.path.parent, lost, notes)
    return read_project(source, data, lost=lost, notes=notes, locked=locked, without=without)


def read_project(
    source: GivenFile,
    data: Mapping[str, Any],
    what: str = "a pyproject.toml",
    lost: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    locked: str = "",
    without: Collection[str] = (),
) -> Imported:
    """Read the tables of a project that uv reads.

    Args:
        source: The file.
        data: The tables.
        what: The file's format, with an article.
        lost: The losses that are known.
        notes: The notes that are known.
        locked: The range of the Pythons of its lock, which is not narrowed; empty without a lock.
        without: The groups and extras that are left out.

    Raises:
        ManifestError: They are invalid, or have no requests.
        FormatError: They have no group of the given name.
    """
    with valid(source.path, what.partition(" ")[2]):
        return _Project(source, data, what, list(lost), list(notes)).imported(locked=locked, without=without)


def _of_pixi(source: GivenFile, workspace: Any, data: Mapping[str, Any]) -> Imported:
    lost: list[str] = []
    environment = source.environment or "default"
    others = [name for name in workspace.environments() if name != environment]
    notes = [f"a target is one environment: `{environment}` is imported, {', '.join(others)} are not"] if others else []
    draft = workspace.draft(source, environment, lost)
    notes += workspace.task_notes(environment)
    name = normalize(str(workspace.name or (data.get("project") or {}).get("name", "")))
    notes.append("a pyproject.toml has no hashes, so no lock is written: `tenv lock` writes one")
    name = name if environment == "default" else f"{name}-{environment}"
    return Imported(name, draft, None, tuple(dict.fromkeys(lost)), tuple(notes))


@dataclass(slots=True)
class _Project:
    """The project of a file without pixi's tables."""

    source: GivenFile
    """The file."""
    data: Mapping[str, Any]
    """Its content."""
    what: str
    """Its format, with an article."""
    lost: list[str] = field(default_factory=list)
    """Receives the losses in a manifest."""
    notes: list[str] = field(default_factory=list)
    """Receives what a reader may want to know."""
    python: str = ""
    """The range of its Pythons."""

    @property
    def _project(self) -> Mapping[str, Any]:
        return table_of(self.data, "project")

    @property
    def _uv(self) -> Mapping[str, Any]:
        return table_of(table_of(self.data, "tool"), "uv")

    @property
    def _name(self) -> str:
        return normalize(str(self._project.get("name", "")))

    def imported(self, *, locked: str, without: Collection[str]) -> Imported:
        """Return the requests: the groups and extras as features, those of `--environment` in the target itself."""
        groups = {name: rows for name, rows in self._groups_and_extras().items() if name not in without}
        chosen = self.source.environment
        if chosen and chosen not in groups:
            hint = f"its groups and extras: {', '.join(groups) or 'none'}"
            raise FormatError(f"{self.source.path}: has no group or extra `{chosen}`", hint=hint)
        platforms = self._platforms()
        accepted = str(self._project.get("requires-python", ""))
        self.python = bounded_python(accepted, self.notes) if accepted else ""
        if accepted and not self.python:
            self.lost.append(f"its Python `{accepted}`, which is not a range")
        self._bound_python(platforms)
        self.python = locked or self.python
        if not locked:
            self.lost += losses_of(self._uv)
            self._narrow(platforms, [*self._own(), *(row for rows in groups.values() for row in rows)])
        lines = self._lines(platforms, [*self._own(), *groups.pop(chosen, [])], chosen)
        self._dynamic(lines)
        lines.finish()
        self._of_others()
        features = self._features(platforms, self._without_conflicts(groups), lines)
        if not any(lines.tables.values()) and not features:
            raise self._empty()
        if self.data.get("build-system") and self._name:
            self.notes.append(self.source.own_package(self._name))
        self.notes.append(f"{self.what} has no hashes, so no lock is written: `tenv lock` writes one")
        indexes = self._used(lines, features)
        draft = Draft(
            platforms=platforms,
            python=self.python,
            wheels=lines.tables,
            indexes=indexes,
            features=features,
            sdists=tuple(map(normalize, strings_of(self._uv, "no-binary-package"))),
            bounds=self._bounds_of(lines, features),
            description=" ".join(str(self._project.get("description", "")).split())[:200],
        )
        name = "-".join(filter(None, (self._name, chosen)))
        return Imported(name, draft, None, tuple(dict.fromkeys(self.lost)), tuple(dict.fromkeys(self.notes)))

    def _used(self, lines: PipLines, features: Features) -> tuple[Index, ...]:
        """Return the indexes without the explicit ones that no request names, which a note names."""
        every = [*lines.tables.values(), *(table for tables in features.values() for table in tables.values())]
        used = {request.index for table in every for request in table.values()}
        unused = [str(index) for index in lines.indexes if index.explicit and index.name not in used]
        if unused:
            self.notes.append(f"no request names the indexes: {', '.join(unused)}")
        return tuple(index for index in lines.indexes if not index.explicit or index.name in used)

    def _bounds_of(self, lines: PipLines, features: Features) -> dict[str, tuple[str, ...]]:
        """Return the constraints and overrides of packages that neither the target nor a feature requests."""
        every = [*lines.tables.values(), *(table for tables in features.values() for table in tables.values())]
        named = {name for table in every for name in table}
        return {
            key: tuple(line for line in dict.fromkeys(found) if _name_in(line) not in named)
            for key, found in (("constraints", lines.constraints), ("overrides", lines.overrides))
        }

    def _groups_and_extras(self) -> dict[str, list[str]]:
        """Return the lines of each; a group and an extra of one name are one."""
        extras = self._extras()
        found = dict(extras)
        for name, rows in self._groups().items():
            own = [line for row in rows for line in with_own_extras(self._name, row, extras)]
            found[name] = list(dict.fromkeys([*found.get(name, []), *own]))
        return found

    def _of_others(self) -> None:
        """Report the requests for conda packages, which conda-lock reads."""
        table = table_of(table_of(table_of(self.data, "tool"), "conda-lock"), "dependencies")
        if rows := [name for name in table if name != "python"]:
            there = self.source.path.with_name("conda-lock.yml").is_file()
            way = f" (`tenv import {self.source.beside('conda-lock.yml')}` reads its lock)" if there else ""
            self.lost.append(f"[tool.conda-lock.dependencies], which tenv does not read: {', '.join(rows)}{way}")

    def _empty(self) -> ManifestError:
        hint = ""
        if other := self._other():
            hint = f"`tenv import {self.source.beside(other)}` reads its {'lock' if 'lock' in other else 'requests'}"
        elif computed := [name for name in ("setup.py", self.source.path.name) if self._computes(name)]:
            path = self.source.beside(computed[0])
            hint = f"`uv pip compile {path} -o requirements.txt` runs its build backend and writes its requests"
        found = [*self.lost, *(line for line in self.notes if "`--platform` adds it" in line)]
        return self.source.no_requests(found, hint)

    def _other(self) -> str:
        """Return the name of a file beside this one that may have its requests; empty for none."""
        from tenv.interop.formats import importable  # late: it names this module

        there = importable(self.source.path.absolute().parent)
        if "conda-lock" in table_of(self.data, "tool") and "conda-lock.yml" in there:
            return "conda-lock.yml"
        listed = sorted(name for name in there if re.fullmatch(r"requirements.*\.txt", name))
        own = {self.source.path.name, *(("pyproject.toml",) if self.what != "a pyproject.toml" else ())}
        if "setup.cfg" in there and not _IN_SETUP_CFG.search(self.source.path.with_name("setup.cfg").read_bytes()):
            own.add("setup.cfg")
        others = [name for name in there if name not in own and ("env" in name or not re.search("lock|ya?ml$", name))]
        return next((name for name in ["requirements.txt", *listed, *others] if name in there), "")

    def _computes(self, name: str) -> bool:
        """Return whether a program of the project has its requests: a setup.py, or the build backend of a file."""
        dynamic = strings_of(self._project, "dynamic")
        return self.source.path.with_name(name).is_file() and (name == "setup.py" or "dependencies" in dynamic)

    def _platforms(self) -> tuple[str, ...]:
        from packaging.markers import Marker  # late: 34 ms

        marked = platforms_of([Marker(text) for text in strings_of(self._uv, "environments")])
        if found := self.source.choose(marked)[0]:
            return found
        if not self.source.platforms:
            self.notes.append("the file has no platforms: linux-64 is used (`--platform` sets others)")
        return self.source.platforms or ("linux-64",)

    def _bound_python(self, platforms: tuple[str, ...]) -> None:
        """Bound the Pythons by the environments that uv locks for."""
        from packaging.markers import Marker  # late: 34 ms

        every = self.python or f">={DEFAULT_MINORS[0]},<{_NEWEST}"
        markers = [Marker(text) for text in strings_of(self._uv, "environments")]
        found = python_within(every, markers, platforms) if markers else every
        if found != every:
            self.python = found
            self.notes = [line for line in self.notes if not line.startswith("`python` is set to")]
            self.notes.append(f"`python` is set to {found}: uv's `environments` are for these")

    def _own(self) -> list[str]:
        return strings_of(self._project, "dependencies")

    def _extras(self) -> dict[str, list[str]]:
        return flat(self._rows_of_extras(), self._own_extras)

    def _rows_of_extras(self) -> dict[str, list[str]]:
        extras = table_of(self._project, "optional-dependencies")
        return {normalize(name): strings_of(extras, name) for name in extras}

    def _own_extras(self, line: Any) -> list[str] | None:
        return own_extras(self._name, line)

    def _groups(self) -> dict[str, list[str]]:
        return flat(self._rows_of_groups(), included_group)

    def _rows_of_groups(self) -> dict[str, list[Any]]:
        groups = table_of(self.data, "dependency-groups")
        tables = {normalize(name): rows_of(groups, name) for name in groups}
        if old := strings_of(self._uv, "dev-dependencies"):
            tables["dev"] = [*tables.get("dev", []), *old]
        return tables

    def _whole(self, group: str) -> frozenset[str]:
        """Return the names of a group or extra, and of the groups and own extras that it includes."""
        extras, groups, found, left = self._rows_of_extras(), self._rows_of_groups(), set[str](), [group]
        while left:
            if (name := left.pop()) not in found:
                found.add(name)
                rows = (*extras.get(name, ()), *groups.get(name, ()))
                left += [other for row in rows for other in included_group(row) or self._own_extras(row) or ()]
        return frozenset(found)

    def _without_conflicts(self, groups: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """Return the groups that can be locked together; the others are reported."""
        chosen = {self.source.environment} - {""}
        every = [set(map(self._conflicting, rows)) for rows in self._uv.get("conflicts") or []]
        sets = [names & {*groups, *chosen} for names in every]
        if own := sorted({name for names in every if "" in names for name in names & groups.keys()}):
            why = "uv locks them apart from the project itself, and a lock has all features"
            self.lost.append(f"{', '.join(own)}: {why} (`--environment` takes one)")
            groups = {name: lines for name, lines in groups.items() if name not in own}
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

    def _conflicting(self, row: Mapping[str, Any]) -> str:
        """Return the extra or group of a conflict; empty for the project itself, and the name of another package."""
        package = normalize(str(row.get("package", "")))
        return normalize(str(row.get("extra") or row.get("group") or "")) or ("" if package == self._name else package)

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
        every = self._together(platforms, {name: tables for name, tables in new.items() if any(tables.values())})
        for feature in every.values():  # an extra of a package of the target comes in the target's version
            for platform, table in feature.items():
                own = base.tables[platform]
                feature[platform] = {
                    name: replace(own.get(name, row), extras=row.extras) for name, row in table.items()
                }
        return every

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
            names |= {name for name, request in rows if replace(every[name], extras=request.extras) != request}
            for tables in features.values():
                here = tables[platform]
                tables[platform] = {name: replace(every[name], extras=row.extras) for name, row in here.items()}
        if names:
            self.notes.append(f"one request for all features, as a lock has it: {', '.join(sorted(names))}")
        return features

    def _added(
        self, feature: str, new: Mapping[str, WheelRequest], base: dict[str, WheelRequest]
    ) -> dict[str, WheelRequest]:
        """Return the requests that a feature adds; its versions bound the target's, since a lock has one of each."""
        other, extras = list[str](), dict[str, WheelRequest]()
        for name in sorted(new.keys() & base.keys()):
            both, own = meet(base[name], new[name]), base[name]
            if both is None or replace(both, version=own.version, extras=own.extras) != own:
                other.append(name)
                continue
            if both.version != own.version:
                self.notes.append(f"`{name}` is {both.version} in the target itself, too, as `{feature}` requests it")
                base[name] = replace(own, version=both.version)
            if both.extras != own.extras:
                extras[name] = both
        if other:
            named = f"of `{feature}`, other requests for {', '.join(other)}"
            self.lost.append(f"{named}: the target's own count (`--environment {feature}` takes these into the target)")
        return {name: request for name, request in new.items() if name not in base} | extras

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
        lines.indexes += indexes_of(self._uv, self.source.path.parent)
        for row in rows:
            lines.add(row, platforms, self.source.path.parent)
        tables = UvTables(self._uv, self.source.path.parent, self._whole(group), self.lost, self.notes)
        tables.apply(lines, report=group == self.source.environment)
        return lines

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
