"""Requests, markers, packages and channels: other tools' forms and the form of a manifest, each from the other."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tenv.core.dataclass import dataclass
from tenv.core.names import (
    CONDA_NAME,
    CondaFile,
    WheelFile,
    channel_of,
    channel_url,
    channel_urls,
    channel_word,
    file_at,
    is_sha256,
    normalize,
)
from tenv.core.versions import CondaRange, Range, same_release
from tenv.core.wheel_platforms import evaluated, marker_values
from tenv.interop.interface import Draft, ForeignLock, Subject
from tenv.locks.lock import LockedTree, Wheel
from tenv.rattler_api.lockfile import Spec, parse_spec
from tenv.targets.manifest import PLATFORMS, CondaRequest, WheelRequest

if TYPE_CHECKING:
    from packaging.markers import Marker

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_BY_MINOR = ("python", "cuda-version", "cuda-toolkit", "cudatoolkit", "pytorch-cuda")
_DOTTED = re.compile(r"\d{1,18}(\.\d{1,18})*")  # Python reads no number of over 4,300 digits
_EXACT = re.compile(r"\d[\w.+]*")
_BOUND = re.compile(r"\d+(?:\.\d+)*")
_EXTRA = re.compile(r"\bextra\b")
_V = re.compile(r"(?<=[=<>~! ])v(?=\d)")
"""The letter that PEP 440 drops before a version."""

_CONDA_EXTRAS = re.compile(r"(?P<name>[\w.-]+)\[(?P<extras>[\w.,\s-]+)\](?P<rest>.*)")
"""A conda package with extras as pip writes them; conda takes brackets for pairs of ``key=value`` and drops others."""
_SWAPPED = re.compile(r"(?<![=<>!~])=>(?=[\d ])")
"""An operator that conda takes for ``>=``: it reads ``python=>3.11`` as ``>3.11*``."""
_BOUNDS = ("constraints", "overrides")
_DECIDING = ("python", "cuda-version")
_COMPILER = re.compile(r"(gcc|gxx|clangxx)(_.*)?|compilers|(c|cxx)-compiler")


def split(per_platform: Mapping[str, Mapping[str, T]]) -> tuple[dict[str, T], dict[str, dict[str, T]]]:
    """Return the requests that all platforms share, and the others by platform."""
    tables = list(per_platform.values())
    first = tables[0] if tables else {}
    common = {name: value for name, value in first.items() if all(table.get(name) == value for table in tables)}
    own = {
        platform: {name: value for name, value in table.items() if name not in common}
        for platform, table in per_platform.items()
    }
    return common, {platform: table for platform, table in own.items() if table}


def pin(name: str, version: str) -> Range:
    """Return the range of versions that are compatible with code built with the locked version.

    For Python and CUDA, it is the minor, since minors are incompatible. For all others, it follows semantic
    versioning: up to the next major, or the next minor below 1. A version without dotted numbers is not comparable, so
    any version is accepted.
    """
    version = version.partition("+")[0]
    if not _DOTTED.fullmatch(version):
        return Range("*")
    parts = [int(part) for part in version.split(".")]
    if name in _BY_MINOR and len(parts) > 1:
        return Range(f"{parts[0]}.{parts[1]}.*")
    if len(parts) == 1 or parts[0] > 0:
        return Range(f">={version},<{parts[0] + 1}")
    return Range(f">={version},<0.{parts[1] + 1}")


def asked_as(name: str, version: str, channel: str = "") -> CondaRequest:
    """Return the request for a conda package of a lock."""
    return CondaRequest(CondaRange(str(pin(name, version))), channel)


def top_level(
    rows: Sequence[tuple[str, str, Iterable[str]]], channels: Mapping[str, str] | None = None
) -> dict[str, CondaRequest]:
    """Return the probable requests behind the packages of a lock.

    These are the packages that no other package needs, and those that determine a toolchain: Python, the release of
    CUDA, and the C++ compiler if no other package requires one.

    Args:
        rows: The name, the version and the dependencies of each package.
        channels: The channel of a package by its name, for requests that need one.
    """
    known = {name: (version, {spec.split()[0] for spec in depends if spec.strip()}) for name, version, depends in rows}
    needed = {other for name, (_, depends) in known.items() for other in depends if other != name}
    names = {name for name in known if _NAME.fullmatch(name) and (name not in needed or name in _DECIDING)}
    if not any(_COMPILER.fullmatch(name) for name in names):
        names |= {name for name in known if name.startswith("gxx_linux-")}
    cuda = ".".join(known["cuda-version"][0].split(".")[:2]) if "cuda-version" in known else ""
    asked = {}
    for name in sorted(names):
        version, depends = known[name]
        request = asked_as(name, version, (channels or {}).get(name, ""))
        if cuda and version.startswith(f"{cuda}.") and ("cuda-version" in depends or name.startswith("cuda-")):
            request = replace(request, version=CondaRange(f"{cuda}.*"))  # the parts of CUDA follow its release
        asked[name] = request
    return asked


def asked_wheels(rows: Sequence[tuple[str, str, Iterable[str]]]) -> dict[str, WheelRequest]:
    """Return the wheels that no other wheel requires.

    Args:
        rows: The normalized name, the version and the ``Requires-Dist`` lines of each.
    """
    needed = {
        normalize(found.group())
        for name, _, lines in rows
        for line in lines
        if not _EXTRA.search(line.partition(";")[2]) and (found := re.match(r"[\w.-]+", line))
        if normalize(found.group()) != name
    }
    return {name: WheelRequest(pin(name, version)) for name, version, _ in sorted(rows) if name not in needed}


def conda_request(text: str) -> tuple[str, CondaRequest, str]:
    """Convert a match specification: its name, the request, and the losses in a manifest.

    Raises:
        ValueError: It is not a match specification.
    """
    address = text.strip().partition("#")[0]
    if "://" in address and (file := CondaFile.parse(address)):
        channel = channel_word(channel_of(address))
        return file.name, CondaRequest(CondaRange(file.version), channel, file.build), ""
    extras = _CONDA_EXTRAS.fullmatch(text.strip())
    spec = parse_spec(_SWAPPED.sub(">=", f"{extras['name']}{extras['rest']}" if extras else text))
    if not CONDA_NAME.fullmatch(spec.name):
        message = f"`{spec.name}` is not a package name"
        raise ValueError(message)
    version, lost = _range(spec)
    rest = [*([f"its version `{spec.version}`"] if lost else []), *([f"its {spec.rest}"] if spec.rest else [])]
    rest += [f"its extras `{extras['extras']}`, which no conda package has"] if extras else []
    channel = channel_word(channel_url(spec.channel, spec.name)) if spec.channel else ""
    return spec.name, CondaRequest(version, channel, spec.build), " and ".join(rest)


def _range(spec: Spec) -> tuple[CondaRange, bool]:
    text = spec.version.strip()
    if text in ("", "*"):
        return CondaRange("*"), False
    if text.startswith("==") and "," not in text and "|" not in text:
        text = text[2:]
    try:
        return CondaRange(text), False
    except ValueError:
        return CondaRange("*"), True


@dataclass(frozen=True, slots=True)
class WheelLine:
    """The request of a PEP 508 line."""

    name: str
    """The normalized name."""
    request: WheelRequest
    """The request."""
    marker: "Marker | None" = None
    """Where it applies; None for everywhere."""


def wheel_request(line: str) -> WheelLine:
    """Convert a PEP 508 line to a request.

    Raises:
        ValueError: The line is invalid.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # late: 34 ms

    try:
        found = Requirement(line)
    except InvalidRequirement as error:
        message = f"`{line}`: {str(error).splitlines()[0]}"
        raise ValueError(message) from error
    plain = (_V.sub("", str(clause)) for clause in found.specifier)
    clauses = sorted(plain, key=lambda clause: (clause[0] == "<", clause))
    request = WheelRequest(_wheel_range(",".join(clauses) or "*"), tuple(sorted(found.extras)))
    return WheelLine(normalize(found.name), request, found.marker)


def _wheel_range(text: str) -> Range:
    return Range(text[2:] if text.startswith("==") and not text.startswith("===") and "," not in text else text)


PLATFORM_MARKERS = {
    "linux-64": 'sys_platform == "linux" and platform_machine == "x86_64"',
    "linux-aarch64": 'sys_platform == "linux" and platform_machine == "aarch64"',
    "win-64": 'sys_platform == "win32" and platform_machine == "AMD64"',
}
"""The marker that holds on one platform only."""

_OF_THE_MACHINE = re.compile(r"\b(platform_release|platform_version|implementation_version)\b")
_OF_PYTHON = re.compile(r"\bpython_(full_)?version\b")


def holds(marker: "Marker | None", platform: str, minor: str, minors: Sequence[str] = ()) -> bool | None:
    """Return whether a marker holds on a platform; None if it depends on unknown values.

    Args:
        marker: The marker; None holds everywhere.
        platform: The platform.
        minor: The Python minor, or an empty string if there may be several.
        minors: The Python minors that there may be; empty for any.
    """
    if marker is None:
        return True
    text = str(marker)
    if _OF_THE_MACHINE.search(text):
        return None
    minors = minors or tuple(f"3.{number}" for number in range(6, 20))
    answers = {
        evaluated(marker, marker_values(platform, one or "3.12"))
        for one in ((minor,) if minor or not _OF_PYTHON.search(text) else minors)
    }
    return answers.pop() if len(answers) == 1 else None


def platforms_of(markers: "list[Marker]") -> tuple[str, ...]:
    """Return the platforms on which one of some markers may hold."""
    return tuple(name for name in PLATFORMS if any(holds(marker, name, "") is not False for marker in markers))


def add_wheel(
    table: dict[str, WheelRequest], name: str, request: WheelRequest, lost: list[str], *, together: bool = False
) -> None:
    """Add a request; of a second one for the same name, any version is accepted unless both are equal.

    Args:
        table: The requests by name.
        name: The normalized name.
        request: The request.
        lost: Receives the losses.
        together: Whether both hold in any case, so that the versions are those that both accept.
    """
    before = table.setdefault(name, request)
    if request.index and before.index not in ("", request.index):
        lost.append(f"`{name}` is requested from several indexes: the first one counts, {before.index}")
    if together and before.version != request.version and (both := _accepted_by(before.version, request.version)):
        request = replace(request, version=both)
    elif before.version != request.version:
        lost.append(f"`{name}` is requested in several versions: any version is accepted now")
        request = replace(request, version=Range("*"))
    table[name] = replace(request, extras=tuple(sorted({*before.extras, *request.extras})))


def _accepted_by(one: Range, other: Range) -> Range | None:
    """Return the versions that two ranges accept; None if they contradict each other."""
    exact = [text for text in (str(one), str(other)) if _EXACT.fullmatch(text)]
    for text in sorted(exact, key=len, reverse=True):  # `0.13.1` accepts `0.13.1+cu116`, and not the other way round
        if text in one and text in other:
            return Range(text)
    if exact and "*" not in (str(one), str(other)):
        return None
    bounds = {bound for text in (str(one), str(other)) for bound in _BOUND.findall(text)}
    tried = {"0", *bounds, *(f"{bound}.1" for bound in bounds)}  # a version at a bound, and one just above it
    if not any(version in one and version in other for version in tried):
        return None
    clauses = dict.fromkeys(clause for text in (str(one), str(other)) for clause in text.split(",") if clause != "*")
    return Range(",".join(clauses) or "*")


def compile_against_torch(table: dict[str, WheelRequest], names: Iterable[str]) -> set[str]:
    """Request packages as compiled against the target's torch; return the editable ones, which can't be."""
    left = set()
    for name in names:
        own = table.get(name)
        if own and own.tree and own.tree.editable:
            left.add(name)
        elif own and not own.file:
            table[name] = replace(own, isolated=False, build=own.tree is None)
    return left


def meet(one: WheelRequest, other: WheelRequest) -> WheelRequest | None:
    """Return the request for what two requests accept, with the extras of both; None if they contradict each other."""
    places = [replace(request, version=Range("*"), extras=()) for request in (one, other)]
    versions = _accepted_by(one.version, other.version)
    free = WheelRequest(Range("*"))
    if versions is None or (places[0] != places[1] and free not in places):
        return None
    place = places[1] if places[0] == free else places[0]
    if place.tree or place.file:
        versions = Range("*")
    return replace(place, version=versions, extras=tuple(sorted({*one.extras, *other.extras})))


def other_channels(channels: Mapping[str, str]) -> dict[str, str]:
    """Return the channel, in a manifest's form, of each package that is not from the most frequent channel.

    Args:
        channels: The URL of each package's channel, by the package's name.
    """
    counts = Counter(channels.values())
    main = max(counts, key=counts.__getitem__, default="")
    return {name: channel_word(url) for name, url in channels.items() if url != main}


def words_of(words: Iterable[str], platforms: Iterable[str]) -> tuple[str, ...]:
    """Return the channels of another tool's file in a manifest's form: conda's ``defaults`` one by one."""
    listed = tuple(words)
    found = (url for platform in platforms for word in listed for url in channel_urls(word, platform))
    return tuple(dict.fromkeys(map(channel_word, found)))


def channel_words(subject: Subject) -> tuple[str, ...]:
    """Return the channels of a lock in its manifest's form; channels of single requests come last."""
    manifest = subject.manifest
    named = [*manifest.channels]
    for platform in subject.platforms:
        named += [request.channel for request in manifest.on(platform).dependencies.values() if request.channel]
    words = {url: word for word in reversed(named) for url in channel_urls(word)}
    if not subject.lock.channels:
        return tuple(dict.fromkeys(named))
    return tuple(dict.fromkeys(words.get(url.rstrip("/"), channel_word(url)) for url in subject.lock.channels))


def wheel_at(url: str, name: str, version: str, sha256: str, size: int | None, python: Iterable[str]) -> Wheel | None:
    """Return the wheel at a URL; None if a lock can't have it: a source archive, a folder, no hash."""
    file = WheelFile.parse(url)
    if file is None or not is_sha256(sha256) or "://" not in url:
        return None
    if file.name != normalize(name) or not same_release(file.version, version):
        return None
    return Wheel(file.name, version, file.file, sha256, size, tuple(python))


def sdist_at(
    url: str, name: str, version: str, sha256: str, size: int | None, python: Iterable[str]
) -> LockedTree | None:
    """Return the source archive at a URL, without the wheels of its build; None if a lock can't have it.

    Without a version, the release is that of the file's name.
    """
    from packaging.utils import InvalidSdistFilename, parse_sdist_filename  # late: few locks have one

    file = file_at(url.partition("#")[0])
    try:
        found, release = parse_sdist_filename(file)
    except InvalidSdistFilename:
        return None
    version = version or str(release)
    if not is_sha256(sha256) or "://" not in url or found != normalize(name) or not same_release(str(release), version):
        return None
    return LockedTree(normalize(name), version, tuple(python), (), file=file, digest=sha256, length=size)


def sdists_of(part: ForeignLock) -> tuple[str, ...]:
    """Return the names of the source archives of a lock, sorted."""
    return tuple(sorted({tree.name for trees in part.trees.values() for tree in trees if tree.file}))


def with_trees(draft: Draft, part: ForeignLock, home: Path, notes: list[str]) -> Draft:
    """Return a draft that requests the source trees of a lock, and permits the build of its source archives."""
    every = {"": draft.wheels, **draft.features}
    tables = {name: {platform: dict(rows) for platform, rows in table.items()} for name, table in every.items()}
    for platform, tree in ((platform, tree) for platform, trees in part.trees.items() for tree in trees):
        for feature in () if tree.file else tree.features or ("",):
            table = tables.setdefault(feature, {}).setdefault(platform, {})
            table[tree.name] = at_commit(tree, table.get(tree.name), home, notes)
    return replace(draft, wheels=tables.pop(""), features=tables, sdists=sdists_of(part))


def at_commit(tree: LockedTree, request: WheelRequest | None, home: Path, notes: list[str]) -> WheelRequest:
    """Return the request for a source tree at its locked commit, or for the folder that is requested."""
    if tree.path and request and request.tree:
        return request
    if tree.commit and not (request and request.tree and request.tree.commit == tree.commit):
        notes.append(f"{tree.name} is requested at its locked commit {tree.commit[:12]}")
    at: dict[str, Any] = {"rev": tree.commit, "branch": "", "tag": ""} if tree.commit else {}
    return WheelRequest(Range("*"), request.extras if request else (), replace(tree.request, base=home, **at))


def not_known(subject: Subject) -> list[str]:
    """Return a sentence about wheels with unknown requirements, or nothing."""
    wheels = [wheel for platform in subject.platforms for wheel in subject.wheels(platform)]
    names = {wheel.name for wheel in wheels if not subject.located[wheel.sha256].known}
    return [f"the index has no requirements of these: {', '.join(sorted(names))}"] if names else []


def left_out(
    subject: Subject,
    *,
    variables: bool = False,
    wheels: bool = True,
    conda: bool = True,
    host: bool = False,
    kept: Collection[str] = (),
) -> list[str]:
    """Return the losses of a target in formats of package managers, one sentence each.

    Args:
        subject: The exported target.
        variables: Whether the format holds variables.
        wheels: Whether the format holds wheels.
        conda: Whether the format holds conda packages.
        host: Whether the format holds the requirements on the host.
        kept: The lines of `constraints` and `overrides` that it holds.
    """
    lost = []
    here = {platform: subject.manifest.on(platform) for platform in subject.platforms}
    archives = sorted({archive.name for platform in here for archive in subject.lock.archives.get(platform, ())})
    archives = archives or sorted({name for manifest in here.values() for name in manifest.archives})
    if archives:
        lost.append(f"[archives]: {', '.join(archives)}")
    if system := sorted({name for manifest in here.values() for name in manifest.system}):
        lost.append(f"[system]: {', '.join(system)}")
    if not variables and (names := sorted({name for manifest in here.values() for name in manifest.environment})):
        lost.append(f"[activation.env]: {', '.join(names)}")
    if local := sorted({wheel.name for platform in here for wheel in subject.wheels(platform) if wheel.path}):
        lost.append(f"wheels in folders are not copied, and stand as paths of this machine: {', '.join(local)}")
    if not wheels and (count := len({w.file for platform in here for w in subject.wheels(platform)})):
        lost.append(f"wheels: {count} are omitted")
    if not conda and (count := len({package.url for name in here for package in subject.lock.conda.get(name, ())})):
        lost.append(f"conda packages: {count} are omitted")
    bounds = {key: [line for line in getattr(subject.manifest, key) if line not in kept] for key in _BOUNDS}
    lost += [f"{key}: {', '.join(lines)}" for key, lines in bounds.items() if lines]
    required = [name for name in ("cuda", "glibc") if name in subject.lock.requirements]
    if not host and required:
        lost.append(f"requirements on the host: {', '.join(required)}")
    if subject.manifest.pytorch:
        lost.append(f"the supported PyTorch revisions: {subject.manifest.pytorch}")
    return lost
