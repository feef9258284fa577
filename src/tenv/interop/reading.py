"""Reading files that others wrote: whatever is in them, the worst that comes of it is one error."""

import contextlib
import json
from pathlib import Path
from typing import Any

from tenv.core.errors import FormatError, TenvError
from tenv.core.yaml_reader import load
from tenv.interop.interface import Source

__all__ = ["load_yaml", "quoted", "read_source", "text_of"]

_MAX_DEPTH = 50
_MAX_BYTES = 200 * 1024 * 1024
"""Far beyond any lock: the largest seen in public repositories has 10 MB."""


def read_source(path: Path, environment: str = "", platforms: tuple[str, ...] = ()) -> Source:
    """Read a file that is to be imported.

    Raises:
        FormatError: It is not there, is no regular file, can't be read or is too large.
    """
    try:
        if not path.exists():
            raise FormatError(f"{path}: there is no such file")
        if not path.is_file():
            raise FormatError(f"{path}: is not a regular file")
        if path.stat().st_size > _MAX_BYTES:
            raise FormatError(f"{path}: is too large for a lock ({path.stat().st_size} bytes)")
        raw = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: can't be read: {error.strerror}") from error
    return Source(path, raw, environment, platforms)


def text_of(source: Source, error: type[TenvError]) -> str:
    """Return the file's text."""
    try:
        return source.raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error(f"{source.path}: not UTF-8 text (byte {fault.start})") from fault


def load_yaml(source: Source, error: type[TenvError]) -> dict[str, Any]:
    """Return the mapping that a YAML file holds.

    Deep nesting, which the parser answers with a crash, and aliases, with which a few lines can stand for gigabytes,
    are refused before anything is built from them.
    """
    text = text_of(source, error)
    _refuse_traps(text, source, error)
    try:
        data = load(text)
    except ValueError as fault:
        raise error(f"{source.path}: not YAML: {fault}") from fault
    if not isinstance(data, dict):
        raise error(f"{source.path}: expected a mapping, got {_kind(data)}")
    return {str(key): value for key, value in data.items()}  # YAML also has numbers and dates for keys


def _refuse_traps(text: str, source: Source, error: type[TenvError]) -> None:
    import yaml  # noqa: PLC0415 (late: 15 ms)

    depth = 0
    with contextlib.suppress(yaml.YAMLError):  # `load`, which comes no further than this, tells it
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent):
                raise error(
                    f"{source.path}:{_line(event)}: uses a YAML alias (`*{event.anchor}`)",
                    hint="write out what it stands for",
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                raise error(f"{source.path}:{_line(event)}: nested too deep")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _kind(data: object) -> str:
    return "nothing" if data is None else f"a {type(data).__name__}"


def quoted(text: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
