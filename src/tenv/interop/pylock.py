"""The format ``pylock.toml`` (PEP 751): the wheels, for pip and uv."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import tomli

from tenv import __version__
from tenv.core.errors import LockCorruptError
from tenv.core.names import WheelFile, file_at
from tenv.core.untrusted import place_fault
from tenv.core.versions import Range
from tenv.core.wheel_platforms import at_patches, evaluated, evaluated_for_patches, marker_values
from tenv.interop.chosen_files import Offered, served_alone, take_files, with_glibc
from tenv.interop.interface import Draft, Exported, Format, GivenFile, Imported, Subject, text_of
from tenv.interop.pip_lines import are_pip_lines, of_torch, project_name, repository_of
from tenv.interop.pyproject import bounded_python, python_of
from tenv.interop.python_ranges import alike, minors_of_range, python_within
from tenv.interop.requests import (
    PLATFORM_MARKERS,
    add_wheel,
    holds,
    left_out,
    platforms_of,
    sdist_at,
    with_trees,
)
from tenv.interop.requirements import built_rows, marker_of, minors_of, releases
from tenv.locks.lock import LockedTree, Wheel
from tenv.targets.manifest import PLATFORMS, WheelRequest
from tenv.targets.tree_request import TreeRequest, commit_fault, git_fault
from tenv.targets.wheel_origin import FileRequest, Index

if TYPE_CHECKING:
    from packaging.pylock import Package, Pylock
    from packaging.specifiers import SpecifierSet


def _export(subject: Subject) -> Exported:
    import tomlkit  # late: 22 ms
    from packaging.markers import Marker
    from packaging.pylock import Pylock
    from packaging.version import Version  # late: 11 ms

    found, every = releases(subject, "pylock.toml"), minors_of(subject)
    lost = left_out(subject, conda=False)
    trees = {
        name: _tree_package(subject, every, rows)
        for name, rows in built_rows(subject).items()
        if all(not row.file or row.digest in subject.located for _, row in rows)
    }
    if folders := [name for name, package in trees.items() if package.directory]:
        lost.append(f"folders are not copied, and stand as paths of this machine: {', '.join(folders)}")
    pylock = Pylock(
        lock_version=Version("1.0"),
        environments=[Marker(PLATFORM_MARKERS[name]) for name in subject.platforms if subject.wheels(name)],
        requires_python=_pythons(subject),
        created_by=f"tenv {__version__}",
        packages=[*(_package(subject, every, *key, rows) for key, rows in found.items()), *trees.values()],
    )
    text = tomlkit.dumps(_plain(pylock.to_dict()))
    return Exported({"pylock.toml": text.encode()}, tuple(lost), built=frozenset(trees))


def _pythons(subject: Subject) -> "SpecifierSet":
    """Return the Pythons of the wheels; empty if they differ between platforms."""
    minors = {subject.minor(platform) for platform in subject.platforms}
    if minor := minors.pop() if len(minors) == 1 else "":
        return Range(f"{minor}.*").specifiers
    return (subject.manifest.python or Range("*")).specifiers


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _package(
    subject: Subject, every: Mapping[str, set[str]], name: str, version: str, rows: list[tuple[str, Wheel]]
) -> "Package":
    from packaging.markers import Marker
    from packaging.pylock import Package, PackageWheel
    from packaging.utils import canonicalize_name
    from packaging.version import Version  # late: 11 ms

    marker = marker_of(every, rows)
    wheels = {
        wheel.sha256: PackageWheel(
            name=wheel.file,
            url=subject.located[wheel.sha256].url,
            size=wheel.size,
            hashes={"sha256": wheel.sha256},
        )
        for _, wheel in rows
    }
    return Package(
        name=canonicalize_name(name),
        version=Version(version),
        marker=Marker(marker) if marker else None,
        wheels=list(wheels.values()),
    )


def _tree_package(subject: Subject, every: Mapping[str, set[str]], rows: Sequence[tuple[str, LockedTree]]) -> "Package":
    """Return the package of a git repository, of a folder or of a source archive."""
    from packaging.markers import Marker
    from packaging.pylock import Package, PackageDirectory, PackageSdist, PackageVcs
    from packaging.utils import canonicalize_name
    from packaging.version import Version  # late: 11 ms

    platform, tree = rows[0]
    marker, folder = marker_of(every, rows), subject.folder_of(platform, tree)
    below = tree.subdirectory or None
    asked = tree.rev or tree.branch or tree.tag or None
    url = subject.located[tree.digest].url if tree.file else ""
    archive = PackageSdist(name=tree.file, url=url, size=tree.length, hashes={"sha256": tree.digest})
    vcs = PackageVcs(type="git", url=tree.git, requested_revision=asked, commit_id=tree.commit, subdirectory=below)
    return Package(
        name=canonicalize_name(tree.name),
        version=None if tree.dynamic else Version(tree.version),
        marker=Marker(marker) if marker else None,
        vcs=vcs if tree.git else None,
        directory=PackageDirectory(path=folder.as_posix(), editable=tree.editable) if folder else None,
        sdist=archive if tree.file else None,
    )


def _parsed(source: GivenFile) -> "Pylock":
    from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError

    try:
        data = tomli.loads(text_of(source, LockCorruptError))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or a number that int rejects
        hint = f"its lines are pip's: `tenv import {source.path} --format requirements.txt` reads them"
        hint = hint if are_pip_lines(source.raw) else ""
        raise LockCorruptError(f"{source.path}: not TOML: {error}", hint=hint) from error
    try:
        return Pylock.from_dict(data)
    except (PylockValidationError, PylockUnsupportedVersionError) as error:
        raise LockCorruptError(f"{source.path}: invalid pylock.toml: {error}") from error


def _read(source: GivenFile) -> Imported:
    pylock = _parsed(source)
    lost: list[str] = []
    notes: list[str] = []
    platforms = source.choose(platforms_of(list(pylock.environments or [])))[0] or source.platforms
    if not platforms:
        platforms = ("linux-64",)
        lacks = "no platforms that tenv supports" if pylock.environments else "no platforms"
        notes.append(f"the file has {lacks}: linux-64 is used (`--platform` sets others)")
    needed = {str(row["name"]) for package in pylock.packages for row in package.dependencies or []}
    if not needed:
        notes.append("the file has no requests: all its packages are requested")
    notes += _without_index(pylock.packages)
    if named := [*(pylock.extras or ()), *(pylock.dependency_groups or ())]:
        notes.append(f"the packages of all extras and groups are the target's: {', '.join(map(str, named))}")
    packages = [package for package in pylock.packages if not _is_own(package)]
    if own := [str(package.name) for package in pylock.packages if _is_own(package)]:
        notes.append(source.own_package(", ".join(own)))
    accepted, home = bounded_python(str(pylock.requires_python or ""), []), source.path.parent
    accepted = python_within(accepted, list(pylock.environments or []), platforms)
    offered = {minor: _offered(packages, platforms, minor, home) for minor in minors_of_range(accepted)}
    if not source.platforms and (served := served_alone(offered, lost)):
        again = _read(replace(source, platforms=served))
        return replace(again, lost=(*lost, *again.lost))
    asked = {
        minor: {(on, row.name) for on, rows in found.items() for row in rows if row.name not in needed}
        for minor, found in offered.items()
    }
    every, accepted = alike(asked, accepted, notes)
    taken = take_files({minor: offered[minor] for minor in every})
    minors = taken.minors
    python = python_of(minors, accepted, notes)
    indexes = _indexes(pylock.packages)
    requests = [(package, _request(source, package, indexes, lost, notes)) for package in packages]
    rows = [(package, request) for package, request in requests if request and package.name not in needed]
    wheels = _asked(rows, platforms, minors or every, lost, notes)
    part = taken.part if minors and taken.has_some else None
    if part is None:
        listed = "; ".join(f"{name}: {reason}" for name, reason in sorted(taken.left.items()))
        why = f"tenv can't lock each package ({listed})" if packages else "it has no package but the project itself"
        lost.append(f"its lock, since {why}: `tenv lock` writes one")
    draft = Draft(platforms, python=python, wheels=wheels, indexes=tuple(indexes.values()))
    draft = with_trees(with_glibc(draft, taken.glibc, notes), taken.part, home, notes)
    return Imported("", draft, part, tuple(dict.fromkeys(lost)), tuple(notes))


def _asked(
    rows: "list[tuple[Package, WheelRequest]]",
    platforms: tuple[str, ...],
    minors: Sequence[str],
    lost: list[str],
    notes: list[str],
) -> dict[str, dict[str, WheelRequest]]:
    """Return the requests by platform; a note names those for other Pythons."""
    found: dict[str, dict[str, WheelRequest]] = {platform: {} for platform in platforms}
    for platform in platforms:
        for package, request in rows:
            if holds(package.marker, platform, "", minors) is not False:
                add_wheel(found[platform], str(package.name), request, lost)
    used = {name for table in found.values() for name in table}
    other = {
        str(row.name) for row, _ in rows if row.marker and any(holds(row.marker, on, "") is None for on in platforms)
    }
    apart: dict[str, set[str]] = {}
    for row in (row for row, _ in rows if row.marker and str(row.name) not in used | other):
        if on := [name for name in PLATFORMS if name not in platforms and holds(row.marker, name, "", minors)]:
            apart.setdefault(", ".join(on), set()).add(str(row.name))
    notes += [f"for {on} alone (`--platform` adds it): {', '.join(sorted(names))}" for on, names in apart.items()]
    if left := sorted(other - used):
        notes.append(f"for other Pythons than the target's: {', '.join(left)}")
    return found


def _without_index(packages: "Sequence[Package]") -> list[str]:
    """Return a note about the hosts of files whose index the lock does not name, or nothing."""
    urls = [wheel.url or "" for package in packages if not package.index for wheel in package.wheels or ()]
    hosts = sorted({host for url in urls if (host := urlsplit(url).hostname)})
    words = f"no index is named: the indexes in use serve the files of {', '.join(hosts)}, by their sha256"
    return [words] if hosts else []


def _is_own(package: "Package") -> bool:
    """Return whether a package is the project itself."""
    return bool(package.directory and package.directory.path in (".", "./"))


def _indexes(packages: "Sequence[Package]") -> dict[str, Index]:
    """Return the indexes other than the most frequent one, by their URL, each for the requests that name it."""
    counts = Counter(str(package.index).rstrip("/") for package in packages if package.index)
    others = (
        [url for url, _ in counts.most_common()[1:]] if len(counts) > 1 else [url for url in counts if of_torch(url)]
    )
    files = [wheel.url or "" for package in packages for wheel in package.wheels or ()]
    # The files of a folder that is no index lie in it, as those of PyTorch's own index on its server do.
    flat = {url for url in others if url.startswith("file:") and any(file.rpartition("/")[0] == url for file in files)}
    return {
        url: Index(url, of_torch(url) or f"index-{place}", explicit=True, flat=url in flat)
        for place, url in enumerate(others, 1)
    }


def _request(
    source: GivenFile, package: "Package", indexes: Mapping[str, Index], lost: list[str], notes: list[str]
) -> WheelRequest | None:
    """Return the request for a package; None for one that a manifest can't have."""
    home = source.path.parent
    if vcs := package.vcs:
        url = (vcs.url or "").removesuffix("/")
        if vcs.type == "git" and not git_fault(url):
            tree = TreeRequest(git=url, rev=vcs.commit_id, subdirectory=vcs.subdirectory or "")
            return WheelRequest(Range("*"), tree=tree)
    elif (folder := package.directory) and (home / folder.path).is_dir():
        tree = TreeRequest(path=folder.path, editable=bool(folder.editable), base=home)
        if project_name(home / folder.path):
            return WheelRequest(Range("*"), tree=tree)
    elif (archive := package.archive) and WheelFile.parse(file_at(archive.url or archive.path or "")):
        digest = archive.hashes.get("sha256", "")
        near = FileRequest(path=archive.path or "", sha256=digest, base=home)
        return WheelRequest(Range("*"), file=FileRequest(url=archive.url, sha256=digest) if archive.url else near)
    elif archive and (found := repository_of(archive.url or "")):
        notes.append(f"`{archive.url}` is requested as the git repository, at {found[1]}")
        return WheelRequest(Range("*"), tree=TreeRequest(git=found[0], rev=found[1]))
    elif package.version is not None and not (package.directory or package.archive):
        index = indexes.get(str(package.index or "").rstrip("/"))
        return WheelRequest(_exact(str(package.version)), index=index.name if index else "")
    lost.append(f"{package.name}, since a manifest can't have its source")
    return None


def _exact(version: str) -> Range:
    try:
        return Range(version)
    except ValueError:  # an epoch, or a part that a range can't have
        return Range("*")


def _offered(
    packages: "Sequence[Package]", platforms: Iterable[str], minor: str, home: Path
) -> dict[str, list[Offered]]:
    """Return the packages of each platform for a Python, as `take_files` takes them."""
    from packaging.specifiers import SpecifierSet  # late: 15 ms

    found: dict[str, list[Offered]] = {}
    fits = [row for row in packages if (row.requires_python or SpecifierSet()).contains(f"{minor}.99")]
    for platform in platforms:
        _, last = at_patches(marker_values(platform, minor))
        here = [row for row in fits if row.marker is None or evaluated(row.marker, last)]
        names = {row.name for row in here}
        first = [
            row for row in fits if row.name not in names and row.marker and evaluated_for_patches(row.marker, last)
        ]
        found[platform] = [_offer(package, home) for package in (*here, *first)]
    return found


def _offer(package: "Package", home: Path) -> Offered:
    rows = [(wheel.url or "", wheel.hashes.get("sha256", ""), wheel.size) for wheel in package.wheels or ()]
    archive = package.archive
    if archive and WheelFile.parse(file_at(place := archive.url or archive.path or "")):
        rows = [(archive.url or (home.absolute() / place).as_uri(), archive.hashes.get("sha256", ""), archive.size)]
    reason = "" if rows else "built from a source tree" if package.vcs or package.directory else "a source archive"
    version = str(package.version or "") or (file.version if rows and (file := WheelFile.parse(rows[0][0])) else "")
    return Offered(str(package.name), version, rows, reason, _source_of(package, version, home))


def _source_of(package: "Package", version: str, home: Path) -> LockedTree | None:
    """Return the source archive or the source tree of a package; None without one that a lock can have."""
    name = str(package.name)
    if sdist := package.sdist:
        return sdist_at(sdist.url or "", name, version, sdist.hashes.get("sha256", ""), sdist.size, ())
    if (vcs := package.vcs) and vcs.type == "git":
        url, below = (vcs.url or "").removesuffix("/"), vcs.subdirectory or ""
        if git_fault(url) or commit_fault(vcs.commit_id) or place_fault(below):
            return None
        return LockedTree(name, version or "0", (), (), vcs.commit_id, git=url, subdirectory=below, dynamic=True)
    if (folder := package.directory) and (home / folder.path).is_dir():
        return LockedTree(name, version or "0", (), (), path=folder.path, editable=bool(folder.editable))
    return None


FORMAT = Format(
    name="pylock.toml",
    export=_export,
    read=_read,
    recognize=lambda name, _: name.startswith("pylock.") and name.endswith(".toml"),
    needs_urls=lambda _: True,
)
