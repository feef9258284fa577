"""Parse YAML texts into plain values; every fault is a ValueError.

The parser works on events, so that its cost is bounded: it rejects aliases (a few lines of them can expand to
gigabytes), merge keys, tags, deep nesting and duplicate keys (which readers resolve differently). Only whole numbers,
booleans and null have a type. Everything else stays text, and ``1:30:00`` or ``1_000`` is not a number.
"""

import re
from collections.abc import Iterator
from typing import Any

_MAX_DEPTH = 50
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_PLAIN_TAGS = (None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def load(text: str | bytes) -> Any:
    """Return the value of a YAML text: mappings with text keys, lists, and scalars.

    Args:
        text: The text.

    Raises:
        ValueError: It is not YAML, or uses an unsupported feature; the message has the reason and the line.
    """
    import yaml  # late: 15 ms

    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as fault:
            raise ValueError(f"not UTF-8 text (byte {fault.start})") from fault
    events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        return _document(events)
    except yaml.YAMLError as fault:
        raise ValueError(_told(fault)) from fault


def _document(events: Iterator[Any]) -> Any:
    """Build the only document of a text; by exact types, since a lock has 10,000 events."""
    import yaml

    whole: list[Any] = []
    holder: Any = whole
    key: str | None = None
    stack: list[Any] = []
    for event in events:
        kind = type(event)
        if isinstance(event, yaml.NodeEvent):
            if key is None and type(holder) is dict:
                key = _key(event, holder)
                continue
            node = _node(event)
            if key is None:
                holder.append(node)
            else:
                holder[key] = node
                key = None
            if kind is not yaml.ScalarEvent:
                stack.append(holder)
                holder = node
                if len(stack) >= _MAX_DEPTH:
                    raise _fault("nested too deep", event)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            holder = stack.pop()
        elif kind is yaml.DocumentStartEvent and whole:
            raise _fault("a second document", event)
    return whole[0] if whole else None


def _key(event: Any, mapping: dict[str, Any]) -> str:
    """Return the key of an event."""
    import yaml

    if type(event) is yaml.AliasEvent:
        raise _fault(f"uses a YAML alias (`*{event.anchor}`)", event)
    if type(event) is not yaml.ScalarEvent:
        raise _fault("a key is not a text", event)
    if event.value == "<<" and not event.style:
        raise _fault("uses a merge key (`<<`)", event)
    if event.value in mapping:
        raise _fault(f"the key `{event.value}` is duplicated", event)
    return str(event.value)


def _node(event: Any) -> Any:
    """Return the value of an event, or the one that it begins."""
    import yaml

    if type(event) is yaml.AliasEvent:
        raise _fault(f"uses a YAML alias (`*{event.anchor}`)", event)
    if event.tag not in _PLAIN_TAGS:
        raise _fault(f"uses the tag `{event.tag}`", event)
    if type(event) is not yaml.ScalarEvent:
        return {} if type(event) is yaml.MappingStartEvent else []
    value: str = event.value
    if event.style or event.tag is not None:  # libyaml gives "" for a plain one
        return value
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    return int(value) if _INTEGER.fullmatch(value) else value


def _fault(problem: str, event: Any) -> ValueError:
    return ValueError(f"{problem} (line {event.start_mark.line + 1})")


def _told(fault: Exception) -> str:
    """Return why a text is unreadable, with the line if it is known."""
    mark = getattr(fault, "problem_mark", None)
    problem = getattr(fault, "problem", None) or (str(fault).splitlines() or [type(fault).__name__])[0]
    if "maximum nesting" in problem:  # of libyaml, in PyYAML from 6.0.4 on: it looks ahead of the events
        problem = "nested too deep"
    return f"{problem} (line {mark.line + 1})" if mark else str(problem)
