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
from tenv.core.versions import Version, same_release
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.sections import SECTIONS
from tenv.targets.tree_request import TREE_KEYS, TreeRequest
from tenv.targets.wheel_origin import Index

ANY_VERSION = "dynamic:"
"""How the digest in the note of a package begins whose build backend computes its version: it may have another one."""
ANY_LABEL = "labelled:"
"""How it begins for a package that is compiled against torch: its version may have a local label of its own."""

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
    """One wheel of a lock."""

    name: str
    """The normalized name."""
    version: str
    """The version."""
    file: str
    """The file name."""
    sha256: str
    """The sha256 of its bytes in hex."""
    size: int | None
    """Its size in bytes; None if unknown."""
    python: tuple[str, ...]
    """The Python minors that use it, lowest first."""
    requires: tuple[str, ...] | None = None
    """The requirements in its metadata; None if unknown."""
    features: tuple[str, ...] = ()
    """The features of the target that bring it; empty for a part of the target itself."""
    index: Index | None = None
    """The index of the manifest that it comes from; None for any index in use, or for a single file."""
    url: str = ""
    """Its address, as in the manifest; empty for a wheel of an index."""
    path: str = ""
    """The file, relative to the folder of the manifest; empty for a wheel of an index."""

    @property
    def origin(self) -> str:
        """Where it comes from, for people; empty for the indexes in use."""
        return self.url or self.path or (f"the index {self.index}" if self.index else "")


@dataclass(frozen=True, slots=True)
class CondaPackage:
    """One conda package of a lock."""

    name: str
    """Its name."""
    version: str
    """Its version, as conda writes it."""
    build: str
    """Its build string."""
    subdir: str
    """Its subdirectory of the channel: a platform, or ``noarch``."""
    channel: str
    """The channel's URL, such as ``https://conda.anaconda.org/conda-forge``."""
    url: str
    """The package's canonical URL, not a mirror's."""
    sha256: str
    """The sha256 of its bytes in hex; empty if the channel has only an MD5."""
    md5: str = ""
    """Its MD5 in hex; empty for none."""
    size: int | None = None
    """Its size in bytes; None if unknown."""
    depends: tuple[str, ...] = ()
    """Its dependencies, as match specifications."""
    constrains: tuple[str, ...] = ()
    """Its constraints on other packages, as match specifications."""
    features: tuple[str, ...] = ()
    """The features of the target that bring it; empty for a part of the target itself."""

    @property
    def file(self) -> str:
        """The file name at the end of the URL."""
        return file_at(self.url)


@dataclass(frozen=True, slots=True)
class Archive:
    """One archive of a lock."""

    name: str
    """Its name in ``[archives]``."""
    version: str
    """Its version; empty for a request by URL."""
    url: str
    """Its canonical URL."""
    sha256: str
    """The sha256 of its bytes in hex."""
    size: int | None
    """Its size in bytes; None if unknown."""
    kind: str
    """Its format: ``tar.gz``, ``tar.xz``, ``tar.bz2``, ``zip``, ``7z`` or ``conda``."""
    strip: int = 0
    """The number of leading folders to remove from its names."""
    to: str = ""
    """The destination folder in the prefix; empty for the prefix itself."""
    trust: str = "manifest"
    """The origin of the digest: ``manifest``, ``facts``, ``redist`` (NVIDIA's list), or ``first-use`` for the digest of
    the first download."""
    licence: str = ""
    """Its license file; empty for none."""
    release: str = ""
    """The release of the product, such as CUDA 12.4.1, if it is a component; else empty."""
    part_of: str = ""
    """The request in ``[archives]``, if its name differs from the archive's; else empty."""
    features: tuple[str, ...] = ()
    """The features of the target that bring it; empty for a part of the target itself."""

    def answers_for(self, name: str) -> bool:
        """Return whether this archive belongs to a request in ``[archives]``."""
        return name == (self.part_of or self.name)


@dataclass(frozen=True, slots=True)
class LockedTree:
    """One package of a lock that is built from a source tree."""

    name: str
    """The normalized name."""
    version: str
    """Its version when it was locked."""
    python: tuple[str, ...]
    """The Python minors that use it, lowest first."""
    requires: tuple[str, ...]
    """Its requirements when it was locked; requirements of extras have their marker."""
    commit: str = ""
    """The full commit; empty for a folder."""
    dynamic: bool = False
    """Whether the build backend computed them; else its ``pyproject.toml`` holds them."""
    features: tuple[str, ...] = ()
    """The features that bring it; empty where the target itself does."""
    git: str = ""
    """The URL of the repository, as in the manifest; empty for a folder."""
    rev: str = ""
    """As in the manifest."""
    branch: str = ""
    """As in the manifest."""
    tag: str = ""
    """As in the manifest."""
    subdirectory: str = ""
    """As in the manifest."""
    path: str = ""
    """The folder, as in the manifest; empty for a repository."""
    editable: bool = False
    """As in the manifest."""
    file: str = ""
    """The name of its source archive on an index; empty for a tree."""
    digest: str = ""
    """The sha256 of the archive in hex; empty for a tree."""
    length: int | None = None
    """The size of the archive in bytes; None if unknown."""
    index: Index | None = None
    """The index of the manifest that the archive comes from; None for any index in use, or for a tree."""
    build: tuple[str, ...] = ()
    """The wheels that its build backend needs, as ``NAME==VERSION sha256:HEX``; empty for a tree."""
    isolated: bool = True
    """Whether its build has an environment of its own; else it is compiled against the target's torch."""
    against: str = ""
    """The digest of the torch and the toolkit that it is compiled against (`Lock.compiled_against`), which is no part
    of the file; empty for an isolated build."""
    wheels: tuple[str, ...] = ()
    """The wheels of the manifest's wheelhouse that it was compiled to, as ``MINOR sha256:HEX``."""

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
        prefix = ANY_VERSION if self.dynamic else "" if self.isolated else ANY_LABEL
        return self.version, f"{prefix}{pinned}"

    def becomes(self, version: str) -> bool:
        """Return whether its build may have a version: any version of a backend that computes it, else the row's.

        A package that is compiled against torch may add a local label, as ``1.0+pt211cu130``.
        """
        return fits_note(version, self.note)


def fits_note(version: str, note: Sequence[str]) -> bool:
    """Return whether an installed version, empty for none, fits a note in the state of an environment.

    Args:
        version: The version.
        note: The version of a lock and the digest of the pinned values.
    """
    if version and note[-1].startswith(ANY_VERSION):
        return True
    labelled = note[-1].startswith(ANY_LABEL) and "+" not in note[0]
    return same_release(version.partition("+")[0] if labelled else version, note[0])


@dataclass(frozen=True, slots=True)
class OtherFile:
    """One file of a source that has no file type of its own."""

    name: str
    """Its name."""
    version: str
    """Its version; empty for none."""
    sha256: str
    """The sha256 of its bytes in hex."""
    size: int | None
    """Its size in bytes; None if unknown."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Its other values, by the keys in the source's row of `tenv.targets.sections`."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a target."""

    target: str
    """The target's name."""
    platforms: tuple[str, ...]
    """Its platforms, in the order of the manifest."""
    wheels: Mapping[str, tuple[Wheel, ...]]
    """The wheels of each platform."""
    requirements: Mapping[str, str]
    """The requirements on the host: ``cuda``, ``glibc``, ``python``, as in the manifest."""
    requests: Mapping[str, Mapping[str, Any]]
    """The requests of the manifest, by platform, section and name."""
    manifest: str
    """The digest of the requests of the manifest."""
    written_by: str = __version__
    """The tenv version that wrote it."""
    text: bytes = field(default=b"", repr=False, compare=False)
    """The bytes of its file; empty for a new lock."""
    conda: Mapping[str, tuple[CondaPackage, ...]] = field(default_factory=dict)
    """The conda packages of each platform, by name."""
    archives: Mapping[str, tuple[Archive, ...]] = field(default_factory=dict)
    """The archives of each platform."""
    channels: tuple[str, ...] = ()
    """The conda channels, best first, as URLs."""
    others: Mapping[str, Mapping[str, tuple[OtherFile, ...]]] = field(default_factory=dict)
    """The files of further sources, by the key of the source and by platform."""
    trees: Mapping[str, tuple[LockedTree, ...]] = field(default_factory=dict)
    """The packages of each platform that are built from source trees."""
    details: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, compare=False)
    """The further values of a conda package's row as text, by URL and key."""
    header: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The values that belong to no package as text, by path in the file."""
    left_out: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """The URLs of conda packages in `text` that are no part of this: features that were not asked for."""

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
