"""The difference of two locks: requirements of the host, toolchain, packages.

The requirements of the host follow from the CUDA release and the compatibility tables. The toolchain follows from
packages, whose names differ by source: cuDNN is ``cudnn`` in a channel and ``nvidia-cudnn-cu13`` as a wheel. A change
of the origin or destination of a file is marked, since a reviewer of a lock must see it first.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.names import WheelFile
from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import GpuArchTable
from tenv.facts.tables import Facts
from tenv.locks.lock import CondaPackage, Lock, LockedFile, LockedTree, Wheel
from tenv.targets.sections import SECTIONS
from tenv.targets.tree_request import TREE_KEYS

_REACHING = {
    "archive": ("to", "strip", "kind", "trust", "licence", "url"),
    "conda": ("url", "channel", "subdir", "python_site_packages_path"),
    "wheel": ("file", "requires", "commit", "index", "url", "build", *TREE_KEYS),
}
"""The values of each kind of package that decide on a path, a server, or other packages."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a lock, with the values that a comparison shows."""

    version: str
    """Its version."""
    build: str
    """The part that distinguishes files of one version: conda's build string, a wheel's tags."""
    channel: str
    """The channel of a conda package."""
    size: int | None
    """Its size in bytes; None if unknown."""
    digest: str
    """The sha256 of its bytes; the MD5 of a conda package without a sha256."""
    values: Mapping[str, str]
    """All values of its row, by key."""


Pair = tuple[Piece | None, Piece | None]
Pieces = Mapping[tuple[str, str], Piece]  # by the kind of their source and by name


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One changed value of a package."""

    name: str
    """Its key in the lock."""
    old: str
    """The old value as text; empty for none."""
    new: str
    """The new value as text; empty for none."""
    platforms: tuple[str, ...]
    """The platforms with this change."""
    reaching: bool
    """Whether the change concerns origin, destination or dependencies, and does not follow from the version alone."""


@dataclass(frozen=True, slots=True)
class PackageChange:
    """An added, removed or changed package."""

    kind: str
    """``conda``, ``wheel``, ``archive``, or the kind of a further source."""
    name: str
    """Its name."""
    old: str
    """Its old version; empty for an added package."""
    new: str
    """Its new version; empty for a removed package."""
    python: tuple[str, ...]
    """The Python minors with this change; empty for all."""
    pieces: Mapping[str, Pair]
    """The old and the new file, by platform; for a wheel, the files of the highest Python minor."""

    @property
    def fields(self) -> tuple[FieldChange, ...]:
        """The changed values, origins and destinations first; empty for an added package."""
        found: dict[tuple[str, str, str, bool], list[str]] = {}
        for platform, (old, new) in self.pieces.items():
            for key, was, now in _differing(old, new):
                found.setdefault((key, was, now, self._reaches(key, old, new)), []).append(platform)
        rows = [FieldChange(*key[:3], tuple(where), reaching=key[3]) for key, where in found.items()]
        return tuple(sorted(rows, key=lambda row: not row.reaching))

    def _reaches(self, name: str, old: Piece | None, new: Piece | None) -> bool:
        was, now = (piece.values if piece else {} for piece in (old, new))
        place = "file" if self.kind == "wheel" else "url"
        if name in ("sha256", "md5", "version"):  # the same file name with other bytes
            return was.get(place) == now.get(place)
        if name not in _REACHING.get(self.kind, ()):
            return False
        if name == place:  # another version has another file name
            folders = was.get(name, "").rpartition("/")[0], now.get(name, "").rpartition("/")[0]
            other = folders[0] != folders[1] or self.old == self.new
            return other and _without(was.get(name, ""), self.old) != _without(now.get(name, ""), self.new)
        return name != "requires" or self.old == self.new

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values."""
        platforms = {
            platform: {"old": old and asdict(old), "new": new and asdict(new)}
            for platform, (old, new) in self.pieces.items()
        }
        row: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if not (self.old and self.new):
            return {**row, "version": self.old or self.new, "python": list(self.python), "platforms": platforms}
        fields = [
            {"name": one.name, "old": one.old, "new": one.new, "platforms": list(one.platforms)} for one in self.fields
        ]
        return {
            **row,
            "old": self.old,
            "new": self.new,
            "python": list(self.python),
            "fields": fields,
            "platforms": platforms,
        }


def _without(text: str, version: str) -> str:
    return text.replace(version, "") if version else text


def _differing(old: Piece | None, new: Piece | None) -> Iterator[tuple[str, str, str]]:
    """Yield the changed values of two files; a value that an older schema lacks counts as unchanged."""
    if old is None or new is None:
        return
    for key in dict.fromkeys((*old.values, *new.values)):
        was, now = old.values.get(key, ""), new.values.get(key, "")
        if was != now and not (key == "requires" and key not in old.values):
            yield key, was, now


def package_changes(old: Lock, new: Lock, platform: str) -> Iterator[PackageChange]:
    """Yield the changes on one platform: of each source, and of wheels for each Python minor."""
    minors = served(old, new, platform)
    rows: dict[tuple[Any, ...], dict[str, PackageChange]] = {}
    for was, now in minors:
        for row in _pairs(platform, _pieces(old, platform, was), _pieces(new, platform, now)):
            rows.setdefault((row.kind, row.name, row.old, row.new, row.fields), {})[now or was] = row
    for found in rows.values():
        last = list(found.values())[-1]
        yield replace(last, python=() if len(found) == len(minors) else tuple(found))
    seen = {wheel.sha256 for lock, minor in _both(old, new, minors) for wheel in lock.wheels_for(platform, minor)}
    yield from _alone(old, platform, seen, lambda piece: (piece, None))
    yield from _alone(new, platform, seen, lambda piece: (None, piece))


def _both(old: Lock, new: Lock, minors: Iterable[tuple[str, str]]) -> list[tuple[Lock, str]]:
    return [pair for was, now in minors for pair in ((old, was), (new, now))]


def _alone(lock: Lock, platform: str, seen: set[str], way: Callable[[Piece], Pair]) -> Iterator[PackageChange]:
    """Yield the wheels of Python minors that the other lock does not serve."""
    for wheel in lock.wheels.get(platform, ()):
        if wheel.sha256 not in seen:
            pair = way(_wheel(wheel))
            versions = (pair[0].version if pair[0] else "", pair[1].version if pair[1] else "")
            yield PackageChange("wheel", wheel.name, *versions, wheel.python, {platform: pair})


def served(old: Lock, new: Lock, platform: str) -> list[tuple[str, str]]:
    """Return the Python minors to compare: the common ones, else the highest of each lock."""
    had, has = old.python_minors(platform), new.python_minors(platform)
    common = [(minor, minor) for minor in has if minor in had]
    return common or [(had[-1] if had else "", has[-1] if has else "")]


def _pairs(platform: str, old: Pieces, new: Pieces) -> Iterator[PackageChange]:
    for kind, name in sorted({*old, *new}):
        was, now = old.get((kind, name)), new.get((kind, name))
        if was is None or now is None or any(_differing(was, now)):
            versions = was.version if was else "", now.version if now else ""
            yield PackageChange(kind, name, *versions, (), {platform: (was, now)})


def joined(rows: Iterable[PackageChange]) -> Iterator[PackageChange]:
    """Yield the rows, with platforms that have the same change joined."""
    found: dict[tuple[str, str, str, str, tuple[str, ...]], dict[str, Pair]] = {}
    for row in rows:
        found.setdefault((row.kind, row.name, row.old, row.new, row.python), {}).update(row.pieces)
    for key, pieces in found.items():
        yield PackageChange(*key, pieces)


def files_of(lock: Lock, platform: str, minor: str) -> dict[str, int]:
    """Return the size of every file of one environment, by digest."""
    return {piece.digest: piece.size or 0 for piece in _pieces(lock, platform, minor).values()}


def _pieces(lock: Lock, platform: str, minor: str) -> Pieces:
    return {(kind, row.name): _piece(row, lock) for kind, row in rows_of(lock, platform, minor)}


def rows_of(lock: Lock, platform: str, minor: str) -> Iterator[tuple[str, LockedFile]]:
    """Yield the files of one environment, each with the kind of its source."""
    for section in SECTIONS:
        for row in lock.files(section.key, platform):
            if not isinstance(row, Wheel | LockedTree) or minor in row.python:
                yield section.kind, row


def _piece(row: LockedFile, lock: Lock) -> Piece:
    if isinstance(row, Wheel):
        return _wheel(row)
    if isinstance(row, CondaPackage):
        values = {**_values(row), **lock.details.get(row.url, {})}
        return Piece(row.version, row.build, row.channel, row.size, row.sha256 or row.md5, values)
    return Piece(row.version or "(no version)", "", "", row.size, row.sha256, _values(row))


def _wheel(wheel: Wheel) -> Piece:
    file = WheelFile.parse(wheel.file)
    tags = "-".join(filter(None, (file.build, file.tags))) if file else ""
    return Piece(wheel.version, tags, "", wheel.size, wheel.sha256, _values(wheel))


_NONE = ("features", ())  # most files are a part of the target itself


def _values(row: Any) -> dict[str, str]:
    """Return all values of a row as text, by key."""
    known = {name: getattr(row, name) for name in row.__slots__ if name not in ("name", "python", "values")}
    known |= getattr(row, "values", {})
    return {
        name: _text(value)
        for name, value in known.items()
        if value not in ("", None) and value is not False and (name, value) != _NONE
    }


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else "true" if value is True else str(value)


_PRODUCTS = {
    "Python": ("python",),
    "CUDA toolkit": ("cuda-toolkit", "cudatoolkit", "cuda-version"),
    "nvcc": ("cuda-nvcc", r"cuda-nvcc_[\w-]+", "nvidia-cuda-nvcc", r"nvidia-cuda-nvcc-cu\d+"),
    "cuDNN": ("cudnn", "libcudnn", r"nvidia-cudnn-cu\d+"),
    "cuSPARSELt": ("cusparselt", "libcusparselt", r"nvidia-cusparselt-cu\d+"),
    "NCCL": ("nccl", r"nvidia-nccl-cu\d+"),
    "MAGMA": ("libmagma", r"magma-cuda\d+", "magma"),
    "MKL": ("mkl-static", "mkl-devel", "mkl"),
    "GCC": (r"gcc_linux-\w+", r"gxx_linux-\w+", r"gcc_impl_linux-\w+", "gcc", "gxx"),
    "C library (sysroot)": (r"sysroot_linux-\w+",),
    "CMake": ("cmake",),
    "Ninja": ("ninja",),
}
"""The products of a toolchain, and patterns for the packages that provide them; the first match counts."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One changed value."""

    name: str
    """Its name in JSON."""
    title: str
    """Its name in text."""
    old: str
    """The old value; empty for none."""
    new: str
    """The new value; empty for none."""
    platforms: tuple[str, ...] = ()
    """Its platforms; empty for all."""
    dropped: tuple[str, ...] = ()
    """For a list: the removed items."""
    added: tuple[str, ...] = ()
    """For a list: the added items."""
    source: str = ""
    """The source of a value from a table; empty for a value of the locks."""


@dataclass(frozen=True, slots=True)
class Download:
    """The download size of an environment, for the highest Python minor of its lock."""

    old: int
    """The bytes of all old files."""
    new: int
    """The bytes of all new files."""
    fetch: int
    """The bytes of the new files that are not among the old ones."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two locks."""

    host: tuple[ValueChange, ...]
    """The changed requirements of the host."""
    toolchain: tuple[ValueChange, ...]
    """The changed products of the toolchain."""
    packages: tuple[PackageChange, ...]
    """The added, removed and changed packages, by name."""
    download: Mapping[str, Download]
    """The download sizes, by platform."""
    lock: tuple[ValueChange, ...] = ()
    """The other changed values: requests, and values of the file format."""

    def __bool__(self) -> bool:
        return bool(self.host or self.toolchain or self.packages or self.lock)

    @property
    def reaching(self) -> tuple[tuple[PackageChange, FieldChange], ...]:
        """The changed origins, destinations and dependencies of packages that both locks have."""
        return tuple((row, one) for row in self.packages for one in row.fields if one.reaching)

    @property
    def added(self) -> tuple[PackageChange, ...]:
        """The added packages."""
        return tuple(row for row in self.packages if not row.old)

    @property
    def removed(self) -> tuple[PackageChange, ...]:
        """The removed packages."""
        return tuple(row for row in self.packages if not row.new)

    @property
    def changed(self) -> tuple[PackageChange, ...]:
        """The changed packages."""
        rows = [row for row in self.packages if row.old and row.new]
        return tuple(sorted(rows, key=lambda row: not any(one.reaching for one in row.fields)))

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON values."""
        return {
            "host": [asdict(row) for row in self.host],
            "toolchain": [asdict(row) for row in self.toolchain],
            "added": [row.to_json() for row in self.added],
            "removed": [row.to_json() for row in self.removed],
            "changed": [row.to_json() for row in self.changed],
            "lock": [asdict(row) for row in self.lock],
            "download": {platform: asdict(row) for platform, row in self.download.items()},
        }


def compare(old: Lock, new: Lock, facts: Facts, platforms: Iterable[str] = ()) -> Difference:
    """Compare two locks on their common platforms.

    Args:
        old: The old lock.
        new: The new lock, maybe of another target.
        facts: The compatibility tables.
        platforms: The platforms to compare; empty for all.
    """
    wanted = tuple(platforms)
    both = [name for name in new.platforms if name in old.platforms and (not wanted or name in wanted)]
    rows = [row for platform in both for row in package_changes(old, new, platform)]
    return Difference(
        host=tuple(_host(old, new, facts, any(name.startswith("win") for name in both), bool(wanted))),
        toolchain=tuple(_toolchain(old, new, both)),
        packages=tuple(sorted(joined(rows), key=lambda row: (row.name, row.kind, row.new, row.old))),
        download={platform: _download(old, new, platform) for platform in both},
        lock=tuple(_header(old, new, wanted)),
    )


_TOLD = ("tenv.requirements.", "environment.channels", "tenv.target")
"""The values of a lock that `host` covers, or that identify the lock."""


def _header(old: Lock, new: Lock, wanted: tuple[str, ...]) -> Iterator[ValueChange]:
    """Yield the changed values that belong to no package and that `host` does not cover."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for path in dict.fromkeys((*old.header, *new.header)):
        asked = path.split(".", 3) if path.startswith("tenv.requests.") else []
        was, now = old.header.get(path, ""), new.header.get(path, "")
        hidden = path.startswith(_TOLD) or (wanted and asked and asked[2] not in wanted)
        if was != now and not hidden:
            name = asked[3] if asked[3:] else path.removeprefix("tenv.")
            found.setdefault((name, was, now), []).extend(asked[2:3])
    yield from (ValueChange(name, name, was, now, tuple(where)) for (name, was, now), where in found.items())
    for platform in new.platforms:
        had, has = (_pythons(lock, platform) for lock in (old, new))
        if platform in old.platforms and had != has and not (wanted and platform not in wanted):
            dropped, added = (tuple(n for n in one if n not in other) for one, other in ((had, has), (has, had)))
            yield ValueChange("python-minors", "Python", ", ".join(had), ", ".join(has), (platform,), dropped, added)


def _pythons(lock: Lock, platform: str) -> tuple[str, ...]:
    """Return the Python minors of the wheels of a platform."""
    return tuple(sorted({minor for wheel in lock.wheels.get(platform, ()) for minor in wheel.python}, key=Version))


def _host(old: Lock, new: Lock, facts: Facts, windows: bool, narrowed: bool) -> Iterator[ValueChange]:
    """Yield the changed requirements of the host."""
    before, now = ({row[0]: row for row in _demands(lock, facts, windows)} for lock in (old, new))
    for name in [*now, *(name for name in before if name not in now)]:
        _, title, _, source = now.get(name) or before[name]
        was, is_now = (rows[name][2] if name in rows else () for rows in (before, now))
        known = bool(was and is_now) or name not in _FROM_FACTS  # a value that no table has is unknown, not changed
        if was != is_now and known and not (narrowed and name in _OF_ALL_PLATFORMS):
            dropped = tuple(item for item in was if item not in is_now)
            added = tuple(item for item in is_now if item not in was)
            lists = (dropped, added) if name in _LISTS else ((), ())
            yield ValueChange(name, title, ", ".join(was), ", ".join(is_now), (), *lists, source)


_LISTS = ("platforms", "channels", "gpu")
_OF_ALL_PLATFORMS = ("platforms", "channels")
_FROM_FACTS = ("gpu", "gcc-for-nvcc")


def _demands(lock: Lock, facts: Facts, windows: bool) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield the requirements of a lock on the host: name, title, values, source."""
    yield "platforms", "platforms", lock.platforms, ""
    yield "channels", "conda channels", lock.channels, ""
    cuda = lock.requirements.get("cuda", "")
    for name, title in (("cuda", "CUDA"), ("glibc", "C library (glibc)"), ("python", "Python")):
        value = lock.requirements.get(name, "")
        yield name, title, (value,) if value else (), ""
        if name == "cuda" and cuda:
            yield from _cuda_demands(Version(cuda), facts, windows)
    for sections in lock.requests.values():
        for name, row in sections.get("system", {}).items():
            yield f"system.{name}", f"{name} of the system", (row,) if isinstance(row, str) else tuple(row), ""


def _cuda_demands(cuda: Version, facts: Facts, windows: bool) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield the requirements that follow from a CUDA release."""
    for on_windows in (False, True)[: 1 + windows]:
        suffix, where = ("-windows", " on Windows") if on_windows else ("", "")
        for name, title, found in (
            ("driver", "minimum NVIDIA driver", facts.cuda_driver.minimum(cuda, on_windows)),
            ("driver-native", "NVIDIA driver of that release", facts.cuda_driver.native(cuda, on_windows)),
        ):
            if found:
                yield name + suffix, title + where, (str(found.driver),), found.basis.source
    if archs := facts.cuda_gpu_arch.archs(cuda):
        names = tuple(_arch(number, facts.cuda_gpu_arch) for number in archs.sm)
        yield "gpu", "GPU architectures", names, archs.basis.source
    if limits := facts.cuda_host_compiler.limits(cuda):
        value = f"{limits.gcc_min} to {limits.gcc_max}"
        yield "gcc-for-nvcc", "GCC that nvcc accepts", (value,), limits.basis.source


def _arch(number: int, table: GpuArchTable) -> str:
    family = table.family(Version(f"{number // 10}.{number % 10}"))
    return f"sm_{number} ({family.name})" if family else f"sm_{number}"


def _toolchain(old: Lock, new: Lock, platforms: Iterable[str]) -> Iterator[ValueChange]:
    """Yield the products with another version; platforms with the same change are joined."""
    for title, patterns in _PRODUCTS.items():
        found: dict[tuple[str, str], list[str]] = {}
        for platform in platforms:
            pair = _product(old, platform, patterns), _product(new, platform, patterns)
            if pair[0] != pair[1]:
                found.setdefault(pair, []).append(platform)
        for (was, now), where in found.items():
            yield ValueChange(re.sub(r"\W+", "-", title.lower()).strip("-"), title, was, now, tuple(where))


def _product(lock: Lock, platform: str, patterns: Iterable[str]) -> str:
    minor = lock.python_minors(platform)[-1:]
    versions = {row.name: row.version for _, row in rows_of(lock, platform, "".join(minor))}
    for pattern in patterns:
        for name, version in versions.items():
            if re.fullmatch(pattern, name):
                return version
    return ""


def _download(old: Lock, new: Lock, platform: str) -> Download:
    was, now = served(old, new, platform)[-1]
    before, after = files_of(old, platform, was), files_of(new, platform, now)
    fetch = sum(size for digest, size in after.items() if digest not in before)
    return Download(sum(before.values()), sum(after.values()), fetch)
