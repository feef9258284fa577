"""Locks: every file of an environment, by name and sha256, for every platform of its manifest.

What was chosen, as values; `tenv.locks.lock_file` reads and writes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tenv import __version__
from tenv.core.files import digest_bytes
from tenv.core.names import file_at
from tenv.core.versions import Version
from tenv.targets.layers import with_features
from tenv.targets.manifest import Manifest
from tenv.targets.sections import SECTIONS

__all__ = ["Archive", "CondaPackage", "Lock", "LockedFile", "OtherFile", "Wheel", "from_manifest"]


class LockedFile(Protocol):
    """What every file of a lock has, whichever source it is of."""

    @property
    def name(self) -> str:
        """Its name, by which it is asked for."""

    @property
    def version(self) -> str:
        """Its version, or an empty string."""

    @property
    def sha256(self) -> str:
        """The digest of its bytes in hex."""

    @property
    def size(self) -> int | None:
        """Its bytes; None when nobody said."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of a lock.

    Attributes:
        name: The normalized name.
        version: The version.
        file: The file name; no host, since any index that serves the same bytes will do.
        sha256: The digest of its bytes in hex.
        size: Its bytes; None when the index did not say.
        python: The Python minors that take it, lowest first.
        requires: What it requires, as its metadata says; None where that is not known.
        features: The features of the target that bring it; empty for a part of the target itself.
    """

    name: str
    version: str
    file: str
    sha256: str
    size: int | None
    python: tuple[str, ...]
    requires: tuple[str, ...] | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CondaPackage:
    """One conda package of a lock.

    Attributes:
        name: Its name.
        version: Its version, as conda writes it.
        build: Its build string.
        subdir: The part of the channel that it lies in: a platform, or ``noarch``.
        channel: The channel's URL, such as ``https://conda.anaconda.org/conda-forge``.
        url: The package's canonical URL, whatever mirror served it.
        sha256: The digest of its bytes in hex; empty when the channel has only an MD5.
        md5: Its MD5 in hex, or an empty string.
        size: Its bytes; None when the channel does not say.
        depends: What it needs, each as a match specification.
        constrains: What it does not go together with, unless it matches.
        features: The features of the target that bring it; empty for a part of the target itself.
    """

    name: str
    version: str
    build: str
    subdir: str
    channel: str
    url: str
    sha256: str
    md5: str = ""
    size: int | None = None
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file name at the end of the URL."""
        return file_at(self.url)


@dataclass(frozen=True, slots=True)
class Archive:
    """One file of a lock from outside any package manager.

    Attributes:
        name: Its name in ``[archives]``.
        version: Its version; empty for a file that is named by its URL alone.
        url: Its canonical URL.
        sha256: The digest of its bytes in hex.
        size: Its bytes; None when nobody said.
        kind: How it is packed: ``tar.gz``, ``tar.xz``, ``tar.bz2``, ``zip``, ``7z`` or ``conda``.
        strip: How many leading folders of its names are dropped.
        to: The folder in the prefix that it goes to; empty for the prefix itself.
        trust: Where the digest is from: ``manifest``, ``facts``, ``redist`` (the maker's list), or ``first-use`` when
            it is what was seen at the first download.
        licence: The file in it that holds its licence, or an empty string.
        release: The release of the product that it is a component of (CUDA 12.4.1), or an empty string.
        part_of: The name in ``[archives]`` that brought it, when its own is that of a component.
        features: The features of the target that bring it; empty for a part of the target itself.
    """

    name: str
    version: str
    url: str
    sha256: str
    size: int | None
    kind: str
    strip: int = 0
    to: str = ""
    trust: str = "manifest"
    licence: str = ""
    release: str = ""
    part_of: str = ""
    features: tuple[str, ...] = ()

    def answers_for(self, name: str) -> bool:
        """Return whether this archive is locked for a name in ``[archives]``."""
        return name == (self.part_of or self.name)


@dataclass(frozen=True, slots=True)
class OtherFile:
    """One file of a lock of a source whose files have no type of their own.

    Attributes:
        name: Its name.
        version: Its version, or an empty string.
        sha256: The digest of its bytes in hex.
        size: Its bytes; None when nobody said.
        values: What else the source has to know of it, by the keys of its row in `tenv.targets.sections`.
    """

    name: str
    version: str
    sha256: str
    size: int | None
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lock:
    """What was chosen for a target.

    Attributes:
        target: The target's name.
        platforms: The platforms that it serves, in the manifest's order.
        wheels: The wheels of each platform.
        conda: The conda packages of each platform, by name.
        archives: The files from elsewhere of each platform.
        others: The files of further sources, by the key of the source and by platform.
        channels: The conda channels, best first, as URLs.
        requirements: What the host must offer: ``cuda``, ``glibc``, ``python`` as written in the manifest.
        requests: What was asked for on each platform, by section and name.
        manifest: The digest of what the manifest asked for.
        written_by: The tenv version that wrote it.
        text: The bytes that it was read from; empty when it is new.
        details: By the URL of a conda package: what else its row says, by key, as text.
        header: Every value that belongs to no package, by its path in the file, as text.
        left_out: The URLs of conda packages in `text` that are no part of this: features that were not asked for.
    """

    target: str
    platforms: tuple[str, ...]
    wheels: Mapping[str, tuple[Wheel, ...]]
    requirements: Mapping[str, str]
    requests: Mapping[str, Mapping[str, Any]]
    manifest: str
    written_by: str = __version__
    text: bytes = field(default=b"", repr=False, compare=False)
    conda: Mapping[str, tuple[CondaPackage, ...]] = field(default_factory=dict)
    archives: Mapping[str, tuple[Archive, ...]] = field(default_factory=dict)
    channels: tuple[str, ...] = ()
    others: Mapping[str, Mapping[str, tuple[OtherFile, ...]]] = field(default_factory=dict)
    details: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, compare=False)
    header: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    left_out: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __hash__(self) -> int:
        return hash((self.target, self.platforms, self.manifest))

    def files(self, key: str, platform: str) -> Sequence[LockedFile]:
        """Return the files of one source on a platform, those for every Python minor."""
        typed: Mapping[str, Mapping[str, Sequence[LockedFile]]] = {
            "conda": self.conda,
            "wheels": self.wheels,
            "archives": self.archives,
        }
        return typed.get(key, self.others.get(key, {})).get(platform, ())

    def digest(self) -> str:
        """Return the sha256 of the lock's bytes."""
        return digest_bytes(self.text)

    def wheels_for(self, platform: str, python: str) -> tuple[Wheel, ...]:
        """Return the wheels that one platform and Python minor take."""
        return tuple(wheel for wheel in self.wheels.get(platform, ()) if python in wheel.python)

    def conda_python(self, platform: str) -> str:
        """Return the minor of the Python that the lock has as a conda package; empty when it has none."""
        versions = [package.version for package in self.conda.get(platform, ()) if package.name == "python"]
        return ".".join(versions[0].split(".")[:2]) if versions else ""

    def python_minors(self, platform: str) -> tuple[str, ...]:
        """Return the Python minors that the lock serves on a platform, lowest first."""
        if minor := self.conda_python(platform):
            return (minor,)
        minors = {minor for wheel in self.wheels.get(platform, ()) for minor in wheel.python}
        return tuple(sorted(minors, key=Version))


def from_manifest(manifest: Manifest, files: Mapping[str, Mapping[str, tuple[Any, ...]]]) -> Lock:
    """Return the lock that says how a manifest was answered.

    Args:
        manifest: The manifest.
        files: The files, by the key of their source and by platform.
    """
    requirements = {
        "cuda": str(manifest.requirements.cuda or ""),
        "glibc": str(manifest.requirements.glibc or ""),
        "python": str(manifest.python or ""),
    }
    requests = {}
    for platform in manifest.platforms:
        asked = manifest.asked(platform)
        requests[platform] = {section.name: rows for section in SECTIONS if (rows := asked.get(section.name))}
    whole = with_features(manifest)
    return Lock(
        target=manifest.name,
        platforms=manifest.platforms,
        wheels=files.get("wheels", {}),
        requirements={key: value for key, value in requirements.items() if value},
        requests=requests,
        manifest=manifest.digest(),
        conda=files.get("conda", {}),
        archives=files.get("archives", {}),
        others={section.key: files[section.key] for section in SECTIONS if section.keys and section.key in files},
        channels=tuple(
            dict.fromkeys(url for platform in manifest.platforms for url in whole.on(platform).sources(platform))
        ),
    )
