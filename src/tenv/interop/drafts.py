"""Write the manifest of an import as a user would write it, without the logins of the imported file."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tenv.core.names import CondaFile, normalize
from tenv.core.untrusted import without_login
from tenv.core.versions import CondaRange, Range
from tenv.interop.interface import Draft, ForeignLock, Imported, quoted
from tenv.interop.requests import split
from tenv.targets.manifest import CONDA_TORCHES, CondaRequest, WheelRequest, tool_of
from tenv.targets.manifest_file import REFUSED
from tenv.targets.torch_cuda import conda_torch_cuda
from tenv.targets.tree_request import TreeRequest
from tenv.targets.wheel_origin import FLAT, Index

T = TypeVar("T")

_CUDA = re.compile(
    r"cuda-version|cuda|cudatoolkit|cuda-toolkit|pytorch-cuda|nvcc_(linux|win)-\w+|nvidia-cuda-(runtime|nvcc)(-cu\d+)?"
)
"""Packages with the version of their CUDA release, on conda and on the package index."""

_BUILT_FOR = re.compile(r"(?:\+|/|-)cu(\d+)(\d)\b")
"""The CUDA release in a version such as ``2.4.0+cu121``, or in the name or address of an index of PyTorch."""

_OF_ONE_RELEASE = re.compile(r"(?:==)?(\d+\.\d+)(\.[\d.]+)?(\.\*)?")
_TORCHES = tuple(name for name in CONDA_TORCHES if name != "libtorch")
"""The conda packages that a wheel finds as the package ``torch``."""

_APART = {"isolation": "false"}
_DEFAULT_PYTHON = ">=3.11,<3.15"


def render_draft(draft: Draft, origin: str, home: Path = Path()) -> str:
    """Return the text of a manifest.

    Args:
        draft: Its content.
        origin: The imported file, for its first line.
        home: The folder of the manifest, which its paths are relative to.
    """
    draft = _with_builds(draft)
    lines = [
        f"# Made by `tenv import` from {origin}.",
        *([f"description = {quoted(draft.description)}"] if draft.description else []),
        f"platforms = {_list(draft.platforms)}",
        *([f"channels  = {_list(draft.channels)}"] if draft.channels else []),
        *([f"python    = {quoted(draft.python)}"] if draft.python else []),
        *([f"sdists    = {_list(draft.sdists)}"] if draft.sdists else []),
        *(f"{key} = {_list(lines)}" for key, lines in draft.bounds.items() if lines),
    ]
    requirements = {"cuda": draft.cuda, "glibc": draft.glibc}
    lines += _section("requirements", {name: quoted(value) for name, value in requirements.items() if value})
    conda, conda_own = split(_every(draft, draft.dependencies))
    wheels, wheels_own = split(_every(draft, draft.wheels))
    variables, variables_own = split(_every(draft, draft.environment))
    lines += _section("dependencies", {name: _conda(request) for name, request in conda.items()})
    lines += _section("pypi-dependencies", {name: _wheel(request, home) for name, request in wheels.items()})
    for platform in draft.platforms:
        own = {name: _conda(request) for name, request in conda_own.get(platform, {}).items()}
        lines += _section(f"platform.{platform}.dependencies", own)
        own = {name: _wheel(request, home) for name, request in wheels_own.get(platform, {}).items()}
        lines += _section(f"platform.{platform}.pypi-dependencies", own)
        own = {name: value.to_toml() for name, value in variables_own.get(platform, {}).items()}
        lines += _section(f"platform.{platform}.activation.env", own)
    lines += _section("activation.env", {name: value.to_toml() for name, value in variables.items()})
    for feature, tables in draft.features.items():
        shared, own_of = split(_every(draft, tables))
        name = feature if feature.replace("-", "").replace("_", "").isalnum() else quoted(feature)
        rows = {key: _wheel(request, home) for key, request in shared.items()}
        lines += _section(f"feature.{name}.pypi-dependencies", rows)
        for platform, table in own_of.items():
            rows = {key: _wheel(request, home) for key, request in table.items()}
            lines += _section(f"feature.{name}.platform.{platform}.pypi-dependencies", rows)
    for index in draft.indexes:
        lines += ["", "[[index]]", *(f"{key} = {value}" for key, value in _index(index, home).items())]
    return "\n".join(lines) + "\n"


def _with_builds(draft: Draft) -> Draft:
    """Return a draft that permits the build of its source archives: at their requests, and by a list for the others."""

    def permitted(rows: Mapping[str, WheelRequest]) -> dict[str, WheelRequest]:
        may = {name for name, one in rows.items() if name in draft.sdists and not one.tree and not one.file}
        return {name: replace(one, build=one.build or name in may) for name, one in rows.items()}

    wheels = {platform: permitted(rows) for platform, rows in draft.wheels.items()}
    others = [name for name in draft.sdists if any(name not in wheels.get(on, {}) for on in draft.platforms)]
    features = {name: {on: permitted(rows) for on, rows in tables.items()} for name, tables in draft.features.items()}
    return replace(draft, wheels=wheels, features=features, sdists=tuple(others))


def _every(draft: Draft, tables: Mapping[str, Mapping[str, T]]) -> dict[str, Mapping[str, T]]:
    return {platform: tables.get(platform, {}) for platform in draft.platforms}


def _section(name: str, rows: Mapping[str, str]) -> list[str]:
    if not rows:
        return []
    keys = {key: key if key.replace("-", "").replace("_", "").isalnum() else quoted(key) for key in rows}
    width = max(map(len, keys.values()))
    return ["", f"[{name}]", *(f"{keys[key]:<{width}} = {rows[key]}" for key in sorted(rows))]


def _list(words: tuple[str, ...]) -> str:
    return f"[{', '.join(map(quoted, words))}]"


def _conda(request: CondaRequest) -> str:
    more = {"channel": request.channel, "build": request.build}
    return _request(request.version, {key: quoted(value) for key, value in more.items() if value})


def tree_text(tree: TreeRequest, extras: tuple[str, ...], *, isolated: bool = True) -> str:
    """Return the request for a source tree in TOML; pixi's keys are the same, without the one for the isolation."""
    pairs = {key: "true" if value is True else quoted(str(value)) for key, value in tree.given().items()}
    pairs |= ({"extras": _list(extras)} if extras else {}) | ({} if isolated else _APART)
    return f"{{ {', '.join(f'{key} = {value}' for key, value in pairs.items())} }}"


def _index(index: Index, home: Path) -> dict[str, str]:
    url = index.url if "://" in index.url else _place(index.base / index.url, home)
    flags = {key: "true" for key in ("explicit", "default") if getattr(index, key)}
    name = {"name": quoted(index.name)} if index.name else {}
    return {**name, "url": quoted(url), **flags, **({"format": quoted(FLAT)} if index.flat else {})}


def _place(path: Path, home: Path) -> str:
    return Path(os.path.relpath(os.path.abspath(path), home)).as_posix()  # noqa: PTH100 (links stay as they are)


def _wheel(request: WheelRequest, home: Path) -> str:
    if tree := request.tree:
        tree = replace(tree, path=tree.path and _place(tree.folder, home))
        return tree_text(tree, request.extras, isolated=request.isolated)
    extras = {"extras": _list(request.extras)} if request.extras else {}
    if file := request.file:
        given = {"url": file.url, "path": file.path and _place(file.file, home), "sha256": file.sha256}
        pairs = {key: quoted(value) for key, value in given.items() if value} | extras
        return f"{{ {', '.join(f'{key} = {value}' for key, value in pairs.items())} }}"
    more = {"index": quoted(request.index)} if request.index else {}
    more |= ({"build": "true"} if request.build else {}) | ({} if request.isolated else _APART)
    return _request(request.version, extras | more)


def _request(version: Range | CondaRange, more: Mapping[str, str]) -> str:
    if not more:
        return quoted(str(version))
    pairs = {"version": quoted(str(version)), **more}
    return f"{{ {', '.join(f'{key} = {value}' for key, value in pairs.items())} }}"


def with_cuda(draft: Draft, part: ForeignLock | None) -> tuple[Draft, list[str]]:
    """Return a draft with the CUDA that it is built with if it is certain, and notes about it.

    It is certain if all CUDA packages of the file's lock, or else its requests, are from one release. The CUDA that the
    file requires of hosts (pixi's ``cuda = "12"``) is the minimum of their drivers: it counts if nothing names a
    release. If there are parts of several releases, ``cuda-version`` counts, then nvcc. Libraries of CUDA beside a
    PyTorch that is built without it name none.
    """
    if part and not draft.cuda and _is_without_cuda(part):
        return draft, []
    every = list(_locked(part) if part else _asked(draft))
    found = sorted({release for name, release in every if _CUDA.fullmatch(name)})
    for first in ("cuda-version", "cuda-nvcc"):
        named = sorted({release for name, release in every if name == first})
        if len(named) == 1 and (not found or (draft.cuda and len(found) > 1)):
            found = named
    if len(found) == 1:
        return replace(draft, cuda=found[0]), _bound(draft, found[0])
    if found and not draft.cuda:
        return draft, [f"the host's CUDA: the file does not state it and has parts of CUDA {', '.join(found)}"]
    return draft, []


def _is_without_cuda(part: ForeignLock) -> bool:
    """Return whether the locked PyTorch is built without CUDA."""
    files = [CondaFile.parse(str(row["conda"])) for rows in part.conda.values() for row in rows]
    builds = [file.build for file in files if file and file.name == "pytorch"]
    versions = [row.version for rows in part.wheels.values() for row in rows if row.name == "torch"]
    return any(not conda_torch_cuda(build) and "gpu" not in build for build in builds) or any(
        version.endswith("+cpu") for version in versions
    )


def _bound(draft: Draft, release: str) -> list[str]:
    """Return the loss of the bound that a file sets for drivers, where it differs from the toolkit's release."""
    if not draft.cuda or draft.cuda == release:
        return []
    packages = f"its packages are of CUDA {release}, and the oldest driver follows from that"
    return [f"that its hosts' drivers must offer CUDA {draft.cuda}: {packages}"]


def _locked(part: ForeignLock) -> Iterator[tuple[str, str]]:
    rows = [row for rows in part.conda.values() for row in rows]
    files = [file for row in rows if (file := CondaFile.parse(str(row["conda"])))]
    found = [(file.name, file.version) for file in files]
    wheels = [wheel for wheels in part.wheels.values() for wheel in wheels]
    found += [(wheel.name, wheel.version) for wheel in wheels]
    yield from ((name, ".".join(version.split(".")[:2])) for name, version in found)
    yield from (("cuda", release) for wheel in wheels for release in _built_for(wheel.version))


def _asked(draft: Draft) -> Iterator[tuple[str, str]]:
    wheels = [(name, row) for table in draft.wheels.values() for name, row in table.items()]
    ranges = [(name, str(row.version)) for table in draft.dependencies.values() for name, row in table.items()]
    ranges += [(name, str(row.version)) for name, row in wheels]
    for name, text in ranges:
        if match := _OF_ONE_RELEASE.fullmatch(text):
            yield normalize(name) if not name.startswith("nvcc_") else name, match[1]
    urls = {index.name: index.url for index in draft.indexes}
    for name, row in wheels:
        places = [str(row.version), urls.get(row.index, row.index), row.file.url if row.file else ""]
        yield from (("cuda", release) for release in (_built_for(*places) if name == "torch" else ()))


def _built_for(*texts: str) -> list[str]:
    return [f"{match[1]}.{match[2]}" for text in texts for match in _BUILT_FOR.finditer(text)]


def without_doubles(draft: Draft) -> tuple[Draft, list[str], list[str]]:
    """Return a draft that is valid as a manifest, its losses, and notes about it.

    A manifest has one source for each package, and a Python if it has wheels.
    """
    lost, notes = [], []
    refused = sorted({name for table in draft.dependencies.values() for name in table if name in REFUSED})
    lost += [f"`{name}`, which {REFUSED[name][0]}: {REFUSED[name][1]}" for name in refused]
    tables = draft.dependencies.items()
    held = {on: {name: row for name, row in rows.items() if name not in REFUSED} for on, rows in tables}
    draft = replace(draft, dependencies=held)
    wheels, both = dict[str, dict[str, WheelRequest]](), set[str]()
    for platform in draft.platforms:
        conda = _tools(draft, platform)
        asked = draft.wheels.get(platform, {})
        wheels[platform] = {name: request for name, request in asked.items() if tool_of(name) not in conda}
        both |= {name for name in asked if tool_of(name) in conda}
    lost += [f"wheels of packages that are requested from conda, too: {', '.join(sorted(both))}"] if both else []
    features = {
        name: {platform: _not_of_conda(draft, platform, rows) for platform, rows in tables.items()}
        for name, tables in draft.features.items()
    }
    conda_python = any("python" in table for table in draft.dependencies.values())
    python = draft.python
    some = any(wheels.values()) or any(table for tables in features.values() for table in tables.values())
    if some and not conda_python and not python:
        python = _DEFAULT_PYTHON
        notes.append(f"the file does not state the Python of its wheels: `python` is set to {python}")
    return replace(draft, wheels=wheels, features=features, python="" if conda_python else python), lost, notes


def _tools(draft: Draft, platform: str) -> set[str]:
    """Return the tools that the requested conda packages supply; that of conda's ``pytorch`` is ``torch``."""
    names = draft.dependencies.get(platform, {})
    return {tool_of(normalize(name)) for name in names} | ({"torch"} if names.keys() & {*_TORCHES} else set())


def _not_of_conda(draft: Draft, platform: str, rows: Mapping[str, WheelRequest]) -> dict[str, WheelRequest]:
    conda = _tools(draft, platform)
    return {name: request for name, request in rows.items() if tool_of(name) not in conda}


def against_torch(draft: Draft, part: ForeignLock | None) -> tuple[Draft, ForeignLock | None, list[str]]:
    """Return a draft and its lock, and the packages that are compiled against the target's torch.

    A package whose wheel is in the lock is not compiled. The row of another one is left out, since the lock of another
    tool has it without the toolkit.
    """
    names = {
        name
        for tables in (draft.wheels, *draft.features.values())
        for table in tables.values()
        for name, request in table.items()
        if not request.isolated
    }
    if part and names:
        plain = {row.name for rows in part.wheels.values() for row in rows} & names
        draft = replace(draft, wheels={on: _isolated(rows, plain) for on, rows in draft.wheels.items()})
        names -= plain
        trees = {on: tuple(row for row in rows if row.name not in names) for on, rows in part.trees.items()}
        part = replace(part, trees=trees, left={**part.left, **dict.fromkeys(names, "compiled against torch")})
    return draft, part, sorted(names)


def _isolated(rows: Mapping[str, WheelRequest], names: set[str]) -> dict[str, WheelRequest]:
    """Return requests of which some are for wheels again."""
    return {name: replace(one, isolated=True, build=False) if name in names else one for name, one in rows.items()}


def without_logins(found: Imported) -> Imported:
    """Return an import without the logins in the addresses of channels and packages; a note reports them."""
    draft = replace(
        found.draft,
        channels=tuple(dict.fromkeys(map(without_login, found.draft.channels))),
        dependencies={
            platform: {name: replace(row, channel=without_login(row.channel)) for name, row in rows.items()}
            for platform, rows in found.draft.dependencies.items()
        },
    )
    part = found.part and replace(
        found.part,
        channels=tuple(dict.fromkeys(map(without_login, found.part.channels))),
        conda={platform: tuple(map(_plain_row, rows)) for platform, rows in found.part.conda.items()},
    )
    if (draft, part) == (found.draft, found.part):
        return found
    note = "the login of a channel, which belongs in ~/.netrc or in rattler's store of logins"
    return replace(found, draft=draft, part=part, lost=(*found.lost, note))


def _plain_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row of a conda package with an address that has no login."""
    url = row.get("conda")
    return {**row, "conda": without_login(url)} if isinstance(url, str) else row
