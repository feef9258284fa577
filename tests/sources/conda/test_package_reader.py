"""A conda package is measured member by member, however its bytes arrive, and a damaged one ends with one error."""

import contextlib
import io
import posixpath
import tarfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.errors import ArchiveRefusedError
from tenv.core.unpack_limits import UnpackLimits
from tenv.sources.archives.readers import DAMAGE
from tenv.sources.conda import package_reader

NAMES = st.sampled_from(
    [
        *("info/paths.json", "./info/paths.json", "info//files", "info/files/", "info/files/.", "info/x/../files"),
        *("bin/a", "lib/.hidden", ".", "..", "share/" + "long/" * 30 + "name", "share/" + "n" * 120, "b/ü", "files"),
    ]
)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, b"7"])
MEMBERS = st.lists(st.tuples(NAMES, KINDS, st.integers(0, 1300)), max_size=8)
FORMATS = st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])


def packed(members: list[tuple[str, bytes, int]], form: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, kind, size in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, size if kind in tarfile.REGULAR_TYPES else 0
            try:
                archive.addfile(member, io.BytesIO(b"x" * member.size))
            except ValueError:  # too long for this format
                continue
    return out.getvalue()


def pieces(data: bytes, step: int) -> Iterator[bytes]:
    return (data[start : start + step] for start in range(0, len(data), step))


def read(data: bytes, step: int = 512) -> package_reader._Reading:
    reading = package_reader._Reading("package", 100, UnpackLimits())
    reading.read(pieces(data, step))
    return reading


@given(MEMBERS, FORMATS, st.sampled_from([1, 100, 511, 512, 513, 1 << 20]))
def test_all_members_are_counted_as_tarfile_sees_them(
    members: list[tuple[str, bytes, int]], form: int, step: int
) -> None:
    data = packed(members, form)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        known = archive.getmembers()
    wanted = [posixpath.normpath(member.name) for member in known]
    wanted = [name for name in wanted if name in package_reader.ABOUT]
    if any(wanted.count(name) > 1 for name in wanted):
        with pytest.raises(tarfile.ReadError, match="is there twice"):
            read(data, step)
        return
    try:
        reading = read(data, step)
    except tarfile.ReadError:
        assert any(not member.isreg() for member in known if posixpath.normpath(member.name) in package_reader.ABOUT)
        return
    assert reading._entries == len(known)
    assert reading._declared == sum(member.size for member in known if member.isreg())
    assert set(reading.about) <= set(package_reader.ABOUT)


@given(MEMBERS, FORMATS, st.lists(st.tuples(st.integers(0, 4096), st.integers(0, 255)), min_size=1, max_size=3))
def test_changed_bytes_end_with_a_known_error(
    members: list[tuple[str, bytes, int]], form: int, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(packed(members, form))
    for place, byte in changes:
        if place < len(data):
            data[place] = byte
    with contextlib.suppress(ArchiveRefusedError, *DAMAGE):
        read(bytes(data))


def test_a_package_that_is_cut_within_a_member_is_damaged() -> None:
    whole = packed([("bin/a", tarfile.REGTYPE, 10), ("bin/b", tarfile.REGTYPE, 2000)], tarfile.USTAR_FORMAT)
    assert read(whole)._entries == 2
    for end in (100, 600, 1100, 1500, 2000, 3000):
        with pytest.raises(tarfile.ReadError):
            read(whole[:end])


def test_a_broken_header_is_no_end_of_a_package() -> None:
    data = bytearray(packed([("bin/a", tarfile.REGTYPE, 10), ("bin/b", tarfile.REGTYPE, 20)], tarfile.GNU_FORMAT))
    data[1024 + 148] ^= 1
    with pytest.raises(tarfile.ReadError, match="a damaged header"):
        read(bytes(data))
