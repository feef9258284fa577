"""A channel's record of a package, as plain values."""

import json
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol

from tenv.core.dataclass import dataclass
from tenv.core.names import CondaFile, file_at
from tenv.core.untrusted import conda_file_fault, whole_number

if TYPE_CHECKING:
    from rattler import MatchSpec, PackageRecord, RepoDataRecord


@dataclass(frozen=True, slots=True)
class Record:
    """A package in its channel's description."""

    name: str
    """Its name."""
    version: str
    """Its version as written."""
    build: str
    """Its build string."""
    subdir: str
    """Its subfolder of the channel."""
    channel: str
    """The channel's URL, without a trailing slash."""
    url: str
    """The package's canonical URL."""
    sha256: str
    """The digest of its bytes in hex, or an empty string."""
    md5: str
    """Its MD5 in hex, or an empty string."""
    size: int | None
    """Its bytes; None if the channel does not have it."""
    depends: tuple[str, ...]
    """Its dependencies."""
    constrains: tuple[str, ...]
    """Specifications that other packages must match if they are installed."""
    raw: "RepoDataRecord" = field(repr=False, compare=False)
    """The record itself, for rattler."""

    @classmethod
    def of(cls, raw: "RepoDataRecord") -> "Record":
        """Return a record's plain values."""
        data: dict[str, Any] = json.loads(raw.to_json())
        return cls(
            name=data["name"],
            version=data["version"],
            build=data["build"],
            subdir=data["subdir"],
            channel=(data.get("channel") or "").rstrip("/"),
            url=data["url"],
            sha256=data.get("sha256") or "",
            md5=data.get("md5") or "",
            size=data.get("size"),
            depends=tuple(data.get("depends") or ()),
            constrains=tuple(data.get("constrains") or ()),
            raw=raw,
        )

    def fault(self, platform: str) -> str:
        """Return the fault of the record itself, or an empty string.

        Names, versions and build strings become file names during the installation, so they must not contain a path.
        """
        file = file_at(self.url)
        expected = CondaFile(self.name, self.version, self.build)
        if fault := conda_file_fault(self.name, self.version, self.build):
            return f"{fault} ({file})"
        if file not in {str(expected), str(replace(expected, ending=".tar.bz2"))}:
            return f"`{file}` is not the file name of {self.name} {self.version} {self.build}"
        if self.subdir not in (platform, "noarch"):
            return f"{file} is for `{self.subdir}`, not for {platform}"
        if not self.sha256 and not self.md5:
            return f"{file} has neither a sha256 nor an MD5"
        return ""


def spec_fault(spec: str) -> str:
    """Return why conda can't parse a match specification, or an empty string."""
    from rattler import MatchSpec  # late: 40 ms and 25 MB
    from rattler.exceptions import InvalidMatchSpecError

    try:
        MatchSpec(spec, strict=True)
    except InvalidMatchSpecError as error:
        return " ".join(str(error).split())
    return ""


def fits(spec: str, record: Record) -> bool:
    """Return whether a package satisfies a dependency in any form of specification that channels have."""
    from rattler import MatchSpec  # late: 40 ms and 25 MB
    from rattler.exceptions import InvalidMatchSpecError

    try:
        return MatchSpec(spec).matches(record.raw)
    except InvalidMatchSpecError:
        return True  # rattler accepted it


class Named(Protocol):
    """The values of a package that specifications use."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """Its version."""

    @property
    def build(self) -> str:
        """Its build string."""

    @property
    def subdir(self) -> str:
        """Its subfolder of the channel."""


class Matcher:
    """Matches packages of a lock with specifications; an invalid specification matches nothing."""

    def __init__(self) -> None:
        self._specs: dict[str, MatchSpec | None] = {}
        self._found: dict[tuple[str, str, str], PackageRecord] = {}

    def name(self, spec: str) -> str:
        """Return the package name of a specification; that of a blank one, which a hostile lock may have, is empty."""
        read = self._spec(spec)
        if read is not None and read.name is not None:
            return str(read.name.normalized)
        return next(iter(spec.split(maxsplit=1)), "")

    def satisfies(self, spec: str, package: "Named", *, channel: str = "") -> bool:
        """Return whether a package satisfies a specification.

        Args:
            spec: The specification.
            package: The package.
            channel: The URL of its channel; if given, the specification may require one.
        """
        asked = self._spec(spec)
        if asked is None:
            return False
        if channel and asked.channel is not None and asked.channel.base_url.rstrip("/") != channel.rstrip("/"):
            return False
        return asked.matches(self._record(package.name, package.version, package.build, package.subdir))

    def has_version(self, spec: str, name: str, version: str) -> bool:
        """Return whether a virtual package of a version satisfies a specification."""
        asked = self._spec(spec)
        return asked is not None and asked.matches(self._record(name, version, "0", "noarch"))

    def _spec(self, spec: str) -> "MatchSpec | None":
        from rattler import MatchSpec  # late: 40 ms and 25 MB
        from rattler.exceptions import InvalidMatchSpecError

        if spec not in self._specs:
            try:
                self._specs[spec] = MatchSpec(spec)
            except InvalidMatchSpecError:
                self._specs[spec] = None
        return self._specs[spec]

    def _record(self, name: str, version: str, build: str, subdir: str) -> "PackageRecord":
        from rattler import BuildString, PackageName, PackageRecord, VersionWithSource

        key = (name, version, build)
        if key not in self._found:
            number = whole_number(build.rpartition("_")[2]) or 0
            self._found[key] = PackageRecord(
                PackageName(name), VersionWithSource(version), BuildString(build), number, subdir
            )
        return self._found[key]
