"""Read a fetched conda package once, to its end: its lists of files, its members, and the size that it unpacks to.

rattler unpacks whatever it is given, so a package is measured before it gets it. Nothing is written here.
"""

import posixpath
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tenv.core.errors import ArchiveRefusedError, NetworkError
from tenv.core.unpack_limits import UnpackLimits
from tenv.rattler_api.cache import PackageMembers
from tenv.sources.archives.readers import DAMAGE, decompressed, tar_members

ABOUT = ("info/paths.json", "info/link.json", "info/files", "info/has_prefix")
"""The lists of a package about its files."""

_ZIP64, _LATER = 0xFFFFFFFF, 0x8
"""The size in a header that gives it elsewhere, and the flag of a member whose sizes follow it."""

_LOCAL = struct.Struct("<4s5H3L2H")
"""The header before a member of a zip: signature, version, flags, method, time, date, digest, sizes, lengths."""


def read_package(path: Path, name: str, limits: UnpackLimits) -> PackageMembers:
    """Return the members of a package, with the content of those of `ABOUT`.

    Args:
        path: The package, a ``.conda`` or ``.tar.bz2`` file with the digest of the lock.
        name: Its name in messages.
        limits: The limits on its unpacked size.

    Raises:
        ArchiveRefusedError: It unpacks to more.
        NetworkError: It is not a conda package.
    """
    reading = _Reading(name, path.stat().st_size, limits)
    try:
        with path.open("rb") as file:
            if path.name.endswith(".conda"):
                for part in _parts(file):
                    reading.read(decompressed(part, "zst", min(limits.memory, 128 << 20)))
            else:
                reading.read(decompressed(file, "bz2", limits.memory))
    except ArchiveRefusedError:
        raise
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno:  # of the disk, not of the package
            raise
        raise NetworkError(f"{name}: is not a conda package: {error}") from error
    return PackageMembers(reading.about, reading.targets, frozenset(reading.programs))


def _parts(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield the tar archives within a ``.conda`` file.

    rattler reads member after member from the start of the file, and Python by the directory at its end: both must
    find the same members.
    """
    with zipfile.ZipFile(file) as outer:
        members = sorted(outer.infolist(), key=lambda member: member.header_offset)
        place = 0
        for member in members:
            if member.header_offset != place or member.compress_type != zipfile.ZIP_STORED:
                raise zipfile.BadZipFile(f"{member.filename} is not where its directory has it")
            file.seek(place)
            _, _, flags, method, *_, packed, _, name, extra = _LOCAL.unpack(file.read(_LOCAL.size))
            sizes = (member.compress_size, _ZIP64)
            if method != zipfile.ZIP_STORED or (packed not in sizes and not flags & _LATER):
                raise zipfile.BadZipFile(f"{member.filename} differs from its directory")
            place += _LOCAL.size + name + extra + member.compress_size
            if flags & _LATER:
                place = _after_descriptor(file, place)
        if place != outer.start_dir:
            raise zipfile.BadZipFile("members that its directory lacks")
        for member in members:
            if member.filename.endswith(".tar.zst"):
                with outer.open(member) as part:
                    yield part


def _after_descriptor(file: IO[bytes], place: int) -> int:
    """Return the end of the sizes that follow a member whose header has none."""
    file.seek(place)
    data = file.read(28)
    start = 4 if data[:4] == b"PK\7\10" else 0
    return next(
        (place + start + length for length in (12, 20) if data[start + length : start + length + 4][:2] == b"PK"), place
    )


class _Reading:
    """One package while it is read."""

    def __init__(self, name: str, packed: int, limits: UnpackLimits) -> None:
        self.about: dict[str, bytes] = {}
        self.targets: dict[str, str] = {}
        self.programs: set[str] = set()
        self._name, self._packed, self._limits = name, packed, limits
        self._entries = self._declared = self._before = self._passed = 0

    def read(self, pieces: Iterator[bytes]) -> None:
        """Read one tar archive of the package."""
        for archive, member in tar_members(pieces, self._count):
            self._take(archive, member)
        self._before += self._passed

    def _count(self, passed: int) -> None:
        """Count the decompressed bytes until now, with headers and padding."""
        self._passed = passed
        self._limits.check(self._name, self._packed, self._before + passed)

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self._entries += 1
        self._declared += member.size if member.isreg() else 0  # the whole size of a sparse file
        self._limits.check(self._name, self._packed, self._declared, self._entries)
        name = posixpath.normpath(member.name)
        if member.issym():
            self.targets[name] = member.linkname
        elif member.mode & stat.S_IXUSR and not member.isdir():
            self.programs.add(name)
        if name not in ABOUT:
            return
        if name in self.about or not member.isreg() or member.size > self._limits.memory:
            raise tarfile.ReadError(f"{name} is there twice, or is not a file of usual size")
        data = archive.extractfile(member)
        self.about[name] = data.read() if data else b""
