"""The arithmetic and the table of the benchmarks; the times themselves are no test."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    loaded = []
    for name in ("sides", "page"):
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        loaded.append(module)
    return loaded[0], loaded[1]


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(20, 5, 14), (9, 1, 7), (6, 0, 5), (5, 0, 4), (1, 0, 0)],  # the ranks of tables of the sign test
)
def test_the_interval_of_the_median(modules: tuple[ModuleType, ModuleType], count: int, low: int, high: int) -> None:
    sides, _ = modules
    values = [float(number) for number in range(count)]
    assert sides.interval(values[::-1]) == ((count - 1) / 2, low, high)


def test_an_aim_is_met_by_the_upper_end_alone(modules: tuple[ModuleType, ModuleType]) -> None:
    sides, page = modules

    def figure(ours: list[float], aim: float) -> object:
        row = sides.Row("work", lambda: None, {"peer": lambda: None}, aim, len(ours))
        runs = [sides.Run(seconds, seconds, 1 << 20) for seconds in ours]
        return sides.Figure(row, runs, {"peer": [sides.Run(1, 1, 2 << 20)] * len(ours)})

    steady, restless = [1.1] * 20, [1.0] * 14 + [3.0] * 6
    assert figure(steady, 1.1).is_met()  # type: ignore[attr-defined]
    assert not figure(restless, 1.1).is_met()  # type: ignore[attr-defined]
    table = list(page.lines([figure(restless, 1.1)]))
    assert table[2] == "| work | peer | 1000 ms | 1000 ms | 1.00 | 1.00 to 3.00 | 1.10 | no | 1.00 | 1, 2 MiB | 20 |"


def test_the_program_runs_a_side_and_counts_its_time_and_memory(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    sides, _ = modules
    done = sides.run([sys.executable, "-c", "print(1)"], tmp_path, {})
    assert 0 < done.cpu < 5
    assert done.memory > 1 << 20
    with pytest.raises(SystemExit, match="broken"):
        sides.run([sys.executable, "-c", "raise SystemExit('broken')"], tmp_path, {})


def test_what_comes_first_is_done_before_each_side(modules: tuple[ModuleType, ModuleType]) -> None:
    sides, _ = modules
    done: list[str] = []

    def side(name: str) -> object:
        done.append(name)
        return sides.Run(1, 1, 1)

    ways = {"one": lambda: side("one"), "two": lambda: side("two")}
    figure = sides.measure(sides.Row("work", lambda: side("ours"), ways, rounds=2, first=lambda: done.append("first")))
    assert done == ["first", "ours", "first", "one", "first", "two"] * 3
    assert len(figure.ours) == 2
