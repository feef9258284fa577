"""Changes of a file that keep most of its structure, so that readers get past their first check."""

import contextlib
import copy
import json
import random
from collections.abc import Callable
from typing import Any

import tomlkit
import yaml

__all__ = ["Syntax", "mutated"]

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 10**40, 1.5, float("inf"), "", "x", "..", "../..", "/", "\0", "\x1b[2J", "1:30:30"),
    *("http://[", "https://x:99999/y", "https://u:p@h/x", "file:///etc/passwd", "a" * 5000, "\u2028", "\u202e", "é"),
    *("osx-64", "noarch", "linux-64", "*", ">=", "==1.*", ">1,<0", "sha256:", "0" * 64, "f" * 63, "-rf", "$HOME"),
    *([], {}, [None], [[]], [{}], {"": None}, {"a": []}, ["x"], ["x"] * 300),
)
PIECES = (
    *("&a", "*a", "<<: *a", "!!python/object:os.system", "? [", "- - - -", "{{{{", "]]]]", '"', "'", "\\", "\t", "\r"),
    *("\u2028", "\ufeff", "\0", "#", "---\n", "...\n", "=", "[[", "]]", "[a]\n", "1" * 400, "0x", "nan", "\n\n", ": "),
    *("%", "@", "`", "|", ">", "!", ",", "\ud800"),
)


class Syntax:
    """How a kind of file is read into values and written again.

    Attributes:
        load: Returns the values of a text.
        dump: Returns the text of values.
    """

    def __init__(self, load: Callable[[str], Any], dump: Callable[[Any], str]) -> None:
        """Keep both ways."""
        self.load, self.dump = load, dump


def _dump_toml(value: Any) -> str:
    return tomlkit.dumps(value) if isinstance(value, dict) else json.dumps(value)


JSON = Syntax(json.loads, json.dumps)
YAML = Syntax(
    lambda text: yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)),  # noqa: S506 (the safe one)
    lambda value: yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False),
)
TOML = Syntax(lambda text: tomlkit.parse(text).unwrap(), _dump_toml)
SYNTAXES = {".json": JSON, ".lock": YAML, ".yml": YAML, ".yaml": YAML, ".toml": TOML}


def mutated(rng: random.Random, name: str, raw: bytes) -> bytes:
    """Return the content of a file with a few changes: of its values, of its text, or of its bytes."""
    way = rng.randrange(10)
    syntax = SYNTAXES.get(name[name.rfind(".") :])
    if way < 6 and syntax:
        with contextlib.suppress(Exception):  # a value that the syntax can't hold
            value = syntax.load(raw.decode())
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                value = _with_change(rng, value)
            return syntax.dump(value).encode("utf-8", "surrogatepass")
    if way < 9:
        return _with_pieces(rng, raw.decode("utf-8", "replace")).encode("utf-8", "surrogatepass")
    return _with_bytes(rng, raw)


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return each container of a value with each of its keys."""
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in rows:
        found.append((value, key))
        _places(inner, found)
    return found


def _with_change(rng: random.Random, value: Any) -> Any:
    places = _places(value, [])
    if not places or rng.random() < 0.01:
        return copy.deepcopy(rng.choice(ODD))
    holder, key = rng.choice(places)
    match rng.randrange(8):
        case 0 | 1 | 2:
            holder[key] = copy.deepcopy(rng.choice(ODD))
        case 3:
            del holder[key]
        case 4:
            other, theirs = rng.choice(places)
            with contextlib.suppress(KeyError, IndexError):
                holder[key] = copy.deepcopy(other[theirs])
        case 5 if isinstance(holder, dict):
            holder[str(rng.choice(ODD))] = holder.pop(key)
        case 5 if isinstance(holder, list):
            holder.extend(copy.deepcopy(holder[:50]))
        case 6:
            holder[key] = _deep(holder[key], rng.choice((3, 50, 2000)))
        case _:
            text = str(holder[key])
            at = rng.randint(0, len(text))
            holder[key] = text[:at] + rng.choice((*PIECES, "/..", "/", "-", ".", "0", " ")) + text[at:]
    return value


def _deep(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value] if depth % 2 else {"a": value}
    return value


def _with_pieces(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 2, 8))):
        at, width = rng.randint(0, len(text)), rng.choice((0, 0, 1, 5, 60))
        piece = rng.choice((*PIECES, text[at : at + 80], rng.choice(PIECES) * 200, str(rng.choice(ODD))))
        text = text[:at] + piece + text[at + width :]
    lines = text.split("\n")
    if rng.random() < 0.3:
        first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


def _with_bytes(rng: random.Random, raw: bytes) -> bytes:
    data = bytearray(raw)
    for _ in range(rng.randint(1, 6)):
        at = rng.randint(0, len(data))
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at:]
            case 2:
                data[at:at] = rng.randbytes(rng.randint(1, 32))
            case 3:
                data[:] = data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-32", "latin-1")), "replace")
            case _:
                del data[at : at + rng.randint(1, 200)]
    return bytes(data)
