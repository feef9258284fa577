"""Locks as values: every file of an environment, with its sha256, for every platform of the manifest.

`tenv.locks.lock_file` reads and writes them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from tenv import __version__
from tenv.core.dataclass import dataclass
from tenv.core.files import digest_bytes
from tenv.core.names import file_at
from tenv.core.versions import Version
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.sections import SECTIONS
from tenv.targets.tree_request import TREE_KEYS, TreeRequest
from tenv.targets.wheel_origin import Index

ANY_VERSION = "dynamic:"
"""How the digest in the note of a package begins whose build backend computes its version: it may have another one."""

_COMPILED_AGAINST = re.compile(
    r"(torch|libtorch|nvidia-.*|cuda.*|rocm.*|hip.*|mkl.*|magma.*|cutlass.*|triton.*|numpy|cython|pybind11.*|nanobind"
    r"|setuptools.*|scikit-build.*|cmake|ninja|meson.*|clang.*|ziglang)$"
)
"""The wheels of a target that decide on the code of an extension: torch, toolkits, headers and build backends."""


class LockedFile(Protocol):
    """The common attributes of the files of all sources."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """Its version; empty for none."""

    @property
    def sha256(self) -> str:
        """The sha256 of its bytes in hex."""

    @property
    def size(self) -> int | None:
        """Its size in bytes; None if unknown."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of a lock.

    Attributes:
        name: The normalized name.
        version: The version.
        file: The file name.
        sha256: The sha256 of its bytes in hex.
        size: Its size in bytes; None if unknown.
        python: The Python minors that use it, lowest first.
        requires: The requirements in its metadata; None if unknown.
        features: The features of the target that bring it; empty for a part of the target itself.
        index: The index of the manifest that it comes from; None for any index in use, or for a single file.
        url: Its address, as in the manifest; empty for a wheel of an index.
        path: The file, relative to the folder of the manifest; empty for a wheel of an index.
    """

    name: str
    version: str
    file: str
    sha256: str
    size: int | None
    python: tuple[str, ...]
    requires: tuple[str, ...] | None = None
    features: tuple[str, ...] = ()
    index: Index | None = None
    url: str = ""
    path: str = ""

    @property
    def origin(self) -> str:
        """Where it comes from, for people; empty for the indexes in use."""
        return self.url or self.path or (f"the index {self.index}" if self.index else "")


@dataclass(frozen=True, slots=True)
class CondaPackage:
    """One conda package of a lock.

    Attributes:
        name: Its name.
        version: Its version, as conda writes it.
        build: Its build string.
        subdir: Its subdirectory of the channel: a platform, or ``noarch``.
        channel: The channel's URL, such as ``https://conda.anaconda.org/conda-forge``.
        url: The package's canonical URL, not a mirror's.
        sha256: The sha256 of its bytes in hex; empty if the channel has only an MD5.
        md5: Its MD5 in hex; empty for none.
        size: Its size in bytes; None if unknown.
        depends: Its dependencies, as match specifications.
        constrains: Its constraints on other packages, as match specifications.
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
    """One archive of a lock.

    Attributes:
        name: Its name in ``[archives]``.
        version: Its version; empty for a request by URL.
        url: Its canonical URL.
        sha256: The sha256 of its bytes in hex.
        size: Its size in bytes; None if unknown.
        kind: Its format: ``tar.gz``, ``tar.xz``, ``tar.bz2``, ``zip``, ``7z`` or ``conda``.
        strip: The number of leading folders to remove from its names.
        to: The destination folder in the prefix; empty for the prefix itself.
        trust: The origin of the digest: ``manifest``, ``facts``, ``redist`` (NVIDIA's list), or ``first-use`` for the
            digest of the first download.
        licence: Its license file; empty for none.
        release: The release of the product, such as CUDA 12.4.1, if it is a component; else empty.
        part_of: The request in ``[archives]``, if its name differs from the archive's; else empty.
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
        """Return whether this archive belongs to a request in ``[archives]``."""
        return name == (self.part_of or self.name)


@dataclass(frozen=True, slots=True)
class LockedTree:
    """One package of a lock that is built from a source tree.

    Attributes:
        name: The normalized name.
        version: Its version when it was locked.
        python: The Python minors that use it, lowest first.
        requires: Its requirements when it was locked; requirements of extras have their marker.
        commit: The full commit; empty for a folder.
        dynamic: Whether the build backend computed them; else its ``pyproject.toml`` holds them.
        features: The features that bring it; empty where the target itself does.
        git: The URL of the repository, as in the manifest; empty for a folder.
        rev: As in the manifest.
        branch: As in the manifest.
        tag: As in the manifest.
        subdirectory: As in the manifest.
        path: The folder, as in the manifest; empty for a repository.
        editable: As in the manifest.
        file: The name of its source archive on an index; empty for a tree.
        digest: The sha256 of the archive in hex; empty for a tree.
        length: The size of the archive in bytes; None if unknown.
        index: The index of the manifest that the archive comes from; None for any index in use, or for a tree.
        build: The wheels that its build backend needs, as ``NAME==VERSION sha256:HEX``; empty for a tree.
        isolated: Whether its build has an environment of its own; else it is compiled against the target's torch.
        wheels: The wheels of the manifest's wheelhouse that it was compiled to, as ``MINOR sha256:HEX``.
        against: The digest of the torch and the toolkit that it is compiled against (`Lock.compiled_against`), which is
            no part of the file; empty for an isolated build.
    """

    name: str
    version: str
    python: tuple[str, ...]
    requires: tuple[str, ...]
    commit: str = ""
    dynamic: bool = False
    features: tuple[str, ...] = ()
    git: str = ""
    rev: str = ""
    branch: str = ""
    tag: str = ""
    subdirectory: str = ""
    path: str = ""
    editable: bool = False
    file: str = ""
    digest: str = ""
    length: int | None = None
    index: Index | None = None
    build: tuple[str, ...] = ()
    isolated: bool = True
    against: str = ""
    wheels: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """The sha256 of a source archive, and the commit of a repository in its place; empty for a folder."""
        return self.digest or self.commit

    @property
    def size(self) -> int | None:
        """The size of a source archive; None for a tree."""
        return self.length

    @property
    def origin(self) -> str:
        """Where a source archive comes from, for people; empty for the indexes in use."""
        return f"the index {self.index}" if self.index else ""

    @property
    def request(self) -> TreeRequest:
        """The request in its row."""
        return TreeRequest(**{key: getattr(self, key) for key in TREE_KEYS})

    @property
    def note(self) -> tuple[str, ...]:
        """The entry in the state of an environment: the version, and a digest of the pinned values."""
        values = (self.file, self.digest, *self.build) if self.file else (*self.request.asked(), self.commit)
        values = (*values, self.against) if self.against else values
        pinned = digest_bytes("\n".join(values).encode())
        return self.version, f"{ANY_VERSION}{pinned}" if self.dynamic else pinned


@dataclass(frozen=True, slots=True)
class OtherFile:
    """One file of a source that has no file type of its own.

    Attributes:
        name: Its name.
        version: Its version; empty for none.
        sha256: The sha256 of its bytes in hex.
        size: Its size in bytes; None if unknown.
        values: Its other values, by the keys in the source's row of `tenv.targets.sections`.
    """

    name: str
    version: str
    sha256: str
    size: int | None
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a target.

    Attributes:
        target: The target's name.
        platforms: Its platforms, in the order of the manifest.
        wheels: The wheels of each platform.
        conda: The conda packages of each platform, by name.
        archives: The archives of each platform.
        others: The files of further sources, by the key of the source and by platform.
        channels: The conda channels, best first, as URLs.
        requirements: The requirements on the host: ``cuda``, ``glibc``, ``python``, as in the manifest.
        requests: The requests of the manifest, by platform, section and name.
        manifest: The digest of the requests of the manifest.
        written_by: The tenv version that wrote it.
        text: The bytes of its file; empty for a new lock.
        trees: The packages of each platform that are built from source trees.
        details: The further values of a conda package's row as text, by URL and key.
        header: The values that belong to no package as text, by path in the file.
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
    trees: Mapping[str, tuple[LockedTree, ...]] = field(default_factory=dict)
    details: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, compare=False)
    header: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    left_out: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __hash__(self) -> int:
        return hash((self.target, self.platforms, self.manifest))

    @property
    def indexes(self) -> tuple[Index, ...]:
        """The indexes that its wheels come from, by name."""
        kinds: tuple[Mapping[str, tuple[Wheel | LockedTree, ...]], ...] = (self.wheels, self.trees)
        found = {row.index.key: row.index for kind in kinds for rows in kind.values() for row in rows if row.index}
        return tuple(found[key] for key in sorted(found))

    def files(self, key: str, platform: str) -> Sequence[LockedFile]:
        """Return the files of one source on a platform, for all Python minors."""
        if key == "wheels":
            return (*self.wheels.get(platform, ()), *self.trees.get(platform, ()))
        typed: Mapping[str, Mapping[str, Sequence[LockedFile]]] = {
            "conda": self.conda,
            "archives": self.archives,
        }
        return typed.get(key, self.others.get(key, {})).get(platform, ())

    def digest(self) -> str:
        """Return the sha256 of the lock's bytes."""
        return digest_bytes(self.text)

    def wheels_for(self, platform: str, python: str) -> tuple[Wheel, ...]:
        """Return the wheels of one platform and Python minor."""
        return tuple(wheel for wheel in self.wheels.get(platform, ()) if python in wheel.python)

    def trees_for(self, platform: str, python: str) -> tuple[LockedTree, ...]:
        """Return the packages of source trees of one platform and Python minor."""
        return tuple(tree for tree in self.trees.get(platform, ()) if python in tree.python)

    def compiled_against(self, platform: str, python: str) -> str:
        """Return the digest of the files that a package is compiled against: all but the other wheels."""
        wheels = [wheel for wheel in self.wheels_for(platform, python) if _COMPILED_AGAINST.match(wheel.name)]
        rows: list[LockedFile] = [*wheels, *self.conda.get(platform, ()), *self.archives.get(platform, ())]
        return digest_bytes("\n".join(f"{row.name} {row.version} {row.sha256}" for row in rows).encode())

    def conda_python(self, platform: str) -> str:
        """Return the minor of the conda package `python` in the lock; empty without one."""
        versions = [package.version for package in self.conda.get(platform, ()) if package.name == "python"]
        return ".".join(versions[0].split(".")[:2]) if versions else ""

    def python_minors(self, platform: str) -> tuple[str, ...]:
        """Return the Python minors of the lock on a platform, lowest first."""
        if minor := self.conda_python(platform):
            return (minor,)
        rows: tuple[Wheel | LockedTree, ...] = (*self.wheels.get(platform, ()), *self.trees.get(platform, ()))
        minors = {minor for row in rows for minor in row.python}
        return tuple(sorted(minors, key=Version))


def from_manifest(manifest: Manifest, files: Mapping[str, Mapping[str, tuple[Any, ...]]]) -> Lock:
    """Return the lock of a manifest with the selected files.

    Args:
        manifest: The manifest.
        files: The selected files, by the key of their source and by platform.
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
        trees=files.get("trees", {}),
        others={section.key: files[section.key] for section in SECTIONS if section.keys and section.key in files},
        channels=tuple(
            dict.fromkeys(url for platform in manifest.platforms for url in whole.on(platform).sources(platform))
        ),
    )
