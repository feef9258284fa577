"""Read files of other tools; any content leads to at most one error."""

import json
from pathlib import Path
from typing import Any

from tenv.core.errors import FormatError, TenvError
from tenv.core.files import read_regular
from tenv.core.toml_reader import nearest
from tenv.core.yaml_reader import load
from tenv.interop.interface import GivenFile

__all__ = ["load_yaml", "quoted", "read_source", "text_of"]

_USUAL = ("environment.yml", "environment.yaml", "pixi.toml", "pyproject.toml", "pixi.lock", "pylock.toml")
"""What other tools call their files."""

_MAX_BYTES = 200 * 1024 * 1024
"""Maximum bytes; the largest lock in public repositories has 10 MB."""


def read_source(path: Path, environment: str = "", platforms: tuple[str, ...] = ()) -> GivenFile:
    """Read a file to import.

    Raises:
        FormatError: It is missing, not a regular file, unreadable or too large.
    """
    try:
        raw = read_regular(path, _MAX_BYTES)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file", hint=_hint(path)) from None
    except OSError as error:
        raise FormatError(f"{path}: can't be read: {error.strerror}") from error
    return GivenFile(path, raw, environment, platforms)


def _hint(path: Path) -> str:
    """Return a hint at similar names in the folder of a missing file, or at those that other tools give theirs."""
    try:
        there = sorted(entry.name for entry in path.absolute().parent.iterdir() if entry.is_file())
    except OSError:
        return ""
    if similar := nearest(path.name, there):
        return similar
    usual = [name for name in there if name in _USUAL or name.endswith(("requirements.txt", "conda-lock.yml"))]
    return f"did you mean {' or '.join(f'`{name}`' for name in usual)}?" if usual else ""


def text_of(source: GivenFile, error: type[TenvError]) -> str:
    """Return the file's text."""
    try:
        return source.raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error(f"{source.path}: not UTF-8 text (byte {fault.start})") from fault


def load_yaml(source: GivenFile, error: type[TenvError]) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Content that other parsers read differently, or that exhausts them, is rejected.
    """
    try:
        data = load(text_of(source, error))
    except ValueError as fault:
        raise error(f"{source.path}: unsupported YAML: {fault}") from fault
    if not isinstance(data, dict):
        raise error(f"{source.path}: expected a mapping, got {_kind(data)}")
    return data


def _kind(data: object) -> str:
    return "nothing" if data is None else f"a {type(data).__name__}"


def quoted(text: str) -> str:
    """Return a text as a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
