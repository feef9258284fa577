"""Names that packages, files, channels and digests are written with: read and built here alone.

Their forms: packages of Python by PEP 503, wheels by PEP 427, conda packages by conda's package specification
(``NAME-VERSION-BUILD.conda``), channels as conda resolves them (its documentation, "Channels").
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from packaging.tags import Tag

__all__ = [
    "CONDA_NAME",
    "METADATA",
    "CondaFile",
    "Digest",
    "WheelFile",
    "channel_of",
    "channel_url",
    "channel_urls",
    "channel_word",
    "dist_info",
    "dist_infos",
    "file_at",
    "is_channel",
    "is_sha256",
    "normalize",
    "pure_wheel",
]

CONDA_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?")
"""The name of a conda package."""

_HOME = "https://conda.anaconda.org/"
"""Where a channel lies that is written as a bare name."""

_ANACONDA = "https://repo.anaconda.com/"
_DEFAULTS = tuple(f"{_ANACONDA}pkgs/{name}" for name in ("main", "r", "msys2"))
"""What conda calls ``defaults``, in its order; the last one is for Windows alone."""

_MAIN, _R, _MSYS2 = _DEFAULTS
_OF_R = ("r-", "_r-", "mro-", "rstudio")
_OF_MSYS2 = ("m2-", "m2w64-", "msys2-")
_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@%~-]*")
_CONDA = re.compile(r"(?P<name>[^/]+)-(?P<version>[^-/]+)-(?P<build>[^-/]+)(?P<ending>\.conda|\.tar\.bz2|\.json)")
_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.]*)-(?P<version>[A-Za-z0-9_.+!]+)(?:-(?P<build>\d[A-Za-z0-9_.]*))?"
    r"-(?P<tags>[A-Za-z0-9_.]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+)\.whl"
)
_LENGTHS = {"sha256": 64, "md5": 32}


def normalize(name: str) -> str:
    """Return a package name as PyPI compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def file_at(url: str) -> str:
    """Return the name of the file at a URL; empty where the URL can't be read."""
    try:
        return unquote(urlsplit(url).path.rsplit("/", 1)[-1])
    except ValueError:
        return ""


# Channels


def is_channel(word: str) -> bool:
    """Tell whether a text can name a channel: a name, a label of one (``NAME/label/LABEL``), or a URL."""
    return bool(_CHANNEL.fullmatch(word)) and ".." not in word and ("://" in word or ":" not in word)


def channel_urls(word: str, platform: str = "") -> tuple[str, ...]:
    """Return the URLs of what a word names: a channel by name, label or URL, or conda's ``defaults``: several.

    Args:
        word: The word.
        platform: The platform that is solved for; all when empty. Anaconda's msys2 has nothing for others than Windows.
    """
    found = _DEFAULTS if word == "defaults" else (channel_url(word),)
    windows = not platform or platform.startswith("win")
    return tuple(url for url in found if windows or url != _MSYS2)


def channel_url(word: str, package: str = "") -> str:
    """Return the URL of the channel that a word names.

    Args:
        word: A channel by name, label or URL, or ``defaults``.
        package: Which package it is asked for, where it is: of ``defaults`` the one that has it. Anaconda has R's
            packages and those of MSYS2 in channels of their own; their names show it.
    """
    if word == "defaults":
        return _R if package.startswith(_OF_R) else _MSYS2 if package.startswith(_OF_MSYS2) else _MAIN
    if "://" in word:
        return word.rstrip("/")
    return f"{_ANACONDA if word.startswith('pkgs/') else _HOME}{word.strip('/')}"


def channel_word(word: str) -> str:
    """Return the channel of a word or a URL as people write it: by its bare name where that means the same."""
    return channel_url(word).removeprefix(_HOME)


def channel_of(url: str) -> str:
    """Return the URL of the channel that a conda package is of, by the package's URL."""
    return url.rsplit("/", 2)[0]


# Files of packages


@dataclass(frozen=True, slots=True)
class CondaFile:
    """The name of a conda package's file, or of the note that is left of it in ``conda-meta``.

    Attributes:
        name: The package's name.
        version: Its version.
        build: Its build string.
        ending: ``.conda``, ``.tar.bz2``, or ``.json`` for a note.
    """

    name: str
    version: str
    build: str
    ending: str = ".conda"

    @classmethod
    def parse(cls, file: str) -> Self | None:
        """Read a file name, or the end of a URL; None when it is not the name of such a file."""
        match = _CONDA.fullmatch(unquote(file.rpartition("/")[2]))
        return cls(**match.groupdict()) if match else None

    @property
    def stem(self) -> str:
        """The file's name without its ending, which is also the folder of the package in a cache."""
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def note(self) -> str:
        """The file in ``conda-meta`` that describes the installed package."""
        return f"{self.stem}.json"

    def __str__(self) -> str:
        return f"{self.stem}{self.ending}"


@dataclass(frozen=True, slots=True)
class WheelFile:
    """The name of a wheel.

    Attributes:
        name: The package's name, normalized.
        version: Its version, as written.
        build: Its build number; empty in most.
        tags: For which Python, ABI and platform it is, as written, such as ``py3-none-any``.
        file: The name itself.
    """

    name: str
    version: str
    build: str
    tags: str
    file: str

    @classmethod
    def parse(cls, file: str) -> Self | None:
        """Read a file name, or the end of a URL; None when it is not the name of a wheel.

        The same as `packaging.utils.parse_wheel_filename` takes (a test holds that), whose import would cost each
        command that reads a lock 25 ms.
        """
        name = file_at(file) if "/" in file else file
        match = _WHEEL.fullmatch(name)
        if match is None or "__" in match["name"]:
            return None
        return cls(normalize(match["name"]), match["version"], match["build"] or "", match["tags"], name)

    def all_tags(self) -> "frozenset[Tag]":
        """Return every tag that the name stands for."""
        from packaging.tags import parse_tag

        return parse_tag(self.tags)


def pure_wheel(name: str, version: str) -> str:
    """Return the file name of a wheel for every platform and Python 3."""
    return f"{name}-{version}-py3-none-any.whl"


_INFO = ".dist-info"
METADATA = f"{_INFO}/METADATA"
"""How the name of the file ends in which a wheel describes itself."""


def dist_infos(site: Path) -> list[Path]:
    """Return the folders of a ``site-packages`` that installed wheels have left their records in, sorted."""
    return sorted(site.glob(f"*{_INFO}"))


def dist_info(folder: Path) -> tuple[str, str]:
    """Return the normalized name and the version in the name of a ``.dist-info`` folder."""
    name, _, version = folder.name.removesuffix(_INFO).partition("-")
    return normalize(name), version


# Digests


def is_sha256(text: str) -> bool:
    """Tell whether a text is a sha256 as tenv writes it: 64 hex digits in small letters."""
    return Digest("sha256", text).is_valid()


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest of a file's bytes.

    Attributes:
        kind: The algorithm, by hashlib's name.
        value: The digest in hex, in small letters.
    """

    kind: str
    value: str

    @classmethod
    def best(cls, sha256: str, md5: str = "") -> Self | None:
        """Return the better one of two that may be empty; None when both are."""
        return cls("sha256", sha256) if sha256 else cls("md5", md5) if md5 else None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``sha256:12ab…``; what is no digest becomes one that no file has."""
        kind, _, value = text.partition(":")
        return cls(kind, value)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read a digest as people and lists write it, ``sha256:``, ``sha256=`` or ``md5:`` before it or nothing."""
        kind, sign, value = text.partition(":" if ":" in text else "=")
        kinds = {length: name for name, length in _LENGTHS.items()}
        found = cls(kind, value.lower()) if sign else cls(kinds.get(len(text), ""), text.lower())
        return found if found.is_valid() else None

    @property
    def length(self) -> int:
        """How many hex digits one of its kind has; 0 where there is no such kind."""
        return _LENGTHS.get(self.kind, 0)

    def is_valid(self) -> bool:
        """Tell whether it has the form of its kind: 64 hex digits for sha256, 32 for md5."""
        return len(self.value) == self.length > 0 and bool(re.fullmatch(r"[0-9a-f]+", self.value))

    def hasher(self) -> Any:
        """Return what computes a digest of this kind; raises ValueError when there is no such kind."""
        import hashlib  # late: OpenSSL is loaded with it

        return hashlib.new(self.kind, usedforsecurity=False)

    def is_of(self, path: Path) -> bool:
        """Tell whether a file has this digest.

        Raises:
            OSError: The file can't be read.
            ValueError: There is no such kind of digest.
        """
        import hashlib  # late: OpenSSL is loaded with it

        with path.open("rb") as file:
            return hashlib.file_digest(file, self.hasher).hexdigest() == self.value

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"
