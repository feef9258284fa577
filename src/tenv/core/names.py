"""Parse and build the names of packages, files, channels and digests.

Their forms: packages of Python by PEP 503, wheels by PEP 427, conda packages by conda's package specification
(``NAME-VERSION-BUILD.conda``), channels as conda resolves them (its documentation, "Channels").
"""

import re
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from tenv.core.dataclass import dataclass

if TYPE_CHECKING:
    from packaging.tags import Tag

CONDA_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?")
"""The name of a conda package."""

_HOME = "https://conda.anaconda.org/"
"""The base URL of channels with a bare name."""

_ANACONDA = "https://repo.anaconda.com/"
_DEFAULTS = tuple(f"{_ANACONDA}pkgs/{name}" for name in ("main", "r", "msys2"))
"""conda's ``defaults`` in its order; the last one is only for Windows."""

_MAIN, _R, _MSYS2 = _DEFAULTS
_OF_R = ("r-", "_r-", "mro-", "rstudio")
_OF_MSYS2 = ("m2-", "m2w64-", "msys2-")
CHANNEL_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_./:@%~-]*"
"""The word for a channel."""

_CONDA = r"(?P<name>[^/]+)-(?P<version>[^-/]+)-(?P<build>[^-/]+)(?P<ending>\.conda|\.tar\.bz2|\.json)"
_WHEEL = (
    r"(?a)(?P<name>[A-Za-z0-9][A-Za-z0-9_.]*)-(?P<version>[A-Za-z0-9_.+!]+)(?:-(?P<build>\d[A-Za-z0-9_.]*))?"
    r"-(?P<tags>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*-\w+(?:\.\w+)*-\w+(?:\.\w+)*)\.whl"
)
_LONGEST = 255
"""The letters of a file's name that file systems take."""
_MOST_TAGS = 1 << 10
"""The tags that a name may stand for, the product of its three lists; real ones have up to some dozens."""
SHA256_PATTERN = r"[0-9a-f]{64}"
"""A sha256 in tenv's form."""

_LENGTHS = {"sha256": 64, "md5": 32}
_ROOM = 1 << 18
"""The bytes of a file that are read at once."""


@lru_cache(maxsize=4096)  # the packages of a manifest are those of many
def normalize(name: str) -> str:
    """Return a normalized package name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def file_at(url: str) -> str:
    """Return the file name of a URL; empty if the URL is invalid."""
    try:
        return unquote(urlsplit(url).path.rsplit("/", 1)[-1])
    except ValueError:
        return ""


# Channels


def is_channel(word: str) -> bool:
    """Return whether a text can name a channel: a name, a label (``NAME/label/LABEL``), or a URL."""
    return bool(re.fullmatch(CHANNEL_PATTERN, word)) and ".." not in word and ("://" in word or ":" not in word)


def channel_urls(word: str, platform: str = "") -> tuple[str, ...]:
    """Return the URLs of a channel by name, label or URL; conda's ``defaults`` has several.

    Args:
        word: The word.
        platform: The platform to solve for; empty for all. Anaconda's msys2 is only for Windows.
    """
    found = _DEFAULTS if word == "defaults" else (channel_url(word),)
    windows = not platform or platform.startswith("win")
    return tuple(url for url in found if windows or url != _MSYS2)


def channel_url(word: str, package: str = "") -> str:
    """Return the URL of the channel that a word names.

    Args:
        word: A channel by name, label or URL, or ``defaults``.
        package: The requested package, which selects one channel of ``defaults``. Anaconda has separate channels for
            packages of R and MSYS2, whose names show it.
    """
    if word == "defaults":
        return _R if package.startswith(_OF_R) else _MSYS2 if package.startswith(_OF_MSYS2) else _MAIN
    if "://" in word:
        return word.rstrip("/")
    return f"{_ANACONDA if word.startswith('pkgs/') else _HOME}{word.strip('/')}"


def channel_word(word: str) -> str:
    """Return the shortest name of a channel: its bare name if that means the same URL."""
    return channel_url(word).removeprefix(_HOME)


def conda_address(url: str) -> str:
    """Return the address of a conda package with a plain file name: conda-lock writes the `!` of an epoch as `%21`."""
    home, _, file = url.rpartition("/")
    return f"{home}/{unquote(file)}"


def channel_of(url: str) -> str:
    """Return the URL of a conda package's channel from the package's URL."""
    return url.rsplit("/", 2)[0]


# Files of packages


@dataclass(frozen=True, slots=True)
class CondaFile:
    """The file name of a conda package, or of its record in ``conda-meta``."""

    name: str
    """The package's name."""
    version: str
    """Its version."""
    build: str
    """Its build string."""
    ending: str = ".conda"
    """``.conda``, ``.tar.bz2``, or ``.json`` for a record."""

    @classmethod
    def parse(cls, file: str) -> Self | None:
        """Parse a file name or the end of a URL; None if it is not such a name."""
        match = re.fullmatch(_CONDA, unquote(file.rpartition("/")[2]))
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
    """The name of a wheel."""

    name: str
    """The package's name, normalized."""
    version: str
    """Its version, as written."""
    build: str
    """Its build number; empty in most."""
    tags: str
    """Its Python, ABI and platform tags as written, such as ``py3-none-any``."""
    file: str
    """The name itself."""

    @classmethod
    def parse(cls, file: str) -> Self | None:
        """Parse a file name or the end of a URL; None if it is not the name of a wheel.

        It accepts the same names as `packaging.utils.parse_wheel_filename` (tested), whose import costs each command
        that reads a lock 25 ms, but none that stands for more tags than memory holds.
        """
        name = file_at(file) if "/" in file else file
        match = re.fullmatch(_WHEEL, name)
        if match is None or "__" in match["name"] or len(name) > _LONGEST:
            return None
        if prod(part.count(".") + 1 for part in match["tags"].split("-")) > _MOST_TAGS:
            return None
        return cls(normalize(match["name"]), match["version"], match["build"] or "", match["tags"], name)

    def all_tags(self) -> "frozenset[Tag]":
        """Return all tags of the name."""
        from packaging.tags import parse_tag

        return parse_tag(self.tags)


def entry_in_cache(file: str) -> str:
    """Return the name of a wheel's entry in uv's cache, below its package: its file name without name and ending."""
    return file.removesuffix(_WHEEL_ENDING).partition("-")[2]


def pure_wheel(name: str, version: str) -> str:
    """Return the file name of a wheel for every platform and Python 3."""
    return f"{name}-{version}-py3-none-any.whl"


_INFO = ".dist-info"
_WHEEL_ENDING = ".whl"
METADATA = f"{_INFO}/METADATA"
"""The end of the name of a wheel's metadata file."""


def dist_infos(site: Path) -> list[Path]:
    """Return the sorted ``.dist-info`` folders of a ``site-packages``."""
    return sorted(site.glob(f"*{_INFO}"))


def is_dist_info(name: str) -> bool:
    """Return whether a folder is named as the metadata folder of a wheel."""
    return name.endswith(_INFO)


def infos_of(name: str) -> str:
    """Return the pattern of the metadata folders of a package in a ``site-packages``."""
    return f"{name}-*{_INFO}"


def is_wheel(name: str) -> bool:
    """Return whether a file is named as a wheel."""
    return name.endswith(_WHEEL_ENDING)


def platform_tags(wheel: str) -> tuple[str, ...]:
    """Return the platform tags in the name of a wheel, as written."""
    return tuple(wheel.removesuffix(_WHEEL_ENDING).rpartition("-")[2].split("."))


def dist_info(folder: Path) -> tuple[str, str]:
    """Return the normalized name and the version in the name of a ``.dist-info`` folder."""
    name, _, version = folder.name.removesuffix(_INFO).partition("-")
    return normalize(name), version


def info_of(name: str, version: str) -> str:
    """Return the name of the ``.dist-info`` folder in a wheel."""
    return f"{name.replace('-', '_')}-{version}{_INFO}"


# Digests


def is_sha256(text: str) -> bool:
    """Return whether a text is a sha256 in tenv's form: 64 lower-case hex digits."""
    return Digest("sha256", text).is_valid()


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest of a file's bytes."""

    kind: str
    """The algorithm, by hashlib's name."""
    value: str
    """The digest in lower-case hex."""

    @classmethod
    def best(cls, sha256: str, md5: str = "") -> Self | None:
        """Return the stronger one of two that may be empty; None if both are."""
        return cls("sha256", sha256) if sha256 else cls("md5", md5) if md5 else None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``sha256:12ab…``; an invalid text becomes a digest that no file has."""
        kind, _, value = text.partition(":")
        return cls(kind, value)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse a digest with or without a prefix ``sha256:``, ``sha256=`` or ``md5:``."""
        kind, sign, value = text.partition(":" if ":" in text else "=")
        kinds = {length: name for name, length in _LENGTHS.items()}
        found = cls(kind, value.lower()) if sign else cls(kinds.get(len(text), ""), text.lower())
        return found if found.is_valid() else None

    @property
    def length(self) -> int:
        """The number of hex digits of its kind; 0 for an unknown kind."""
        return _LENGTHS.get(self.kind, 0)

    def is_valid(self) -> bool:
        """Return whether it has the form of its kind: 64 hex digits for sha256, 32 for md5."""
        return len(self.value) == self.length > 0 and bool(re.fullmatch(r"[0-9a-f]+", self.value))

    def hasher(self) -> Any:
        """Return the hash object of this kind; raises ValueError for an unknown kind."""
        import hashlib  # late: OpenSSL is loaded with it

        if self.kind == "sha256":
            return hashlib.sha256(usedforsecurity=False)
        # Not each name that `hashlib.new` takes: it raises a TypeError for some, and those of shake have no one length.
        if self.kind not in hashlib.algorithms_guaranteed or self.kind.startswith("shake"):
            raise ValueError(f"unknown kind of digest: {self.kind!r}")
        return hashlib.new(self.kind, usedforsecurity=False)

    def is_of(self, path: "Path | str", room: memoryview | None = None) -> bool:
        """Return whether a file has this digest.

        Args:
            path: The file.
            room: Where its bytes are read to; None for a new place.

        Raises:
            OSError: The file is unreadable.
            ValueError: The kind of digest is unknown.
        """
        from tenv.core.files import hash_regular  # late: only here

        return hash_regular(path, self.hasher(), room or memoryview(bytearray(_ROOM))) == self.value

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"
