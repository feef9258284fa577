"""The requests of an environment in a ``pixi.toml``, or in the ``[tool.pixi]`` of a ``pyproject.toml``.

Source: pixi's reference, https://pixi.prefix.dev/latest/reference/pixi_manifest/.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError, ManifestError, TenvError
from tenv.core.names import normalize
from tenv.core.toml_reader import Table, read_toml
from tenv.core.untrusted import without_login
from tenv.core.versions import Range
from tenv.interop.interface import Draft, GivenFile
from tenv.interop.pip_lines import PipLines
from tenv.interop.requests import compile_against_torch, conda_request, wheel_request, words_of
from tenv.interop.typed_values import (
    few,
    flat,
    included_group,
    own_extras,
    rows_of,
    strings_of,
    table_of,
    valid,
    with_own_extras,
)
from tenv.targets.manifest import CondaRequest, WheelRequest
from tenv.targets.tree_request import TREE_KEYS, read_tree
from tenv.targets.variable_requests import Action, VariableRequest, is_list, reserved, separator_of
from tenv.targets.wheel_origin import Index, is_wheel_file, read_file_request, read_indexes

_TABLES = ("dependencies", "host-dependencies", "build-dependencies")
"""The tables of packages that pixi installs; the last two are an older form."""

_READ = (
    *_TABLES,
    *("activation", "channels", "platforms", "pypi-dependencies", "pypi-options", "system-requirements", "target"),
)
_APART = "no-build-isolation"
_OVERRIDES = "dependency-overrides"
_NO_MEANING = (
    *("authors", "build-variants", "build-variants-files", "channels", "description", "documentation", "homepage"),
    *("license", "license-file", "name", "platforms", "preview", "pypi-options", "readme", "repository"),
    *("requires-pixi", "version"),
)
"""The keys of `[workspace]` that are read, or decide about no package."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A ``pixi.toml``."""

    path: Path
    """The file."""
    data: Mapping[str, Any]
    """Its content."""

    @property
    def head(self) -> Mapping[str, Any]:
        """Its ``[workspace]``; in older files, ``[project]``."""
        found: Mapping[str, Any] = self.data.get("workspace") or self.data.get("project") or {}
        return found

    @property
    def name(self) -> str:
        """Its name, or an empty string."""
        return str(self.head.get("name", ""))

    def draft(
        self,
        source: GivenFile,
        environment: str,
        lost: list[str],
        locked: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Draft:
        """Return the requests of an environment.

        Args:
            source: The file that is imported.
            environment: The environment.
            lost: Receives the losses in a manifest.
            locked: The platforms of its lock to import, each with its entry there; None without a lock.

        Raises:
            FormatError: It has no such environment, or none for a supported platform.
            ManifestError: It is invalid.
        """
        with valid(self.path, "pixi.toml"):
            return self._draft(source, environment, lost, locked)

    def environments(self) -> list[str]:
        """Return the names of its environments."""
        return list(dict.fromkeys(["default", *self._environments()]))

    def task_notes(self, environment: str) -> list[str]:
        """Return a note about the tasks of an environment, or nothing: a target has none."""
        with valid(self.path, "pixi.toml"):
            parts = self._parts(environment)
            tables = [*parts, *(row for part in parts for row in table_of(part, "target").values())]
            names = sorted({name for table in tables for name in table_of(table, "tasks")})
        return [f"tasks, which a target does not have: {few(names)}"] if names else []

    def _environments(self) -> Mapping[str, Any]:
        found = self.data.get("environments") or {}
        if not isinstance(found, Mapping):
            raise ManifestError(f"{self.path}: environments: expected a table", hint="`[environments]` begins it")
        return found

    def places(self, environment: str, locked: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
        """Return the entries of the platforms of an environment, by their conda names.

        Args:
            environment: The environment.
            locked: The entries of its lock, which name one of several entries of a platform.

        Raises:
            FormatError: There is no such environment.
            ManifestError: It is invalid.
        """
        with valid(self.path, "pixi.toml"):
            return self._places(self._parts(environment), locked or {})

    def _draft(
        self, source: GivenFile, environment: str, lost: list[str], locked: Mapping[str, Mapping[str, Any]] | None
    ) -> Draft:
        parts = self._parts(environment)
        places = self._places(parts, locked or {})
        hint = f"its environments: {', '.join(self.environments())} (`--environment` selects one)"
        platforms = tuple(locked) if locked else source.take(places, lost, hint)
        lost += [f"`{key}`" for key in self.head if key not in _NO_MEANING]
        lost += self._others(parts, places, platforms)
        channels = [row for part in parts for row in part.get("channels") or []] + list(self.head["channels"])
        conda: dict[str, dict[str, CondaRequest]] = {}
        wheels: dict[str, dict[str, WheelRequest]] = {}
        variables: dict[str, dict[str, VariableRequest]] = {}
        for platform in platforms:
            tables = [
                table for part in reversed(parts) for table in _tables(part, platform)
            ]  # the first feature takes precedence
            asked = [table[name] for table in tables for name in _TABLES if table.get(name)]
            conda[platform] = dict(_conda(asked, lost))
            wheels[platform] = dict(
                _wheels([table.get("pypi-dependencies") or {} for table in tables], platform, self.path.parent, lost)
            )
            variables[platform] = dict(_variables(tables, lost))
            _compile(wheels[platform], [*parts, self.head], lost)
        if not (locked or source.environment or any((*conda.values(), *wheels.values()))) and self.environments()[1:]:
            raise FormatError(f"{source.path}: its environment `{environment}` has no requests", hint=hint)
        left = sorted({key for part in parts for key in part if key not in (*_READ, "tasks")} - set(_OF_THE_FILE))
        if left:
            lost.append(f"of {self.path.name}: {', '.join(left)}")
        declared = self._declared(parts, {name: places[name] for name in platforms if name in places})
        return Draft(
            platforms=platforms,
            channels=words_of(map(_channel, sorted(channels, key=_priority, reverse=True)), platforms),
            description=" ".join(str(self.head.get("description", "")).split()),
            cuda=declared.get("cuda", ""),
            glibc=declared.get("glibc", ""),
            dependencies=conda,
            wheels=wheels,
            environment=variables,
            indexes=_indexes([*parts, self.head], self.path, lost),
            bounds={"overrides": _overrides([*parts, self.head], wheels)},
        )

    def _parts(self, environment: str) -> list[Mapping[str, Any]]:
        """Return the features of an environment, highest precedence first."""
        if environment not in self.environments():
            hint = f"pass one with `--environment`: {', '.join(self.environments())}"
            raise FormatError(f"{self.path}: has no environment `{environment}`", hint=hint)
        found = self._environments().get(environment, [])
        table = found if isinstance(found, Mapping) else {"features": found}
        features = self.data.get("feature") or {}
        parts = [features.get(name) or {} for name in table.get("features", [])]
        return parts if table.get("no-default-feature") else [*parts, self.data]

    def _places(
        self, parts: Iterable[Mapping[str, Any]], locked: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Mapping[str, Any]]:
        """Return the entries of the platforms that all features support, by their conda names.

        A feature names a platform, or all platforms of a conda name. Of several of one conda name, the one that the
        lock is for counts, and without a lock the plain one.
        """
        names = self._named_places(parts)
        found: dict[str, Mapping[str, Any]] = {}
        for place in dict.fromkeys(str(entry["platform"]) for entry in names.values()):
            rows = {name: entry for name, entry in names.items() if entry["platform"] == place}
            made = [str(word) for word in locked.get(place, {}).get("virtual-packages") or []]
            fits = [name for name, entry in rows.items() if made and f"__cuda={_cuda(entry)}" in made]
            best = [name for name in (str(locked.get(place, {}).get("name", "")), *fits, place) if name in rows]
            found[place] = rows[best[0]] if best else next(iter(rows.values()))
        return found

    def _named_places(self, parts: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Return the entries of the platforms that all features support, by their own names."""
        names: dict[str, Mapping[str, Any]] = {}
        for row in self.head.get("platforms") or []:
            entry = row if isinstance(row, Mapping) else {"platform": str(row)}
            names[_platform_name(entry)] = entry
        for part in parts:
            if part is not self.data and (listed := part.get("platforms")):
                names = {name: row for name, row in names.items() if {name, str(row["platform"])} & set(listed)}
        return names

    def _others(
        self, parts: Iterable[Mapping[str, Any]], places: Mapping[str, Mapping[str, Any]], platforms: tuple[str, ...]
    ) -> Iterator[str]:
        """Yield the losses of the entries of a platform beside the one that is imported."""
        for name, entry in self._named_places(parts).items():
            taken = places.get(place := str(entry["platform"]))
            if taken is not None and _platform_name(taken) != name and place in platforms:
                asked = f", which asks for CUDA {_cuda(entry)}" if entry.get("cuda") else ""
                yield f"the platform `{name}`{asked}, since `{_platform_name(taken)}` is imported"

    def _declared(self, parts: list[Mapping[str, Any]], places: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Return the declared virtual packages, in the current or the previous form."""
        found: dict[str, str] = {}
        for part in reversed([*parts, self.head]):
            old = part.get("system-requirements") or {}
            libc = old.get("libc")
            found |= {"cuda": str(old["cuda"])} if "cuda" in old else {}
            found |= {"glibc": str(libc["version"] if isinstance(libc, Mapping) else libc)} if libc else {}
        for entry in places.values():
            found |= {"cuda": _cuda(entry)} if entry.get("cuda") else {}
            found |= {"glibc": str(entry["glibc"])} if entry.get("glibc") else {}
        return found


_DECLARED = ("cuda", "glibc", "linux", "osx", "windows", "archspec")


def _cuda(entry: Mapping[str, Any]) -> str:
    cuda = entry.get("cuda") or ""
    return str(cuda["driver"] if isinstance(cuda, Mapping) else cuda)


def _platform_name(entry: Mapping[str, Any]) -> str:
    """Return the name of a platform; without one, pixi makes one, such as ``linux-64-cuda-12-9``."""
    declared = {**entry, "cuda": _cuda(entry)}
    parts = [f"-{key}-{re.sub('[^a-zA-Z0-9]+', '-', str(declared[key]))}" for key in _DECLARED if declared.get(key)]
    return str(entry.get("name") or f"{entry['platform']}{''.join(parts)}")


_OF_THE_FILE = ("$schema", "environments", "feature", "project", "workspace")


def read_workspace(path: Path) -> Workspace | None:
    """Read a ``pixi.toml``, or the ``[tool.pixi]`` of a ``pyproject.toml``; None if there is no such file or table.

    Raises:
        ManifestError: It is invalid.
    """
    if not path.is_file():
        return None
    data = read_toml(path, ManifestError).data
    if path.name != "pyproject.toml":
        return Workspace(path, data)
    pixi = (data.get("tool") or {}).get("pixi")
    return Workspace(path, _with_project(pixi, data)) if pixi else None


def _with_project(pixi: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return pixi's tables with the requests of ``[project]`` and the groups, as pixi takes them.

    The dependencies are requests to the package index of the default feature, ``requires-python`` asks conda for
    Python, and every extra and group is a feature: https://pixi.prefix.dev/latest/python/pyproject_toml/.
    """
    project = data.get("project") or {}
    head_key = "workspace" if "workspace" in pixi else "project"
    head = {
        "name": project.get("name", ""),
        "description": project.get("description", ""),
        **(pixi.get(head_key) or {}),
    }
    found = {**pixi, head_key: head, "pypi-dependencies": _own_lines(strings_of(project, "dependencies"))}
    found["pypi-dependencies"] |= pixi.get("pypi-dependencies") or {}
    python = project.get("requires-python")
    if python and not any("python" in (pixi.get(name) or {}) for name in _TABLES):
        found["dependencies"] = {"python": str(python), **(pixi.get("dependencies") or {})}
    features = dict(pixi.get("feature") or {})
    extras, groups = table_of(project, "optional-dependencies"), table_of(data, "dependency-groups")
    of_extras = {normalize(name): strings_of(extras, name) for name in extras}
    of_groups = {normalize(name): rows_of(groups, name) for name in groups}
    name_of_project = normalize(str(project.get("name", "")))
    of_extras = flat(of_extras, partial(own_extras, name_of_project))
    asked = {name: of_extras.get(normalize(name), []) for name in extras}
    asked |= {name: [*asked.get(name, []), *flat(of_groups, included_group)[normalize(name)]] for name in groups}
    for name, lines in asked.items():
        own = dict(features.get(name) or {})
        rows = [row for line in lines for row in with_own_extras(name_of_project, line, of_extras)]
        features[name] = {
            **own,
            "pypi-dependencies": {**dict(_own_lines(rows)), **(own.get("pypi-dependencies") or {})},
        }
    return {**found, "feature": features}


def _own_lines(lines: Iterable[str]) -> dict[str, Any]:
    """Return PEP 508 lines as rows of a table, each with the lines of one package."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if name := re.match(r"[A-Za-z0-9._-]+", line.strip()):
            found.setdefault(normalize(name.group()), []).append(line)
    return {name: {"line": "\n".join(own)} for name, own in found.items()}


def _channel(row: Any) -> str:
    return str(row["channel"]) if isinstance(row, Mapping) else str(row)


def _priority(row: Any) -> int:
    """Return the priority of a channel: pixi sorts by it, the highest first, and keeps the order of equal ones."""
    return int(row.get("priority", 0)) if isinstance(row, Mapping) else 0


def _tables(part: Mapping[str, Any], platform: str) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that apply to a platform, the most general first."""
    targets = part.get("target") or {}
    system = "win" if platform.startswith("win") else "linux"
    names = [*(["unix"] if system == "linux" else []), system, platform]
    yield part
    yield from (targets[name] for name in names if name in targets)


def _conda(tables: Iterable[Mapping[str, Any]], lost: list[str]) -> Iterator[tuple[str, CondaRequest]]:
    for name, value, text in _lines(tables, _conda_line):
        if not text:
            lost.append(f"the request for `{name}`, which tenv can't express: {value}")
            continue
        found, request, rest = conda_request(text)
        if rest:
            lost.append(f"of `{name}` tenv can't request {rest}")
        yield found, request


def _wheels(
    tables: Iterable[Mapping[str, Any]], platform: str, home: Path, lost: list[str]
) -> Iterator[tuple[str, WheelRequest]]:
    for name, value, text in _lines(tables, _wheel_line):
        if isinstance(value, Mapping) and (line := _marked(value, text)):
            lines = PipLines((platform,), home, lost)
            for one in line.splitlines():
                lines.add(one, (platform,), home)
            index, rows = without_login(str(value.get("index") or "").rstrip("/")), lines.tables.get(platform, {})
            yield from ((key, replace(row, index=index or row.index)) for key, row in rows.items())
            continue
        if isinstance(value, Mapping) and (tree := _tree(name, value, home) or _file(name, value, home)):
            yield normalize(name), tree
            continue
        if isinstance(value, Mapping) and value.get("path") and not (home / str(value["path"])).exists():
            lost.append(f"`{name}`, since there is no `{value['path']}`")
            continue
        if not text:
            lost.append(f"the request for `{name}`, which tenv can't express: {value}")
            continue
        found = wheel_request(text)
        index = str(value.get("index") or "") if isinstance(value, Mapping) else ""
        yield found.name, replace(found.request, index=without_login(index.rstrip("/")))


def _marked(value: Mapping[str, Any], text: str) -> str:
    """Return a request as a PEP 508 line where it is one or has a marker; else an empty string."""
    line = value.get("line") or (f"{text} ; {value['env-markers']}" if text and value.get("env-markers") else "")
    return str(line)


def _file(name: str, value: Mapping[str, Any], home: Path) -> WheelRequest | None:
    """Return the request for one wheel; None for another request."""
    given = {key: one for key, one in value.items() if key != "extras"}
    if not is_wheel_file(given, given.get("path")):
        return None
    try:
        file = read_file_request(Table(given, path=(name,)), normalize(name))
        extras = Table(dict(value), path=(name,)).strings("extras")
    except TenvError:
        return None
    return WheelRequest(Range("*"), tuple(sorted(extras)), file=replace(file, base=home))


def _indexes(parts: Iterable[Mapping[str, Any]], path: Path, lost: list[str]) -> tuple[Index, ...]:
    """Return the indexes of the parts, best first; other options of pixi's are lost."""
    found: dict[str, Index] = {}
    for part in parts:
        options = part.get("pypi-options") or {}
        given = {key: options[key] for key in ("index-url", "extra-index-urls", "find-links") if key in options}
        rows = read_indexes(Table({"pypi-options": given}, file=str(path)))
        found |= {index.key: replace(index, base=path.parent) for index in rows if index.key not in found}
        read = (*given, _OVERRIDES)
        more = {key: value for key, value in options.items() if key not in read and (key != _APART or value is True)}
        lost += [f"`pypi-options.{key}` = {value}" for key, value in more.items()]
    return tuple(found.values())


def _overrides(parts: Iterable[Mapping[str, Any]], wheels: dict[str, dict[str, WheelRequest]]) -> tuple[str, ...]:
    """Return the overrides as lines; the override of a requested package replaces its versions and extras."""
    tables = [table_of(table_of(part, "pypi-options"), _OVERRIDES) for part in parts]
    found = [_wheel_line(name, row) for table in tables[::-1] for name, row in table.items()]
    free = {wheel_request(text).name: text for text in found}
    for name, text in list(free.items()):
        for table in wheels.values():
            if name in table:
                over = wheel_request(text).request
                table[name] = replace(table[name], version=over.version, extras=over.extras)
                free.pop(name, None)
    return tuple(free.values())


def _compile(table: dict[str, WheelRequest], parts: Iterable[Mapping[str, Any]], lost: list[str]) -> None:
    """Request the packages that pixi builds in the environment itself as compiled against the target's torch."""
    options = [row for part in parts if (row := table_of(part, "pypi-options")).get(_APART) is not True]
    names = [normalize(name) for row in options for name in strings_of(row, _APART)]
    if left := sorted(compile_against_torch(table, names)):
        lost.append(f"`{_APART}` of {', '.join(left)}: a folder with `editable` is built apart")


def _tree(name: str, value: Mapping[str, Any], home: Path) -> WheelRequest | None:
    """Return the request for a source tree; None for another request, or one that a manifest can't hold."""
    given = {key: one for key, one in value.items() if key != "extras"}
    try:
        tree = read_tree(Table(given, path=(name,))) if set(given) <= set(TREE_KEYS) else None
        extras = Table(dict(value), path=(name,)).strings("extras")
    except TenvError:
        return None
    if tree is None or (tree.path and not (home / tree.path).is_dir()):  # a wheel or an sdist
        return None
    return WheelRequest(Range("*"), tuple(sorted(extras)), replace(tree, base=home))


def _lines(tables: Iterable[Mapping[str, Any]], line: Callable[[str, Any], str]) -> Iterator[tuple[str, Any, str]]:
    for table in tables:
        for name, value in table.items():
            yield name, value, line(name, value)


def _conda_line(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f"{name} {value}"
    if not set(value) <= {"version", "build", "channel"}:
        return ""
    pairs = [f"{key}='{value[key]}'" for key in ("version", "build") if value.get(key)]
    channel = f"{value['channel']}::" if value.get("channel") else ""
    return f"{channel}{name}[{','.join(pairs)}]" if pairs else f"{channel}{name}"


def _wheel_line(name: str, value: Any) -> str:
    table = {"version": value} if isinstance(value, str) else dict(value)
    if not set(table) <= {"version", "extras", "index", "env-markers"}:
        return ""
    version = str(table.get("version", "*"))
    extras = f"[{','.join(table['extras'])}]" if table.get("extras") else ""
    return f"{name}{extras}{'' if version == '*' else version if not version[:1].isdigit() else '==' + version}"


def _variables(tables: Iterable[Mapping[str, Any]], lost: list[str]) -> Iterator[tuple[str, VariableRequest]]:
    for table in tables:
        activation = table.get("activation") or {}
        if activation.get("scripts"):
            lost.append(f"activation scripts: {', '.join(map(str, activation['scripts']))}")
        for name, value in (activation.get("env") or {}).items():
            if fault := reserved(str(name)):
                lost.append(f"`{name}`, since it {fault}")
                continue
            request = _variable(str(name), str(value))
            if request is None:
                lost.append(f"`{name}`, since only a shell can evaluate it: {value}")
            else:
                yield str(name), request


_OWN_PREFIX = re.compile(r"\$(?:CONDA_PREFIX\b|\{CONDA_PREFIX\})|%CONDA_PREFIX%")


def _variable(name: str, value: str) -> VariableRequest | None:
    """Return the change that a pixi variable means: a list with its own name at an end is an addition.

    None if only a shell can evaluate it: another variable, a command, a list in the middle.
    """
    text = _OWN_PREFIX.sub("$TENV_PREFIX", value)
    action, separator = Action.SET, separator_of(name)
    for own in (f"${name}", f"${{{name}}}", f"%{name}%"):
        if text.endswith(separator + own):
            action, text = Action.PREPEND, text.removesuffix(separator + own)
        elif text.startswith(own + separator):
            action, text = Action.APPEND, text.removeprefix(own + separator)
    if action is Action.SET and is_list(name):
        action = Action.PREPEND
    # A literal dollar.
    text = text.replace("\\$", "$$")
    request = VariableRequest(text, action)
    rest = text.replace("$$", "")
    if "`" in rest or "$(" in rest or "%" in rest or not set(request.names()) <= {"TENV_PREFIX", "HOME", "CUDA_HOME"}:
        return None
    return None if rest.count("$") != len(request.names()) or (not text and action is not Action.SET) else request
