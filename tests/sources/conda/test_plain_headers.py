"""Plain headers are read without `tarfile`, which has to see the same members all the same."""

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.errors import TenvError
from tenv.core.unpack_limits import UnpackLimits
from tenv.sources.conda import package_reader
from tenv.sources.conda.plain_headers import BLOCK, plain_size

NAMES = st.sampled_from(
    [
        *("info/paths.json", "./info/paths.json", "info//files", "info/files/", "info/files/.", "info/x/../files"),
        *("bin/a", "lib/.hidden", ".", "..", "share/" + "long/" * 30 + "name", "share/" + "n" * 120, "b/ü", "files"),
    ]
)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, b"7"])
MEMBERS = st.lists(st.tuples(NAMES, KINDS, st.integers(0, 1300)), max_size=8)
FORMATS = st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
DAMAGED: tuple[type[Exception], ...] = (TenvError, *package_reader._DAMAGE)
DAMAGE = st.lists(st.tuples(st.integers(0, 8 * 512), st.integers(0, 255)), max_size=2)


def packed(members: list[tuple[str, bytes, int]], form: int, damage: list[tuple[int, int]], heads: bool) -> bytes:
    out = io.BytesIO()
    pax = {"comment": "for every member"} if heads and form == tarfile.PAX_FORMAT else None
    with tarfile.open(fileobj=out, mode="w", format=form, pax_headers=pax) as archive:
        for name, kind, size in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, size if kind in tarfile.REGULAR_TYPES else 0
            try:
                archive.addfile(member, io.BytesIO(b"x" * member.size))
            except ValueError:  # too long for this format
                continue
    data = bytearray(out.getvalue()[: -tarfile.RECORDSIZE + 2048])
    for place, byte in damage:
        if place < len(data):
            data[place] = byte
    return bytes(data)


def seen(data: bytes, limits: UnpackLimits, step: int) -> object:
    """Return what is found and counted, or the error."""
    reading = package_reader._Reading("package", 100, limits)
    try:
        reading.read(Path("package.tar.bz2"), (data[start : start + step] for start in range(0, len(data), step)))
    except DAMAGED as error:
        return type(error), str(error)
    return reading.found, reading._entries, reading._declared, reading._before


@given(MEMBERS, FORMATS, DAMAGE, st.booleans(), st.sampled_from([100, 511, 512, 513, 1 << 20]), st.integers(1, 9))
def test_all_members_are_seen_as_tarfile_sees_them(
    members: list[tuple[str, bytes, int]], form: int, damage: list[tuple[int, int]], heads: bool, step: int, most: int
) -> None:
    data, limits = packed(members, form, damage, heads), UnpackLimits(entries=most)
    fast = seen(data, limits, step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package_reader, "plain_size", lambda *_: None)
        assert seen(data, limits, step) == fast


def test_a_cut_package_is_damaged() -> None:
    whole = packed([("bin/a", tarfile.REGTYPE, 10), ("bin/b", tarfile.REGTYPE, 2000)], tarfile.USTAR_FORMAT, [], False)
    for end in range(0, 512 + 512 + 512 + 2048, 100):
        fast = seen(whole[:end], UnpackLimits(), 300)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(package_reader, "plain_size", lambda *_: None)
            assert seen(whole[:end], UnpackLimits(), 300) == fast


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_most_members_are_plain(form: int) -> None:
    """What common programs write is read without `tarfile`."""
    members = [(f"share/{number}", tarfile.REGTYPE, number) for number in range(50)]
    data = packed(members, form, [], False)
    place = read = 0
    while (size := plain_size(data[place : place + BLOCK], ())) is not None:
        place, read = place + BLOCK + -(-size // BLOCK) * BLOCK, read + 1
    assert read == len(members)
