"""Hostile archives of every format: each is refused, and nothing of it is anywhere."""

import gzip
import io
import itertools
import lzma
import stat
import tarfile
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.core.errors import ArchiveRefusedError, StorageError
from tenv.core.unpack_limits import UnpackLimits
from tenv.sources.archives import member_names as clashes
from tenv.sources.archives.answers import KINDS, kind_of
from tenv.sources.archives.unpack import unpack
from tests.support import redist
from tests.support.each import each
from tests.support.redist import Member, folder, hard, link, pack, regular, special

TARS = ("tar.gz", "tar.xz", "tar.bz2", "conda")
LINKING = (*TARS, "zip")
SMALL = UnpackLimits(entries=20, bytes=1 << 20, ratio=20, free=1 << 16, path=200, depth=8, memory=64 << 20)

GOOD = [
    folder("top"),
    regular("top/include/cudnn.h", b"#define CUDNN_MAJOR 9\n"),
    regular("top/bin/tool", b"#!/bin/sh\n", 0o755),
    regular("top/LICENSE", b"do as you like"),
]


def everything(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*")}


def refused(
    home: Path, kind: str, raw: bytes, *, limits: UnpackLimits | None = None, strip: int = 0, windows: bool = False
) -> str:
    """Return the error of an archive that must be refused with nothing left of it."""
    shelf, outside = home / "shelf", home / "outside"
    shelf.mkdir()
    outside.mkdir()
    (home / "sample").write_bytes(raw)
    with pytest.raises(ArchiveRefusedError) as caught:
        unpack(home / "sample", kind, shelf / "out", limits=limits, strip=strip, windows=windows)
    assert everything(home) == {"sample", "shelf", "outside"}
    return caught.value.message


@each("kind", KINDS)
def test_an_honest_archive_is_unpacked(kind: str, tmp_path: Path) -> None:
    members = GOOD if kind != "7z" else GOOD[1:]
    out = tmp_path / "out"
    contents = unpack(redist.packed(tmp_path, kind, members), kind, out, strip=1)
    assert (out / "include" / "cudnn.h").read_bytes() == b"#define CUDNN_MAJOR 9\n"
    assert contents.files["LICENSE"].size == 14
    assert contents.licence == "LICENSE"
    assert {path.name for path in tmp_path.iterdir()} == {"out", f"sample.{kind}"}
    if kind != "7z":  # py7zr writes no modes from memory
        assert stat.S_IMODE((out / "bin" / "tool").stat().st_mode) == 0o555
    assert stat.S_IMODE((out / "include" / "cudnn.h").stat().st_mode) == 0o444


def test_links_within_an_archive_are_made(tmp_path: Path) -> None:
    members = [
        *GOOD,
        regular("top/lib/libx.so.1", b"x"),
        link("top/lib/libx.so", "libx.so.1"),
        link("top/lib64", "lib"),
        link("top/bin/up", "../lib64/libx.so"),
        hard("top/lib/same", "top/lib/libx.so.1"),
    ]
    out = tmp_path / "out"
    contents = unpack(redist.packed(tmp_path, "tar.xz", members), "tar.xz", out, strip=1)
    assert (out / "bin" / "up").read_bytes() == b"x"
    assert (out / "lib64").readlink() == Path("lib")
    assert (out / "lib" / "same").read_bytes() == b"x"
    assert contents.links == {"lib/libx.so": "libx.so.1", "lib64": "lib", "bin/up": "../lib64/libx.so"}


def test_a_python_without_filters_of_tarfile_unpacks_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11.0 to 3.11.3 have none."""
    for name in ("data_filter", "tar_filter", "fully_trusted_filter", "FilterError"):
        monkeypatch.delattr(tarfile, name, raising=False)
    unpack(redist.packed(tmp_path, "tar.gz", [*GOOD, link("top/a", "bin/tool")]), "tar.gz", tmp_path / "out")
    assert (tmp_path / "out" / "top" / "a").read_bytes() == b"#!/bin/sh\n"


NAMES = {
    "absolute": ("/etc/cron.d/evil", "is an absolute path"),
    "parent": ("../evil", "leads out of the archive"),
    "hidden parent": ("a/../../evil", "leads out of the archive"),
    "parent at the end": ("a/b/..", "leads out of the archive"),
    "drive": ("C:/evil", "is an absolute path"),
    "drive without a slash": ("c:evil", "is an absolute path"),
    "backslashes": ("..\\evil", "a backslash"),
    "share": ("\\\\host\\share\\evil", "a backslash"),
    "control": ("a\x1b[2Jb", "a control character"),
    "line break": ("a\nb", "a control character"),
    "long part": ("x" * 256, "longer or deeper"),
    "deep": ("/".join("x" * 70), "longer or deeper"),
    "dot": (".", "is not a name of a file"),
}


@each("case, kind", itertools.product(NAMES, KINDS))
def test_names(kind: str, case: str, tmp_path: Path) -> None:
    name, reason = NAMES[case]
    if kind == "7z":
        message = refused(tmp_path, kind, sevenzip_named(name))
        slashes = ("leads out of the archive", "is an absolute path")  # py7zr takes a backslash for one
        assert any(part in message for part in (reason, "can't be unpacked", *(slashes if "\\" in name else ()))), (
            message
        )
    else:
        assert reason in refused(tmp_path, kind, pack(kind, [regular("fine"), regular(name)]))


def sevenzip_named(name: str) -> bytes:
    """Return a 7z archive with a name that py7zr does not write: put in place of another one, the CRCs mended."""
    import struct
    import zlib

    import py7zr

    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w", filters=redist.LIGHT) as archive:
        archive.set_encoded_header_mode(False)
        archive.writestr(b"x", "q" * len(name))
    raw = out.getvalue()
    raw = raw.replace(("q" * len(name)).encode("utf-16-le"), name.encode("utf-16-le"))
    offset, size = struct.unpack_from("<QQ", raw, 12)
    header = raw[32 + offset : 32 + offset + size]
    start = struct.pack("<QQL", offset, size, zlib.crc32(header))
    return raw[:8] + struct.pack("<L", zlib.crc32(start)) + start + raw[32:]


@each("kind", TARS)
def test_a_name_that_is_not_utf_8(kind: str, tmp_path: Path) -> None:
    raw = redist.tar([regular("fine_name")]).replace(b"fine_name", b"f\xffne_name")
    message = refused(tmp_path, "tar.xz", lzma.compress(mended(raw), preset=0))
    assert "is a name that is not UTF-8" in message


def mended(raw: bytes) -> bytes:
    """Return a tar archive with the checksum of its first header put right."""
    block = bytearray(raw[:512])
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    return bytes(block) + raw[512:]


WINDOWS = ("con", "nul.txt", "a:b", "dot.", "space ", "a?b", "COM1")


@each("name", WINDOWS)
def test_names_that_windows_can_t_hold(name: str, tmp_path: Path) -> None:
    raw = pack("zip", [regular(f"a/{name}")])
    assert "is a name that Windows can't hold" in refused(tmp_path, "zip", raw, windows=True)


LINKS: dict[str, tuple[list[Member], str]] = {
    "absolute": ([link("a", "/etc/passwd")], "leads out of the archive"),
    "out": ([link("a", "../outside")], "leads out of the archive"),
    "out from below": ([link("d/a", "../../outside")], "leads out of the archive"),
    "by another link": ([link("d/up", ".."), link("k", "d/up/..")], "leads out of the archive"),
    "by three links": ([link("d/e/x", "../.."), link("y", "d/e/x"), link("z", "y/../q")], "leads out of the archive"),
    "drive": ([link("a", "C:\\x")], "leads out of the archive"),
    "circle": ([link("a", "b"), link("b", "a")], "leads in a circle"),
    "itself": ([link("a", "a")], "leads in a circle"),
    "file through a link": ([link("a", "b"), regular("a/x")], "goes through a symbolic link"),
    "file over a link": ([link("a", "b"), regular("a")], "occurs twice"),
    "link over a file": ([regular("a"), link("a", "b")], "occurs twice"),
    "link over a folder": ([regular("a/x"), link("a", "b")], "occurs twice"),
    "long part": ([link("a", "x" * 256)], "too long target"),
    "long": ([link("a", "x/" * 600 + "y")], "too long target"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@each("case, kind", itertools.product(LINKS, LINKING))
def test_links(kind: str, case: str, tmp_path: Path) -> None:
    members, reason = LINKS[case]
    assert reason in refused(tmp_path, kind, pack(kind, members))


SAME: dict[str, tuple[list[Member], str]] = {
    "absolute": ([hard("a", "/etc/passwd")], "is an absolute path"),
    "out": ([hard("a", "../outside")], "leads out of the archive"),
    "not there": ([hard("a", "b")], "does not precede it"),
    "later": ([hard("a", "b"), regular("b")], "does not precede it"),
    "a folder": ([folder("b"), hard("a", "b")], "does not precede it"),
    "a link": ([link("b", "c"), hard("a", "b")], "does not precede it"),
}


@each("case, kind", itertools.product(SAME, TARS))
def test_hard_links(kind: str, case: str, tmp_path: Path) -> None:
    members, reason = SAME[case]
    assert reason in refused(tmp_path, kind, pack(kind, members))


@each("type_, kind", itertools.product([tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z"], TARS))
def test_special_files(kind: str, type_: bytes, tmp_path: Path) -> None:
    raw = pack(kind, [special("dev/null", type_)])
    assert "is a device, a pipe or a socket" in refused(tmp_path, kind, raw)


def test_a_device_in_a_zip(tmp_path: Path) -> None:
    assert "is a device" in refused(tmp_path, "zip", pack("zip", [special("null")]))


@each("mode, kind", itertools.product([0o4755, 0o2755, 0o6755, 0o1644], LINKING))
def test_rights_beyond_reading_and_running(kind: str, mode: int, tmp_path: Path) -> None:
    raw = pack(kind, [regular("bin/su", b"x", mode)])
    assert "has the setuid, setgid or sticky bit" in refused(tmp_path, kind, raw)


CLASHES = [("include/a.h", "include/A.h"), ("Lib/x", "lib/y"), ("é", "e\u0301"), ("straße", "STRASSE")]


@each("names, kind", itertools.product(CLASHES, KINDS))
def test_names_that_windows_does_not_tell_apart(kind: str, names: tuple[str, str], tmp_path: Path) -> None:
    message = refused(tmp_path, kind, pack(kind, [regular(name) for name in names]), windows=True)
    assert "only by case or Unicode form, and would replace it" in message


@each("names, kind", itertools.product(CLASHES, KINDS))
def test_names_that_this_file_system_does_not_tell_apart(
    kind: str, names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clashes, "_make", redist.WithoutCase())
    message = refused(tmp_path, kind, pack(kind, [regular(name) for name in names]))
    assert "only by case or Unicode form, and would replace it" in message


@each("kind", KINDS)
def test_names_that_this_file_system_tells_apart(kind: str, tmp_path: Path) -> None:
    """The kernel's headers have such pairs."""
    names = ["linux/xt_MARK.h", "linux/xt_mark.h", "Linux/xt_mark.h", "linux/xt_Mark.h"]
    out = tmp_path / "out"
    unpack(redist.packed(tmp_path, kind, [regular(name, name.encode()) for name in names]), kind, out)
    assert {name: (out / name).read_text() for name in names} == {name: name for name in names}
    assert {path.name for path in tmp_path.iterdir()} == {"out", f"sample.{kind}"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice(kind: str, tmp_path: Path) -> None:
    assert "occurs twice" in refused(tmp_path, kind, pack(kind, [regular("a"), regular("a")]))


def test_folders_of_one_name_after_stripping(tmp_path: Path) -> None:
    raw = pack("tar.gz", [regular("one/x"), regular("two/x")])
    assert "occurs twice" in refused(tmp_path, "tar.gz", raw, strip=1)


@each("kind", KINDS)
def test_too_many_entries(kind: str, tmp_path: Path) -> None:
    raw = pack(kind, [regular(f"f{number}") for number in range(30)])
    assert "exceeds the limit of 20 entries" in refused(tmp_path, kind, raw, limits=SMALL)


@each("kind", KINDS)
def test_more_folders_dropped_than_there_are(kind: str, tmp_path: Path) -> None:
    message = refused(tmp_path, kind, pack(kind, [regular("top/include/a.h")]), strip=3)
    assert message == "sample: holds no file after removal of 3 leading folders"


@each("kind", ["tar.gz", "tar.xz", "tar.bz2", "zip"])
def test_an_archive_of_nothing(kind: str, tmp_path: Path) -> None:
    assert refused(tmp_path, kind, pack(kind, [])) == "sample: holds no file"


@each("kind", KINDS)
def test_an_archive_bomb(kind: str, tmp_path: Path) -> None:
    raw = pack(kind, [regular("zeros", bytes(900_000))])
    assert "is the limit for" in refused(tmp_path, kind, raw, limits=SMALL)


@each("kind", KINDS)
def test_more_than_there_may_be(kind: str, tmp_path: Path) -> None:
    import random

    raw = pack(kind, [regular(f"f{number}", random.Random(number).randbytes(80_000)) for number in range(4)])
    assert "is the limit for" in refused(tmp_path, kind, raw, limits=replace(SMALL, bytes=1 << 18))


def test_a_zip_whose_files_are_one_another(tmp_path: Path) -> None:
    """The trick of a zip bomb without nesting: many entries that name the same bytes."""
    raw = pack("zip", [regular("a", bytes(60_000)), regular("b", b"y")])
    at = raw.index(b"PK\1\2")
    second = raw.index(b"PK\1\2", at + 4)
    overlapping = bytearray(raw)
    overlapping[second + 42 : second + 46] = overlapping[at + 42 : at + 46]
    overlapping[second + 20 : second + 28] = overlapping[at + 20 : at + 28]
    assert "sample: " in refused(tmp_path, "zip", bytes(overlapping))


def test_a_file_that_holds_more_than_it_declares(tmp_path: Path) -> None:
    raw = bytearray(pack("zip", [regular("a", bytes(5000))]))
    for mark, offset in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        at = raw.index(mark)
        raw[at + offset : at + offset + 4] = (100).to_bytes(4, "little")
    assert "sample: " in refused(tmp_path, "zip", bytes(raw))


def test_a_header_that_asks_for_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 4 << 30
    raw = info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    assert "a header requires" in refused(tmp_path, "tar.xz", lzma.compress(raw, preset=0))


def test_a_decompressor_that_would_take_all_memory(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    raw = lzma.compress(redist.tar(GOOD), filters=filters)
    assert "can't be unpacked: Memory usage limit" in refused(tmp_path, "tar.xz", raw)


def test_a_chain_of_headers(tmp_path: Path) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 11
    raw = (info.tobuf(tarfile.GNU_FORMAT) + b"11 path=ab\n".ljust(512, b"\0")) * 5000
    assert "sample: " in refused(tmp_path, "tar.gz", gzip.compress(raw))


def test_a_negative_size(tmp_path: Path) -> None:
    block = bytearray(tarfile.TarInfo("a").tobuf(tarfile.GNU_FORMAT))
    block[124:136] = b"\xff" * 12
    raw = mended(bytes(block)) + bytes(1024)
    assert "sample: " in refused(tmp_path, "tar.xz", lzma.compress(raw, preset=0))


def test_an_encrypted_zip(tmp_path: Path) -> None:
    raw = bytearray(pack("zip", [regular("a")]))
    raw[raw.index(b"PK\1\2") + 8] |= 1
    assert "is encrypted" in refused(tmp_path, "zip", bytes(raw))


def test_a_zip_packed_with_lzma(tmp_path: Path) -> None:
    raw = redist.zipped([regular("a")], zipfile.ZIP_LZMA)
    assert "has an unsupported compression" in refused(tmp_path, "zip", raw)


def test_a_zip_whose_names_differ_inside(tmp_path: Path) -> None:
    raw = pack("zip", [regular("aaaa")]).replace(b"PK\1\2", b"PK\1\2")
    at = raw.index(b"aaaa")
    assert "sample: " in refused(tmp_path, "zip", raw[:at] + b"bbbb" + raw[at + 4 :])


def test_a_null_byte_in_a_name(tmp_path: Path) -> None:
    raw = pack("zip", [regular("aXb")]).replace(b"aXb", b"a\0b")
    assert "a control character" in refused(tmp_path, "zip", raw)


CONDA = {"nothing": [], "two contents": ["pkg-a-1-0.tar.zst", "pkg-b-1-0.tar.zst", "info-a-1-0.tar.zst"]}


@each("case", CONDA)
def test_a_conda_package_that_is_none(case: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in CONDA[case]:
            archive.writestr(name, b"")
    assert "is not a conda package" in refused(tmp_path, "conda", out.getvalue())


@each("kind", KINDS)
def test_half_an_archive(kind: str, tmp_path: Path) -> None:
    raw = pack(kind, [*GOOD[1:], regular("noise", bytes(range(256)) * 64)])
    assert "sample: " in refused(tmp_path, kind, raw[: len(raw) // 2])


@each("kind", KINDS)
def test_no_archive_at_all(kind: str, tmp_path: Path) -> None:
    assert "sample: " in refused(tmp_path, kind, b"<html>not found</html>" * 100)


@each("kind", KINDS)
def test_an_empty_file(kind: str, tmp_path: Path) -> None:
    assert "sample: " in refused(tmp_path, kind, b"")


def test_a_broken_header_in_the_middle_is_no_end(tmp_path: Path) -> None:
    raw = bytearray(redist.tar([regular("a"), regular("b")]))
    raw[1024 + 148] ^= 1
    assert "has a damaged header" in refused(tmp_path, "tar.xz", lzma.compress(bytes(raw), preset=0))


def test_an_unknown_kind(tmp_path: Path) -> None:
    assert "can't unpack `rar` archives" in refused(tmp_path, "rar", b"Rar!")
    assert kind_of("x.rar") == ""
    assert kind_of("magma-cuda121-2.6.1-1.TAR.BZ2") == "tar.bz2"


def test_without_py7zr_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from tenv.core.errors import UsageError

    monkeypatch.setitem(sys.modules, "py7zr", None)
    path = redist.packed(tmp_path, "zip", GOOD)
    with pytest.raises(UsageError, match="requires py7zr, which is not installed") as caught:
        unpack(path, "7z", tmp_path / "out")
    assert caught.value.hint.startswith(f"`{sys.executable} -")
    assert "[7z]" in caught.value.hint


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import os

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = redist.packed(tmp_path, "tar.xz", GOOD)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="No space left on device"):
        unpack(path, "tar.xz", tmp_path / "out")
    assert everything(tmp_path) == {"sample.tar.xz"}


@pytest.mark.long
def test_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    def peak(megabytes: int) -> int:
        path = tmp_path / f"{megabytes}.tar.xz"
        with lzma.open(path, "wb", preset=0) as out:
            out.write(redist.tar([regular("big", bytes(range(256)) * 4096 * megabytes)]))
        tracemalloc.start()
        unpack(path, "tar.xz", tmp_path / f"out{megabytes}", limits=UnpackLimits(ratio=10**6))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    small, large = peak(4), peak(64)
    assert large < small + (24 << 20)


def test_there_are_enough_hostile_cases(request: pytest.FixtureRequest) -> None:
    names = [item.name for item in request.session.items if "test_unpack.py" in item.nodeid]
    honest = ("test_an_honest", "test_links_within", "test_memory", "test_there_are", "test_without", "test_a_full")
    if len(names) > 50:  # not when one test is run alone
        assert len([name for name in names if not name.startswith(honest)]) >= 60
