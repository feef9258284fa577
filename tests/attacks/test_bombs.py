"""Packages that unpack to far more than they weigh: conda packages, wheels and archives."""

import io
import os
import tarfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from tenv.core.errors import ArchiveRefusedError
from tenv.core.files import digest
from tenv.core.unpack_limits import UnpackLimits
from tenv.locks.lock import Wheel
from tenv.project.context import Context
from tenv.sources.conda.package_reader import read_package
from tenv.sources.wheels.unpacked_size import check_directories, watched_unpacking
from tests.support.conda import make_conda, pack_conda
from tests.support.conda_project import Conda
from tests.support.fakes import make_wheel, noise
from tests.support.projects import HERE, Project, call

FREE = 4 << 20
"""What packages may unpack to here whatever they weigh: small bombs show as much as those for the default."""
ZEROS = 6 << 20
"""More than that, and more than 200 times what it is packed to."""


MOST = UnpackLimits.most


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnpackLimits, "most", lambda limits, packed: MOST(replace(limits, free=FREE), packed))


def test_the_default_limit_is_64_mib_and_200_times_the_packed_size() -> None:
    assert [MOST(UnpackLimits(), packed) for packed in (1, 1 << 20, 1 << 40)] == [64 << 20, 200 << 20, 64 << 30]


def _info(made: Path) -> bytes:
    with zipfile.ZipFile(made) as outer:
        name = next(name for name in outer.namelist() if name.startswith("info-"))
        return zstandard.ZstdDecompressor().decompress(outer.read(name), max_output_size=1 << 20)


def _tar(*entries: tarfile.TarInfo, mode: str = "w") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode, format=tarfile.GNU_FORMAT) as archive:  # type: ignore[call-overload]
        for entry in entries:
            archive.addfile(entry, io.BytesIO(bytes(entry.size)) if entry.size < ZEROS * 2 else None)
    return stream.getvalue()


def _file(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry


def _sparse(name: str, size: int) -> bytes:
    """Return a tar with one sparse file without data."""
    header = bytearray(_file(name, 0).tobuf(tarfile.GNU_FORMAT))
    header[156:157] = b"S"
    header[483:495] = b"%011o\0" % size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of rattler's cache, which is this test's own."""
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    return tmp_path / "packages"


def _nothing_left(folder: Path) -> bool:
    return not [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 100_000]


@pytest.mark.parametrize("kind", ["one file", "sparse", "in info"])
def test_a_conda_package_is_measured_before_rattler_unpacks_it(conda: Conda, left: Path, kind: str) -> None:
    conda.make("good", files={"share/good": "good\n"})
    made = make_conda(conda.channel.folder, "bomb", "1", files={"share/big": "big\n"})
    info, content = _info(made), _tar(_file("share/big", 4))
    if kind == "one file":
        content = _tar(_file("share/big", ZEROS))
    elif kind == "sparse":
        content = _sparse("share/big", 1 << 40)
    else:
        info = info.rstrip(b"\0") + bytes(-len(info.rstrip(b"\0")) % 512) + _tar(_file("info/more", ZEROS))
    made.write_bytes(pack_conda(made.stem, info, content))
    conda.lock("good", "bomb")
    said = conda.fails(6, "archive-refused")
    assert "bomb-1-0.conda: " in said
    assert "limit" in said
    assert "`tenv config unpack-limit " in said
    assert not conda.files()
    assert _nothing_left(left)
    assert not list(left.rglob("*bomb*"))


def test_members_that_the_directory_of_a_conda_package_lacks_are_refused(conda: Conda, left: Path) -> None:
    made = make_conda(conda.channel.folder, "bomb", "1", files={"share/big": "big\n"})
    whole = made.read_bytes()
    hidden = pack_conda("bomb-1-0", b"", _tar(_file("share/big", ZEROS)))
    first = hidden[: hidden.index(b"PK\1\2")]  # members without a directory
    stream = io.BytesIO(first + whole)
    with zipfile.ZipFile(stream, "a"):  # the directory's places are those in the new file
        pass
    made.write_bytes(stream.getvalue())
    conda.lock("bomb")
    assert "is not a conda package" in conda.fails(6, "network")
    assert not conda.files()


def test_the_setting_admits_a_large_package(conda: Conda, left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_conda(conda.channel.folder, "large", "1", files={"share/large": bytes(ZEROS)})
    assert made.stat().st_size * 200 < ZEROS
    conda.lock("large")
    said = conda.fails(6, "archive-refused")
    assert "unpacks to 6.0 MiB" in said
    monkeypatch.setenv("TENV_UNPACK_LIMIT", "5MiB")
    assert "5.0 MiB is the limit" in conda.fails(6, "archive-refused")
    conda.project.ok("config", "unpack-limit", "1GiB")
    assert "5.0 MiB is the limit" in conda.fails(6, "archive-refused")  # the variable wins
    monkeypatch.delenv("TENV_UNPACK_LIMIT")
    conda.create()
    assert (conda.prefix / "share/large").stat().st_size == ZEROS
    assert '"1.0 GiB"' in conda.project.ok("config", "--json").out


def _bomb(folder: Path, *, lies: bool, zeros: int = ZEROS) -> None:
    made = make_wheel(folder, "bomb", "1", files={"bomb.bin": bytes(zeros)})
    with zipfile.ZipFile(made) as plain:
        members = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    if lies:
        listing = bytearray(made.read_bytes())
        at = listing.rindex(b"PK\1\2", 0, listing.rindex(b"bomb.bin"))
        listing[at + 24 : at + 28] = (5).to_bytes(4, "little")
        made.write_bytes(bytes(listing))


def _asks_for_the_bomb(project: Project) -> None:
    project.ask_for('bomb = "*"')
    project.ok("lock", "tiny")


def test_a_wheel_is_refused_by_its_directory(project: Project) -> None:
    _bomb(project.index.folder, lies=False)
    _asks_for_the_bomb(project)
    project.index.asked.clear()
    said = project.fails(6, "archive-refused", "create", "tiny", "--frozen")
    assert "bomb-1-py3-none-any.whl: unpacks to 6.0 MiB" in said
    assert "`tenv config unpack-limit 1GiB`" in said
    wheels = [path for path in project.index.asked if path.endswith(".whl")]
    assert set(wheels) == {"/files/bomb-1-py3-none-any.whl"}  # its directory
    assert not project.prefix.exists() or not [*project.prefix.rglob("bomb*")]
    project.ok("config", "unpack-limit", "1GiB")
    project.ok("create", "tiny", "--frozen")
    assert (project.site() / "bomb.bin").stat().st_size == ZEROS


def test_a_wheel_without_a_size_in_its_lock_is_held_against_the_size_on_its_server(project: Project) -> None:
    """Locks of other tools have no sizes: a large wheel that packs nothing would be refused, or a bomb taken."""
    _bomb(project.index.folder, lies=False)
    make_wheel(project.index.folder, "large", "2", files={"large.bin": noise(ZEROS)})
    context = Context()
    for name, version in (("large", "2"), ("bomb", "1")):
        file = project.index.folder / f"{name}-{version}-py3-none-any.whl"
        wheel = Wheel(name, version, file.name, digest(file), None, (HERE,))
        for _ in ("asked", "noted"):
            if name == "bomb":
                with pytest.raises(ArchiveRefusedError, match=r"limit for \d+"):
                    check_directories(context.uv(), [wheel], context.progress)
            else:
                check_directories(context.uv(), [wheel], context.progress)


def test_a_package_of_too_many_files_is_refused(tmp_path: Path) -> None:
    made = tmp_path / "many-1-0.conda"
    content = _tar(*(_file(f"share/{number}", 0) for number in range(60)))
    made.write_bytes(pack_conda(made.stem, _tar(_file("info/paths.json", 0)), content))
    with pytest.raises(ArchiveRefusedError, match="exceeds the limit of 50 entries"):
        read_package(made, made.name, UnpackLimits(entries=50))
    assert read_package(made, made.name, UnpackLimits(entries=61)).about == {"info/paths.json": b""}


def test_a_package_of_the_old_format_is_measured(tmp_path: Path) -> None:
    made = tmp_path / "old-1-0.tar.bz2"
    made.write_bytes(_tar(_file("info/files", 7), _file("big", ZEROS), mode="w:bz2"))
    with pytest.raises(ArchiveRefusedError, match="unpacks to 6"):
        read_package(made, made.name, UnpackLimits())
    assert read_package(made, made.name, UnpackLimits.of(2 * ZEROS)).about == {"info/files": bytes(7)}


def test_uv_is_stopped_where_the_directory_of_a_wheel_lies(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The wheel's directory lists five bytes for 64 MiB; uv compares after it has written them.

    Where tenv gets no processor while uv writes, uv is the first to see it. Then, too, nothing stays.
    """
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv cache"))
    _bomb(project.index.folder, lies=True, zeros=1 << 26)
    _asks_for_the_bomb(project)
    ended = call("create", "tiny", "--frozen")
    assert ended.status == 6, ended.err
    refused = "error[archive-refused]" in ended.err and " is the limit for " in ended.err
    assert refused or "conflicting uncompressed sizes" in ended.err, ended.err
    assert _nothing_left(tmp_path / "uv cache")
    assert project.ok("list", "--json").data == []


def test_what_uv_writes_is_measured_while_it_runs(tmp_path: Path) -> None:
    folder = tmp_path / "uv" / ".tmpA" / "bomb"
    folder.mkdir(parents=True)
    wheel = Wheel("bomb", "1", "bomb-1-py3-none-any.whl", "0" * 64, 1000, ("3.12",))
    file = (folder / "big.bin").open("wb")

    def look(*sizes: int) -> None:
        with file, watched_unpacking([wheel], UnpackLimits()) as tick:
            for size in sizes:
                file.truncate(size)
                time.sleep(0.25)
                tick(os.getpid())

    with pytest.raises(ArchiveRefusedError, match=r"bomb-1-py3-none-any\.whl: unpacks to 6\.0 MiB"):
        look(1 << 20, ZEROS)
    assert not folder.parent.exists()
