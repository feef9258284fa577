"""What every value of the host report must have: a line of the table, a row of the docs, and machines to be probed on.

A new value asks for ``fields/NAME.py`` in this folder, with `CASES`: see `tests.host.field_cases`.
"""

import importlib
import json
import pkgutil
import re
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import pytest

from tenv import host
from tenv.core.toml_reader import Table
from tenv.core.worded import Worded
from tenv.host.collect import Scan
from tenv.host.field import HostField, host_fields
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import HostReport, Lead, LibcudaKind, ProblemKind
from tests.host.field_cases import Absent, Present
from tests.support.each import each
from tests.support.projects import call

FOLDER = Path(__file__).parent / "fields"
PAGE = (Path(__file__).parents[2] / "docs" / "host.md").read_text(encoding="utf-8")
FILES = sorted(file.stem for file in FOLDER.glob("*.py"))
MODULES = [
    importlib.import_module(f"{host.__name__}.{module.name}")
    for module in pkgutil.iter_modules(host.__path__)
    if module.name != "nvml_child"
]


def cases_of(name: str) -> list[Present | Absent]:
    found: list[Present | Absent] = importlib.import_module(f"tests.host.fields.{name}").CASES
    return found


def test_every_probe_is_in_the_table_once() -> None:
    made = [value.label for module in MODULES for value in vars(module).values() if isinstance(value, HostField)]
    listed = [field.label for field in host_fields().values()]
    assert [label for label in made if label not in listed] == [], "a line of `HostReport` in report.py is missing"
    assert sorted(made) == sorted(listed)
    assert len(set(listed)) == len(listed)


def test_a_module_that_probes_has_a_value_of_the_report() -> None:
    without = [
        module.__name__
        for module in MODULES
        if hasattr(module, "probe") and not any(isinstance(value, HostField) for value in vars(module).values())
    ]
    assert without == [], "a `HostField` makes a probe a value of the report"


def test_every_value_is_of_the_type_that_its_line_says() -> None:
    known = {name: value for module in MODULES for name, value in vars(module).items()}
    for name, line in get_type_hints(HostReport, known).items():
        fact, missing = line.__args__
        (said,) = fact.__args__
        assert missing is Missing
        for case in cases_of(name):
            if isinstance(case, Present):
                value = host_fields()[name].read(Table({"value": case.value}), "value")
                assert isinstance(value, get_origin(said) or said), name


def test_every_value_has_its_machines() -> None:
    assert [name for name in host_fields() if name not in FILES] == [], "tests/host/fields/NAME.py is missing"
    assert sorted(host_fields()) == FILES
    for name in FILES:
        answers = [case.value if isinstance(case, Present) else case.kind for case in cases_of(name)]
        assert any(isinstance(case, Present) for case in cases_of(name)), f"{name}: no machine has it"
        assert len({json.dumps(answer) for answer in answers}) > 1, f"{name}: all machines look alike"


@each("name, number", [(name, number) for name in FILES for number in range(len(cases_of(name)))])
def test_what_is_probed_on_a_machine(name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, field = cases_of(name)[number], host_fields()[name]
    with monkeypatch.context() as patch:
        answer = field.probe(Scan(case.machine(tmp_path, patch), tmp_path / "envs"))
    if isinstance(case, Absent):
        assert isinstance(answer, Missing)
        assert (answer.kind, case.reason in answer.reason) == (case.kind, True), answer
        return
    assert isinstance(answer, Fact)
    assert answer.kind is case.kind
    written = json.loads(json.dumps(field.write(answer.value)))
    assert written == placed(case.value, tmp_path)
    assert field.read(Table({"value": written}), "value") == answer.value
    assert field.show(answer.value) == placed(list(case.lines), tmp_path)


def placed(value: Any, root: Path) -> Any:
    """Return a value of JSON with the machine's folder in the place of ``ROOT``."""
    return json.loads(json.dumps(value).replace("ROOT", str(root)))


def test_the_docs_have_every_value() -> None:
    rows = "".join(f"| `{name}` | {field.meaning} | {field.form} |\n" for name, field in host_fields().items())
    assert table("| value | is | form in JSON |") == rows, f"the table of values in docs/host.md is to be:\n{rows}"


@each("kinds", [OriginKind, ReasonKind, Lead, ProblemKind, LibcudaKind])
def test_the_docs_have_every_kind(kinds: type[Worded]) -> None:
    rows = "".join(f"| `{kind}` | {kind.text} |\n" for kind in kinds)
    assert rows in PAGE, f"a table of kinds in docs/host.md is to be:\n{rows}"
    assert [str(kind) for kind in kinds][-1] == "other"


def table(head: str) -> str:
    return re.sub(r"^\|[-|]+\n", "", PAGE.partition(f"{head}\n")[2].partition("\n\n")[0] + "\n")


def test_tenv_host_has_a_line_for_every_value(tmp_path: Path) -> None:
    report = tmp_path / "nothing.json"
    report.write_text('{"schema": 2}')
    lines = call("host", "--host-report", str(report)).out.splitlines()
    assert lines == [f"{field.label:<12} missing  (the report does not say)" for field in host_fields().values()]
