"""The JSON schema of a manifest, from the reader's own table of keys.

Draft 7, which taplo and VS Code's TOML extension read. A keyword of it applies to values of its type alone, so one
schema holds a text and a table without ``oneOf``, and an error names the place that is wrong.
"""

import json
from typing import Any

from tenv.targets.manifest_keys import MANIFEST, Form, Key, Tables

__all__ = ["SCHEMA_FILE", "manifest_schema", "schema_text"]

SCHEMA_FILE = "tenv.schema.json"
"""The name of the schema's file beside the manifests of a project."""


def manifest_schema() -> dict[str, Any]:
    """Return the JSON schema of a manifest."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Manifest of a tenv target",
        "description": "What a target asks for. `tenv lock` selects the files, `tenv create` installs them.",
        **_table(MANIFEST),
        "type": "object",
    }


def schema_text() -> str:
    """Return the JSON schema as the text of a file."""
    return json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"


def _table(keys: tuple[Key, ...]) -> dict[str, Any]:
    return {"properties": {key.name: _value(key) for key in keys}, "additionalProperties": False}


def _value(key: Key) -> dict[str, Any]:
    found: dict[str, Any] = {"description": key.about}
    forms = [str(form) for form in key.forms]
    found["type"] = forms[0] if len(forms) == 1 else forms
    text = _text(key)
    if Form.TEXTS in key.forms:
        found |= {"items": {"type": "string", **text}} | ({"uniqueItems": True} if key.choices else {})
    if Form.TEXT in key.forms:
        found |= text
    if Form.COUNT in key.forms:
        found["minimum"] = 0
    if key.only_true:
        found["enum"] = [True]
    if key.only_false:
        found["not"] = {"const": True}
    if key.keys:
        found |= _table(key.keys)
    if key.each:
        found |= _named(key.each)
    if key.one_key:
        found |= {"minProperties": 1, "maxProperties": 1}
    if key.one_of:
        one = {"oneOf": [{"required": [name]} for name in key.one_of]}
        found |= {"if": {"type": "object"}, "then": one}
    return found | ({"examples": [key.example]} if key.example else {})


def _text(key: Key) -> dict[str, Any]:
    if key.choices:
        return {"enum": list(key.choices)}
    return {"pattern": f"^({key.pattern})$"} if key.pattern else {}


def _named(tables: Tables) -> dict[str, Any]:
    found: dict[str, Any] = {"properties": {key.name: _value(key) for key in tables.known}} if tables.known else {}
    found["additionalProperties"] = False if tables.closed else _value(tables.value)
    return found | ({"propertyNames": {"pattern": f"^({tables.pattern})$"}} if tables.pattern else {})
