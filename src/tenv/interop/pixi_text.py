"""The text of a ``pixi.toml``, and whether a ``pixi.lock`` is for the workspace beside it.

`tenv.locks.satisfaction` compares the packages with the requests. Here is what only pixi's own files have: platforms,
their hosts, the indexes of wheels. Sources: pixi's reference, https://pixi.prefix.dev/latest/reference/pixi_manifest/,
and its module ``satisfiability``, whose test files are the cases of tests/interop/pixi_cases.toml.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tenv.core.errors import LockStaleError
from tenv.core.names import file_at
from tenv.core.versions import Range, same_release
from tenv.interop.drafts import tree_text
from tenv.interop.interface import Draft, ForeignLock, GivenFile, Subject, quoted
from tenv.interop.pixi_workspace import Workspace
from tenv.interop.requests import split
from tenv.targets.manifest import CondaRequest, Manifest, WheelRequest, with_features
from tenv.targets.variable_requests import Action, separator_of


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
    for name, feature in manifest.features.items():
        lines += _feature(name, {platform: feature.on(platform) for platform in platforms}, manifest)
    if manifest.features:
        environments = {
            name: f'{{ features = [{quoted(name)}], solve-group = "default" }}' for name in manifest.features
        }
        lines += _section("environments", {"default": '{ solve-group = "default" }', **environments})
    return "\n".join([*lines, *_pypi_options(subject, options)]) + "\n"


def _feature(name: str, here: Mapping[str, Manifest], manifest: Manifest) -> list[str]:
    """Return the tables of a feature, which has at least one table."""
    key = name if name.replace("-", "").replace("_", "").isalnum() else quoted(name)
    conda = {
        platform: {row: _conda_row(one) for row, one in found.dependencies.items()} for platform, found in here.items()
    }
    wheels = {
        platform: {
            row: _wheel_row(with_features(manifest, [name]).on(platform), one) for row, one in found.wheels.items()
        }
        for platform, found in here.items()
    }
    (common, own), (common_wheels, own_wheels) = split(conda), split(wheels)
    lines = _section(f"feature.{key}.dependencies", common) + _section(
        f"feature.{key}.pypi-dependencies", common_wheels
    )
    for platform in here:
        lines += _section(f"feature.{key}.target.{platform}.dependencies", own.get(platform, {}))
        lines += _section(f"feature.{key}.target.{platform}.pypi-dependencies", own_wheels.get(platform, {}))
    return lines or ["", f"[feature.{key}.dependencies]"]


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


def workspace_indexes(subject: Subject) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the indexes of all wheels, the main one first, and the pages of links; the lock has the same.

    An explicit index serves only the requests that name it, and a folder of this machine counts if a file is from one.
    """
    named = with_features(subject.manifest).indexes
    main = [index.address for index in named if index.default]
    own = {index.address for index in named if index.explicit or index.flat}
    near = any(row.url.startswith("file:") for row in subject.located.values())
    in_use = [url for url in subject.indexes if url not in own and (near or not url.startswith("file:"))]
    extra = [index.address for index in named if not (index.default or index.explicit or index.flat)]
    links = tuple(index.address for index in named if index.flat and not index.explicit)
    return tuple(dict.fromkeys((*(main or in_use[:1]), *extra, *in_use[1:]))), links


def compiled_packages(subject: Subject) -> dict[str, list[str]]:
    """Return the packages that are compiled against the target's torch, each with its keys that pixi lacks."""
    whole, found = with_features(subject.manifest), dict[str, list[str]]()
    for platform in subject.platforms:
        for name, request in whole.on(platform).wheels.items():
            if not request.isolated:
                given = (("requires", request.requires is not None), ("cxx", request.cxx), ("archs", request.archs))
                found[name] = [f"`{key}` of {name}" for key, value in given if value]
    return dict(sorted(found.items()))


def plain_overrides(manifest: Manifest) -> list[str]:
    """Return the overrides that pixi's ``dependency-overrides`` hold, which have no markers."""
    return [line for line in manifest.overrides if ";" not in line]


def _pypi_options(subject: Subject, options: Mapping[str, Any]) -> list[str]:
    rows, (indexes, links) = {}, workspace_indexes(subject)
    if indexes:
        rows["index-url"] = quoted(indexes[0])
    if indexes[1:]:
        rows["extra-index-urls"] = f"[{', '.join(map(quoted, indexes[1:]))}]"
    if links:
        rows["find-links"] = f"[{', '.join(f'{{ url = {quoted(link)} }}' for link in links)}]"
    if compiled := compiled_packages(subject):
        rows["no-build-isolation"] = f"[{', '.join(map(quoted, compiled))}]"
    if plain := plain_overrides(subject.manifest):
        rows["dependency-overrides"] = f"{{ {', '.join(map(_override, plain))} }}"
    if mode := options.get("pypi-prerelease-mode"):
        rows["prerelease-mode"] = quoted(str(mode))
    return _section("pypi-options", rows)


def _override(line: str) -> str:
    """Return the row of `dependency-overrides` for a line of `overrides`."""
    from packaging.requirements import Requirement  # late: 34 ms

    found = Requirement(line)
    version = quoted(str(found.specifier) or "*")
    extras = f"[{', '.join(map(quoted, sorted(found.extras)))}]"
    return f"{found.name} = {f'{{ version = {version}, extras = {extras} }}' if found.extras else version}"


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
    return {name: _wheel_row(manifest, request) for name, request in manifest.wheels.items()}


def _wheel_row(manifest: Manifest, request: WheelRequest) -> str:
    if request.tree:
        return tree_text(
            replace(request.tree, path=request.tree.path and request.tree.folder.as_posix()), request.extras
        )
    given = {"version": quoted(_pep440(request.version))}
    if file := request.file:
        given = {"url": quoted(file.url)} if file.url else {"path": quoted(file.file.as_posix())}
    if request.extras:
        given["extras"] = f"[{', '.join(map(quoted, request.extras))}]"
    if index := manifest.index(request.index) if request.index else None:
        given["index"] = quoted(index.address)
    if list(given) == ["version"]:
        return given["version"]
    return f"{{ {', '.join(f'{key} = {value}' for key, value in given.items())} }}"


def _pep440(version: Range) -> str:
    """Return a range in PEP 440 form, in its written order."""
    clauses = [clause for clause in str(version).replace(" ", "").split(",") if clause not in ("", "*")]
    return ",".join(re.sub(r"^=?(?=[0-9])", "==", clause) for clause in clauses) or "*"


def places_of(
    workspace: Workspace | None,
    name: str,
    places: dict[str, Mapping[str, Any]],
    source: GivenFile,
    lost: list[str],
) -> dict[str, Mapping[str, Any]]:
    """Return the platforms of a lock that its workspace has, too; those of one of them alone are lost.

    Raises:
        LockStaleError: There is none.
    """
    wanted = workspace.places(name, places) if workspace else {}
    if workspace is None or not wanted:
        return places
    file = workspace.path.name
    if gone := [platform for platform in places if platform not in wanted]:
        lost.append(f"skipped platforms: {', '.join(gone)}, which {file} does not have")
    if new := [platform for platform in wanted if platform not in places and platform in source.choose(wanted)[0]]:
        lost.append(f"platforms of {file} without packages in the lock: {', '.join(new)}")
    if kept := {platform: entry for platform, entry in places.items() if platform in wanted}:
        return kept
    raise LockStaleError(
        f"{source.path}: is for {', '.join(places)}, and {file} is for {', '.join(wanted)}",
        hint="`pixi lock` updates it",
    )


def host_faults(draft: Draft, places: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield how the host of a workspace differs from the host that its lock was made for; older locks have none."""
    for platform, entry in places.items():
        made = virtual_of({platform: entry})
        for key, wanted in (("cuda", draft.cuda), ("glibc", draft.glibc)):
            had = made.get(f"__{key}", "")
            if wanted and had and not same_release(wanted, had):
                yield f"{platform}: its platforms declare {key} {wanted}, the lock was made for {had}"


def age_faults(workspace: Workspace, part: ForeignLock) -> Iterator[str]:
    """Yield the conda packages of a lock that are newer than the day or the moment of ``exclude-newer``."""
    try:
        limit = datetime.fromisoformat(text := str(workspace.head.get("exclude-newer", "")))
    except ValueError:  # none, or a span such as `7d`
        return
    if "T" not in text:
        limit += timedelta(days=1)
    limit = limit if limit.tzinfo else limit.replace(tzinfo=UTC)
    rows = {str(row["conda"]): row.get("timestamp") for rows in part.conda.values() for row in rows}
    for url, made in rows.items():
        if isinstance(made, int) and made > limit.timestamp() * 1000:
            yield f"{file_at(url)} is newer than `exclude-newer` = {text}"


def index_faults(draft: Draft, part: ForeignLock, environment: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requested wheels that are locked from another index than their request names.

    Only locks of version 7 have the index of a wheel. A request without an index takes it from those of the
    environment; a package that only others require may be from any index. Source: pixi's module ``satisfiability``.
    """
    known = [*environment.get("indexes", ()), *(row.get("url", "") for row in environment.get("find-links", ()))]
    named = {index.key: index.address for index in draft.indexes}
    for platform, rows in part.wheels.items():
        origins = {wheel.name: part.origins.get(wheel.sha256, "") for wheel in rows}
        for name, request in draft.wheels.get(platform, {}).items():
            had = origins.get(name, "")
            wanted = [named.get(request.index, request.index)] if request.index else known
            if had and wanted and not (request.tree or request.file) and had not in (row.rstrip("/") for row in wanted):
                yield f"{platform}: {name} is locked from {had}, the manifest requests {' or '.join(wanted)}"


def virtual_of(places: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the virtual packages that a lock was made for, by name, as its platforms have them."""
    found: dict[str, str] = {}
    for entry in places.values():
        for word in entry.get("virtual-packages") or []:
            name, _, version = str(word).partition("=")
            found.setdefault(name, version.partition("=")[0])
    return found
