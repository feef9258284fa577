"""Write `docs/output.schema.json`: what each command prints with ``--json``, from the recorded outputs of the tests.

    python scripts/json_schemas.py

The recorded outputs (`tests/cli/__snapshots__/test_json_snapshot`) are renewed by ``pytest -m snapshots
--snapshot-update``. A key is required where every recorded output of a command has it; more keys may come at any time.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "output.schema.json"
RECORDED = ROOT / "tests" / "cli" / "__snapshots__" / "test_json_snapshot"
KINDS: dict[type, str] = {bool: "boolean", int: "number", float: "number", str: "string", dict: "object", list: "array"}
ERROR = {
    "type": ["object", "null"],
    "required": ["code", "message", "hint"],
    "properties": {name: {"type": "string"} for name in ("code", "message", "hint", "detail", "step")},
}
TEXTS = ("code", "severity", "message")
PLACEHOLDER = re.compile(r"<\w+>")
"""What stands in a recorded output for a value that differs from run to run."""


def infer(values: Sequence[Any]) -> dict[str, Any]:
    """Return the schema of values; that of objects by platform or file has no names of keys."""
    if any(isinstance(value, str) and PLACEHOLDER.fullmatch(value) for value in values):
        return {}
    kinds = sorted({"null" if value is None else KINDS[type(value)] for value in values})
    found: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    if items := [item for value in values if isinstance(value, list) for item in value]:
        found["items"] = infer(items)
    if objects := [value for value in values if isinstance(value, dict)]:
        names = list(dict.fromkeys(name for value in objects for name in value))
        if not all(map(str.isidentifier, names)):  # linux-64, a file, a setting
            found["additionalProperties"] = infer([item for value in objects for item in value.values()])
        elif names:
            found["required"] = [name for name in names if all(name in value for value in objects)]
            found["properties"] = {name: infer([value[name] for value in objects if name in value]) for name in names}
    return found


def schema(outputs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of the envelope, with the data of each command."""
    data: dict[str, list[Any]] = {}
    for output in outputs:
        data.setdefault(output["command"], []).append(output["data"])
    known = {name: infer(values) for name, values in sorted(data.items())}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Output of tenv with --json",
        "type": "object",
        "required": ["tenv", "command", "ok", "data", "findings", "error"],
        "properties": {
            "tenv": {"type": "string"},
            "command": {"type": "string"},
            "ok": {"type": "boolean"},
            "findings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": [*TEXTS],
                    "properties": {name: {"type": "string"} for name in TEXTS},
                },
            },
            "error": ERROR,
        },
        "allOf": [
            {
                "if": {"properties": {"command": {"const": name}, "ok": {"const": True}}},
                "then": {"properties": {"data": {"$ref": f"#/definitions/{name}"}}},
            }
            for name in known
        ],
        "definitions": known,
    }


def text() -> str:
    """Return the file."""
    outputs = [json.loads(file.read_text(encoding="utf-8"))["stdout"] for file in sorted(RECORDED.glob("*.json"))]
    made = schema([output for output in outputs if output["ok"]])
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    print(f"{FILE} written")
