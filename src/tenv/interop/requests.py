"""Derive requests from a lock: ranges as a user would write them, and the packages that were requested."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tenv.core.dataclass import dataclass
from tenv.core.names import CONDA_NAME, channel_url, channel_word, normalize
from tenv.core.versions import CondaRange, Range
from tenv.rattler_api.lockfile import Spec, parse_spec
from tenv.targets.manifest import CondaRequest, WheelRequest

if TYPE_CHECKING:
    from packaging.markers import Marker

__all__ = ["WheelLine", "asked_as", "asked_wheels", "conda_request", "pin", "split", "top_level", "wheel_request"]

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_BY_MINOR = ("python", "cuda-version", "cuda-toolkit", "cudatoolkit", "pytorch-cuda")
_DOTTED = re.compile(r"\d{1,18}(\.\d{1,18})*")  # Python reads no number of over 4,300 digits
_EXTRA = re.compile(r"\bextra\b")
_DECIDING = ("python", "cuda-version")
_COMPILER = re.compile(r"(gcc|gxx|clangxx)(_.*)?|compilers|(c|cxx)-compiler")


def split(per_platform: Mapping[str, Mapping[str, T]]) -> tuple[dict[str, T], dict[str, dict[str, T]]]:
    """Return the requests that all platforms share, and those of each platform."""
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
    """Convert a match specification: its name, the request, and what a manifest can't express.

    Raises:
        ValueError: It is not a match specification.
    """
    spec = parse_spec(text)
    if not CONDA_NAME.fullmatch(spec.name):
        message = f"`{spec.name}` is not a package name"
        raise ValueError(message)
    version, lost = _range(spec)
    rest = [*([f"its version `{spec.version}`"] if lost else []), *([f"its {spec.rest}"] if spec.rest else [])]
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
    """The request of a PEP 508 line.

    Attributes:
        name: The normalized name.
        request: The request.
        marker: Where it applies; None for everywhere.
    """

    name: str
    request: WheelRequest
    marker: "Marker | None" = None


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
    clauses = sorted((str(clause) for clause in found.specifier), key=lambda clause: (clause[0] == "<", clause))
    request = WheelRequest(_wheel_range(",".join(clauses) or "*"), tuple(sorted(found.extras)))
    return WheelLine(normalize(found.name), request, found.marker)


def _wheel_range(text: str) -> Range:
    return Range(text[2:] if text.startswith("==") and not text.startswith("===") and "," not in text else text)
