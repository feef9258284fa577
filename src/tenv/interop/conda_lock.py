"""The format conda-lock: ``conda-lock.yml``, through conda-lock's own models.

``conda-lock install`` and ``micromamba create -f conda-lock.yml`` read it. The library is an extra, since it has 45
dependencies and takes half a second to import.
"""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.core.errors import FormatError, LockCorruptError, TenvError
from tenv.core.names import channel_of, channel_url, conda_address, normalize
from tenv.interop.environment_yml import read_environment
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
    read_source,
)
from tenv.interop.requests import (
    asked_wheels,
    channel_words,
    holds,
    left_out,
    not_known,
    other_channels,
    sdist_at,
    sdists_of,
    top_level,
    wheel_at,
    words_of,
)
from tenv.locks.lock import CondaPackage, LockedTree, Wheel
from tenv.targets.manifest import CondaRequest

if TYPE_CHECKING:
    from conda_lock.lockfile.v2prelim.models import LockedDependency, Lockfile

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def _missing() -> FormatError:
    from tenv.core.own_distribution import extra_hint  # late: only where the extra is missing

    return FormatError("conda-lock is not installed in tenv's environment", hint=extra_hint("conda-lock", "conda-lock"))


def _export(subject: Subject) -> Exported:
    try:
        from conda_lock.lockfile import write_conda_lock_file  # late: 430 ms, and an extra
        from conda_lock.lockfile.v2prelim.models import Lockfile, LockMeta
        from conda_lock.models.channel import Channel
    except ImportError as error:
        raise _missing() from error
    lost = left_out(subject)
    if not subject.has_conda_python():
        raise FormatError(
            f"{subject.lock.target} has wheels but no Python from conda, which a conda-lock.yml must have",
            hint=f"`tenv export pylock.toml {subject.lock.target}` writes its wheels",
        )
    packages, built = [], set[str]()
    for platform in subject.platforms:
        packages += [_conda(package, platform) for package in subject.lock.conda.get(platform, ())]
        minor = subject.minor(platform)
        archives = subject.archives(platform)
        packages += [_pip(row, row.sha256, subject, platform, minor) for row in subject.wheels(platform)]
        packages += [_pip(row, row.digest, subject, platform, minor) for row in archives]
        built |= {row.name for row in archives}
    metadata = LockMeta(
        content_hash=dict.fromkeys(subject.platforms, subject.manifest.digest()),
        channels=[Channel.from_string(word) for word in channel_words(subject)],
        platforms=list(subject.platforms),
        sources=[],
    )
    lost += not_known(subject)
    lost.append("constraints (`constrains`), sizes, licences and timestamps of packages are not in a conda-lock.yml")
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        path = Path(folder) / "conda-lock.yml"
        write_conda_lock_file(Lockfile(package=packages, metadata=metadata), path, None, include_help_text=False)
        head = f"# {subject.lock.target}, written by tenv; `conda-lock install` and `micromamba create -f` take it.\n"
        files = {"conda-lock.yml": head.encode() + path.read_bytes()}
        return Exported(files, tuple(lost), built=frozenset(built))


def _conda(package: CondaPackage, platform: str) -> "LockedDependency":
    from conda_lock.lockfile.v2prelim.models import HashModel, LockedDependency

    if not package.md5:
        raise FormatError(f"{package.name}: its channel has no MD5, which conda-lock requires")
    return LockedDependency(
        name=package.name,
        version=package.version,
        manager="conda",
        platform=platform,
        dependencies=_dependencies(package.depends),
        url=package.url,
        hash=HashModel(md5=package.md5, sha256=package.sha256 or None),
        categories={"main"},
    )


def _dependencies(depends: tuple[str, ...]) -> dict[str, str]:
    """Return dependencies by name; two lines for one name are one specification: both versions, and the build."""
    lines: dict[str, list[list[str]]] = {}
    for line in depends:
        name = _NAME.match(line)
        lines.setdefault(name.group() if name else line, []).append(line[name.end() if name else 0 :].split())
    return {name: _one_of(rows) if len(rows) > 1 else " ".join(rows[0]) for name, rows in lines.items()}


def _one_of(rows: list[list[str]]) -> str:
    versions = dict.fromkeys(row[0] for row in rows if row and row[0] != "*")
    alone = [f"({version})" if "|" in version and len(versions) > 1 else version for version in versions]
    builds = sorted({row[1] for row in rows if len(row) > 1 and row[1] != "*"}, key=len)
    version = ",".join(alone) or "*"
    return f"{version} {builds[-1]}" if builds else version


def _pip(file: Wheel | LockedTree, sha256: str, subject: Subject, platform: str, minor: str) -> "LockedDependency":
    from conda_lock.lockfile.v2prelim.models import HashModel, LockedDependency
    from packaging.requirements import InvalidRequirement, Requirement  # late: 34 ms

    found, needs = subject.located[sha256], {}
    for line in found.requires_dist:
        try:
            need = Requirement(line)
        except InvalidRequirement:  # as in old packages; pip ignores them, too
            continue
        if holds(need.marker, platform, minor) is not False:
            needs[normalize(need.name)] = str(need.specifier) or "*"
    return LockedDependency(
        name=file.name,
        version=file.version,
        manager="pip",
        platform=platform,
        dependencies=needs,
        url=found.url,
        hash=HashModel(sha256=sha256),
        categories={"main"},
    )


def _parse(source: GivenFile) -> "Lockfile":
    try:
        from conda_lock.lockfile import lockfile_v1_to_v2  # late: 430 ms, and an extra
        from conda_lock.lockfile.v1.models import Lockfile as Old
        from conda_lock.lockfile.v2prelim.models import Lockfile as New
        from pydantic import ValidationError
    except ImportError as error:
        raise _missing() from error
    data = load_yaml(source, LockCorruptError)
    version = data.pop("version", None)
    try:
        if version == 1:
            return lockfile_v1_to_v2(Old.model_validate(data))
        if version == 2:  # noqa: PLR2004 (the format's own number)
            return New.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise LockCorruptError(f"{source.path}: conda-lock can't read it: {where}: {first['msg']}") from error
    except (AssertionError, ValueError) as error:  # a duplicate package
        raise LockCorruptError(f"{source.path}: conda-lock can't read it: a package is listed twice") from error
    except (LookupError, TypeError, AttributeError) as error:  # conda-lock 4.0 raises them for odd values
        raise LockCorruptError(f"{source.path}: conda-lock can't read it: {error!r:.100}") from error
    raise LockCorruptError(f"{source.path}: has an unknown version: {version!r:.50}")


def _read(source: GivenFile) -> Imported:
    found = _parse(source)
    lost: list[str] = []
    named = list(dict.fromkeys([*found.metadata.platforms, *(package.platform for package in found.package)]))
    platforms = source.take(named, lost)
    categories = sorted({category for package in found.package for category in package.categories} - {"main"})
    notes = [f"the packages of the categories {', '.join(categories)} come with the rest"] if categories else []
    conda = {platform: tuple(p for p in found.package if _is(p, "conda", platform)) for platform in platforms}
    pip = {platform: tuple(p for p in found.package if _is(p, "pip", platform)) for platform in platforms}
    files = {platform: _files(conda[platform], pip[platform], lost) for platform in platforms}
    both = {platform: _of_conda(conda[platform], files[platform]) for platform in platforms}
    files = {
        platform: tuple(row for row in files[platform] if row.name not in both[platform]) for platform in platforms
    }
    left = dict.fromkeys(sorted(set().union(*both.values())), "it is locked from conda, too")
    if left:
        lost.append(f"wheels of packages that are locked from conda, too: {', '.join(left)}")
    wheels = {platform: tuple(row for row in rows if isinstance(row, Wheel)) for platform, rows in files.items()}
    trees = {platform: tuple(row for row in rows if isinstance(row, LockedTree)) for platform, rows in files.items()}
    words = [channel.url for channel in found.metadata.channels]
    asked = {platform: _top_level(conda[platform]) for platform in platforms}
    draft = Draft(
        platforms=platforms,
        channels=words_of(words, platforms),
        dependencies=asked,
        wheels={platform: _asked(pip[platform], files[platform]) for platform in platforms},
    )
    held = {platform: {file.name for file in rows} for platform, rows in files.items()}
    names = {platform: {package.name for package in conda[platform]} for platform in platforms}
    draft = _asked_for(source, found.metadata.sources, draft, held, names, lost) or draft
    rows = _pixi_rows(conda, lost)
    unread = frozenset(tree.name for found in trees.values() for tree in found)
    requirers = {
        normalize(needed): f"{package.name} {package.version}"
        for packages in pip.values()
        for package in packages
        for needed in package.dependencies
        if normalize(needed) in unread
    }
    channels = tuple(map(channel_url, draft.channels))
    part = ForeignLock(channels, rows, wheels, trees=trees, unread=unread, requirers=requirers, left=left)
    if gap := _gap(pip, {platform: held[platform] | both[platform] for platform in platforms}):
        lost.append(f"its lock, since tenv can't lock {gap}: `tenv lock` writes one")
    draft = replace(draft, sdists=sdists_of(part))
    return Imported("", draft, None if gap else part, tuple(dict.fromkeys(lost)), tuple(notes))


def _of_conda(conda: tuple["LockedDependency", ...], files: tuple[Wheel | LockedTree, ...]) -> set[str]:
    """Return the names of wheels that conda has, too: an environment has one of both."""
    there = {normalize(package.name) for package in conda if "python" in package.dependencies}
    return {row.name for row in files if row.name in there}


def _gap(pip: Mapping[str, tuple["LockedDependency", ...]], held: Mapping[str, set[str]]) -> str:
    """Return a package that tenv can't lock and a locked one that requires it; empty for none."""
    for platform, packages in pip.items():
        there = held[platform]
        left = {normalize(package.name) for package in packages} - there
        for package in packages:
            if normalize(package.name) in there and (
                needed := sorted(left & set(map(normalize, package.dependencies)))
            ):
                return f"{needed[0]}, and {package.name} {package.version} requires it"
    return ""


def _asked_for(
    source: GivenFile,
    names: list[str],
    derived: Draft,
    wheels_held: Mapping[str, set[str]],
    conda_held: Mapping[str, set[str]],
    lost: list[str],
) -> Draft | None:
    """Return the requests in the lock's source files if all of them are next to it; else None."""
    files = [_source_file(source.path.parent, name) for name in names]
    if not files or not all(file and file.suffix in (".yml", ".yaml") for file in files):
        return None
    try:
        read = [read_environment(read_source(file, platforms=derived.platforms)) for file in files if file]
    except TenvError:  # the lock itself is enough
        return None
    drafts = [found.draft for found in read]
    conda, wheels = {}, {}
    for platform in derived.platforms:
        held = derived.dependencies[platform]
        asked = {name: request for draft in drafts for name, request in draft.dependencies.get(platform, {}).items()}
        if newer := sorted(asked.keys() - conda_held[platform]):
            lost.append(f"requests that are newer than the lock, whose packages are requested: {', '.join(newer)}")
            return None
        conda[platform] = {**{name: held[name] for name in ("python",) if name in held}, **asked}
        named = {name: request for draft in drafts for name, request in draft.wheels.get(platform, {}).items()}
        wheels[platform] = {name: request for name, request in named.items() if name in wheels_held[platform]}
    variables = {
        platform: {name: value for draft in drafts for name, value in draft.environment.get(platform, {}).items()}
        for platform in derived.platforms
    }
    return replace(derived, dependencies=conda, wheels=wheels, environment=variables)


def _source_file(home: Path, name: str) -> Path | None:
    """Return a source file of a lock, where the lock has it or beside the lock; None if it is at neither place."""
    places = (home / name, home / Path(name).name)
    return next((file for file in places if os.path.isfile(file)), None)  # noqa: PTH113 (`Path.is_file` fails for long names)


def _is(package: "LockedDependency", manager: str, platform: str) -> bool:
    return bool(package.manager == manager and package.platform == platform)


def _row(package: "LockedDependency") -> tuple[str, str, list[str]]:
    return package.name, package.version, [f"{name} {spec}".strip() for name, spec in package.dependencies.items()]


def _top_level(conda: tuple["LockedDependency", ...]) -> dict[str, CondaRequest]:
    channels = {package.name: channel_of(package.url) for package in conda}
    return top_level([_row(package) for package in conda], other_channels(channels))


def _pixi_rows(
    conda: Mapping[str, tuple["LockedDependency", ...]], lost: list[str]
) -> dict[str, tuple[Mapping[str, Any], ...]]:
    """Return the rows of each platform; a file of two platforms has one description in tenv's lock."""
    known: dict[str, Mapping[str, Any]] = {}
    for platform, packages in conda.items():
        others = [package.name for package in packages if not _join(known, package)]
        if others:
            lost.append(f"described differently for {platform}, so the first description counts: {', '.join(others)}")
    return {platform: tuple(known[package.url] for package in packages) for platform, packages in conda.items()}


def _join(known: dict[str, Mapping[str, Any]], package: "LockedDependency") -> bool:
    """Add the row of a package; return whether its requirements agree with the known ones of the same file.

    conda-lock keeps the last of several lines for one name, so one platform may lack a version that another one has.
    """
    row = _pixi_row(package)
    first = known.setdefault(package.url, row)
    before, new = (dict(spec.partition(" ")[::2] for spec in one["depends"]) for one in (first, row))
    every = {name: before.get(name) or new.get(name, "") for name in {**before, **new}}
    known[package.url] = {**first, "depends": [f"{name} {spec}".strip() for name, spec in every.items()]}
    hashes = [{key: value for key, value in one.items() if key != "depends"} for one in (first, row)]
    return hashes[0] == hashes[1] and all(not spec or every[name] == spec for name, spec in new.items())


def _pixi_row(package: "LockedDependency") -> Mapping[str, Any]:
    hashes = {"sha256": package.hash.sha256, "md5": package.hash.md5}
    _, _, depends = _row(package)
    known = {key: value for key, value in hashes.items() if value}
    return {"conda": conda_address(package.url), **known, "depends": depends}


def _files(
    conda: tuple["LockedDependency", ...], pip: tuple["LockedDependency", ...], lost: list[str]
) -> tuple[Wheel | LockedTree, ...]:
    minor = next((minor_of(package.version) for package in conda if package.name == "python"), "")
    found: list[Wheel | LockedTree] = []
    for package in pip:
        row = (package.url, package.name, package.version, package.hash.sha256 or "", None, (minor,))
        file = wheel_at(*row) or sdist_at(*row)
        if file is None or not minor:
            lost.append(f"{package.name} in the lock, since it is no file with a hash: {package.url}")
        else:
            found.append(file)
    return tuple(found)


def _asked(pip: tuple["LockedDependency", ...], files: tuple[Wheel | LockedTree, ...]) -> Any:
    held = {file.name for file in files}
    rows = [(normalize(package.name), package.version, list(package.dependencies)) for package in pip]
    return {name: request for name, request in asked_wheels(rows).items() if name in held}


FORMAT = Format(
    name="conda-lock",
    export=_export,
    read=_read,
    recognize=lambda name, head: (
        name.endswith((".yml", ".yaml"))
        and b"metadata:" in head
        and (b"content_hash:" in head or b"\npackage:" in head)
    ),
    needs_urls=Subject.has_conda_python,
    needs_metadata=True,
)
