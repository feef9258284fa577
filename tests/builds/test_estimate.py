"""The estimate of a build follows the machine as it is now, and so does the time that is left."""

from pathlib import Path

import pytest

from tenv.builds.estimate_step import _factors
from tenv.builds.ninja_plan import measured
from tenv.builds.task_costs import TaskKind
from tenv.builds.time_left import Expectation, Pace

COST = 12.0
"""Seconds of the table for a source of ATen."""
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
    pace = Pace(Expectation(700.0 * wrong_by, 100 * COST, 1))
    for source in SOURCES[:20]:
        pace.add(f"Building CXX object {source}")
    assert pace.left(140.0, 20, 100) == pytest.approx(560.0)


def test_at_the_start_the_estimate_counts() -> None:
    pace = Pace(Expectation(700.0, 100 * COST, 1))
    pace.add(f"Building CXX object {SOURCES[0]}")
    assert pace.left(1.0, 1, 100) == pytest.approx(699 * 0.9 + 99 * 0.1)


def test_a_heavy_source_is_more_of_the_work_than_a_light_one() -> None:
    """Of ten files the one for CUDA takes most of the time: half of the tasks are not half of the work."""
    work = 5 * COST + 5 * (33.0 + 18.3)
    pace = Pace(Expectation(work, work, 1))
    for source in SOURCES[:5]:
        pace.add(f"Building CXX object {source}")
    assert pace.left(5 * COST, 5, 10) == pytest.approx(5 * (33.0 + 18.3))


@pytest.mark.parametrize("expected", [None, Expectation(10.0, COST, 1)])
def test_what_is_known_of_no_task_goes_by_their_number(expected: Expectation | None) -> None:
    pace = Pace(expected)
    for source in SOURCES[:50]:
        pace.add(f"Building CXX object {source}")
    assert pace.left(50.0, 50, 100) == pytest.approx(50.0)


def test_the_latest_compiles_say_how_fast_the_machine_is(tmp_path: Path) -> None:
    """An hour ago the machine was busy: each source took ten times as long."""
    old = [(source, 120_000, index) for index, source in enumerate(SOURCES[:60])]
    new = [(source, 6_000, 100 + index) for index, source in enumerate(SOURCES[60:90])]
    assert _factors(measured(log_of(tmp_path, old + new)), 1)[TaskKind.CXX] == pytest.approx(0.5)


def test_small_and_large_sources_are_weighed_by_their_time(tmp_path: Path) -> None:
    """The canary compiles many small files of c10 and one large one; both cost half of what the table says."""
    small = [(f"c10/CMakeFiles/c10.dir/core/File{index}.cpp.o", 1_000, index) for index in range(10)]
    large = [(SOURCES[0], 6_000, 20)]
    assert _factors(measured(log_of(tmp_path, small + large)), 1)[TaskKind.CXX] == pytest.approx(0.5)
