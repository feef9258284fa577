"""What a channel says of a package, as plain values."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tenv.core.names import CondaFile, file_at

if TYPE_CHECKING:
    from rattler import RepoDataRecord

__all__ = ["Record", "fits", "satisfies", "spec_fault"]

_NAME = re.compile(r"[a-z0-9_.-]+")
_VERSION = re.compile(r"[A-Za-z0-9_.+!]+")
_BUILD = re.compile(r"[A-Za-z0-9_.+]*")


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
        size: Its bytes; None when the channel does not say.
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
        for what, text, allowed in (
            ("name", self.name, _NAME),
            ("version", self.version, _VERSION),
            ("build string", self.build, _BUILD),
        ):
            if not allowed.fullmatch(text) or ".." in text:
                return f"`{text}` is not a {what} that a package can have ({file})"
        if file not in {str(expected), str(replace(expected, ending=".tar.bz2"))}:
            return f"`{file}` is not the file name of {self.name} {self.version} {self.build}"
        if self.subdir not in (platform, "noarch"):
            return f"{file} says that it is for `{self.subdir}`, not for {platform}"
        if not self.sha256 and not self.md5:
            return f"{file} comes without a sha256 and without an MD5"
        return ""


def spec_fault(spec: str) -> str:
    """Return why conda can't read a match specification, or an empty string."""
    from rattler import MatchSpec  # noqa: PLC0415 (late: 40 ms and 25 MB)
    from rattler.exceptions import InvalidMatchSpecError  # noqa: PLC0415

    try:
        MatchSpec(spec, strict=True)
    except InvalidMatchSpecError as error:
        return " ".join(str(error).split())
    return ""


def fits(spec: str, record: Record) -> bool:
    """Tell whether a package is what another one asks for, in whatever form of specification channels have it."""
    from rattler import MatchSpec  # noqa: PLC0415 (late: 40 ms and 25 MB)
    from rattler.exceptions import InvalidMatchSpecError  # noqa: PLC0415

    try:
        return MatchSpec(spec).matches(record.raw)
    except InvalidMatchSpecError:
        return True  # rattler did not mind it


def satisfies(spec: str, *, name: str, version: str, build: str, channel: str, subdir: str) -> bool:
    """Tell whether a package with these values is what a match specification asks for.

    A specification that can't be read is answered by no package.
    """
    from rattler import (  # noqa: PLC0415 (late: 40 ms and 25 MB)
        BuildString,
        MatchSpec,
        PackageName,
        PackageRecord,
        VersionWithSource,
    )
    from rattler.exceptions import InvalidMatchSpecError  # noqa: PLC0415

    try:
        asked = MatchSpec(spec, strict=True)
    except InvalidMatchSpecError:
        return False
    if asked.channel is not None and asked.channel.base_url.rstrip("/") != channel.rstrip("/"):
        return False
    found = PackageRecord(PackageName(name), VersionWithSource(version), BuildString(build), 0, subdir)
    return asked.matches(found)
