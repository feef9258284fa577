"""JSON with comments, as editors keep it: read, and extended without a change to the rest.

VS Code's settings may hold `//` and `/* */` comments and a comma after the last member. The libraries for Python
(json5, json-five, hjson) write such a text anew, so this reads where things are, and edits the text.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from tenv.core.dataclass import dataclass

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_LITERAL = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_NAMES = ("name", "label", "id")
"""Keys by which VS Code knows an entry of a list: a configuration, a task, an input."""

_DEEP = 100
_STEP = 4


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value in a text."""

    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    value: Any
    """Its value, without its members or items."""
    members: dict[str, "JsonNode"] = field(default_factory=dict)
    """The members of an object, by name; the last of a name counts."""
    items: tuple["JsonNode", ...] = ()
    """The items of a list."""
    comma: bool = False
    """Whether a comma stands after the last member or item."""

    @property
    def last(self) -> int:
        """Where the last member or item ends; behind the opening bracket where there is none."""
        return max((node.end for node in (*self.members.values(), *self.items)), default=self.start + 1)


@dataclass(frozen=True, slots=True)
class JsonEdit:
    """A text after values were added to it."""

    text: str
    """The text."""
    kept: tuple[tuple[str, ...], ...]
    """The places whose own value was kept, as keys from the outermost on."""


def read(text: str) -> JsonNode:
    """Read a text.

    Raises:
        ValueError: It is no JSON, comments aside.
    """
    node, end = _value(text, _skip(text, 0), 0)
    if _skip(text, end) != len(text):
        raise _fault(text, _skip(text, end))
    return node


def value_of(node: JsonNode) -> Any:
    """Return a value, with its members and items."""
    if isinstance(node.value, dict):
        return {name: value_of(member) for name, member in node.members.items()}
    return [value_of(item) for item in node.items] if isinstance(node.value, list) else node.value


def _fault(text: str, at: int) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, at) + 1}: no JSON")


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> tuple[JsonNode, int]:
    if depth > _DEEP:
        raise _fault(text, at)
    if text[at : at + 1] in ("{", "["):
        return _container(text, at, depth)
    match = _STRING.match(text, at) or _LITERAL.match(text, at)
    if not match:
        raise _fault(text, at)
    return JsonNode(at, match.end(), json.loads(match[0])), match.end()


def _container(text: str, start: int, depth: int) -> tuple[JsonNode, int]:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    members: dict[str, JsonNode] = {}
    items: list[JsonNode] = []
    at, comma = _skip(text, start + 1), True
    while text[at : at + 1] != close:
        if not comma:
            raise _fault(text, at)
        name = ""
        if is_object:
            match = _STRING.match(text, at)
            colon = _skip(text, match.end()) if match else at
            if not match or text[colon : colon + 1] != ":":
                raise _fault(text, at)
            name, at = json.loads(match[0]), _skip(text, colon + 1)
        node, at = _value(text, at, depth + 1)
        if is_object:
            members[name] = node
        else:
            items.append(node)
        at = _skip(text, at)
        comma = text[at : at + 1] == ","
        at = _skip(text, at + 1) if comma else at
    trailing = comma and bool(members or items)
    return JsonNode(start, at + 1, {} if is_object else [], members, tuple(items), trailing), at + 1


def merge(text: str, wanted: dict[str, Any], *, force: bool = False) -> JsonEdit:
    """Add values to a text, whose every line stays.

    Objects are merged member by member, lists item by item: an item with a `name`, `label` or `id` is that of the same
    one, another one is added unless it is there.

    Args:
        text: The text; an empty one counts as an empty object.
        wanted: The wanted value.
        force: Replace different values; they are kept otherwise.

    Raises:
        ValueError: The text is no JSON object, comments aside.
    """
    text = text if text[_skip(text, 0) :] else f"{text}{{}}"
    kept: list[tuple[str, ...]] = []
    while True:  # each edit moves the text behind it, so the text is read again
        root = read(text)
        if not isinstance(root.value, dict):
            raise _fault(text, root.start)
        kept.clear()
        edited = _edit(text, root, wanted, (), kept, force=force)
        if edited is None:
            return JsonEdit(text, tuple(kept))
        text = edited


def _edit(
    text: str, node: JsonNode, wanted: Any, path: tuple[str, ...], kept: list[tuple[str, ...]], *, force: bool
) -> str | None:
    """Return the text after the first edit that a value asks for; None where it asks for none."""
    if isinstance(node.value, dict) and isinstance(wanted, dict) and not _named(wanted):
        pairs = [(node.members.get(name), value, name) for name, value in wanted.items()]
    elif isinstance(node.value, list) and isinstance(wanted, list):
        pairs = [(_find(node.items, value), value, "") for value in wanted]
    else:
        if value_of(node) == wanted:
            return None
        if force:
            return text[: node.start] + _shown(wanted, _indent(text, node.start), text) + text[node.end :]
        kept.append(path)
        return None
    for found, value, name in pairs:
        if found is None:
            return _insert(text, node, value, name)
        edited = _edit(text, found, value, (*path, name or str(_named(value) or value)), kept, force=force)
        if edited is not None:
            return edited
    return None


def _named(value: Any) -> Any:
    return next((value[key] for key in _NAMES if key in value), None) if isinstance(value, dict) else None


def _find(items: Sequence[JsonNode], value: Any) -> JsonNode | None:
    name = _named(value)
    same = (item for item in items if (_named(value_of(item)) == name if name else value_of(item) == value))
    return next(same, None)


def _insert(text: str, node: JsonNode, value: Any, name: str) -> str:
    close = node.end - 1
    outer = _indent(text, node.start)
    first = min((child.start for child in (*node.members.values(), *node.items)), default=None)
    inner = _indent(text, first) if first is not None and "\n" in text[node.start : first] else ""
    inner = inner if len(inner) > len(outer) else outer + " " * _STEP
    between = text[node.last : close]
    comma = "," if not node.comma and (node.members or node.items) else ""
    line = "\r\n" if "\r\n" in text else "\n"
    label = f"{json.dumps(name, ensure_ascii=False)}: " if isinstance(node.value, dict) else ""
    added = f"{line}{inner}{label}{_shown(value, inner, text)}{line}{outer}"
    return text[: node.last] + comma + between.rstrip() + added + text[close:]


def _indent(text: str, at: int) -> str:
    """Return the blanks at the beginning of the line of a place."""
    start = text.rfind("\n", 0, at) + 1
    match = re.compile(r"[ \t]*").match(text, start)
    return match[0] if match else ""


def _shown(value: Any, indent: str, text: str) -> str:
    line = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, indent=_STEP, ensure_ascii=False).replace("\n", f"{line}{indent}")
