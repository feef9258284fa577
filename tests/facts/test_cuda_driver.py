import re
from itertools import pairwise

import pytest

from tenv.core.errors import TenvError
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable, MinorVersionFloor, ToolkitDriver
from tenv.facts.table_files import Row
from tenv.facts.tables import load_facts
from tests.support.each import each

PLATFORMS = pytest.mark.parametrize("windows", [False, True], ids=["linux", "windows"])


@pytest.fixture(scope="module")
def table() -> CudaDriverTable:
    return load_facts().cuda_driver


def test_rows_stand_newest_first_and_once(table: CudaDriverTable) -> None:
    assert all(newer.toolkit > older.toolkit for newer, older in pairwise(table.toolkits))
    assert all(newer.cuda_major > older.cuda_major for newer, older in pairwise(table.floors))


def test_every_row_has_a_source_without_abbreviations(table: CudaDriverTable) -> None:
    for source in [row.basis.source for row in table.toolkits] + [row.basis.source for row in table.floors]:
        assert source
        assert not re.search(r"\b(RN|SPACK|NIX|CTK)\b", source)


def test_a_release_begins_with_its_major_and_minor_version(table: CudaDriverTable) -> None:
    assert [row.major_minor for row in table.toolkits] == [row.toolkit.major_minor for row in table.toolkits]


@PLATFORMS
def test_a_release_needs_the_floor_of_its_major_version(table: CudaDriverTable, windows: bool) -> None:
    floors = {row.cuda_major: row.min_windows if windows else row.min_linux for row in table.floors}
    for row in table.toolkits:
        floor = floors.get(row.toolkit.major)
        if floor is not None:
            assert (row.mvc_min_windows if windows else row.mvc_min_linux) == floor


@PLATFORMS
def test_every_release_has_a_floor(table: CudaDriverTable, windows: bool) -> None:
    assert all(table.floor(row.toolkit, windows) for row in table.toolkits)


@PLATFORMS
def test_a_release_is_not_older_than_the_native_driver_of_its_minor_version(
    table: CudaDriverTable, windows: bool
) -> None:
    for row in table.toolkits:
        shipped, native = row.shipped(windows), table.native(row.toolkit, windows)
        if shipped is not None:
            assert native is not None
            assert native.driver <= shipped


@PLATFORMS
def test_a_newer_minor_version_has_a_newer_native_driver(table: CudaDriverTable, windows: bool) -> None:
    minors = list(dict.fromkeys(row.major_minor for row in table.toolkits))
    natives = [native.driver for minor in minors if (native := table.native(Version(minor), windows))]
    assert len(natives) == len(minors) - 1, "13.5 alone has none"
    assert all(newer > older for newer, older in pairwise(natives))


@each(
    "cuda, linux, windows",
    [
        ("13.0", "580", "580"),
        ("13.4", "580", "580"),
        ("12.0", "525.60.13", "528.33"),
        ("12.9.1", "525.60.13", "528.33"),
        ("11.0", "450.80.02", "452.39"),
        ("11.8", "450.80.02", "452.39"),
        ("10.2", "440.33", "441.22"),
        ("10.1.243", "418.39", "418.96"),
        ("9.2", "396.26", "397.44"),
        ("9.2.148", "396.37", "398.26"),
        ("9.1", "390.46", "391.29"),
        ("9.0.176", "384.81", "385.54"),
    ],
)
def test_floor(table: CudaDriverTable, cuda: str, linux: str, windows: str) -> None:
    for on_windows, expected in ((False, linux), (True, windows)):
        minimum = table.floor(Version(cuda), on_windows)
        assert minimum is not None
        assert str(minimum.driver) == expected
        assert minimum.basis.confirmed


@each(
    "cuda, linux, windows",
    [
        ("13.4", "615", "615"),
        ("13.3", "610.43.02", "610"),
        ("13.2", "595.45.04", "595"),
        ("13.0", "580.65.06", "580"),
        ("12.8", "570.26", "570.65"),
        ("12.1.1", "530.30.02", "531.14"),
        ("12.0", "525.60.13", "527.41"),
        ("11.8", "520.61.05", "520.06"),
        ("10.1", "418.39", "418.96"),
    ],
)
def test_native(table: CudaDriverTable, cuda: str, linux: str, windows: str) -> None:
    for on_windows, expected in ((False, linux), (True, windows)):
        minimum = table.native(Version(cuda), on_windows)
        assert minimum is not None
        assert str(minimum.driver) == expected
        assert minimum.basis.confirmed


def test_a_driver_known_by_its_branch_alone_says_so(table: CudaDriverTable) -> None:
    native = table.native(Version("13.4"), windows=False)
    assert native is not None
    assert native.basis.note == "only the branch R615 is published"


def test_a_release_seen_only_in_passing_is_not_confirmed(table: CudaDriverTable) -> None:
    floor = table.floor(Version("13.5"), windows=False)
    assert floor is not None
    assert not floor.basis.confirmed
    assert floor.basis.note.startswith("seen only as PyPI")
    assert table.native(Version("13.5"), windows=False) is None


def test_a_release_that_came_after_the_table_has_the_floor_of_its_major_version(table: CudaDriverTable) -> None:
    floor = table.floor(Version("13.9"), windows=False)
    assert floor is not None
    assert str(floor.driver) == "580"
    assert not floor.basis.confirmed
    assert floor.basis.note == "the table has no row for CUDA 13.9"


@pytest.mark.parametrize("cuda", ["14.0", "6.5"])
@PLATFORMS
def test_a_major_version_outside_the_table(table: CudaDriverTable, cuda: str, windows: bool) -> None:
    assert table.floor(Version(cuda), windows) is None
    assert table.native(Version(cuda), windows) is None


def test_a_doubtful_row_without_a_note_is_still_doubtful() -> None:
    row = Row(Table({"toolkit": "12.4.0", "major_minor": "12.4", "source": "hearsay"}), {}).read(ToolkitDriver)
    data = {"cuda_major": 12, "min_linux": "525.60.13", "confirmed": True, "source": "RN"}
    line = Row(Table(data), {"RN": "notes"}).read(MinorVersionFloor)
    assert line.basis.source == "notes"
    floor = CudaDriverTable((line,), (row,)).floor(Version("12.4"), windows=False)
    assert floor is not None
    assert not floor.basis.confirmed
    assert floor.basis.note == "the row for CUDA 12.4 is not confirmed"


@each("absent", ["", "N/A", "none"])
def test_absent(absent: str) -> None:
    data = {"toolkit": "12.4.0", "major_minor": "12.4", "source": "s", "rn_linux": absent, "bundled_linux": "550.54.14"}
    row = Row(Table(data), {}).read(ToolkitDriver)
    assert row.rn_linux is None
    assert str(row.shipped(windows=False)) == "550.54.14"
    assert row.shipped(windows=True) is None
    assert row.required(windows=True) is None


@each(
    "change, message",
    [
        ({"rn_linux": "five"}, "f: rn_linux: `five` is not a dotted version such as 12.1 or 580.65.06"),
        ({"toolkit": ""}, "f: toolkit: is required"),
        ({"toolkit": "x"}, "f: toolkit: `x` is not a dotted version such as 12.1 or 580.65.06"),
        ({"source": ""}, "f: source: is required"),
    ],
)
def test_a_damaged_release_names_its_place(change: dict[str, str], message: str) -> None:
    data = {"toolkit": "12.4.0", "major_minor": "12.4", "source": "s"} | change
    with pytest.raises(TenvError) as caught:
        Row(Table(data, file="f", error=TenvError), {}).read(ToolkitDriver)
    assert caught.value.message == message


def test_a_damaged_floor_names_its_place() -> None:
    with pytest.raises(TenvError) as caught:
        Row(Table({"cuda_major": "12", "source": "s"}, file="f", error=TenvError), {}).read(MinorVersionFloor)
    assert caught.value.message == "f: cuda_major: expected a whole number, got a string"
