"""What a channel says of a package, as plain values."""

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from tenv.core.names import CondaFile, file_at
from tenv.core.untrusted import conda_file_fault

if TYPE_CHECKING:
    from rattler import MatchSpec, PackageRecord, RepoDataRecord

__all__ = ["Matcher", "Record", "fits", "spec_fault"]


@dataclass(frozen=True, slots=True)
class Record:
    """A package as its channel describes it.

    Attributes:
        name: Its name.
        version: Its version as written.
        build: Its build string.
        subdir: The part of the channel that it lies in.
        channel: The channel's URL, without a slash at its end.
        url: The package's canonical URL.
        sha256: The digest of its bytes in hex, or an empty string.
        md5: Its MD5 in hex, or an empty string.
        size: Its bytes; None if the channel does not say.
        depends: What it needs.
        constrains: What it does not go together with, unless it matches.
        raw: The record itself, for rattler.
    """

    name: str
    version: str
    build: str
    subdir: str
    channel: str
    url: str
    sha256: str
    md5: str
    size: int | None
    depends: tuple[str, ...]
    constrains: tuple[str, ...]
    raw: "RepoDataRecord" = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: "RepoDataRecord") -> "Record":
        """Return the plain values of a record."""
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
        """Return what is wrong with the record itself, or an empty string.

        Names, versions and build strings become file names on the machine that installs the package, so that a channel
        must not put a path into one.
        """
        file = file_at(self.url)
        expected = CondaFile(self.name, self.version, self.build)
        if fault := conda_file_fault(self.name, self.version, self.build):
            return f"{fault} ({file})"
        if file not in {str(expected), str(replace(expected, ending=".tar.bz2"))}:
            return f"`{file}` is not the file name of {self.name} {self.version} {self.build}"
        if self.subdir not in (platform, "noarch"):
            return f"{file} says that it is for `{self.subdir}`, not for {platform}"
        if not self.sha256 and not self.md5:
            return f"{file} comes without a sha256 and without an MD5"
        return ""


def spec_fault(spec: str) -> str:
    """Return why conda can't read a match specification, or an empty string."""
    from rattler import MatchSpec  # late: 40 ms and 25 MB
    from rattler.exceptions import InvalidMatchSpecError

    try:
        MatchSpec(spec, strict=True)
    except InvalidMatchSpecError as error:
        return " ".join(str(error).split())
    return ""


def fits(spec: str, record: Record) -> bool:
    """Return whether a package is what another one asks for, in whatever form of specification channels have it."""
    from rattler import MatchSpec  # late: 40 ms and 25 MB
    from rattler.exceptions import InvalidMatchSpecError

    try:
        return MatchSpec(spec).matches(record.raw)
    except InvalidMatchSpecError:
        return True  # rattler did not mind it


class Named(Protocol):
    """A package, as far as specifications ask."""

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
        """The part of the channel that it lies in."""


class Matcher:
    """Matches packages of a lock with what is asked of them; a specification that can't be read matches nothing."""

    def __init__(self) -> None:
        self._specs: dict[str, MatchSpec | None] = {}
        self._found: dict[tuple[str, str, str], PackageRecord] = {}

    def name(self, spec: str) -> str:
        """Return the name of the package that a specification is about."""
        read = self._spec(spec)
        return str(read.name.normalized) if read is not None and read.name is not None else spec.split(maxsplit=1)[0]

    def satisfies(self, spec: str, package: "Named", *, channel: str = "") -> bool:
        """Return whether a package is what a specification asks for.

        Args:
            spec: The specification.
            package: The package.
            channel: The URL of its channel; where it is given, the specification may ask for one.
        """
        asked = self._spec(spec)
        if asked is None:
            return False
        if channel and asked.channel is not None and asked.channel.base_url.rstrip("/") != channel.rstrip("/"):
            return False
        return asked.matches(self._record(package.name, package.version, package.build, package.subdir))

    def has_version(self, spec: str, name: str, version: str) -> bool:
        """Return whether a virtual package of a version is what a specification asks for."""
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
            end = build.rpartition("_")[2]
            number = int(end) if end.isascii() and end.isdigit() else 0
            self._found[key] = PackageRecord(
                PackageName(name), VersionWithSource(version), BuildString(build), number, subdir
            )
        return self._found[key]
