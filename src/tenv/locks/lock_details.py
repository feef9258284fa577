"""What a lock says beside what decides: further fields of its packages, and the values that belong to no package."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tenv.core.toml_reader import Table
from tenv.core.untrusted import text_fault

__all__ = ["read_details", "read_header"]

_NOT_HEADER = ("wheels", "archives", "conda-features", "source-trees", "written-by")
_CONDA_KEYS = (
    *("conda", "name", "version", "build", "subdir", "channel", "sha256", "md5", "size", "depends", "constrains"),
)


def read_details(whole: Table, used: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the further values of conda packages, by URL; a row that no platform names is an error."""
    found: dict[str, dict[str, str]] = {}
    named = set(used)
    for row in whole.rows("packages"):
        url = row.required_text("conda")
        if url not in named or url in found:
            raise row.fail(
                "conda", f"{url} {'has two rows' if url in found else 'has a row, but no platform names it'}"
            )
        found[url] = {key: _plain(value) for key, value in row.data.items() if key not in _CONDA_KEYS}
        if any(text_fault(text) for text in found[url].values()):
            raise row.fail("", "holds characters that can't be printed")
    return found


def read_header(whole: Table, target: str) -> dict[str, str]:
    """Return the values of a lock that belong to no package as text, by path."""
    data = {key: value for key, value in whole.data.items() if key not in ("packages", "environments", "tenv")}
    environment = whole.table("environments").table(target).data
    data["environment"] = {key: value for key, value in environment.items() if key != "packages"}
    data["tenv"] = {key: value for key, value in whole.table("tenv").data.items() if key not in _NOT_HEADER}
    return dict(_leaves(data, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for number, one in enumerate(value):
            yield from _leaves(one, f"{path}[{number}]")
    else:
        yield path, _plain(value)


def _plain(value: Any) -> str:
    """Return a value as text; different values have different texts."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return value
    return json.dumps(value, ensure_ascii=False)  # the text "1" is not the number
