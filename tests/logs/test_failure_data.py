"""The known causes of failed builds, and the logs to try it on, are whole and well-formed.

`failures/NAME.log` is an excerpt of a failed build as public threads show it, and `NAME.toml` beside it says where it
comes from, which row of the table names its cause, which line is the decisive one and what noise stands around it. The
wording of the messages is the tool's; paths and names are rewritten, long commands shortened, and output that such a
build prints in any case filled in. `good/NAME.log` is a build that went well, with alarming lines in it: no row may be
found in one. `own_code/NAME.log` failed on the package's own sources: it has an error, and no row.
"""

import re
from pathlib import Path
from typing import Any

import tomli

from tenv.checks.build_log.diagnose import _OBJECTS
from tenv.checks.build_log.log_lines import clean
from tests.support.each import each

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TABLE = ROOT / "src" / "tenv" / "facts" / "data" / "build_failures.toml"
FAILURES = sorted(path.stem for path in (HERE / "failures").glob("*.log"))
GOOD = sorted(path.stem for path in (HERE / "good").glob("*.log"))

OF = {"pytorch", "torchvision", "torchaudio", "extension"}
PHASES = {"clone", "pip", "configure", "compile", "link", "install", "import", "run"}
REQUIRED = {"id", "code", "title", "of", "phase", "patterns", "cause", "versions", "source", "confirmed", "fix"}
OPTIONAL = {"kind", "weak", "near", "not_near", "with", "standing", "case"}
MARKS = {"success", "failed", "error", "noise", "probe_begin", "probe_end", "release"}
OF_NAMES = {"library", "header", "since", "gone", "macro", "always", "other", "here", "changed"}
"""The slots of what the table of HIP's names knows of the name in a line."""


def table() -> dict[str, Any]:
    return tomli.loads(TABLE.read_text())


ROWS: dict[str, dict[str, Any]] = {row["id"]: row for row in table()["failure"]}
CASES: dict[str, dict[str, Any]] = {case["id"]: row | case for row in ROWS.values() for case in row.get("case", [])}
"""The causes by what is known of a name, each with the columns of its row."""


def notes(folder: str, name: str) -> dict[str, Any]:
    return tomli.loads((HERE / folder / f"{name}.toml").read_text())


def addresses(text: str) -> list[str]:
    return text.split("; ")


def test_each_cause_has_a_name_of_its_own() -> None:
    assert len(ROWS) == len(table()["failure"]) >= 100
    assert not ROWS.keys() & CASES.keys()
    assert len(CASES) == sum(len(row.get("case", [])) for row in ROWS.values())


def test_each_case_is_another_standing() -> None:
    for name, row in ROWS.items():
        standings = [case["standing"] for case in row.get("case", [])] + [row.get("standing")]
        assert len(set(standings)) == len(standings), name


def test_the_marks_of_a_log_compile() -> None:
    marks = table()["log"]
    assert set(marks) == MARKS | {"window"}
    for name in MARKS:
        assert marks[name]
        for pattern in marks[name]:
            re.compile(pattern)


@each("name", [*ROWS, *CASES])
def test_a_row_is_whole(name: str) -> None:
    row = ROWS.get(name) or CASES[name]
    assert set(row) >= REQUIRED
    assert set(row) <= REQUIRED | OPTIONAL
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert (ROOT / "docs" / "rules" / f"{row['code']}.md").is_file()
    assert set(row["of"]) <= OF
    assert row["of"]
    assert set(row["phase"]) <= PHASES
    assert row["phase"]
    assert row.get("kind", "error") in {"error", "warning", "message", "frame"}
    assert row["cause"].endswith(".")
    assert row["fix"]
    for way in row["fix"]:
        assert set(way) <= {"when", "do"}
        assert way["do"]


@each("name", ROWS)
def test_the_patterns_of_a_row_compile_and_match_something(name: str) -> None:
    row = ROWS[name]
    assert row["patterns"]
    for key in ("patterns", "near", "not_near"):
        assert len(set(row.get(key, []))) == len(row.get(key, []))
        for pattern in row.get(key, []):
            assert not re.compile(pattern).search("")


@each("name", ROWS)
def test_a_row_names_its_sources(name: str) -> None:
    assert addresses(ROWS[name]["source"])
    for address in addresses(ROWS[name]["source"]):
        assert re.fullmatch(r"https?://[\w./#:%+~-]+", address)


def test_no_two_rows_have_the_same_pattern_unless_what_is_near_tells_them_apart() -> None:
    patterns = [(one, str(row.get("near", []))) for row in ROWS.values() for one in row["patterns"]]
    assert len(patterns) == len(set(patterns))


def test_each_slot_of_a_text_is_a_group_of_a_pattern() -> None:
    for name, row in (ROWS | CASES).items():
        groups = {group for pattern in row["patterns"] for group in re.compile(pattern).groupindex}
        texts = (row["title"], row["cause"], *(text for way in row["fix"] for text in way.values()))
        slots = {slot for text in texts for slot in re.findall(r"\{(\w+)\|", text)}
        if objects := groups & set(_OBJECTS):
            slots -= {"part", "install"} - groups
        slots -= OF_NAMES if "standing" in row else set()
        assert slots | objects == groups, name


def test_each_part_is_whole_and_has_names_that_match_as_a_whole() -> None:
    parts = table()["part"]
    assert len({part["name"] for part in parts}) == len(parts) >= 60
    for part in parts:
        assert set(part) == {"name", "names", "install", "source", "confirmed"}
        for pattern in part["names"]:
            assert not re.compile(pattern).fullmatch("")
            assert not re.compile(pattern).fullmatch("foo_bar")


def test_there_are_enough_logs() -> None:
    assert len(FAILURES) >= 55
    assert len(GOOD) >= 15


@each("folder, names", [("failures", FAILURES), ("good", GOOD)])
def test_each_log_has_its_notes(folder: str, names: list[str]) -> None:
    assert sorted(path.stem for path in (HERE / folder).glob("*.toml")) == names
    for name in names:
        said = notes(folder, name)
        assert said["source"]
        assert said["around"]


@each("name", FAILURES)
def test_the_decisive_line_matches_the_row_that_is_expected(name: str) -> None:
    said = notes("failures", name)
    assert set(said) == {"source", "expected", "line", "around"}
    assert all(address.startswith("https://") for address in said["source"])
    lines = list(clean((HERE / "failures" / f"{name}.log").read_text().splitlines()))
    line, *rest = (one.text for one in lines[said["line"] - 1 : said["line"] + 3])
    row = ROWS.get(said["expected"]) or CASES[said["expected"]]
    text = " ".join([line, *(one.strip() for one in rest)])  # clang and CMake fold their messages
    assert any(re.search(pattern, one) for pattern in row["patterns"] for one in (line, text))


@each("folder, names", [("failures", FAILURES), ("good", GOOD)])
def test_a_log_names_no_machine_of_its_own(folder: str, names: list[str]) -> None:
    for name in names:
        text = (HERE / folder / f"{name}.log").read_text()
        assert set(re.findall(r"(?:/home|/Users|C:\\Users)[/\\](\w+)", text)) <= {"user"}
