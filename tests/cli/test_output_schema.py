"""The schema of what commands print with ``--json``: renewed from recorded outputs, and true of others."""

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tenv.cli.main import COMMANDS
from tests.cli.test_json_snapshot import CALLS
from tests.support.projects import Project, call

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "json_schemas.py"))
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "output.schema.json").read_text())


def test_the_schema_is_that_of_the_recorded_outputs() -> None:
    assert SCRIPT["FILE"].read_text() == SCRIPT["text"](), "run `python scripts/json_schemas.py`"


def test_every_recorded_output_satisfies_it() -> None:
    validator = jsonschema.Draft7Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    recorded = [json.loads(file.read_text())["stdout"] for file in SCRIPT["RECORDED"].glob("*.json")]
    assert len(recorded) == len(CALLS)
    assert [error.message for output in recorded for error in validator.iter_errors(output)] == []
    assert {output["command"] for output in recorded} == set(COMMANDS)


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "tiny", "--check"),
        ("packages", "tiny"),
        ("show", "tiny"),
        ("list",),
        ("drop", "tiny"),
        ("explain", "X"),
    ],
)
def test_other_outputs_satisfy_it(words: tuple[str, ...], locked: Project) -> None:
    output = json.loads(call(*words, "--json").out)
    jsonschema.validate(output, SCHEMA)
    output["ok" if words[0] == "list" else "command"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(output, SCHEMA)


def test_a_missing_key_and_another_type_are_refused(locked: Project) -> None:
    output = json.loads(call("packages", "tiny", "--json").out)
    output["data"][0]["requires"] = "beta"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(output, SCHEMA)
    del output["data"][0]["requires"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(output, SCHEMA)
