"""Write the JSON schemas of outputs and locks: `docs/output.schema.json` and `docs/lock.schema.json`.

    python scripts/json_schemas.py

The schema of outputs is that of the recorded ones, and of `STARTED`, `BUILT` and others below for the commands whose
recorded output is an error: the machine decides on their values. The schema of locks has the keys that the reader of
locks takes, so that an editor marks any other.

The recorded outputs (`tests/cli/__snapshots__/test_json_snapshot`) are renewed by ``pytest -m snapshots
--snapshot-update``. A key is required where every recorded output of a command has it; more keys may come at any time.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tenv.locks import lock_file, lock_rows
from tenv.targets.manifest import PLATFORMS
from tenv.targets.sections import SECTIONS

ROOT = Path(__file__).parents[1]
LOCK_FILE = ROOT / "docs" / "lock.schema.json"
FILE = ROOT / "docs" / "output.schema.json"
RECORDED = ROOT / "tests" / "cli" / "__snapshots__" / "test_json_snapshot"
KINDS: dict[type, str] = {bool: "boolean", int: "number", float: "number", str: "string", dict: "object", list: "array"}
ERROR = {
    "type": ["object", "null"],
    "required": ["code", "message", "hint"],
    "properties": {name: {"type": "string"} for name in ("code", "message", "hint", "detail", "step")},
}
TEXT = {"type": "string"}
TEXT_LIST = {"type": "array", "items": TEXT}
OBJECT = {"type": "object"}
COUNT = {"type": "integer"}
MAYBE = {"type": ["string", "null"]}


def keys(known: Iterable[str] = (), *, optional: Iterable[str] = (), **types: Any) -> dict[str, Any]:
    """Return the schema of an object: keys of text, keys of other types, and keys that may be absent."""
    rows = {**dict.fromkeys(known, TEXT), **types}
    return {"type": "object", "required": [name for name in rows if name not in optional], "properties": rows}


STEP = keys(
    ("name", "log"), ok={"type": "boolean"}, seconds={"type": "number"}, findings={"type": "array"}, facts=OBJECT
)
BUILT = keys(
    ("target", "prefix", "pytorch", "folder", "report"),
    steps={"type": "array", "items": STEP},
    commands=OBJECT,
    torch={"type": ["object", "null"]},
)
STARTED = keys(
    ("target",),
    command=TEXT_LIST,
    environment=keys(set=OBJECT, unset=TEXT_LIST),
    files={"type": "object", "additionalProperties": TEXT},
)
LIBRARY = keys(
    ("path", "machine", "soname", "rpath_kind", "cxx11_abi", "fault"),
    **dict.fromkeys(("architectures", "ptx", "lto", "libraries", "rpath"), TEXT_LIST),
    needs={"type": "object", "additionalProperties": TEXT},
    symbols={"type": "object", "additionalProperties": TEXT_LIST},
)
AUDIT = keys(
    ("path", "target"),
    optional=("torch",),
    kind={"enum": ["file", "folder", "wheel"]},
    prefix=MAYBE,
    run={"type": ["boolean", "null"]},
    manylinux={"type": ["object", "null"]},
    build={"type": ["object", "null"]},
    files={"type": "array", "items": LIBRARY},
    links={"type": "array", "items": keys(("library", "by", "from", "path"))},
    machines={"type": ["array", "null"]},
    torch=OBJECT,
)
BISECT = keys((*BUILT["required"], "commit"), status={"type": "integer"}, ran={"type": "boolean"})
WRITTEN = {
    **dict.fromkeys(("run", "shell", "gdb"), STARTED),
    **dict.fromkeys(("plan", "build"), BUILT),
    "bisect-env": {**BISECT, "properties": {**BISECT["properties"], **BUILT["properties"]}},
    "audit": AUDIT,
    "completion": keys(("script",)),
    "rollback": keys(
        ("target", "prefix"),
        dry_run={"type": "boolean"},
        state=MAYBE,
        lock_digest=MAYBE,
        difference={"type": ["object", "null"]},
    ),
    "info": keys(
        ("version", "platform"),
        commit=MAYBE,
        **dict.fromkeys(("versions", "folders", "caches", "settings"), OBJECT),
        index={"type": ["string", "null"]},
        others={"type": "array"},
    ),
}
"""The schema of the data of commands whose recorded output is an error."""
FORMS = {
    "config": [{"type": "object", "additionalProperties": {"type": "object", "required": ["value", "origin"]}}],
    "create": [keys(("target",), **{"for": OBJECT, "changed": {"type": "boolean"}})],
    "facts": [
        keys(
            ("name", "about", "date"),
            **dict.fromkeys(("rows", "unconfirmed", "own"), COUNT),
            sections=OBJECT,
        )
    ],
}
"""Forms of data that no recorded output has."""
OPEN = (
    ("bundle", "target"),
    *((command, "machines", "driver") for command in ("check", "check-driver")),
    ("config", "value"),
    ("create", "files", "size"),
    ("create", "lock_origin"),
    ("create", "manifest_origin"),
    ("default", "target"),
    *(("diff", name, "platforms") for name in ("added", "removed", "changed")),
    *(("explain", name) for name in ("step", "error", "place", "cause")),
    ("init", "gitignore"),
    ("init", "hides"),
    ("list", "torch"),
    ("show", "asked"),
    ("targets", "lock_origin"),
    ("update", "difference"),
    ("update", "targets", "difference"),
    ("show", "lock_origin"),
    ("show", "packages", "size"),
)
"""Keys that have values of other types than the recorded ones, such as null."""
ANSWER = {"type": ["boolean", "null"]}
VERDICTS = {"build", "run"}
"""Keys of answers."""
FACT = {"value", "origin", "kind", "missing"}
TEXTS = ("code", "severity", "message")
PLACEHOLDER = re.compile(r"<\w+>")
"""What stands in a recorded output for a value that differs from run to run."""


def infer(values: Sequence[Any]) -> dict[str, Any]:
    """Return the schema of values; that of objects by platform or file has no names of keys.

    A value that is null in all of them may be of any type.
    """
    if any(isinstance(value, str) and PLACEHOLDER.fullmatch(value) for value in values):
        return {}
    kinds = sorted({"null" if value is None else KINDS[type(value)] for value in values})
    if kinds == ["null"]:
        return {}
    found: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    if items := [item for value in values if isinstance(value, list) for item in value]:
        found["items"] = infer(items)
    if objects := [value for value in values if isinstance(value, dict)]:
        found |= infer_object(objects)
    return found


def infer_object(objects: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of objects without its type."""
    names = list(dict.fromkeys(name for value in objects for name in value))
    if names and set(names) <= FACT:  # a value with its origin, or the reason for its lack
        known = [value["value"] for value in objects if "value" in value]
        value = {"required": ["value", "origin"], "properties": {"value": infer(known), "origin": TEXT}}
        return {"anyOf": [value, {"required": ["missing"], "properties": {"missing": TEXT}}]}
    if not all(map(str.isidentifier, names)):  # linux-64, a file, a setting
        return {"additionalProperties": infer([item for value in objects for item in value.values()])}
    if not names:
        return {}
    return {
        "required": [name for name in names if all(name in value for value in objects)],
        "properties": {name: infer_key(name, [value[name] for value in objects if name in value]) for name in names},
    }


def infer_key(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the schema of the values of a key; an answer is null where it is unknown."""
    return ANSWER if name in VERDICTS and {*map(type, values)} <= {bool, type(None)} else infer(values)


def infer_data(command: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the schema of the data of a command: one for each set of keys that its forms have."""
    forms: dict[frozenset[str], list[Any]] = {}
    for value in values:
        named = isinstance(value, dict) and all(map(str.isidentifier, value))
        forms.setdefault(frozenset(value) if named else frozenset(), []).append(value)
    found = [*map(infer, forms.values()), *FORMS.get(command, ())]
    for path in (path for name, *path in OPEN if name == command):
        for form in found:
            open_up(form, path)
    return found[0] if len(found) == 1 else {"anyOf": found}


def open_up(form: dict[str, Any], path: Sequence[str]) -> None:
    """Permit any value of a key; its path leads through the items of lists."""
    below = form.get("items", form).get("properties", {})
    if path[0] not in below:
        return
    if len(path) == 1:
        below[path[0]] = {}
    else:
        open_up(below[path[0]], path[1:])


def schema(outputs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of the envelope, with the data of each command."""
    data: dict[str, list[Any]] = {}
    for output in outputs:
        data.setdefault(output["command"], []).append(output["data"])
    known = dict(sorted({**{name: infer_data(name, values) for name, values in data.items()}, **WRITTEN}.items()))
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


def lock_schema() -> dict[str, Any]:
    """Return the schema of locks: an unknown key is an error, as it is for tenv."""
    of = {
        **{name: {"type": "integer", "minimum": 0} for name in ("size", "strip")},
        **dict.fromkeys(("python", "requires", "features", "build", "wheels"), TEXT_LIST),
        **{name: {"type": "boolean"} for name in ("dynamic", "editable", "isolation")},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "kind": {"enum": [*lock_rows._KINDS]},
        "trust": {"enum": [*lock_rows._TRUST]},
    }

    def rows(required: Sequence[str], *known: str) -> dict[str, Any]:
        values = {name: of.get(name, TEXT) for name in known}
        row = {"type": "object", "required": [*required], "additionalProperties": False, "properties": values}
        return {"type": "array", "items": row}

    def on_platforms(value: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": False, "properties": dict.fromkeys(PLATFORMS, value)}

    file = ("name", "version", "sha256")
    lists = {"type": "object", "additionalProperties": TEXT_LIST}
    sections = {"type": "object", "propertyNames": {"enum": [section.name for section in SECTIONS]}}
    trees = dict.fromkeys((*lock_rows._TREE_KEYS, *lock_rows._SDIST_KEYS))
    values = {
        "schema": {"const": lock_file._SCHEMA},
        "written-by": TEXT,
        "target": TEXT,
        "manifest": of["sha256"],
        "requirements": {"type": "object", "additionalProperties": False, "properties": dict.fromkeys(ASKED, TEXT)},
        "requests": on_platforms({**sections, "additionalProperties": lists}),
        "wheels": on_platforms(rows((*file, "file", "python"), *lock_rows._WHEEL_KEYS)),
        "archives": on_platforms(rows((*file, "url"), *lock_rows._ARCHIVE_KEYS)),
        lock_file._CONDA_FEATURES: on_platforms(lists),
        lock_file._TREES: on_platforms(rows(("name", "version", "python", "requires"), *trees)),
        lock_file._INDEXES: rows(("url",), *lock_rows._INDEX_KEYS),
        **dict.fromkeys(lock_file._OTHERS, on_platforms({"type": "array", "items": OBJECT})),
    }
    ours = ("schema", "written-by", "target", "manifest", "requirements", "requests", "wheels")
    parts = {
        "version": {"const": lock_file._PIXI_VERSION},
        "platforms": {"type": "array"},
        "environments": OBJECT,
        "packages": {"type": "array"},
        "tenv": {"type": "object", "required": [*ours], "additionalProperties": False, "properties": values},
    }
    about = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Lock of tenv"}
    needed = ["version", "environments", "packages", "tenv"]
    return {**about, "type": "object", "required": needed, "additionalProperties": False, "properties": parts}


ASKED = ("cuda", "glibc", "python")


def text(made: dict[str, Any]) -> str:
    """Return the file of a schema."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def output_schema() -> dict[str, Any]:
    """Return the schema of outputs, from the recorded ones."""
    outputs = [json.loads(file.read_text(encoding="utf-8"))["stdout"] for file in sorted(RECORDED.glob("*.json"))]
    return schema([output for output in outputs if output["ok"]])


SCHEMAS = {FILE: output_schema, LOCK_FILE: lock_schema}

if __name__ == "__main__":
    for path, make in SCHEMAS.items():
        path.write_text(text(make()), encoding="utf-8")
        print(f"{path} written")
