"""The schemas of outputs with ``--json``, renewed from recorded ones and true of others, and the schema of locks."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tenv.cli.main import COMMANDS
from tenv.core.yaml_reader import load
from tests.cli.test_json_snapshot import CALLS
from tests.support.each import each
from tests.support.output_schema import require_schema
from tests.support.projects import Project, call
from tests.support.source_trees import write_tree

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "json_schemas.py"))
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "output.schema.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


def test_the_schemas_are_those_that_the_script_writes() -> None:
    for path, make in SCRIPT["SCHEMAS"].items():
        assert path.read_text() == SCRIPT["text"](make()), "run `python scripts/json_schemas.py`"


def test_every_recorded_output_satisfies_it() -> None:
    VALIDATOR.check_schema(SCHEMA)
    recorded = [json.loads(file.read_text())["stdout"] for file in SCRIPT["RECORDED"].glob("*.json")]
    assert len(recorded) == len(CALLS)
    assert [error.message for output in recorded for error in VALIDATOR.iter_errors(output)] == []
    assert {output["command"] for output in recorded} == set(COMMANDS)


@each(
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
    VALIDATOR.validate(output)
    output["ok" if words[0] == "list" else "command"] = 1
    assert not VALIDATOR.is_valid(output)


def test_no_default_satisfies_it(project: Project) -> None:
    for words in (("default", "tiny"), ("default", "--unset"), ("default",)):
        VALIDATOR.validate(json.loads(call(*words, "--json").out))
    assert project.folder.is_dir()


def test_a_source_tree_in_a_difference_satisfies_it(project: Project, tmp_path: Path) -> None:
    project.ok("lock", "tiny")
    project.ok("init", "other", "--extends", "tiny")
    tree = write_tree(tmp_path / "vision")
    project.ok("add", "other", f"vision @ {tree}", "--no-create")
    for words in (("tiny", "other"), ("other", "tiny")):
        output = json.loads(call("diff", *words, "--json").out)
        assert output["data"]["added" if words[0] == "tiny" else "removed"]
        VALIDATOR.validate(output)


def test_what_would_start_satisfies_it(created: Project) -> None:
    for words in (
        ("run", "--json", "tiny", "--", "python", "-V"),
        ("shell", "tiny", "--json"),
        ("gdb", "tiny", "--json"),
    ):
        output = json.loads(call(*words).out)
        assert output["ok"], output
        VALIDATOR.validate(output)
        del output["data"]["environment"]
        assert not VALIDATOR.is_valid(output)


@pytest.mark.parametrize("words", [("completion", "bash"), ("info",), ("audit",)])
def test_outputs_about_the_machine_satisfy_it(words: tuple[str, ...], locked: Project) -> None:
    wheel = next(locked.index.folder.glob("native-*.whl"))
    output = json.loads(call(*words, *([str(wheel)] if words == ("audit",) else []), "--json").out)
    assert output["ok"], output
    VALIDATOR.validate(output)
    output["data"].pop(next(iter(output["data"])))
    assert not VALIDATOR.is_valid(output)


def test_the_outputs_of_all_tests_are_held_against_it(locked: Project) -> None:
    output = json.loads(call("show", "tiny", "--json").out)
    require_schema(json.dumps(output))
    del output["data"]["packages"]
    with pytest.raises(AssertionError, match="refuses show"):
        require_schema(json.dumps(output))
    for text in ("", "text", "[]", '{"schema": 2}'):  # of a program that tenv runs, and `host --compact`
        require_schema(text)


def lock_faults(path: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> list[str]:
    """Return the errors of the schema of locks in a lock, with a change."""
    data = load(path.read_bytes())
    assert isinstance(data, dict)
    change(data)
    schema = json.loads((ROOT / "docs" / "lock.schema.json").read_text())
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(data)]


def test_the_schema_of_locks_takes_them_and_marks_what_tenv_refuses(locked: Project) -> None:
    write_tree(locked.folder.parent / "tree")
    locked.ok("add", "tiny", "../tree")
    for path in (locked.lock, *(ROOT / "locks" / f"{name}.lock" for name in ("cpu", "cuda124-archives", "cuda118"))):
        assert lock_faults(path) == []
    for change in (
        lambda data: data["tenv"].update(more=1),
        lambda data: data["tenv"].update(schema=5),
        lambda data: data["tenv"]["wheels"].update({"linux64": []}),
        lambda data: data["tenv"]["wheels"]["linux-64"][0].update(sha256="0"),
        lambda data: data["tenv"]["wheels"]["linux-64"][0].pop("file"),
        lambda data: data["tenv"]["source-trees"]["linux-64"][0].update(comit="0"),
        lambda data: data.update(version=6),
    ):
        assert len(lock_faults(locked.lock, change)) == 1


def test_a_missing_key_and_another_type_are_refused(locked: Project) -> None:
    output = json.loads(call("packages", "tiny", "--json").out)
    output["data"][0]["requires"] = "beta"
    assert not VALIDATOR.is_valid(output)
    del output["data"][0]["requires"]
    assert not VALIDATOR.is_valid(output)
