"""Reading files that others wrote: whatever is in them, the worst that comes of it is one error."""

import json
from pathlib import Path
from typing import Any

from tenv.errors import FormatError, TenvError
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
    import yaml  # noqa: PLC0415 (late: 15 ms)

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text_of(source, error)
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise error(
                    f"{source.path}:{_line(event)}: uses a YAML alias (`*{event.anchor}`)",
                    hint="write out what it stands for",
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                raise error(f"{source.path}:{_line(event)}: nested too deep")
        data = yaml.load(text, Loader=loader)  # noqa: S506 (both are safe loaders)
    except (yaml.YAMLError, ValueError, RecursionError) as fault:  # ValueError: a date that is none
        raise error(f"{source.path}: not YAML: {_where(fault)}") from fault
    if not isinstance(data, dict):
        raise error(f"{source.path}: expected a mapping, got {_kind(data)}")
    return {str(key): value for key, value in data.items()}  # YAML also has numbers and dates for keys


def _where(fault: Exception) -> str:
    mark = getattr(fault, "problem_mark", None)
    problem = getattr(fault, "problem", None) or str(fault).splitlines()[0]
    return f"{problem} (line {mark.line + 1})" if mark else str(problem)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _kind(data: object) -> str:
    return "nothing" if data is None else f"a {type(data).__name__}"


def quoted(text: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
