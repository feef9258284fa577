"""The requests of an environment in a ``pixi.toml``, read and written.

Source: pixi's reference, https://pixi.prefix.dev/latest/reference/pixi_manifest/.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError, ManifestError, TenvError
from tenv.core.names import normalize
from tenv.core.toml_reader import Table, read_toml
from tenv.core.versions import Range
from tenv.interop.drafts import tree_text
from tenv.interop.interface import Draft, GivenFile, Subject, quoted
from tenv.interop.requests import conda_request, split, wheel_request, words_of
from tenv.targets.manifest import CondaRequest, Manifest, WheelRequest
from tenv.targets.tree_request import TREE_KEYS, read_tree
from tenv.targets.variable_requests import Action, VariableRequest, is_list, reserved, separator_of

__all__ = ["Workspace", "read_workspace", "render_workspace"]

_TABLES = ("dependencies", "host-dependencies", "build-dependencies")
"""The tables of packages that pixi installs; the last two are an older form."""

_READ = (*_TABLES, "activation", "channels", "platforms", "pypi-dependencies", "system-requirements", "target")
_SETTINGS = ("channel-priority", "solve-strategy", "exclude-newer")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A ``pixi.toml``.

    Attributes:
        path: The file.
        data: Its content.
    """

    path: Path
    data: Mapping[str, Any]

    @property
    def head(self) -> Mapping[str, Any]:
        """Its ``[workspace]``; in older files, ``[project]``."""
        found: Mapping[str, Any] = self.data.get("workspace") or self.data.get("project") or {}
        return found

    @property
    def name(self) -> str:
        """Its name, or an empty string."""
        return str(self.head.get("name", ""))

    def draft(self, source: GivenFile, environment: str, lost: list[str], platforms: tuple[str, ...] = ()) -> Draft:
        """Return the requests of an environment.

        Args:
            source: The file that is imported.
            environment: The environment.
            lost: Receives the losses in a manifest.
            platforms: The platforms to import; empty for all platforms of the environment.

        Raises:
            FormatError: It has no such environment, or none for a supported platform.
            ManifestError: It is invalid.
        """
        try:
            return self._draft(source, environment, lost, platforms)
        except TenvError:
            raise
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            reason = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
            raise ManifestError(f"{self.path}: invalid pixi.toml: {reason}") from error

    def environments(self) -> list[str]:
        """Return the names of its environments."""
        return list(dict.fromkeys(["default", *self._environments()]))

    def _environments(self) -> Mapping[str, Any]:
        found = self.data.get("environments") or {}
        if not isinstance(found, Mapping):
            raise ManifestError(f"{self.path}: environments: expected a table", hint="`[environments]` begins it")
        return found

    def _draft(self, source: GivenFile, environment: str, lost: list[str], platforms: tuple[str, ...]) -> Draft:
        parts = self._parts(environment)
        places = self._places(parts)
        if not platforms:
            hint = f"its environments: {', '.join(self.environments())} (`--environment` selects one)"
            platforms = source.take(places, lost, hint)
            lost += [f"`{key}` is not imported" for key in _SETTINGS if key in self.head]
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
                _wheels([table.get("pypi-dependencies") or {} for table in tables], self.path.parent, lost)
            )
            variables[platform] = dict(_variables(tables, lost))
        left = sorted({key for part in parts for key in part if key not in (*_READ, "tasks")} - set(_OF_THE_FILE))
        if left:
            lost.append(f"of {self.path.name} are not imported: {', '.join(left)}")
        declared = self._declared(parts, {name: places[name] for name in platforms if name in places})
        return Draft(
            platforms=platforms,
            channels=words_of(map(_channel, channels), platforms),
            description=" ".join(str(self.head.get("description", "")).split()),
            cuda=declared.get("cuda", ""),
            glibc=declared.get("glibc", ""),
            dependencies=conda,
            wheels=wheels,
            environment=variables,
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

    def _places(self, parts: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Return the entries of the platforms that all features support, by their conda names."""
        names: dict[str, Mapping[str, Any]] = {}
        for row in self.head.get("platforms") or []:
            entry = row if isinstance(row, Mapping) else {"platform": str(row)}
            names[str(entry.get("name", entry["platform"]))] = entry
        for part in parts:
            if part is not self.data and part.get("platforms"):
                names = {name: entry for name, entry in names.items() if name in part["platforms"]}
        found: dict[str, Mapping[str, Any]] = {}
        for entry in names.values():
            found.setdefault(str(entry["platform"]), entry)
        return found

    def _declared(self, parts: list[Mapping[str, Any]], places: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Return the declared virtual packages, in the current or the previous form."""
        found: dict[str, str] = {}
        for part in reversed([*parts, self.head]):
            old = part.get("system-requirements") or {}
            libc = old.get("libc")
            found |= {"cuda": str(old["cuda"])} if "cuda" in old else {}
            found |= {"glibc": str(libc["version"] if isinstance(libc, Mapping) else libc)} if libc else {}
        for entry in places.values():
            cuda = entry.get("cuda")
            found |= {"cuda": str(cuda["driver"] if isinstance(cuda, Mapping) else cuda)} if cuda else {}
            found |= {"glibc": str(entry["glibc"])} if entry.get("glibc") else {}
        return found


_OF_THE_FILE = ("$schema", "environments", "feature", "project", "workspace")


def read_workspace(path: Path) -> Workspace | None:
    """Read a ``pixi.toml``; None if there is no such file.

    Raises:
        ManifestError: It is invalid.
    """
    return Workspace(path, read_toml(path, ManifestError).data) if path.is_file() else None


def _channel(row: Any) -> str:
    return str(row["channel"]) if isinstance(row, Mapping) else str(row)


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
            lost.append(f"`{name}` has a request that tenv can't express: {value}")
            continue
        found, request, rest = conda_request(text)
        if rest:
            lost.append(f"of `{name}` tenv can't request {rest}")
        yield found, request


def _wheels(tables: Iterable[Mapping[str, Any]], home: Path, lost: list[str]) -> Iterator[tuple[str, WheelRequest]]:
    for name, value, text in _lines(tables, _wheel_line):
        if isinstance(value, Mapping) and (tree := _tree(name, value, home)):
            yield normalize(name), tree
            continue
        if not text:
            lost.append(f"`{name}` has a request that tenv can't express: {value}")
            continue
        if isinstance(value, Mapping) and value.get("index"):
            lost.append(f"of `{name}` tenv can't set its index: set it in uv's settings (UV_INDEX={value['index']})")
        found = wheel_request(text)
        yield found.name, found.request


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
    if not set(table) <= {"version", "extras", "index"}:
        return ""
    version = str(table.get("version", "*"))
    extras = f"[{','.join(table['extras'])}]" if table.get("extras") else ""
    return f"{name}{extras}{'' if version == '*' else version if not version[:1].isdigit() else '==' + version}"


def _variables(tables: Iterable[Mapping[str, Any]], lost: list[str]) -> Iterator[tuple[str, VariableRequest]]:
    for table in tables:
        activation = table.get("activation") or {}
        if activation.get("scripts"):
            lost.append(f"activation scripts are not imported: {', '.join(map(str, activation['scripts']))}")
        for name, value in (activation.get("env") or {}).items():
            if fault := reserved(str(name)):
                lost.append(f"`{name}` is not imported, since it {fault}")
                continue
            request = _variable(str(name), str(value))
            if request is None:
                lost.append(f"`{name}` is not imported, since only a shell can evaluate it: {value}")
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


def render_workspace(
    subject: Subject,
    channels: tuple[str, ...],
    virtual_packages: Callable[[Manifest, str], dict[str, str]],
    options: Mapping[str, Any],
) -> str:
    """Return the text of a ``pixi.toml``.

    Args:
        subject: The exported target.
        channels: Its channels.
        virtual_packages: Returns the virtual packages of a platform.
        options: The lock's solve options.
    """
    manifest, platforms = subject.manifest, subject.platforms
    entries = [_platform(platform, virtual_packages(manifest, platform)) for platform in platforms]
    lines = [
        "[workspace]",
        f"name      = {quoted(manifest.name)}",
        *([f"description = {quoted(manifest.description)}"] if manifest.description else []),
        f"channels  = [{', '.join(map(quoted, channels or ('conda-forge',)))}]",
        "platforms = [",
        *(f"  {entry}," for entry in entries),
        "]",
        *_solver(options),
    ]
    here = {platform: manifest.on(platform) for platform in platforms}
    conda, conda_own = split({platform: _conda_tables(found) for platform, found in here.items()})
    wheels, wheels_own = split({platform: _wheel_tables(found) for platform, found in here.items()})
    variables, variables_own = split({platform: _variable_tables(found) for platform, found in here.items()})
    lines += _section("dependencies", conda)
    lines += _section("pypi-dependencies", wheels)
    lines += _section("activation.env", {name: quoted(value) for name, value in variables.items()})
    for platform in platforms:
        lines += _section(f"target.{platform}.dependencies", conda_own.get(platform, {}))
        lines += _section(f"target.{platform}.pypi-dependencies", wheels_own.get(platform, {}))
        own = variables_own.get(platform, {})
        lines += _section(f"target.{platform}.activation.env", {name: quoted(value) for name, value in own.items()})
    return "\n".join([*lines, *_pypi_options(subject, options)]) + "\n"


def _variable_tables(manifest: Manifest) -> dict[str, str]:
    """Return the variables as pixi's shells expand them; pixi can't unset variables."""
    found = {}
    for name, request in manifest.environment.items():
        # The names are the same except for the prefix; a literal dollar is escaped.
        value = re.sub(r"\$\{?TENV_PREFIX\b\}?", "$CONDA_PREFIX", request.value.replace("$$", "\\$"))
        match request.action:
            case Action.SET:
                found[name] = value
            case Action.PREPEND:
                found[name] = f"{value}{separator_of(name)}${name}"
            case Action.APPEND:
                found[name] = f"${name}{separator_of(name)}{value}"
            case Action.UNSET:
                pass
    return found


def _platform(platform: str, declared: Mapping[str, str]) -> str:
    if not declared:
        return quoted(platform)
    pairs = {"platform": platform, **declared}
    return f"{{ {', '.join(f'{key} = {quoted(value)}' for key, value in pairs.items())} }}"


def _section(name: str, rows: Mapping[str, str]) -> list[str]:
    keys = {key: key if key.replace("-", "").replace("_", "").isalnum() else quoted(key) for key in rows}
    return ["", f"[{name}]", *(f"{keys[key]} = {rows[key]}" for key in sorted(rows))] if rows else []


def _solver(options: Mapping[str, Any]) -> list[str]:
    """Return the solve options, without which pixi treats a lock as stale."""
    strategies = {"lowest-version": "lowest", "lowest-version-direct": "lowest-direct"}
    rows = {
        "channel-priority": options.get("channel-priority"),
        "solve-strategy": strategies.get(str(options.get("strategy"))),
        "exclude-newer": options.get("exclude-newer"),
    }
    return [f"{name} = {quoted(str(value))}" for name, value in rows.items() if value]


def _pypi_options(subject: Subject, options: Mapping[str, Any]) -> list[str]:
    rows = {}
    if subject.indexes:
        rows["index-url"] = quoted(subject.indexes[0])
    if more := subject.indexes[1:]:
        rows["extra-index-urls"] = f"[{', '.join(map(quoted, more))}]"
    if mode := options.get("pypi-prerelease-mode"):
        rows["prerelease-mode"] = quoted(str(mode))
    return _section("pypi-options", rows)


def _conda_tables(manifest: Manifest) -> dict[str, str]:
    rows = {name: _conda_row(request) for name, request in manifest.dependencies.items()}
    if manifest.python and manifest.wheels and "python" not in rows:
        rows["python"] = quoted(str(manifest.python))
    return rows


def _conda_row(request: CondaRequest) -> str:
    version = quoted(request.version.spec.replace(" ", ""))
    more = {"channel": request.channel, "build": request.build}
    pairs = {key: quoted(value) for key, value in more.items() if value}
    return f"{{ {', '.join(f'{k} = {v}' for k, v in {'version': version, **pairs}.items())} }}" if pairs else version


def _wheel_tables(manifest: Manifest) -> dict[str, str]:
    return {name: _wheel_row(request) for name, request in manifest.wheels.items()}


def _wheel_row(request: WheelRequest) -> str:
    if request.tree:
        return tree_text(
            replace(request.tree, path=request.tree.path and request.tree.folder.as_posix()), request.extras
        )
    version = quoted(_pep440(request.version))
    if not request.extras:
        return version
    return f"{{ version = {version}, extras = [{', '.join(map(quoted, request.extras))}] }}"


def _pep440(version: Range) -> str:
    """Return a range in PEP 440 form, in its written order."""
    clauses = [clause for clause in str(version).replace(" ", "").split(",") if clause not in ("", "*")]
    return ",".join(re.sub(r"^=?(?=[0-9])", "==", clause) for clause in clauses) or "*"
