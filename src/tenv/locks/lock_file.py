"""Reads and writes the file of a `Lock`.

The file is a ``pixi.lock`` of version 7 with one more mapping, ``tenv:``, for values that the format can't hold. This
module reads and writes that mapping, and reads the conda part for rules and output. rattler writes the conda part, and
reads it to install. The order of lines makes a small change of the environment a small diff.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from tenv import __version__
from tenv.core.errors import LockConflictError, LockCorruptError, LockMissingError
from tenv.core.files import read_regular
from tenv.core.names import is_sha256
from tenv.core.toml_reader import Table
from tenv.core.untrusted import name_fault, text_fault
from tenv.core.yaml_reader import load
from tenv.locks.lock import Archive, Lock, OtherFile
from tenv.locks.lock_rows import (
    index_row,
    read_archives,
    read_channels,
    read_conda,
    read_indexes,
    read_others,
    read_requests,
    read_requirements,
    read_trees,
    read_wheels,
    require_plain,
    require_platforms,
    tree_row,
    wheel_row,
)
from tenv.targets.sections import SECTIONS

_SCHEMA = 6
"""The number of the form of the ``tenv:`` mapping. From the first release on, any change of the form raises it."""
_PIXI_VERSION = 7
_CONDA_FEATURES = "conda-features"
_TREES = "source-trees"
_INDEXES = "indexes"
_KEYS = (
    *("schema", "written-by", "target", "manifest", "requirements", "requests", "wheels", "archives"),
    *(_CONDA_FEATURES, _TREES, _INDEXES),
)
_OTHERS = tuple(section.key for section in SECTIONS if section.keys and section.noun)
_CONFLICT = re.compile(rb"^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |\r?$)", re.MULTILINE)


def render_lock(lock: Lock, conda: str) -> bytes:
    """Return the bytes of a lock.

    Args:
        lock: The lock.
        conda: The conda part, as rattler wrote it.
    """
    import yaml  # late: 15 ms

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # libyaml takes a sixth of the time
        """Writes short lists on one line, so a wheel's Pythons are one line of a diff, and writes no anchors."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    Dumper.add_representer(
        tuple, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)
    )
    ours = {
        "schema": _SCHEMA,
        "written-by": lock.written_by,
        "target": lock.target,
        "manifest": lock.manifest,
        "requirements": dict(lock.requirements),
        "requests": {
            platform: {section: {n: _row(r) for n, r in items.items()} for section, items in sections.items()}
            for platform, sections in lock.requests.items()
        },
        "wheels": {platform: [wheel_row(wheel) for wheel in rows] for platform, rows in lock.wheels.items()},
    }
    if lock.indexes:
        ours[_INDEXES] = [index_row(index) for index in lock.indexes]
    if any(lock.archives.values()):
        ours["archives"] = {
            platform: [_archive_row(archive) for archive in archives] for platform, archives in lock.archives.items()
        }
    if any(lock.trees.values()):
        ours[_TREES] = {platform: [tree_row(tree) for tree in trees] for platform, trees in lock.trees.items()}
    rows = {
        on: {package.name: package.features for package in sorted(found, key=attrgetter("name")) if package.features}
        for on, found in lock.conda.items()
    }
    if any(rows.values()):
        ours[_CONDA_FEATURES] = {platform: found for platform, found in rows.items() if found}
    for key, by_platform in lock.others.items():
        if any(by_platform.values()):
            ours[key] = {platform: [_other_row(file) for file in files] for platform, files in by_platform.items()}
    text = yaml.dump({"tenv": ours}, Dumper=Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return (conda.rstrip("\n") + "\n" + text).encode()


def _row(request: Any) -> tuple[str, ...]:
    return (request,) if isinstance(request, str) else tuple(map(str, request))


def _archive_row(archive: Archive) -> dict[str, Any]:
    values = {name: getattr(archive, name) for name in archive.__slots__}
    return {name: value for name, value in values.items() if value not in ("", None, 0, ())}


def _other_row(file: OtherFile) -> dict[str, Any]:
    row = {"name": file.name, "version": file.version, "sha256": file.sha256, "size": file.size, **file.values}
    return {name: value for name, value in row.items() if value not in ("", None)}


def read_lock(path: Path, target: str) -> Lock:
    """Read the lock of a target.

    Raises:
        LockMissingError: The file does not exist.
        LockConflictError: The file has conflict markers.
        LockCorruptError: The file is not a valid lock, has another schema, or is the lock of another target.
    """
    return parse_lock(read_lock_bytes(path, target), str(path), target)


def read_lock_bytes(path: Path, target: str) -> bytes:
    """Return the bytes of the lock of a target.

    Raises:
        LockMissingError: The file does not exist.
        LockCorruptError: The file can't be read.
    """
    try:
        return read_regular(path)
    except FileNotFoundError:
        hint = f"`tenv lock {target}` writes it"
        raise LockMissingError(f"there is no lock for `{target}` ({path})", hint=hint) from None
    except OSError as error:
        raise LockCorruptError(f"{path}: can't be read: {error.strerror}") from error


def is_lock(path: Path) -> bool:
    """Return whether a file is a lock of tenv, also one with conflicts or of another release, or an empty file."""
    raw = read_regular(path)
    return not raw.strip() or re.search(rb"^tenv:\s*$", raw, re.MULTILINE) is not None


def parse_lock(raw: bytes, path: str, target: str = "") -> Lock:
    """Parse the bytes of a lock.

    Args:
        raw: The bytes.
        path: The name of the file in messages.
        target: The expected target; empty for any.

    Raises:
        LockConflictError, LockCorruptError: As in `read_lock`.
    """
    if _CONFLICT.search(raw):
        raise LockConflictError(
            f"{path}: has conflict markers of an unresolved merge",
            hint=(
                f"`tenv merge-driver {path}` merges both sides; or `git checkout --ours {path}` takes one side, and "
                f"`tenv lock {target or 'TARGET'}` then updates it"
            ),
        )
    return _parse(raw, path, target)


@lru_cache(maxsize=4)  # rules and installation parse the same bytes
def _parse(raw: bytes, path: str, target: str) -> Lock:
    command = f"tenv lock {target or 'TARGET'}"
    try:
        data = load(raw)
    except ValueError as error:
        raise LockCorruptError(f"{path}: is not valid YAML: {error}", hint=f"`{command}` replaces it") from error
    if not isinstance(data, dict) or not isinstance(data.get("tenv"), dict):
        raise LockCorruptError(
            f"{path}: is not a lock of tenv: it has no `tenv:` mapping", hint=f"`{command}` replaces it"
        )
    whole = Table(data, file=path, error=LockCorruptError)
    ours = whole.table("tenv")
    for table, key, only in ((ours, "schema", _SCHEMA), (whole, "version", _PIXI_VERSION)):
        if type(table.data.get(key)) is not int or table.data[key] != only:
            raise table.fail(key, f"tenv {__version__} reads {only} alone", hint=f"`{command}` writes the lock anew")
    try:
        return _read(whole, ours, raw, target)
    except LockCorruptError as error:
        raise LockCorruptError(error.message, hint=error.hint or f"`{command}` replaces it") from error


def _read(whole: Table, ours: Table, raw: bytes, target: str) -> Lock:
    whole.only(("version", "platforms", "environments", "packages", "tenv"))
    ours.only((*_KEYS, *_OTHERS))
    require_plain(ours, "written-by")
    name = ours.required_text("target")
    if target and name != target:
        raise ours.fail("target", f"is the lock of `{name}`, not of `{target}`")
    if fault := name_fault(name.lstrip("_")):
        raise ours.fail("target", fault)
    if not is_sha256(ours.required_text("manifest")):
        raise ours.fail("manifest", "is not a sha256")
    if "environments" not in whole.data:
        raise whole.fail("environments", "is missing")
    environments = whole.table("environments")
    environments.only((name,))
    environment = environments.table(name)
    wheels, archives, requests = ours.table("wheels"), ours.table("archives"), ours.table("requests")
    platforms, features = require_platforms(wheels), ours.table(_CONDA_FEATURES)
    packages = environment.table("packages")
    for table in (archives, requests, packages, features):
        require_platforms(table, platforms)
    indexes = read_indexes(ours)
    conda = {on: read_conda(whole, packages, on, features.table(on)) for on in platforms}
    found = Lock(
        target=name,
        platforms=platforms,
        wheels={platform: read_wheels(wheels, platform, indexes) for platform in platforms},
        requirements=read_requirements(ours.table("requirements")),
        requests={platform: read_requests(table) for platform, table in requests.tables()},
        manifest=ours.required_text("manifest"),
        written_by=ours.required_text("written-by"),
        text=raw,
        conda={platform: packages for platform, packages in conda.items() if packages},
        archives={platform: read_archives(archives, platform) for platform in archives.data},
        channels=read_channels(environment),
        trees=read_trees(ours.table(_TREES), platforms, indexes),
        details=_read_details(whole, {package.url for packages in conda.values() for package in packages}),
        header=_read_header(whole, name),
        others={key: rows for key in _OTHERS if (rows := read_others(ours.table(key), platforms))},
    )
    if idle := [key for key in indexes if key not in {index.key for index in found.indexes}]:
        raise ours.fail(_INDEXES, f"no package comes from `{idle[0]}`")
    for platform in platforms:
        own = found.conda_python(platform)
        served = [row.python for row in found.wheels[platform]]
        served += [tree.python for tree in found.trees.get(platform, ())]
        if own and any(python != (own,) for python in served):
            raise wheels.fail(platform, f"has wheels that are not for the lock's conda Python {own}")
    return found


_NOT_HEADER = ("wheels", "archives", "conda-features", "source-trees", "written-by")
_CONDA_KEYS = (
    *("conda", "name", "version", "build", "subdir", "channel", "sha256", "md5", "size", "depends", "constrains"),
)


def _read_details(whole: Table, used: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the further values of conda packages, by URL; a row that no platform names is an error."""
    found: dict[str, dict[str, str]] = {}
    named = set(used)
    for row in whole.rows("packages"):
        url = row.required_text("conda")
        if url not in named or url in found:
            raise row.fail(
                "conda", f"{url} {'has two rows' if url in found else 'has a row, but no platform names it'}"
            )
        found[url] = {key: _plain(value) for key, value in row.data.items() if key not in _CONDA_KEYS}
        if any(text_fault(text) for text in found[url].values()):
            raise row.fail("", "holds characters that can't be printed")
    return found


def _read_header(whole: Table, target: str) -> dict[str, str]:
    """Return the values of a lock that belong to no package as text, by path."""
    data = {key: value for key, value in whole.data.items() if key not in ("packages", "environments", "tenv")}
    environment = whole.table("environments").table(target).data
    data["environment"] = {key: value for key, value in environment.items() if key != "packages"}
    data["tenv"] = {key: value for key, value in whole.table("tenv").data.items() if key not in _NOT_HEADER}
    return dict(_leaves(data, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for number, one in enumerate(value):
            yield from _leaves(one, f"{path}[{number}]")
    else:
        yield path, _plain(value)


def _plain(value: Any) -> str:
    """Return a value as text; different values have different texts."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return value
    return json.dumps(value, ensure_ascii=False)  # the text "1" is not the number
