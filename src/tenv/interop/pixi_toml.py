"""``pixi.toml``: written from a manifest, and read for what was asked for."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tenv.errors import ManifestError, TenvError
from tenv.interop.interface import Draft, Subject
from tenv.interop.packages import channel_word
from tenv.interop.reading import quoted
from tenv.interop.requests import conda_request, split, wheel_request
from tenv.manifest import CondaRequest, Manifest, WheelRequest
from tenv.tables import read_toml
from tenv.versions import Range

__all__ = ["read_workspace", "render_workspace"]


def render_workspace(
    subject: Subject,
    channels: tuple[str, ...],
    virtual_packages: Callable[[Manifest, str], dict[str, str]],
    options: Mapping[str, Any],
) -> str:
    """Return the text of a ``pixi.toml``.

    Args:
        subject: What is exported.
        channels: Its channels.
        virtual_packages: Returns what a platform declares.
        options: How the lock was solved.
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
    conda, conda_own = split({platform: _conda(found) for platform, found in here.items()})
    wheels, wheels_own = split({platform: _wheels(found) for platform, found in here.items()})
    variables, variables_own = split({platform: found.environment for platform, found in here.items()})
    lines += _section("dependencies", conda)
    lines += _section("pypi-dependencies", wheels)
    lines += _section("activation.env", {name: quoted(value) for name, value in variables.items()})
    for platform in platforms:
        lines += _section(f"target.{platform}.dependencies", conda_own.get(platform, {}))
        lines += _section(f"target.{platform}.pypi-dependencies", wheels_own.get(platform, {}))
        own = variables_own.get(platform, {})
        lines += _section(f"target.{platform}.activation.env", {name: quoted(value) for name, value in own.items()})
    return "\n".join([*lines, *_pypi_options(subject, options)]) + "\n"


def _platform(platform: str, declared: Mapping[str, str]) -> str:
    if not declared:
        return quoted(platform)
    pairs = {"platform": platform, **declared}
    return f"{{ {', '.join(f'{key} = {quoted(value)}' for key, value in pairs.items())} }}"


def _section(name: str, rows: Mapping[str, str]) -> list[str]:
    keys = {key: key if key.replace("-", "").replace("_", "").isalnum() else quoted(key) for key in rows}
    return ["", f"[{name}]", *(f"{keys[key]} = {rows[key]}" for key in sorted(rows))] if rows else []


def _solver(options: Mapping[str, Any]) -> list[str]:
    """Return how the lock was solved, without which pixi takes a lock for stale."""
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


def _conda(manifest: Manifest) -> dict[str, str]:
    rows = {name: _conda_row(request) for name, request in manifest.dependencies.items()}
    if manifest.python and manifest.wheels and "python" not in rows:
        rows["python"] = quoted(str(manifest.python))
    return rows


def _conda_row(request: CondaRequest) -> str:
    version = quoted(request.version.spec.replace(" ", ""))
    more = {"channel": request.channel, "build": request.build}
    pairs = {key: quoted(value) for key, value in more.items() if value}
    return f"{{ {', '.join(f'{k} = {v}' for k, v in {'version': version, **pairs}.items())} }}" if pairs else version


def _wheels(manifest: Manifest) -> dict[str, str]:
    return {name: _wheel_row(request) for name, request in manifest.wheels.items()}


def _wheel_row(request: WheelRequest) -> str:
    version = quoted(_pep440(request.version))
    if not request.extras:
        return version
    return f"{{ version = {version}, extras = [{', '.join(map(quoted, request.extras))}] }}"


def _pep440(version: Range) -> str:
    """Return a range as PEP 440 has it, in the order in which it was written."""
    clauses = [clause for clause in str(version).replace(" ", "").split(",") if clause not in ("", "*")]
    return ",".join(re.sub(r"^=?(?=[0-9])", "==", clause) for clause in clauses) or "*"


def read_workspace(path: Path, environment: str, platforms: tuple[str, ...], lost: list[str]) -> Draft | None:
    """Read what a ``pixi.toml`` asks for in one environment; None when there is no such file.

    Args:
        path: The file.
        environment: The environment.
        platforms: The platforms that are taken.
        lost: Told what a manifest can't say.

    Raises:
        ManifestError: It can't be read.
    """
    if not path.is_file():
        return None
    data = read_toml(path, ManifestError).data
    try:
        return _draft(data, environment, platforms, lost)
    except TenvError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise ManifestError(f"{path}: is no pixi.toml that tenv can read: {error}") from error


def _draft(data: Mapping[str, Any], environment: str, platforms: tuple[str, ...], lost: list[str]) -> Draft:
    workspace = data.get("workspace") or data.get("project") or {}
    parts = [(data.get("feature") or {}).get(name) or {} for name in _features(data, environment)]
    if _has_default(data, environment):
        parts.append(data)
    channels = [channel for part in parts for channel in part.get("channels") or []] + list(workspace["channels"])
    conda: dict[str, dict[str, CondaRequest]] = {platform: {} for platform in platforms}
    wheels: dict[str, dict[str, WheelRequest]] = {platform: {} for platform in platforms}
    for platform in platforms:
        for part in reversed(parts):  # the first feature wins
            for table in _tables(part, platform):
                conda[platform] |= dict(_read(table.get("dependencies"), _conda_line, conda_request, lost))
                wheels[platform] |= dict(_read(table.get("pypi-dependencies"), _wheel_line, wheel_request, lost))
    declared = _declared(workspace, parts, platforms)
    return Draft(
        platforms=platforms,
        channels=tuple(dict.fromkeys(channel_word(_channel(row)) for row in channels)),
        cuda=declared.get("cuda", ""),
        glibc=declared.get("glibc", ""),
        dependencies=conda,
        wheels=wheels,
        environment={
            str(key): str(value)
            for part in reversed(parts)
            for key, value in ((part.get("activation") or {}).get("env") or {}).items()
        },
    )


def _features(data: Mapping[str, Any], environment: str) -> list[str]:
    found = (data.get("environments") or {}).get(environment, [])
    return list(found if isinstance(found, list) else found.get("features", []))


def _has_default(data: Mapping[str, Any], environment: str) -> bool:
    found = (data.get("environments") or {}).get(environment)
    return not (isinstance(found, dict) and found.get("no-default-feature"))


def _channel(row: Any) -> str:
    return str(row["channel"]) if isinstance(row, dict) else str(row)


def _tables(part: Mapping[str, Any], platform: str) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that count on a platform, the most general first."""
    targets = part.get("target") or {}
    system = "win" if platform.startswith("win") else "linux"
    names = [*(["unix"] if system == "linux" else []), system, platform]
    yield part
    yield from (targets[name] for name in names if name in targets)


def _read(table: Any, line: Callable[[str, Any], str], parse: Callable[[str], Any], lost: list[str]) -> Iterator[Any]:
    for name, value in (table or {}).items():
        text = line(name, value)
        if not text:
            lost.append(f"`{name}` is asked for in a way that tenv can't: {value}")
            continue
        found, request, rest = parse(text)
        if rest:
            lost.append(f"of `{name}` tenv can't ask for {rest}")
        yield found, request


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


def _declared(
    workspace: Mapping[str, Any], parts: list[Mapping[str, Any]], platforms: tuple[str, ...]
) -> dict[str, str]:
    """Return the virtual packages that a workspace declares, in today's form or the one before."""
    found: dict[str, str] = {}
    for part in reversed([*parts, workspace]):
        old = part.get("system-requirements") or {}
        libc = old.get("libc")
        found |= {"cuda": str(old["cuda"])} if "cuda" in old else {}
        found |= {"glibc": str(libc["version"] if isinstance(libc, dict) else libc)} if libc else {}
    for row in workspace.get("platforms") or []:
        if isinstance(row, dict) and row.get("platform", row.get("name")) in platforms:
            cuda = row.get("cuda")
            found |= {"cuda": str(cuda["driver"] if isinstance(cuda, dict) else cuda)} if cuda else {}
            found |= {"glibc": str(row["glibc"])} if row.get("glibc") else {}
    return found
