"""What lies between two locks: for the host, in the toolchain, package by package.

What a host must offer follows from the CUDA release and the tables of facts; what the toolchain is follows from the
packages that bring it, whatever they are called: cuDNN is ``cudnn`` in a channel and ``nvidia-cudnn-cu13`` as a wheel.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tenv.core.names import WheelFile
from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import GpuArchTable
from tenv.facts.tables import Facts
from tenv.locks.lock import Lock, Wheel

__all__ = ["Difference", "Download", "PackageChange", "Piece", "ValueChange", "compare"]

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
"""What a toolchain is spoken of by, and the packages that bring it; the first that is there counts."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One value that differs.

    Attributes:
        name: What it is called in JSON.
        title: What people call it.
        old: The value before; empty when there was none.
        new: The value now; empty when there is none.
        platforms: The platforms that it is about; empty for all.
        dropped: Of a list: what is no longer in it.
        added: Of a list: what was not in it before.
        source: Where it is written that it follows; empty when the locks themselves say it.
    """

    name: str
    title: str
    old: str
    new: str
    platforms: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a lock, as far as a comparison shows it.

    Attributes:
        version: Its version.
        build: What tells files of one version apart: conda's build string, a wheel's tags.
        channel: The channel of a conda package.
        size: Its bytes; None when the lock does not say.
        digest: The sha256 of its bytes; the MD5 of a conda package that has no other.
    """

    version: str
    build: str
    channel: str
    size: int | None
    digest: str


Pair = tuple[Piece | None, Piece | None]


@dataclass(frozen=True, slots=True)
class PackageChange:
    """A package that came, went, or is another file now.

    Attributes:
        kind: ``conda``, ``wheel`` or ``archive``.
        name: Its name.
        old: Its version before; empty when it is new.
        new: Its version now; empty when it is gone.
        python: The Python minors for which this is so, when it is not so for all.
        pieces: The file before and the file now, by platform; of a wheel, those of the highest Python minor.
    """

    kind: str
    name: str
    old: str
    new: str
    python: tuple[str, ...]
    pieces: Mapping[str, Pair]

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain values."""
        platforms = {
            platform: {"old": asdict(old) if old else None, "new": asdict(new) if new else None}
            for platform, (old, new) in self.pieces.items()
        }
        versions = {"old": self.old, "new": self.new} if self.old and self.new else {"version": self.old or self.new}
        return {"name": self.name, "kind": self.kind, **versions, "python": list(self.python), "platforms": platforms}


@dataclass(frozen=True, slots=True)
class Download:
    """What an environment takes to download, with the highest Python minor of its lock.

    Attributes:
        old: The bytes of all files before.
        new: The bytes of all files now.
        fetch: The bytes of those that were not there before.
    """

    old: int
    new: int
    fetch: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What lies between two locks.

    Attributes:
        host: What changes in what the host must offer.
        toolchain: What changes in the tools and libraries that a build is spoken of by.
        packages: The packages that came, went or changed, by name.
        download: By platform.
    """

    host: tuple[ValueChange, ...]
    toolchain: tuple[ValueChange, ...]
    packages: tuple[PackageChange, ...]
    download: Mapping[str, Download]

    def __bool__(self) -> bool:
        return bool(self.host or self.toolchain or self.packages)

    @property
    def added(self) -> tuple[PackageChange, ...]:
        """The packages that are new."""
        return tuple(row for row in self.packages if not row.old)

    @property
    def removed(self) -> tuple[PackageChange, ...]:
        """The packages that are gone."""
        return tuple(row for row in self.packages if not row.new)

    @property
    def changed(self) -> tuple[PackageChange, ...]:
        """The packages that are another file now."""
        return tuple(row for row in self.packages if row.old and row.new)

    def to_json(self) -> dict[str, Any]:
        """Return the difference as plain values."""
        return {
            "host": [asdict(row) for row in self.host],
            "toolchain": [asdict(row) for row in self.toolchain],
            "added": [row.to_json() for row in self.added],
            "removed": [row.to_json() for row in self.removed],
            "changed": [row.to_json() for row in self.changed],
            "download": {platform: asdict(row) for platform, row in self.download.items()},
        }


def compare(old: Lock, new: Lock, facts: Facts, platforms: Iterable[str] = ()) -> Difference:
    """Compare two locks, on the platforms that both serve.

    Args:
        old: One lock.
        new: The other; it may be one of another target.
        facts: What follows from a CUDA release.
        platforms: Those to look at; empty for all.
    """
    wanted = tuple(platforms)
    both = [name for name in new.platforms if name in old.platforms and (not wanted or name in wanted)]
    rows = [row for platform in both for row in _package_changes(old, new, platform)]
    return Difference(
        host=tuple(_host(old, new, facts, any(name.startswith("win") for name in both), bool(wanted))),
        toolchain=tuple(_toolchain(old, new, both)),
        packages=tuple(sorted(_joined(rows), key=lambda row: (row.name, row.kind, row.new, row.old))),
        download={platform: _download(old, new, platform) for platform in both},
    )


def _host(old: Lock, new: Lock, facts: Facts, windows: bool, narrowed: bool) -> Iterator[ValueChange]:
    """Yield what changes in what the host must offer."""
    before, now = ({row[0]: row for row in _demands(lock, facts, windows)} for lock in (old, new))
    for name in [*now, *(name for name in before if name not in now)]:
        _, title, _, source = now.get(name) or before[name]
        was, is_now = (rows[name][2] if name in rows else () for rows in (before, now))
        known = bool(was and is_now) or name not in _FROM_FACTS  # what no table knows has not changed, it is unknown
        if was != is_now and known and not (narrowed and name in _OF_ALL_PLATFORMS):
            dropped = tuple(item for item in was if item not in is_now)
            added = tuple(item for item in is_now if item not in was)
            lists = (dropped, added) if name in _LISTS else ((), ())
            yield ValueChange(name, title, ", ".join(was), ", ".join(is_now), (), *lists, source)


_LISTS = ("platforms", "channels", "gpu")
_OF_ALL_PLATFORMS = ("platforms", "channels")
_FROM_FACTS = ("gpu", "gcc-for-nvcc")


def _demands(lock: Lock, facts: Facts, windows: bool) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield what a lock asks of a host: its name, what people call it, the values, where it is written."""
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
            yield f"system.{name}", f"{name} of the host", (row,) if isinstance(row, str) else tuple(row), ""


def _cuda_demands(cuda: Version, facts: Facts, windows: bool) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield what follows from a CUDA release."""
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
    """Yield which products have another version, platforms with the same change joined."""
    for title, patterns in _PRODUCTS.items():
        found: dict[tuple[str, str], list[str]] = {}
        for platform in platforms:
            pair = _product(old, platform, patterns), _product(new, platform, patterns)
            if pair[0] != pair[1]:
                found.setdefault(pair, []).append(platform)
        for (was, now), where in found.items():
            yield ValueChange(re.sub(r"\W+", "-", title.lower()).strip("-"), title, was, now, tuple(where))


def _product(lock: Lock, platform: str, patterns: Iterable[str]) -> str:
    versions = {package.name: package.version for package in lock.conda.get(platform, ())}
    versions |= {archive.name: archive.version for archive in lock.archives.get(platform, ())}
    minors = lock.python_minors(platform)
    versions |= {wheel.name: wheel.version for wheel in (lock.wheels_for(platform, minors[-1]) if minors else ())}
    for pattern in patterns:
        for name, version in versions.items():
            if re.fullmatch(pattern, name):
                return version
    return ""


def _package_changes(old: Lock, new: Lock, platform: str) -> Iterator[PackageChange]:
    """Yield what differs on one platform: conda packages, archives, and wheels for each Python minor."""
    yield from _pairs(platform, "conda", _conda(old, platform), _conda(new, platform))
    yield from _pairs(platform, "archive", _archives(old, platform), _archives(new, platform))
    minors = _minors(old, new, platform)
    rows: dict[tuple[str, str, str], dict[str, PackageChange]] = {}
    for was, now in minors:
        before, after = _wheels(old, platform, was), _wheels(new, platform, now)
        for row in _pairs(platform, "wheel", before, after):
            rows.setdefault((row.name, row.old, row.new), {})[now or was] = row
    for found in rows.values():
        python = () if len(found) == len(minors) else tuple(found)
        last = list(found.values())[-1]
        yield PackageChange(last.kind, last.name, last.old, last.new, python, last.pieces)


def _minors(old: Lock, new: Lock, platform: str) -> list[tuple[str, str]]:
    """Return the Python minors to compare: those that both serve, or the highest of each when there is none."""
    had, has = old.python_minors(platform), new.python_minors(platform)
    common = [(minor, minor) for minor in has if minor in had]
    return common or [(had[-1] if had else "", has[-1] if has else "")]


def _pairs(platform: str, kind: str, old: Mapping[str, Piece], new: Mapping[str, Piece]) -> Iterator[PackageChange]:
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was is None or now is None or was.digest != now.digest:
            versions = was.version if was else "", now.version if now else ""
            yield PackageChange(kind, name, *versions, (), {platform: (was, now)})


def _joined(rows: Iterable[PackageChange]) -> Iterator[PackageChange]:
    """Yield one row for the platforms on which the same happens."""
    found: dict[tuple[str, str, str, str, tuple[str, ...]], dict[str, Pair]] = {}
    for row in rows:
        found.setdefault((row.kind, row.name, row.old, row.new, row.python), {}).update(row.pieces)
    for key, pieces in found.items():
        yield PackageChange(*key, pieces)


def _download(old: Lock, new: Lock, platform: str) -> Download:
    was, now = _minors(old, new, platform)[-1]
    before, after = _files(old, platform, was), _files(new, platform, now)
    fetch = sum(size for digest, size in after.items() if digest not in before)
    return Download(sum(before.values()), sum(after.values()), fetch)


def _files(lock: Lock, platform: str, minor: str) -> dict[str, int]:
    """Return the size of every file that one environment takes, by its digest."""
    pieces = (_conda(lock, platform), _archives(lock, platform), _wheels(lock, platform, minor))
    return {piece.digest: piece.size or 0 for found in pieces for piece in found.values()}


def _conda(lock: Lock, platform: str) -> dict[str, Piece]:
    return {
        row.name: Piece(row.version, row.build, row.channel, row.size, row.sha256 or row.md5)
        for row in lock.conda.get(platform, ())
    }


def _archives(lock: Lock, platform: str) -> dict[str, Piece]:
    return {
        row.name: Piece(row.version or "(no version)", "", "", row.size, row.sha256)
        for row in lock.archives.get(platform, ())
    }


def _wheels(lock: Lock, platform: str, minor: str) -> dict[str, Piece]:
    return {wheel.name: _wheel(wheel) for wheel in lock.wheels_for(platform, minor)}


def _wheel(wheel: Wheel) -> Piece:
    file = WheelFile.parse(wheel.file)
    tags = "-".join(filter(None, (file.build, file.tags))) if file else ""
    return Piece(wheel.version, tags, "", wheel.size, wheel.sha256)
