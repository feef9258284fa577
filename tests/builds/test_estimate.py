"""The estimate of a build follows the machine as it is now, and so does the time that is left."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tenv.builds.build_job import BuildJob
from tenv.builds.compile_cache import CacheUse
from tenv.builds.estimate_step import Forecast, Tried, _factors, forecast
from tenv.builds.import_step import _tried
from tenv.builds.logged_run import run_logged
from tenv.builds.ninja_plan import CompileWatch, compiles_elsewhere, keep_times, measured, read_log, run_of, served
from tenv.builds.task_costs import Task, TaskKind
from tenv.core.progress import Silent
from tests.support.each import each

COST = 12.0
"""Seconds of the table for a source of ATen."""
SOURCES = [f"caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/Source{index}.cpp.o" for index in range(100)]


def job_of(folder: Path) -> BuildJob:
    """A build without a compile cache, as far as the times of its compilations ask for it."""
    notes = folder / "notes"
    notes.mkdir(exist_ok=True)
    manifest, request = SimpleNamespace(cache="off", cache_name="off", cache_storage=""), SimpleNamespace(defines={})
    made = SimpleNamespace(
        folder=folder,
        notes=notes,
        request=request,
        environ=dict(os.environ),
        storage_gone=False,
        target=SimpleNamespace(manifest=manifest),
        context=SimpleNamespace(settings=lambda: SimpleNamespace(cache_storage="", distribute="")),
        log=lambda name: notes / f"{name}.log",
    )
    return cast("BuildJob", made)


def elapsed(folder: Path) -> dict[str, float]:
    """Return what compilations took where no processor time was kept."""
    found = measured(job_of(folder))
    assert found.elapsed is bool(found.seconds)
    return dict(found.seconds)


def log_of(folder: Path, rows: list[tuple[str, int, int]]) -> Path:
    """Write a log of Ninja: output, milliseconds, time stamp."""
    lines = [f"0\t{spent}\t{stamp}\t{output}\tcafe\n" for output, spent, stamp in rows]
    (folder / ".ninja_log").write_text("# ninja log v6\n" + "".join(lines), encoding="utf-8")
    return folder


def test_what_was_compiled_last_is_last_though_ninja_has_rewritten_its_log(tmp_path: Path) -> None:
    first, second, third = SOURCES[:3]
    assert list(elapsed(log_of(tmp_path, [(first, 3000, 30), (second, 1000, 10), (third, 2000, 20)])).items()) == [
        (second, 1.0),
        (third, 2.0),
        (first, 3.0),
    ]


def test_without_time_stamps_the_line_that_comes_last_counts(tmp_path: Path) -> None:
    first, second = SOURCES[:2]
    found = elapsed(log_of(tmp_path, [(first, 9000, 0), (second, 1000, 0), (first, 2000, 0)]))
    assert list(found.items()) == [(second, 1.0), (first, 2.0)]


@each("number", ["²", "9" * 5000, "", "-1", "1.5"])
def test_a_damaged_line_of_the_log_is_left_out(number: str, tmp_path: Path) -> None:
    log_of(tmp_path, [(SOURCES[0], 3000, 30)])
    with (tmp_path / ".ninja_log").open("a", encoding="utf-8") as log:
        log.write(f"0\t{number}\t17\ta.o\tcafe\n0\t9\n")
    assert list(read_log(tmp_path)) == [SOURCES[0]]


class Heard(Silent):
    """Keeps what a build reports while it runs."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, message: str) -> None:
        self.words.append(message)


def watched(folder: Path, version: str, *lines: str) -> tuple[list[str], str]:
    """Run a program that prints lines and calls itself a Ninja of a version; return its reports and its log."""
    program = folder / "ninja"
    listed = "".join(f"printf '%s{line}\\n' \"$status\"\n" for line in lines)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo {version}; exit; }}\n'
        'case $NINJA_STATUS in *%E*) status="[1/90] 599.000 " ;; *) status="[1/90] " ;; esac\n' + listed
    )
    program.chmod(0o755)
    progress, log = Heard(), folder / "log"
    command = [str(program)]
    ran = run_logged(
        command, log, environ=dict(os.environ), folder=folder, progress=progress, title="compiling", ninja=command[0]
    )
    assert (ran.status, list(ran.lines)) == (0, [f"[1/90] {line}" for line in lines])
    return progress.words, log.read_text()


@pytest.mark.parametrize(
    ("version", "left"),
    [("1.13.0.git.kitware.jobserver-pipe-1", ", about 10 min left"), ("1.12", ", about 10 min left"), ("1.11.1", "")],
)
def test_the_time_that_is_left_is_the_estimate_of_ninja(
    version: str, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenv.builds.logged_run._SAY_EVERY", 0.0)
    words, log = watched(tmp_path, version, "Building CXX object a.o", "1.5 is no estimate")
    assert words == [f"compiling: 1 of 90{left}"] * 2
    assert log == f"$ {tmp_path / 'ninja'}\n[1/90] Building CXX object a.o\n[1/90] 1.5 is no estimate\n"


def test_without_an_estimate_the_number_of_tasks_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.builds.logged_run._SAY_EVERY", 0.0)
    program, progress = tmp_path / "make", Heard()
    program.write_text("#!/bin/sh\necho '[ 50%] Building CXX object a.o'\necho '[2/4] ? Building b.o'\n")
    program.chmod(0o755)
    run_logged(
        [str(program)],
        tmp_path / "log",
        environ=dict(os.environ),
        folder=tmp_path,
        progress=progress,
        title="compiling",
    )
    assert progress.words == ["compiling: 50 of 100", "compiling: 2 of 4"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["[1/1] 5.0 a.o", "[1/2] 60.0 b.o", "[2/2] 0.0 c.o", "[1/1] 0.0 d.o"], ["1 of 4", "2 of 4", "3 of 4"]),
        (["[1/1] 0.0 a.o", "[1/1] 0.0 b.o"], ["1 of 4", "2 of 4"]),
        (["[1/1] 5.0 a.o", "[1/3] 60.0 b.o"], ["1 of 4", "2 of 4, about 1 min left"]),
        (["gcc -O2 -c a.c -o a.o", "x86_64-linux-gnu-g++ -c b.cpp", "g++ -shared a.o"], ["0 of 4", "1 of 4"]),
    ],
)
def test_the_units_of_several_extensions_are_counted_together(
    lines: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenv.builds.logged_run._SAY_EVERY", 0.0)
    monkeypatch.setattr("tenv.builds.logged_run._estimates", lambda *_: True)
    (tmp_path / "lines").write_text("\n".join(lines))
    progress, command = Heard(), ["cat", str(tmp_path / "lines")]
    run_logged(
        command,
        tmp_path / "log",
        environ=dict(os.environ),
        folder=tmp_path,
        progress=progress,
        title="it",
        units=4,
    )
    assert progress.words == [f"it: {one}" for one in words]


def test_the_latest_compiles_say_how_fast_the_machine_is(tmp_path: Path) -> None:
    """An hour ago the machine was busy: each source took ten times as long."""
    old = [(source, 120_000, index) for index, source in enumerate(SOURCES[:60])]
    new = [(source, 6_000, 100 + index) for index, source in enumerate(SOURCES[60:90])]
    assert _factors(elapsed(log_of(tmp_path, old + new)), 1)[TaskKind.CXX] == pytest.approx(0.5)


def test_small_and_large_sources_are_weighed_by_their_time(tmp_path: Path) -> None:
    """The canary compiles many small files of c10 and one large one; both cost half of what the table says."""
    small = [(f"c10/CMakeFiles/c10.dir/core/File{index}.cpp.o", 1_000, index) for index in range(10)]
    large = [(SOURCES[0], 6_000, 20)]
    assert _factors(elapsed(log_of(tmp_path, small + large)), 1)[TaskKind.CXX] == pytest.approx(0.5)


CANARY = [f"c10/CMakeFiles/c10.dir/core/File{index}.cpp.o" for index in range(60)]
REST = [Task(TaskKind.CXX, source) for source in SOURCES]


def after_a_canary(folder: Path, stretched: float) -> tuple[Forecast, Tried]:
    """Return the forecast after a canary whose files took what the table says, stretched by other programs."""
    rows = [(output, int(2_000 * stretched), index) for index, output in enumerate(CANARY)]
    job, before = job_of(folder), read_log(folder)
    log_of(folder, [*rows, ("lib/libc10.so", int(1_000 * stretched), 99)])
    run = run_of(before, read_log(folder), processor=121.0)
    keep_times(job, run, ())
    found = measured(job)
    assert not found.elapsed
    tried = Tried(slowdown=run.elapsed / run.processor)
    return forecast(REST, 1, _factors(found.seconds, 1), jobs=2, cores=2, tried=tried), tried


@each("stretched", [1.0, 3.3])
def test_other_programs_do_not_change_the_estimate(tmp_path: Path, stretched: float) -> None:
    found, tried = after_a_canary(tmp_path, stretched)
    assert found.seconds == pytest.approx(100 * COST / 2, rel=0.01)
    assert tried.slowdown == pytest.approx(stretched, rel=0.01)


def test_a_busy_machine_is_named_with_what_it_would_make_of_the_estimate(tmp_path: Path) -> None:
    found, _ = after_a_canary(tmp_path, 3.3)
    assert found.busy == pytest.approx(3.3 * 100 * COST / 2, rel=0.01)
    said = "the machine is busy now: tasks took 3.3 times their processor time; if that stays, about 33 min"
    assert list(found.busy_words) == [said]
    quiet = forecast(REST, 1, {}, jobs=2, cores=2, tried=Tried(slowdown=1.1))
    assert (quiet.busy, list(quiet.busy_words)) == (None, [])


def test_more_jobs_than_processors_are_no_other_programs() -> None:
    assert forecast(REST, 1, {}, jobs=8, cores=2, tried=Tried(slowdown=4.0)).busy is None
    found = forecast(REST, 1, {}, jobs=8, cores=2, tried=Tried(slowdown=8.0))
    assert found.busy == pytest.approx(2 * found.seconds)


def test_a_task_with_many_outputs_counts_once_and_what_was_made_before_does_not(tmp_path: Path) -> None:
    log_of(tmp_path, [(SOURCES[0], 9_000, 1)])
    before = read_log(tmp_path)
    log_of(tmp_path, [(SOURCES[0], 9_000, 1), ("a.h", 4_000, 2), ("a.cpp", 4_000, 2), (SOURCES[1], 6_000, 3)])
    run = run_of(before, read_log(tmp_path), processor=5.0)
    assert (run.objects, run.elapsed) == ((SOURCES[1],), 10.0)
    assert run.seconds_of(run.objects) == pytest.approx(3.0)


def test_a_compilation_after_the_kept_one_is_not_taken_for_it(tmp_path: Path) -> None:
    """Ninja ran without tenv: what it compiled anew has no processor time that is known."""
    job = job_of(tmp_path)
    rows = [(source, 6_000, index) for index, source in enumerate(SOURCES[:4])]
    log_of(tmp_path, rows)
    keep_times(job, run_of({}, read_log(tmp_path), processor=8.0), ())
    assert set(measured(job).seconds.values()) == {2.0}
    log_of(tmp_path, [*rows, (SOURCES[0], 7_000, 9)])
    assert SOURCES[0] not in measured(job).seconds, "three others say how fast the machine is"
    log_of(tmp_path, [*rows, (SOURCES[0], 7_000, 9), (SOURCES[1], 8_000, 10)])
    assert list(measured(job).seconds.items())[-2:] == [(SOURCES[0], 7.0), (SOURCES[1], 8.0)]


def test_what_came_out_of_the_cache_says_nothing_of_the_compiler(tmp_path: Path) -> None:
    log_of(tmp_path, [(source, 800, index) for index, source in enumerate(SOURCES[:10])])
    run = run_of({}, read_log(tmp_path), processor=8.0)
    names = frozenset(f"Source{index}.cpp" for index in range(6))
    came = served(run, CacheUse(6, 4, names, frozenset(("Source9.cpp",))))
    assert came == frozenset(SOURCES[:6])
    keep_times(job_of(tmp_path), run, came)
    assert [seconds for seconds in measured(job_of(tmp_path)).seconds.values() if seconds] == [0.8] * 4
    assert served(run, CacheUse(10, 0)) == frozenset(SOURCES[:10])
    assert served(run, CacheUse(6, 4)) == frozenset()


@each(
    "variable, value, elsewhere",
    [
        ("CMAKE_CXX_COMPILER_LAUNCHER", "/opt/bin/sccache", True),
        ("CMAKE_CUDA_COMPILER_LAUNCHER", "/x/.tenv/builds/heavy-source;/opt/sccache", True),
        ("CCACHE_PREFIX", "distcc", True),
        ("CMAKE_CXX_COMPILER_LAUNCHER", "/opt/bin/ccache", False),
        ("OTHER", "sccache", False),
    ],
)
def test_a_server_compiles_what_no_processor_time_of_ninja_shows(
    tmp_path: Path, variable: str, value: str, elsewhere: bool
) -> None:
    job = job_of(tmp_path)
    job.environ = {variable: value}
    assert compiles_elsewhere(job) is elsewhere


@pytest.mark.long
@pytest.mark.skipif(shutil.which("ninja") is None, reason="no Ninja")
def test_the_processor_time_of_a_real_run_leaves_out_what_others_take(tmp_path: Path) -> None:
    """Each task waits for a while, as it would behind other programs, and computes for a moment.

    No bound depends on how busy this machine is: a task computes for a moment at least, and its wait is no computing.
    """
    job = job_of(tmp_path)
    code = "import time; time.sleep(0.5)\nwhile time.process_time() < 0.1: pass"
    (tmp_path / "one.py").write_text(code)
    rules = [f"rule cxx\n  command = {sys.executable} {tmp_path}/one.py && touch $out\n"]
    rules += [f"build s{index}.cpp.o: cxx\n" for index in range(4)]
    (tmp_path / "build.ninja").write_text("".join(rules))
    watch = CompileWatch(job)
    log = tmp_path / "log"
    ran = run_logged(["ninja"], log, environ=job.environ, folder=tmp_path, progress=Silent(), title="canary")
    assert ran.status == 0
    run = watch.keep(ran.processor, watch.used())
    seconds = measured(job).seconds
    assert len(seconds) == 4
    assert sum(seconds.values()) == pytest.approx(ran.processor, abs=0.01)
    assert 0 < ran.processor < run.elapsed / 2


def tried(hits: int, misses: int, missed: Sequence[str] = (), kinds: Sequence[TaskKind] = (TaskKind.CXX,)) -> Tried:
    return Tried(1.0, hits, misses, frozenset(kinds), tuple(missed), 0.1)


def test_a_cache_that_served_the_canary_counts_and_both_times_are_named() -> None:
    found = forecast(REST, 1, {}, jobs=2, cores=2, tried=tried(102, 0))
    assert found.uncached == 100 * COST / 2
    assert found.seconds == pytest.approx(100 * (COST / 103 + 0.1 * 102 / 103) / 2)
    words = "the compile cache counts as it answered for the canary (100 % of 102 compilations); without it 10 min"
    assert found.cache_words == words
    half = forecast(REST, 1, {}, jobs=2, cores=2, tried=tried(51, 51))
    assert half.uncached / 2 < half.seconds < half.uncached * 0.52


@each(
    "shown, why", [(tried(3, 0), "they are too few"), (tried(101, 1, ["Blas.cpp"]), "Blas.cpp did not come out of it")]
)
def test_a_cache_of_which_too_little_is_known_does_not_count(shown: Tried, why: str) -> None:
    found = forecast(REST, 1, {}, jobs=2, cores=2, tried=shown)
    assert found.seconds == found.uncached
    assert found.cache_words.startswith("the compile cache does not count, though it answered for the canary (")
    assert found.cache_words.endswith(why)


def test_the_rate_of_one_language_says_nothing_of_another() -> None:
    kernels = [Task(TaskKind.CUDA, "FillKernel.cu.o")] * 10
    found = forecast([*REST, *kernels], 1, {}, jobs=1, cores=1, tried=tried(102, 0))
    assert found.seconds >= 10 * 51
    assert forecast(kernels, 1, {}, jobs=1, cores=1, tried=tried(102, 0, kinds=[TaskKind.CUDA])).seconds < 20


@each("processor, hits, misses, slowdown", [(2.0, 0, 10, 4.0), (2.0, 10, 0, 0.0), (0.5, 0, 10, 0.0)])
def test_only_compilers_say_how_busy_the_machine_is(
    tmp_path: Path, processor: float, hits: int, misses: int, slowdown: float
) -> None:
    log_of(tmp_path, [(source, 800, index) for index, source in enumerate(SOURCES[:10])])
    run = run_of({}, read_log(tmp_path), processor)
    names = frozenset(f"Source{index}.cpp" for index in range(10))
    used = CacheUse(hits, misses, names if hits else frozenset(), names if misses else frozenset())
    shown = _tried(run, used, ["c10", SOURCES[3]])
    assert shown.slowdown == pytest.approx(slowdown)
    assert shown.missed == (("Source3.cpp",) if misses else ())
    assert shown.hit_seconds == pytest.approx(processor / 10 if hits else 0.0)


def test_c_goes_the_way_of_cxx_and_what_is_no_compilation_does_not() -> None:
    rest = [Task(TaskKind.C, "a.c.o")] * 400
    links = [Task(TaskKind.LINK, "liba.so")] * 10
    found = forecast([*rest, *links], 1, {}, jobs=1, cores=1, tried=tried(102, 0))
    assert found.seconds == pytest.approx(400 * (1.5 / 103 + 0.1 * 102 / 103) + 10 * 3.0)


def test_a_hit_whose_price_is_not_known_is_not_free() -> None:
    """The programs of sccache's server are no children of Ninja."""
    shown = Tried(0.0, 102, 0, frozenset((TaskKind.CXX,)))
    assert forecast(REST, 1, {}, jobs=1, cores=1, tried=shown).seconds > 100 * 0.09 + 100 * COST / 103


def test_without_hits_there_is_nothing_to_say_of_a_cache() -> None:
    found = forecast(REST, 1, {}, jobs=2, cores=2, tried=tried(0, 102))
    assert (found.seconds, found.cache_words) == (found.uncached, "")
