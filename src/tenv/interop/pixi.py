"""The format of pixi: ``pixi.toml`` in the syntax of 2026, whose platforms declare virtual packages, and ``pixi.lock``.

tenv's lock contains such a lock; an export adds the wheels as ``pypi:`` entries. Sources: pixi's reference
(https://pixi.prefix.dev/latest/reference/pixi_manifest/, "Multi Platform") and its lock files of version 7.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from tenv.core.errors import FormatError, LockCorruptError
from tenv.core.files import digest
from tenv.core.names import CondaFile, channel_of, channel_word, file_at, is_wheel, normalize
from tenv.core.untrusted import place_fault, without_login
from tenv.core.yaml_reader import load
from tenv.interop.interface import (
    Draft,
    Exported,
    ForeignLock,
    Format,
    GivenFile,
    Imported,
    Subject,
    load_yaml,
    minor_of,
)
from tenv.interop.pixi_text import (
    age_faults,
    compiled_packages,
    host_faults,
    index_faults,
    places_of,
    plain_overrides,
    render_workspace,
    virtual_of,
    workspace_indexes,
)
from tenv.interop.pixi_workspace import Workspace, read_workspace
from tenv.interop.requests import (
    asked_wheels,
    at_commit,
    channel_words,
    left_out,
    not_known,
    other_channels,
    sdist_at,
    sdists_of,
    top_level,
    wheel_at,
)
from tenv.locks.lock import LockedTree, Wheel
from tenv.rattler_api.lockfile import to_current
from tenv.targets.manifest import CondaRequest, Manifest, WheelRequest, with_features
from tenv.targets.tree_request import TreeRequest, git_fault

_DIRECT = "direct+"
"""How the address of a wheel begins in a lock that is no wheel of an index."""


def virtual_packages(manifest: Manifest, platform: str) -> dict[str, str]:
    """Return the virtual packages that a manifest declares for a platform, by pixi's keys."""
    here = manifest.on(platform).requirements
    found = {}
    if here.cuda:
        found["cuda"] = str(here.cuda)
    if here.glibc and platform.startswith("linux"):
        found["glibc"] = str(here.glibc)
    return found


def lock_text(
    environment: str,
    channels: tuple[str, ...],
    platforms: Mapping[str, tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]],
    options: Mapping[str, Any],
    indexes: tuple[str, ...] = (),
    links: tuple[str, ...] = (),
    more: Mapping[str, Mapping[str, tuple[Mapping[str, Any], ...]]] = MappingProxyType({}),
) -> str:
    """Return the text of a pixi lock, written by rattler.

    Args:
        environment: The environment's name.
        channels: Its channels, as URLs.
        platforms: By conda platform: its entry in the lock, and the rows of its packages.
        options: The solve options.
        indexes: The package indexes of its wheels.
        links: The pages of links of its wheels.
        more: The rows of further environments, by environment and conda platform.

    Raises:
        ValueError: rattler rejects it.
    """
    import yaml  # late: 15 ms

    packages: dict[tuple[str, str], Mapping[str, Any]] = {}
    environments: dict[str, Any] = {}
    for name, tables in {environment: {platform: rows for platform, (_, rows) in platforms.items()}, **more}.items():
        lists = {}
        for platform, rows in tables.items():
            keyed = {_key(row): row for row in rows}
            packages |= {key: row for key, row in keyed.items() if key not in packages}
            lists[platforms[platform][0]["name"]] = [{kind: url} for kind, url in keyed]
        environments[name] = lists
    body: dict[str, Any] = {"channels": [{"url": url.rstrip("/") + "/"} for url in channels]}
    if indexes:
        body["indexes"] = list(indexes)
    if links:
        body["find-links"] = [{"url": url} for url in links]
    if options:
        body["options"] = dict(options)
    lock = {
        "version": 7,
        "platforms": [dict(entry) for entry, _ in platforms.values()],
        "environments": {name: {**body, "packages": lists} for name, lists in environments.items()},
        "packages": [dict(row) for row in packages.values()],
    }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return to_current(yaml.dump(lock, Dumper=dumper, sort_keys=False, allow_unicode=True).encode())


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    kind = "conda" if "conda" in row else "pypi"
    return kind, str(row[kind])


def _export(subject: Subject) -> Exported:
    lost = left_out(subject, variables=True, host=True, kept=plain_overrides(subject.manifest))
    lost += [f"{key}" for keys in compiled_packages(subject).values() for key in keys]
    options = _own(subject)["environments"].get(subject.lock.target, {}).get("options", {})
    files = {"pixi.toml": render_workspace(subject, channel_words(subject), virtual_packages, options).encode()}
    if not subject.has_conda_python():
        lost.append(
            "pixi.lock is not written: pixi requires a Python from conda, and this target has another; `pixi "
            "lock` writes one from pixi.toml"
        )
        return Exported(files, tuple(lost))
    trees = [row for rows in (subject.whole or subject.lock).trees.values() for row in rows]
    if not all(row.digest in subject.located for row in trees):
        lost.append("pixi.lock is not written, since packages are built from source trees: `pixi lock` writes one")
        return Exported(files, tuple(lost))
    try:
        files["pixi.lock"] = _lock(subject, lost).encode()
    except ValueError as error:
        raise FormatError(f"the lock of {subject.lock.target} can't be written for pixi: {error}") from error
    return Exported(files, tuple(lost))


def _lock(subject: Subject, lost: list[str]) -> str:
    data = _own(subject)
    environment = data["environments"].get(subject.lock.target, {})
    entries: dict[str, dict[str, Any]] = {}
    platforms = {}
    for number, platform in enumerate(subject.platforms, 1):
        declared = virtual_packages(subject.manifest, platform)
        entries[platform] = {"name": platform}
        if declared:  # under a short name, as pixi writes it: pixi matches platforms by their declarations
            packages = [f"__{name}={version}" for name, version in declared.items()]
            entries[platform] = {"name": f"p{number}", "subdir": platform, "virtual-packages": packages}
        platforms[platform] = (entries[platform], _rows(subject, data, platform))
    more = {
        name: {platform: _rows(subject.with_feature(name), data, platform) for platform in subject.platforms}
        for name in subject.manifest.features
    }
    lost += not_known(subject)
    channels = tuple(str(row["url"]) for row in environment.get("channels", []))
    indexes, links = workspace_indexes(subject) if any(map(subject.wheels, subject.platforms)) else ((), ())
    return lock_text("default", channels, platforms, environment.get("options", {}), indexes, links, more)


def _rows(subject: Subject, data: Mapping[str, Any], platform: str) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of an environment: the packages of the target, and those of its feature if it has one."""
    there = {package.url for package in subject.lock.conda.get(platform, ())}
    conda = (row for row in conda_rows(data, subject.lock.target, platform) if row["conda"] in there)
    wheels = [_pypi_row(subject, platform, wheel) for wheel in subject.wheels(platform)]
    return (*conda, *wheels, *(_archive_row(subject, platform, row) for row in subject.archives(platform)))


def _own(subject: Subject) -> dict[str, Any]:
    data: dict[str, Any] = load(subject.lock.text)
    return data


def conda_rows(data: Mapping[str, Any], environment: str, platform: str) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of the conda packages that a lock of version 7 has for a platform."""
    known = {row["conda"]: row for row in data["packages"] if "conda" in row}
    listed = data["environments"].get(environment, {}).get("packages", {}).get(platform, [])
    return tuple(known[row["conda"]] for row in listed if "conda" in row)


def _pypi_row(subject: Subject, platform: str, wheel: Wheel) -> dict[str, Any]:
    found, local = subject.located[wheel.sha256], subject.file_of(platform, wheel)
    address = local.as_posix() if local else f"{_DIRECT}{found.url}" if wheel.url else found.url
    return {"pypi": address, **_of_index(subject, platform, wheel, wheel.sha256)}


def _archive_row(subject: Subject, platform: str, row: LockedTree) -> dict[str, Any]:
    return {"pypi": subject.located[row.digest].url, **_of_index(subject, platform, row, row.digest)}


def _of_index(subject: Subject, platform: str, file: Wheel | LockedTree, sha256: str) -> dict[str, Any]:
    found = subject.located[sha256]
    row: dict[str, Any] = {"name": file.name, "version": file.version, "sha256": sha256}
    if file.index and (index := with_features(subject.manifest).on(platform).index(file.index.key)):
        row["index"] = index.address  # a row without one is of the first index of the environment
    if found.requires_dist:
        row["requires_dist"] = list(found.requires_dist)
    if found.requires_python:
        row["requires_python"] = found.requires_python
    return row


def _read(source: GivenFile) -> Imported:
    return _read_workspace(source) if source.path.suffix == ".toml" else _read_lock(source)


def _read_workspace(source: GivenFile) -> Imported:
    """Read a ``pixi.toml`` alone. It has no hashes, so that it gives no lock."""
    found = read_workspace(source.path)
    if found is None or not found.head:
        raise FormatError(f"{source.path}: is not a pixi.toml: it has no [workspace]")
    environment = source.environment or "default"
    lost: list[str] = []
    notes = []
    if others := [name for name in found.environments() if name != environment]:
        notes.append(f"a target is one environment: `{environment}` is imported, {', '.join(others)} are not")
    draft = found.draft(source, environment, lost)
    again = f"tenv import {source.beside('pixi.lock')}{f' --environment {environment}' if source.environment else ''}"
    locked = source.path.with_name("pixi.lock").is_file()
    also = f"`{again} --force` imports its lock, too" if locked else "`tenv lock` writes one"
    notes.append(f"a pixi.toml has no hashes, so no lock is written: {also}")
    notes += found.task_notes(environment)
    return Imported(_name(found, environment), draft, None, tuple(dict.fromkeys(lost)), tuple(notes))


def _name(workspace: Workspace | None, environment: str) -> str:
    """Return an environment's name: the workspace's, and its own unless it is the default one."""
    own = "" if environment == "default" else environment
    return "-".join(filter(None, (workspace.name if workspace else "", own)))


def _read_lock(source: GivenFile) -> Imported:
    written = load_yaml(source, LockCorruptError)  # rejects content that must not reach rattler's parser
    try:
        text = to_current(source.raw)
    except ValueError as error:
        raise LockCorruptError(f"{source.path}: rattler can't read it: {error}") from error
    data = load_yaml(GivenFile(source.path, text.encode()), LockCorruptError)
    name = _environment(source, data)
    environment = data["environments"][name]
    lost: list[str] = []
    notes = _others(data, name)
    names = ("pixi.toml", "pyproject.toml")
    workspace = next(filter(None, (read_workspace(source.path.with_name(name)) for name in names)), None)
    if workspace and name not in workspace.environments():  # it has changed since
        notes.append(f"{workspace.path.name} has no environment `{name}`: the requests come from the lock alone")
        workspace = None
    places = places_of(workspace, name, _platforms(source, data, environment, lost), source, lost)
    part = _part(data, environment, places, lost, source.path.parent)
    part = replace(part, origins=_origins(written, part))
    asked = workspace.draft(source, name, lost, places) if workspace else None
    draft = asked or _derive(data, environment, places, part)
    notes += workspace.task_notes(name) if workspace else []
    if workspace:
        faults = [*host_faults(draft, places), *age_faults(workspace, part), *index_faults(draft, part, environment)]
        part = replace(part, faults=tuple(dict.fromkeys(faults)))
    draft = _completed(draft, part, source.path.parent, lost, notes)
    return Imported(_name(workspace, name), draft, part, tuple(dict.fromkeys(lost)), tuple(dict.fromkeys(notes)))


def _environment(source: GivenFile, data: Mapping[str, Any]) -> str:
    names = list(data["environments"])
    name = source.environment or ("default" if "default" in names or len(names) != 1 else names[0])
    if name not in names:
        listed = ", ".join(names) or "none"
        hint = f"pass one with `--environment`: {listed}"
        raise FormatError(f"{source.path}: has no environment `{name}`", hint=hint)
    return name


def _others(data: Mapping[str, Any], name: str) -> list[str]:
    others = [other for other in data["environments"] if other != name]
    return [f"a target is one environment: `{name}` is imported, {', '.join(others)} are not"] if others else []


def _platforms(
    source: GivenFile, data: Mapping[str, Any], environment: Mapping[str, Any], lost: list[str]
) -> dict[str, Mapping[str, Any]]:
    """Return the platforms to import, each with its entry in the lock."""
    entries: dict[str, Mapping[str, Any]] = {}
    listed = environment.get("packages", {})
    for entry in data["platforms"]:
        subdir = entry.get("subdir", entry["name"])
        if entry["name"] in listed:
            plain = entry["name"] == subdir
            if subdir in entries:
                other = entries[subdir] if plain else entry
                lost.append(f"the lock of `{other['name']}`, since a target has one for {subdir}")
            if plain or subdir not in entries:
                entries[subdir] = entry
    hint = f"its environments: {', '.join(data['environments'])} (`--environment` selects one)"
    if not listed:
        raise FormatError(
            f"{source.path}: its environment `{source.environment or 'default'}` has no packages", hint=hint
        )
    return {platform: entries[platform] for platform in source.take(entries, lost, hint)}


def _part(
    data: Mapping[str, Any],
    environment: Mapping[str, Any],
    places: Mapping[str, Mapping[str, Any]],
    lost: list[str],
    home: Path,
) -> ForeignLock:
    known = {_key(row): row for row in data["packages"] if "conda" in row or "pypi" in row}
    conda, wheels, trees, left = {}, {}, {}, dict[str, str]()
    for platform, entry in places.items():
        listed = environment["packages"][entry["name"]]
        rows = [known[key] for row in listed if (key := next(iter(row.items()))) in known]
        lost += [f"a package that is built from source can't be locked: {v}" for r in listed for k, v in r.items()
                 if k not in ("conda", "pypi")]  # fmt: skip
        conda[platform] = tuple(row for row in rows if "conda" in row)
        minor = next((minor_of(version) for name, version, _ in _conda_names(conda[platform]) if name == "python"), "")
        files = [_pypi_file(row, minor, home) for row in rows if "pypi" in row]
        wheels[platform] = tuple(file for file in files if isinstance(file, Wheel))
        trees[platform] = tuple(file for file in files if isinstance(file, LockedTree))
        left |= dict(file for file in files if isinstance(file, tuple))
    lost += [f"{name} can't be locked, since it is {reason}" for name, reason in left.items()]
    channels = tuple(str(row["url"]) for row in environment.get("channels", []))
    return ForeignLock(channels, conda, wheels, environment.get("options", {}), trees, left)


def _origins(written: Mapping[str, Any], part: ForeignLock) -> dict[str, str]:
    """Return the indexes that a lock names, by the digest of the wheel; rattler fills in absent ones."""
    rows = [row for row in written.get("packages") or () if isinstance(row, Mapping) and row.get("index")]
    named = {str(row.get("sha256")): without_login(str(row["index"])).rstrip("/") for row in rows}
    found = {wheel.sha256 for wheels in part.wheels.values() for wheel in wheels}
    return {digest: index for digest, index in named.items() if digest in found}


def _pypi_file(row: Mapping[str, Any], minor: str, home: Path) -> Wheel | LockedTree | tuple[str, str]:
    """Return the file of a row; the name and the reason if tenv can't lock it."""
    url, name, size = str(row["pypi"]).removeprefix(_DIRECT), normalize(str(row["name"])), row.get("size")
    version, sha256 = str(row.get("version", "")), str(row.get("sha256", ""))
    requires = tuple(map(_without_address, row.get("requires_dist") or ()))
    if not minor:
        return name, "not locked with a Python from conda"
    if "://" not in url and is_wheel(url) and os.path.isfile(home / url):  # noqa: PTH113 (`is_file` fails for long names)
        sha256 = sha256 or digest(home / url)  # a lock has none of a local file
        url = Path(os.path.abspath(home / url)).as_uri()  # noqa: PTH100 (links stay as they are)
    if wheel := wheel_at(
        url.partition("#")[0], name, version, sha256, size if isinstance(size, int) else None, (minor,)
    ):
        return replace(wheel, requires=requires)
    if tree := _tree_of(url, home):
        keys: dict[str, Any] = {**tree.given()}
        return LockedTree(name, version or "0", (minor,), requires, tree.commit, dynamic=True, **keys)
    if archive := sdist_at(url, name, version, sha256, size if isinstance(size, int) else None, (minor,)):
        return replace(archive, requires=requires)
    return name, f"not a wheel with a hash: {url}"


def _tree_of(url: str, home: Path) -> TreeRequest | None:
    """Return the source tree of a row; None for another one, or a folder that is not there."""
    if url.startswith("git+"):
        address, _, commit = url.removeprefix("git+").partition("#")
        address, _, query = address.partition("?")
        below = parse_qs(query).get("subdirectory", [""])[0]
        found = TreeRequest(git=address, rev=commit, subdirectory=below)
        return None if git_fault(address) or not found.commit or place_fault(below) else found
    if "://" in url or not (home / url).is_dir():
        return None
    return TreeRequest(path=url, base=home)


def _without_address(line: object) -> str:
    """Return a requirement without an address: the row of that package has it."""
    return re.sub(r"\s*@\s*[^;]+", " ", str(line)).strip() if "@" in str(line) else str(line)


def _conda_names(rows: tuple[Mapping[str, Any], ...]) -> list[tuple[str, str, list[str]]]:
    """Return name, version and dependencies of conda rows, which often have the first two only in their URL."""
    found = []
    for row in rows:
        file = CondaFile.parse(str(row["conda"])) or CondaFile(file_at(str(row["conda"])), "", "")
        name, version = row.get("name", file.name), row.get("version", file.version)
        found.append((str(name), str(version), list(row.get("depends") or [])))
    return found


def _top_level(rows: tuple[Mapping[str, Any], ...], name: str = "") -> dict[str, CondaRequest]:
    """Return the probable requests behind some packages, or the request for one of them."""
    rows = tuple(row for row in rows if _conda_names((row,))[0][0] == name) if name else rows
    names = _conda_names(rows)
    places = [str(row.get("channel") or channel_of(str(row["conda"]))).rstrip("/") for row in rows]
    channels = {name: place for (name, _, _), place in zip(names, places, strict=True)}
    return top_level(names, other_channels(channels))


def _derive(
    data: Mapping[str, Any], environment: Mapping[str, Any], places: Mapping[str, Mapping[str, Any]], part: ForeignLock
) -> Draft:
    """Return the manifest that follows from the lock alone."""
    requires = {row["sha256"]: row.get("requires_dist") or [] for row in data["packages"] if "sha256" in row}
    virtual = virtual_of(places)
    return Draft(
        platforms=tuple(places),
        channels=tuple(channel_word(str(row["url"])) for row in environment.get("channels", [])),
        cuda=virtual.get("__cuda", ""),
        glibc=virtual.get("__glibc", ""),
        dependencies={platform: _top_level(rows) for platform, rows in part.conda.items()},
        wheels={
            platform: asked_wheels([(w.name, w.version, requires.get(w.sha256, [])) for w in wheels])
            for platform, wheels in part.wheels.items()
        },
    )


def _completed(draft: Draft, part: ForeignLock, home: Path, lost: list[str], notes: list[str]) -> Draft:
    """Return a draft that requests Python on every platform with wheels, and source trees at their locked commits.

    What conda supplies in place of a requested wheel is no request for a wheel.
    """
    conda, wheels = {}, dict[str, dict[str, WheelRequest]]()
    for platform in draft.platforms:
        asked, given = dict(draft.dependencies.get(platform, {})), _supplied(part.conda[platform])
        trees = {tree.name: tree for tree in part.trees.get(platform, ())}
        if (part.wheels.get(platform) or trees) and "python" not in asked:
            found = _top_level(part.conda[platform])
            asked |= {name: request for name, request in found.items() if name == "python"}
        locked = {wheel.name for wheel in part.wheels.get(platform, ())} | trees.keys()
        wheels[platform] = {}
        for name, request in draft.wheels.get(platform, {}).items():
            if name in given and name not in locked:
                notes.append(f"{name} is locked from conda, as {given[name]}")
                asked.setdefault(given[name], _top_level(part.conda[platform], given[name])[given[name]])
            elif request.tree and name not in locked:
                lost.append(f"`{name}` is built from a source tree, of which the lock has no row")
            else:
                wheels[platform][name] = request
        for name, tree in trees.items():
            if not tree.file:
                wheels[platform][name] = at_commit(tree, wheels[platform].get(name), home, notes)
        conda[platform] = asked
    return replace(draft, dependencies=conda, wheels=wheels, sdists=sdists_of(part))


def _supplied(rows: tuple[Mapping[str, Any], ...]) -> dict[str, str]:
    """Return the conda packages by the name that they have on the package index."""
    found = {normalize(name): name for name, _, _ in _conda_names(rows)}
    for row, (name, _, _) in zip(rows, _conda_names(rows), strict=True):
        words = [str(word) for word in row.get("purls") or ()]
        found |= {
            normalize(word.removeprefix("pkg:pypi/").partition("?")[0]): name for word in words if ":pypi/" in word
        }
    return found


FORMAT = Format(
    name="pixi",
    export=_export,
    read=_read,
    recognize=lambda name, head: (
        name in ("pixi.lock", "pixi.toml") or (b"version:" in head and b"environments:" in head)
    ),
    needs_urls=Subject.has_conda_python,
    needs_metadata=True,
    features=True,
)
