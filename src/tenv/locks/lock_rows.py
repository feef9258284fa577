"""The rows of a lock. Each value is validated like a manifest's, since a lock may come from anywhere.

A valid row names no path outside the prefix and no URL other than http or https. No row occurs twice.
"""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tenv.core.names import SHA256_PATTERN, CondaFile, Digest, WheelFile, channel_of, file_at, is_channel, normalize
from tenv.core.toml_reader import Table
from tenv.core.untrusted import address_fault, conda_file_fault, login_fault, name_fault, place_fault, text_fault
from tenv.core.versions import Range, Version, is_release, same_release
from tenv.locks.lock import Archive, CondaPackage, LockedTree, OtherFile, Wheel
from tenv.locks.wheel_requirement import requirement_of
from tenv.targets.manifest import PLATFORMS
from tenv.targets.sections import SECTIONS
from tenv.targets.tree_request import REVISIONS, TREE_KEYS, commit_fault, git_fault, reference_fault
from tenv.targets.wheel_origin import FLAT, INDEX_FORMATS, Index, file_url_fault, index_fault, path_fault

_KINDS = ("tar.gz", "tar.xz", "tar.bz2", "zip", "7z", "conda")
_TRUST = ("manifest", "facts", "redist", "first-use")
_ORIGIN_KEYS = ("index", "url", "path")
_WHEEL_KEYS = ("name", "version", "file", "sha256", "size", "python", "requires", "features", *_ORIGIN_KEYS)
_INDEX_KEYS = ("name", "url", "format")
_ARCHIVE_KEYS = (
    *("name", "version", "url", "sha256", "size", "kind", "strip", "to", "trust", "licence", "release", "part_of"),
    "features",
)
_OF_TREES = ("name", "version", "python", "requires", "features", "isolation", "wheels")
_COMPILED = re.compile(rf"3\.(0|[1-9][0-9]?) sha256:{SHA256_PATTERN}")
_TREE_KEYS = (*_OF_TREES, "commit", "dynamic", *TREE_KEYS)
_SDIST_KEYS = (*_OF_TREES, "file", "sha256", "size", "index", "build")
_PIN = re.compile(rf"[a-z0-9][a-z0-9.-]*==[0-9A-Za-z.!+]+ sha256:{SHA256_PATTERN}")
_OTHER_KEYS = ("name", "version", "sha256", "size")
_MINOR = re.compile(r"3\.(0|[1-9][0-9]?)")
_CONDA_SCHEMES = ("https", "http", "file")
_MOST_BYTES = 1 << 42
_MOST_STRIP = 20


def require_plain(table: Table, *keys: str) -> None:
    """Raise an error for the first value that is not one line of printable text."""
    for key in keys:
        if fault := text_fault(table.text(key)):
            raise table.fail(key, fault)


def require_platforms(table: Table, known: Iterable[str] = PLATFORMS) -> tuple[str, ...]:
    """Return the keys of a table, which must be known platforms."""
    table.only(known)
    return tuple(table.data)


def read_requirements(table: Table) -> dict[str, str]:
    """Return the requirements on the host."""
    table.only(("cuda", "glibc", "python"))
    for key in table.data:
        table.parsed(key, Range if key == "python" else Version, None)
    return {key: table.text(key) for key in table.data}


def read_requests(table: Table) -> dict[str, dict[str, list[str]]]:
    """Return the requests for a platform; they are shown, and decide nothing."""
    table.only(section.name for section in SECTIONS)
    found: dict[str, dict[str, list[str]]] = {}
    for section, items in table.tables():
        found[section] = {}
        for name in items.data:
            row = list(items.strings(name))
            if any(text_fault(text) for text in (name, *row)):
                raise items.fail(name, "holds characters that can't be printed")
            if not row:
                raise items.fail(name, "is empty")
            found[section][name] = row
    return found


def index_row(index: Index) -> dict[str, str]:
    """Return the row of an index in a lock."""
    row = {"name": index.name, "url": index.url, "format": FLAT if index.flat else ""}
    return {key: value for key, value in row.items() if value}


def read_indexes(table: Table) -> dict[str, Index]:
    """Return the indexes that the wheels of a lock come from, by name, or by address for one without a name."""
    found: dict[str, Index] = {}
    for row in table.rows("indexes"):
        row.only(_INDEX_KEYS)
        name, form = row.text("name"), row.text("format")
        index = Index(row.required_text("url"), name, flat=form == FLAT)
        if fault := index_fault(index.url) or ("ends with a slash" if index.url.endswith("/") else ""):
            raise row.fail("url", fault)
        if name and (fault := name_fault(name)):
            raise row.fail("name", fault)
        if form and form not in INDEX_FORMATS:
            raise row.fail("format", f"is none of {', '.join(INDEX_FORMATS)}")
        if index.key in found:
            raise row.fail("name", f"`{index.key}` is there twice")
        found[index.key] = index
    return found


def wheel_row(wheel: Wheel) -> dict[str, Any]:
    """Return the row of a wheel in a lock."""
    row: dict[str, Any] = {"name": wheel.name, "version": wheel.version, "file": wheel.file, "sha256": wheel.sha256}
    if wheel.size is not None:
        row["size"] = wheel.size
    origin = {"index": wheel.index.key if wheel.index else "", "url": wheel.url, "path": wheel.path}
    row |= {key: value for key, value in origin.items() if value}
    row["python"] = wheel.python
    if wheel.requires is not None:
        row["requires"] = list(wheel.requires)
    if wheel.features:
        row["features"] = wheel.features
    return row


def read_wheels(table: Table, platform: str, indexes: Mapping[str, Index] = MappingProxyType({})) -> tuple[Wheel, ...]:
    """Return the wheels of one platform; a Python minor has at most one wheel of a name.

    The requirements of all wheels are known, or of none: a row without them hides packages that nothing requires.

    Args:
        table: The wheels by platform.
        platform: The platform.
        indexes: The indexes of the lock, by name or address.
    """
    rows = list(table.rows(platform))
    wheels = tuple(_wheel(row, indexes) for row in rows)
    if any(wheel.requires is not None for wheel in wheels):
        for row, wheel in zip(rows, wheels, strict=True):
            if wheel.requires is None:
                raise row.fail("requires", "is required")
    _once(table, platform, [(wheel.name, minor) for wheel in wheels for minor in wheel.python])
    return wheels


def read_archives(table: Table, platform: str) -> tuple[Archive, ...]:
    """Return the archives of one platform."""
    archives = tuple(_archive(row) for row in table.rows(platform))
    _once(table, platform, [(archive.name.lower(),) for archive in archives])
    return archives


def read_others(table: Table, platforms: Iterable[str]) -> dict[str, tuple[OtherFile, ...]]:
    """Return the files of a source that has no file type of its own, by platform."""
    found = {}
    for platform in require_platforms(table, platforms):
        found[platform] = tuple(_other(row) for row in table.rows(platform))
        _once(table, platform, [(file.name.lower(),) for file in found[platform]])
    return found


def read_conda(whole: Table, packages: Table, platform: str, features: Table | None = None) -> tuple[CondaPackage, ...]:
    """Return the conda packages of one platform, by name.

    Args:
        whole: The lock, whose ``packages`` holds their rows.
        packages: The packages of its environment, by platform.
        platform: The platform.
        features: By package: the features that bring it; a package without a key is a part of the target.
    """
    urls = []
    for row in packages.rows(platform):
        row.only(("conda",))
        urls.append(row.required_text("conda"))
    known = {row.text("conda"): row for row in whole.rows("packages")} if urls else {}
    if missing := next((url for url in urls if url not in known), None):
        raise whole.fail("packages", f"has no row for {missing}, which {platform} names")
    found = tuple(sorted((_conda(known[url], platform) for url in urls), key=lambda package: package.name))
    _once(packages, platform, [(package.name,) for package in found])
    if features is None:
        return found
    features.only(package.name for package in found)
    brought = {name: _feature_names(features, name) for name in features.data}
    return tuple(replace(one, features=brought[one.name]) if one.name in brought else one for one in found)


def _features(row: Table) -> tuple[str, ...]:
    """Return the features that a row names; none for a part of the target."""
    return _feature_names(row, "features") if "features" in row.data else ()


def _feature_names(table: Table, key: str) -> tuple[str, ...]:
    names = table.strings(key)
    if not names or list(names) != sorted(set(names)) or any(map(name_fault, names)):
        raise table.fail(key, "is not a sorted list of features")
    return names


def read_channels(environment: Table) -> tuple[str, ...]:
    """Return the URLs of the channels of an environment."""
    urls = []
    for row in environment.rows("channels"):
        url = row.required_text("url").rstrip("/")
        if fault := login_fault(url):
            raise row.fail("url", fault)
        if not is_channel(url) or ("://" in url and address_fault(f"{url}/x", _CONDA_SCHEMES)):
            raise row.fail("url", f"`{url}` is not a channel")
        urls.append(url)
    return tuple(urls)


def _once(table: Table, platform: str, keys: Iterable[tuple[str, ...]]) -> None:
    twice = [" for Python ".join(key) for key, count in Counter(keys).items() if count > 1]
    if twice:
        raise table.fail(platform, f"holds {min(twice)} twice")


def _wheel(row: Table, indexes: Mapping[str, Index]) -> Wheel:
    row.only(_WHEEL_KEYS)
    index = row.text("index")
    if index and index not in indexes:
        raise row.fail("index", f"`{index}` is not among the indexes of the lock")
    wheel = Wheel(
        name=row.required_text("name"),
        version=row.required_text("version"),
        file=row.required_text("file"),
        sha256=_sha256(row),
        size=_size(row),
        python=row.strings("python"),
        requires=row.strings("requires") if "requires" in row.data else None,
        features=_features(row),
        index=indexes.get(index),
        url=row.text("url"),
        path=row.text("path"),
    )
    if any(text_fault(text) for text in wheel.requires or ()):
        raise row.fail("requires", "holds characters that can't be printed")
    if (fault := name_fault(wheel.name)) or normalize(wheel.name) != wheel.name:
        raise row.fail("name", fault or f"`{wheel.name}` is not a normalized name")
    file = WheelFile.parse(wheel.file)
    if file is None or "/" in wheel.file:
        raise row.fail("file", f"`{wheel.file}` is not the name of a wheel")
    if file.name != wheel.name or not same_release(file.version, wheel.version):
        raise row.fail("file", f"`{wheel.file}` is not a wheel of {wheel.name} {wheel.version}")
    if not wheel.python or not all(map(_MINOR.fullmatch, wheel.python)):
        raise row.fail("python", "is not a list of Python minors")
    _require_origin(row, wheel)
    return wheel


def _require_origin(row: Table, wheel: Wheel) -> None:
    """Refuse a wheel with two origins, and an address or a path that is not of its file."""
    given = [key for key in _ORIGIN_KEYS if row.text(key)]
    if len(given) > 1:
        raise row.fail(given[1], f"stands beside `{given[0]}`")
    for key, text, fault in (("url", wheel.url, file_url_fault), ("path", wheel.path, path_fault)):
        if not text:
            continue
        there = file_at(text) if key == "url" else text.rpartition("/")[2]
        if wrong := fault(text) or ("" if there == wheel.file else f"is not the place of {wheel.file}"):
            raise row.fail(key, wrong)


def _conda(row: Table, platform: str) -> CondaPackage:
    url = row.required_text("conda")
    file = CondaFile.parse(url)
    if file is None or file.ending == ".json":
        raise row.fail("conda", f"`{url}` is not the URL of a conda package")
    if fault := address_fault(url, _CONDA_SCHEMES):
        raise row.fail("conda", fault)
    subdir, channel = url.rsplit("/", 2)[1], channel_of(url)
    package = CondaPackage(
        name=row.text("name") or file.name,
        version=row.text("version") or file.version,
        build=row.text("build") or file.build,
        subdir=row.text("subdir") or subdir,
        channel=row.text("channel").rstrip("/") or channel,
        url=url,
        sha256=_digest(row, "sha256"),
        md5=_digest(row, "md5"),
        size=_size(row),
        depends=row.strings("depends"),
        constrains=row.strings("constrains"),
    )
    if fault := conda_file_fault(package.name, package.version, package.build):
        raise row.fail("conda", f"{fault} ({package.file})")
    if (package.name, package.version, package.build) != (file.name, file.version, file.build):
        identity = f"{package.name} {package.version} {package.build}"
        raise row.fail("conda", f"`{package.file}` is not the file name of {identity}")
    if package.subdir != subdir or subdir not in (platform, "noarch"):
        raise row.fail("conda", f"{package.file} is for `{package.subdir}`, not for {platform}")
    if package.channel != channel:
        raise row.fail("channel", f"{package.file} is in the channel {channel}, not in {package.channel}")
    if not package.sha256 and not package.md5:
        raise row.fail("sha256", f"{package.file} has neither a sha256 nor an MD5")
    return package


def _archive(row: Table) -> Archive:
    row.only(_ARCHIVE_KEYS)
    archive = Archive(
        name=row.required_text("name"),
        version=row.text("version"),
        url=row.required_text("url"),
        sha256=_sha256(row),
        size=_size(row),
        kind=row.required_text("kind"),
        strip=_number(row, "strip", _MOST_STRIP) or 0,
        to=row.text("to"),
        trust=row.text("trust") or "manifest",
        licence=row.text("licence"),
        release=row.text("release"),
        part_of=row.text("part_of"),
        features=_features(row),
    )
    home = archive.to.split("/") if archive.to else []
    for key, fault in (
        ("name", name_fault(archive.name)),
        ("version", text_fault(archive.version)),
        ("url", address_fault(archive.url)),
        ("to", place_fault(archive.to) or ("" if all(part not in ("", ".") for part in home) else "is not plain")),
        ("kind", "" if archive.kind in _KINDS else f"`{archive.kind}` is not a known archive format"),
        ("trust", "" if archive.trust in _TRUST else f"is none of {', '.join(_TRUST)}"),
        ("licence", place_fault(archive.licence)),
        ("release", text_fault(archive.release)),
        ("part_of", name_fault(archive.part_of) if archive.part_of else ""),
    ):
        if fault:
            raise row.fail(key, fault)
    return archive


def _other(row: Table) -> OtherFile:
    values = {key: row.required_text(key) for key in row.data if key not in _OTHER_KEYS}
    file = OtherFile(row.required_text("name"), row.text("version"), _sha256(row), _size(row), values)
    faults = {"name": name_fault(file.name), "version": text_fault(file.version)}
    faults |= {key: text_fault(value) for key, value in values.items()}
    _refuse(row, faults)
    return file


def tree_row(tree: LockedTree) -> dict[str, Any]:
    """Return the row of a source tree in a lock."""
    row: dict[str, Any] = {"name": tree.name, "version": tree.version, **tree.request.given()}
    if tree.file:
        row |= {"file": tree.file, "sha256": tree.digest} | ({"size": tree.length} if tree.length is not None else {})
        row |= {"index": tree.index.key} if tree.index else {}
        row |= {"build": list(tree.build)}
    row |= {"commit": tree.commit} if tree.commit else {}
    row |= {"dynamic": True} if tree.dynamic else {}
    row |= {} if tree.isolated else {"isolation": False}
    row |= {"wheels": list(tree.wheels)} if tree.wheels else {}
    row |= {"features": tree.features} if tree.features else {}
    return {**row, "python": tree.python, "requires": list(tree.requires)}


def read_trees(
    table: Table, platforms: Iterable[str], indexes: Mapping[str, Index] = MappingProxyType({})
) -> dict[str, tuple[LockedTree, ...]]:
    """Return the source trees and archives of a lock by platform, each value checked as in a manifest.

    The indexes of the lock have their names or addresses as keys.
    """
    table.only(platforms)
    found = {}
    for platform in table.data:
        rows = table.rows(platform)
        found[platform] = tuple(_sdist(row, indexes) if "file" in row.data else _tree(row) for row in rows)
        _once(table, platform, [(tree.name, minor) for tree in found[platform] for minor in tree.python])
    return found


def _sdist(row: Table, indexes: Mapping[str, Index]) -> LockedTree:
    """Return a source archive of an index."""
    from packaging.utils import InvalidSdistFilename, parse_sdist_filename  # late: few locks have one

    row.only(_SDIST_KEYS)
    index = row.text("index")
    tree = LockedTree(
        name=row.required_text("name"),
        version=row.required_text("version"),
        python=row.strings("python"),
        requires=row.strings("requires"),
        features=_features(row),
        file=row.required_text("file"),
        digest=_sha256(row),
        length=_size(row),
        index=indexes.get(index),
        build=row.strings("build"),
        isolated=row.flag("isolation", default=True),
        wheels=_compiled(row),
    )
    name = version = ""
    with contextlib.suppress(InvalidSdistFilename):
        name, version = map(str, parse_sdist_filename(tree.file))
    faults = {"name": name_fault(tree.name), "version": "" if is_release(tree.version) else "is not a version"}
    if "/" in tree.file or normalize(name) != tree.name or not same_release(version, tree.version):
        faults["file"] = f"`{tree.file}` is not a source archive of {tree.name} {tree.version}"
    faults["index"] = f"`{index}` is not among the indexes of the lock" if index and index not in indexes else ""
    faults["requires"] = next(filter(None, map(_requirement_fault, tree.requires)), "")
    faults["build"] = "" if all(map(_PIN.fullmatch, tree.build)) else "is not a list of NAME==VERSION sha256:HEX"
    faults["python"] = "" if tree.python and all(map(_MINOR.fullmatch, tree.python)) else "is not a list of minors"
    _refuse(row, faults)
    return tree


def _compiled(row: Table) -> tuple[str, ...]:
    wheels = row.strings("wheels")
    if not all(map(_COMPILED.fullmatch, wheels)) or (wheels and row.flag("isolation", default=True)):
        raise row.fail("wheels", "is not a list of MINOR sha256:HEX of a package with isolation = false")
    return wheels


def _tree(row: Table) -> LockedTree:
    row.only(_TREE_KEYS)
    texts: dict[str, Any] = {key: row.text(key) for key in ("commit", "git", *REVISIONS, "subdirectory", "path")}
    tree = LockedTree(
        name=row.required_text("name"),
        version=row.required_text("version"),
        python=row.strings("python"),
        requires=row.strings("requires"),
        editable=row.flag("editable"),
        dynamic=row.flag("dynamic"),
        features=row.strings("features"),
        isolated=row.flag("isolation", default=True),
        wheels=_compiled(row),
        **texts,
    )
    faults = {key: text_fault(text) for key, text in {**texts, "version": tree.version}.items()}
    faults["name"] = name_fault(tree.name) or ("" if normalize(tree.name) == tree.name else "is not a normalized name")
    faults["version"] = faults["version"] or ("" if is_release(tree.version) else "is not a version of PEP 440")
    faults["requires"] = next(filter(None, map(_requirement_fault, tree.requires)), "")
    faults["path"] = faults["path"] or (
        "" if bool(tree.git) != bool(tree.path) else "stands with `git`, or neither does"
    )
    faults["features"] = next(filter(None, map(name_fault, tree.features)), "")
    faults["python"] = "" if tree.python and all(map(_MINOR.fullmatch, tree.python)) else "is not a list of minors"
    if tree.git:
        faults |= {"git": git_fault(tree.git), "commit": commit_fault(tree.commit)}
        faults["subdirectory"] = place_fault(tree.subdirectory)
        faults |= {key: reference_fault(texts[key]) for key in REVISIONS if texts[key]}
        faults["editable"] = "is for a folder" if tree.editable else ""
    else:
        given = [key for key in ("commit", *REVISIONS, "subdirectory") if texts[key]]
        faults |= dict.fromkeys(given, "is for a repository")
    _refuse(row, faults)
    return tree


def _requirement_fault(text: str) -> str:
    """Return why a text is not a requirement by name: one with an address would be fetched from there."""
    if text_fault(text):
        return "holds unprintable characters"
    if "@" in text.partition(";")[0] or requirement_of(text) is None:
        return f"`{text}` is not a requirement by name"
    return ""


def _refuse(row: Table, faults: Mapping[str, str]) -> None:
    """Raise the error for the first value with a fault."""
    for key, fault in faults.items():
        if fault:
            raise row.fail(key, fault)


def _sha256(row: Table) -> str:
    row.required_text("sha256")
    return _digest(row, "sha256")


def _digest(row: Table, kind: str) -> str:
    """Return a digest of a row; empty for none."""
    text = row.text(kind)
    if text and not Digest(kind, text).is_valid():
        raise row.fail(kind, f"is not {Digest(kind, text).length} hex digits")
    return text


def _size(row: Table) -> int | None:
    return _number(row, "size", _MOST_BYTES)


def _number(row: Table, key: str, most: int) -> int | None:
    number: Any = row.data.get(key)
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= most):
        raise row.fail(key, "is not a number of bytes" if key == "size" else "is not a number of folders")
    return number
