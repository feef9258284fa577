"""The chart of drivers, CUDA and PyTorch: up to date, and what `tenv check-driver` says of each driver."""

import re

import pytest

from scripts.driver_chart import CAME_WITH, PAGE, chart, drivers
from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tests.support.projects import Project

WORDS = {"native": "native", "minor-version": "minor", "impossible": "no"}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_has_the_chart_of_today() -> None:
    assert f"<!-- chart:begin -->\n{chart()}\n<!-- chart:end -->" in PAGE.read_text(), "run scripts/driver_chart.py"


@pytest.mark.parametrize(
    ("start", "step"), [(2, 6), *(pytest.param(start, 6, marks=pytest.mark.long) for start in range(3, 8))]
)
def test_every_cell_is_the_answer_of_the_program(start: int, step: int, project: Project) -> None:
    header, _, *rows = map(cells, chart().splitlines())
    assert len(header) > 10
    names = {cuda: re.findall(r"`([^`]+)`", targets) for cuda, targets, *_ in rows}
    assert sum(map(len, names.values())) > 12
    for number, driver in list(enumerate(header))[start::step]:
        found = project.ok("check-driver", "--assume-driver", driver, "--json").data["targets"]
        verdicts = {row["target"]: row["verdict"] for row in found}
        for row in rows:
            for name in names[row[0]]:
                assert WORDS[verdicts[name]] == row[number], (driver, name)


def test_no_row_changes_between_two_columns() -> None:
    table = load_facts().cuda_driver
    shown = [cells(line)[0] for line in chart().splitlines()[2:]]
    natives = [table.native(Version(cuda), windows=False) for cuda in shown]
    assert {one.driver for one in natives if one} <= {*drivers(table)}
    assert {*shown} <= {*CAME_WITH}
