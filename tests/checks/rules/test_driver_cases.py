"""Drivers against toolkits, case by case: `driver_cases.csv`.

Each case names the row of ``cuda_driver.toml`` from which its verdict follows, by section, key, column and value, and
how the driver stands to it. Both are checked without the code that judges: the row against the file itself, the verdict
against what such a relation can mean.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from tenv.checks.rules.driver import judge_on_host, support
from tenv.checks.rules.interface import Scope, decide
from tenv.core.versions import Version
from tenv.host.report_json import from_json
from tests.checks.rules.cases import facts
from tests.support.check_hosts import report
from tests.support.each import each

FILE = Path(__file__).parents[3] / "src" / "tenv" / "facts" / "data" / "cuda_driver.toml"
GPUS: dict[str, list[tuple[str, str | None]]] = {
    "geforce": [("NVIDIA GeForce RTX 4090", "8.9")],
    "data-centre": [("NVIDIA A100-SXM4-80GB", "8.0")],
    "professional": [("NVIDIA RTX A6000", "8.6")],
    "unknown": [("NVIDIA Imaginary 1", None)],
    "mixed": [("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA GeForce RTX 4090", "8.9")],
    "none": [],
}
MEANS = {  # what may follow where the driver stands so to a row
    (">=", "toolkit"): {"native"},
    ("<", "toolkit"): {"minor-version", "impossible"},
    (">=", "minor_version_compat"): {"minor-version"},
    ("<", "minor_version_compat"): {"impossible", "forward"},
    ("", "minor_version_compat"): {"unknown"},
    ("C", "forward_compat_row"): {"forward"},
}


@dataclass(frozen=True)
class Case:
    """One line of the file."""

    driver: str
    cuda: str
    gpu: str
    platform: str
    verdict: str
    relation: str
    row: str

    def __str__(self) -> str:
        return f"{self.driver or 'none'}-{self.cuda}-{self.gpu}-{self.platform}"

    @property
    def windows(self) -> bool:
        return self.platform != "linux-64"


def read() -> list[Case]:
    with Path(__file__).with_name("driver_cases.csv").open(encoding="utf-8", newline="") as file:
        return [Case(**row) for row in csv.DictReader(file)]


CASES = read()


@cache
def tables() -> dict[str, Any]:
    return tomli.loads(FILE.read_text(encoding="utf-8"))


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.removeprefix("R").split(".")]


def test_there_are_enough_and_each_is_there_once() -> None:
    assert len(CASES) >= 200
    assert len({str(case) for case in CASES}) == len(CASES)
    assert {case.verdict for case in CASES} == {"native", "minor-version", "forward", "impossible", "unknown"}
    assert {case.cuda for case in CASES} == {row["major_minor"] for row in tables()["toolkit"]}
    assert {case.gpu for case in CASES} == set(GPUS)
    assert {case.platform for case in CASES} == {"linux-64", "win-64", "wsl"}


@each("case", CASES)
def test_the_row_is_in_the_table_and_the_verdict_follows_from_it(case: Case) -> None:
    section, key, column, value = case.row.split(" ")
    assert case.verdict in MEANS[case.relation, section]
    if section == "forward_compat_row":
        branches = tables()["forward_compat"]["driver_branches"]
        (row,) = (row for row in tables()[section] if row["cuda"] == key)
        assert (row["by_branch"][branches.index(column)], key, case.driver.split(".")[0]) == (value, case.cuda, column)
        return
    name = "toolkit" if section == "toolkit" else "cuda_major"
    (row,) = (row for row in tables()[section] if str(row[name]) == key)
    assert row[column] == value
    assert key.split(".")[0] == case.cuda.split(".")[0]
    assert section != "toolkit" or row["major_minor"] == case.cuda
    assert column == "driver_branch" or column.endswith("_windows" if case.windows else "_linux")
    if case.relation:
        assert (numbers(case.driver) >= numbers(value)) is (case.relation == ">=")


@each("case", CASES)
def test_the_verdict(case: Case) -> None:
    gpus = [{"name": name, "compute_capability": capability} for name, capability in GPUS[case.gpu]]
    platform = "win-64" if case.platform == "win-64" else "linux-64"
    told = report(case.driver, platform=platform, wsl=case.platform == "wsl", gpus=gpus)
    found = judge_on_host(Version(case.cuda), from_json(told), facts())
    assert support(found) == case.verdict
    runs = {"native": True, "minor-version": True, "forward": None, "impossible": False, "unknown": None}
    assert decide(Scope.RUN, [(Scope.RUN, found)] if found else []) is runs[case.verdict]
