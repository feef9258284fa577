"""The arithmetic of the benchmark, and its budgets in the docs; the times themselves are no test."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def budgets(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("budgets", ROOT / "benchmarks" / "budgets.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "budgets", module)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec.loader.exec_module(module)
    return module


def test_the_docs_have_every_budget(budgets: ModuleType) -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").partition("## Last run")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "| " in line]
    *short, _, _, _, _ = rows
    known = {word: row[2] for row in short for word in re.findall(r"`(?:tenv )?([^`]+)`", row[0])}
    for command, budget in budgets.COMMANDS.items():
        words = command.replace(" --check", "").split()[0]
        assert known.get(f"{words} --check", known.get(words)) == f"{budget:g}", command
    others = [f"{budgets.WHEELS:g}", f"{budgets.CONDA:g}", f"{budgets.SEEN} ms", f"{budgets.NEW} ms"]
    assert [row[2] for row in rows[-4:]] == others


def test_a_figure_is_the_median_of_the_ratios_of_the_rounds(budgets: ModuleType) -> None:
    assert budgets.ratio([2.0, 30.0, 4.0], [1.0, 10.0, 1.0]) == 3.0


def test_a_budget_is_met_by_its_own_figure(budgets: ModuleType) -> None:
    rows = [budgets.Row("work", "peer", figure, 10, " ms") for figure in (10.0, 10.01)]
    head, _, met, missed = budgets.table(rows).splitlines()
    assert head == "| work | measured against | tenv | budget | met |"
    assert (met, missed) == ("| work | peer | 10.00 ms | 10 ms | yes |", "| work | peer | 10.01 ms | 10 ms | no |")


def test_the_machines_of_a_fleet_differ_in_name_memory_and_disk_and_by_kind_in_driver(budgets: ModuleType) -> None:
    plain = {"hostname": {"value": "here", "origin": "x"}, "cores": {"value": 2, "origin": "x"}}
    first, second, other = (budgets.machine(plain, *numbers) for numbers in ((0,), (1,), (1, 1)))
    assert {name for name in first if first[name] != second[name]} == {"hostname", "memory", "disk"}
    assert {name for name in second if second[name] != other[name]} == {"driver"}
    assert first["cores"] == plain["cores"]
