"""What every rule must have: a row of the catalogue, a page for each code, and a case on both sides of each limit.

A new code asks for ``docs/rules/CODE.md`` and ``limits/CODE.py`` in this folder, which has `SEVERITY`, `SPEAKS` (the
case of the page's example), `SILENT` and, where a second rule yields the code, `ALSO`.
"""

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.checks import rules
from tenv.checks.rules.catalogue import RULES
from tenv.checks.rules.interface import Case, Finding, Scope, Severity
from tenv.core.errors import BugError
from tenv.facts.tables import Facts
from tenv.host.field import host_fields
from tests.checks.rules.cases import case, found, limits_of
from tests.support.each import each

ROOT = Path(__file__).parents[3]
OF_BUILDS = ("TE0", "TE8", "TE9")
"""The hundreds of the codes that audits, a build's log and the steps of a build yield (`tests/audits` …)."""
CODES = sorted({code for rule in RULES for code in rule.codes})


def functions() -> Iterator[str]:
    """Yield every public function of the package of rules that goes from a case to findings."""
    for module in pkgutil.iter_modules(rules.__path__):
        loaded = importlib.import_module(f"{rules.__name__}.{module.name}")
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            here = function.__module__ == loaded.__name__ and not name.startswith("_")
            if here and function.__annotations__ == {"case": Case, "return": Iterator[Finding]}:
                yield f"{module.name}.{name}"


def test_every_rule_is_in_the_catalogue_once() -> None:
    listed = [f"{rule.find.__module__.rpartition('.')[2]}.{rule.find.__name__}" for rule in RULES]
    assert [name for name in functions() if name not in listed] == [], "a row of `RULES` in catalogue.py is missing"
    assert sorted(listed) == sorted(functions())


def test_every_code_is_of_one_scope() -> None:
    scopes = {(code, rule.scope) for rule in RULES for code in rule.codes}
    assert sorted(code for code, _ in scopes) == CODES


def test_every_code_has_its_page() -> None:
    pages = sorted(page.stem for page in (ROOT / "docs" / "rules").glob("*.md"))
    assert [code for code in CODES if code not in pages] == [], "docs/rules/CODE.md is missing"
    assert [page for page in pages if page[:3] not in OF_BUILDS] == CODES


def test_every_code_has_its_limits() -> None:
    files = sorted(file.stem.upper() for file in (Path(__file__).parent / "limits").glob("*.py"))
    missing = [f"tests/checks/rules/limits/{code.lower()}.py" for code in CODES if code not in files]
    assert missing == [], "a file with the limits of a code is missing"
    assert files == CODES


def test_the_docs_list_every_rule() -> None:
    rows = "".join(
        f"| {', '.join(f'[{code}](rules/{code}.md)' for code in rule.codes)} | {rule.title} | {answer(rule.scope)} |\n"
        for rule in RULES
    )
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    shown = page.partition("| codes | about | an error decides |\n|---|---|---|\n")[2].partition("\n\n")[0] + "\n"
    assert shown == rows, f"the table of rules in docs/check.md is to be:\n{rows}"


def answer(scope: Scope) -> str:
    return "build and run" if scope is Scope.BOTH else str(scope)


@each("code", CODES)
def test_both_sides_of_each_limit(code: str) -> None:
    limit = limits_of(code)
    for changes in (limit.speaks, *limit.also):
        findings = found(code, case(**changes))
        assert findings
        assert {str(finding.severity) for finding in findings} == {limit.severity}
    assert limit.silent
    assert [found(code, case(**changes)) for changes in limit.silent] == [[] for _ in limit.silent]


@each("code", CODES)
def test_the_example_of_each_page_is_what_the_rule_says(code: str) -> None:
    page = (ROOT / "docs" / "rules" / f"{code}.md").read_text(encoding="utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block
    assert json.loads(block[1]) == found(code, case(**limits_of(code).speaks))[0].to_json()


def test_every_rule_speaks_in_one_of_the_cases() -> None:
    cases = [case(**changes) for code in CODES for changes in (limits_of(code).speaks, *limits_of(code).also)]
    silent = [rule.title for rule in RULES if not any(list(rule(asked)) for asked in cases)]
    assert silent == [], "`ALSO` of a code has the cases of a second rule"


def test_a_code_that_is_not_declared_is_a_bug() -> None:
    rule = next(rule for rule in RULES if "TE501" in rule.codes)
    with pytest.raises(BugError, match="yields TE501, which it does not declare"):
        list(replace(rule, codes=("TE502",))(case(**limits_of("TE501").speaks)))


def test_what_an_open_answer_needs_is_a_value_of_the_report_or_a_table() -> None:
    known = {*host_fields(), *vars(Facts), *Facts.__annotations__}
    for code in CODES:
        for finding in found(code, case(**limits_of(code).speaks)):
            assert finding.unknown is None or finding.unknown.needs in known
            assert finding.unknown is None or finding.severity is not Severity.NOTE
