"""Every output with ``--json`` of a test satisfies the schema that tenv publishes."""

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "docs" / "output.schema.json"
_ENVELOPE = {"tenv", "command", "ok"}


@cache
def _validator() -> Any:
    import jsonschema

    return jsonschema.Draft7Validator(json.loads(FILE.read_text(encoding="utf-8")))


def require_schema(text: str) -> None:
    """Fail if a text is an envelope of tenv and no valid one; a program that tenv runs may print any other text."""
    try:
        output = json.loads(text)
    except ValueError:
        return
    if isinstance(output, dict) and output.keys() >= _ENVELOPE:
        faults = [f"{error.json_path}: {error.message[:200]}" for error in _validator().iter_errors(output)]
        assert not faults, (
            f"docs/output.schema.json (scripts/json_schemas.py) refuses {output['command']}: {faults[:5]}"
        )
