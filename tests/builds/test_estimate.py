"""The estimate of a build follows the machine as it is now, and so does the time that is left."""

from pathlib import Path

import pytest

from tenv.builds.ninja_plan import measured
from tenv.builds.time_left import Expectation, Pace

SOURCES = [f"caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/Source{index}.cpp.o" for index in range(100)]


def log_of(folder: Path, rows: list[tuple[str, int, int]]) -> Path:
    """Write a log of Ninja: output, milliseconds, time stamp."""
    lines = [f"0\t{spent}\t{stamp}\t{output}\tcafe\n" for output, spent, stamp in rows]
    (folder / ".ninja_log").write_text("# ninja log v6\n" + "".join(lines), encoding="utf-8")
    return folder


def test_what_was_compiled_last_is_last_though_ninja_has_rewritten_its_log(tmp_path: Path) -> None:
    first, second, third = SOURCES[:3]
    assert list(measured(log_of(tmp_path, [(first, 3000, 30), (second, 1000, 10), (third, 2000, 20)])).items()) == [
        (second, 1.0),
        (third, 2.0),
        (first, 3.0),
    ]


def test_without_time_stamps_the_line_that_comes_last_counts(tmp_path: Path) -> None:
    first, second = SOURCES[:2]
    found = measured(log_of(tmp_path, [(first, 9000, 0), (second, 1000, 0), (first, 2000, 0)]))
    assert list(found.items()) == [(second, 1.0), (first, 2.0)]


@pytest.mark.parametrize("wrong_by", [1 / 5, 1.0, 5.0])
def test_after_a_tenth_of_the_work_the_pace_says_what_is_left(wrong_by: float) -> None:
    pace = Pace(Expectation(700.0 * wrong_by, 1400.0, 1))
    for source in SOURCES[:20]:
        pace.add(f"Building CXX object {source}")
    assert pace.left(140.0, 20, 100) == pytest.approx(560.0)


def test_at_the_start_the_estimate_counts() -> None:
    pace = Pace(Expectation(700.0, 1400.0, 1))
    pace.add(f"Building CXX object {SOURCES[0]}")
    assert pace.left(1.0, 1, 100) == pytest.approx(699 * 0.9 + 99 * 0.1)


def test_a_heavy_source_is_more_of_the_work_than_a_light_one() -> None:
    """Of ten files the one for CUDA takes most of the time: half of the tasks are not half of the work."""
    work = 5 * 14.0 + 5 * (33.0 + 18.3)
    pace = Pace(Expectation(work, work, 1))
    for source in SOURCES[:5]:
        pace.add(f"Building CXX object {source}")
    assert pace.left(70.0, 5, 10) == pytest.approx(5 * (33.0 + 18.3))


@pytest.mark.parametrize("expected", [None, Expectation(10.0, 14.0, 1)])
def test_what_is_known_of_no_task_goes_by_their_number(expected: Expectation | None) -> None:
    pace = Pace(expected)
    for source in SOURCES[:50]:
        pace.add(f"Building CXX object {source}")
    assert pace.left(50.0, 50, 100) == pytest.approx(50.0)
