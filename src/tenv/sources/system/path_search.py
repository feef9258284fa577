"""Helpers for searching folders of the system."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenv.host.interface import Missing
from tenv.host.places import Places, read

__all__ = ["first_that_is", "macros", "named_folders", "patterns"]


def patterns(folder: Path, *names: str) -> list[Path]:
    """Return the files in a folder that match a pattern, sorted per pattern, each file once."""
    found = (path for name in names for path in sorted(folder.glob(name)) if path.is_file())
    return list({os.path.realpath(path): path for path in found}.values())


def first_that_is(*paths: Path) -> Path | None:
    """Return the first path that is a file."""
    return next((path for path in paths if path.is_file()), None)


def named_folders(places: Places, variables: Iterable[str], usual: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the folders in variables and those that match default patterns, each with its origin."""
    for variable in variables:
        if value := places.environ.get(variable):
            yield variable, Path(value)
    for pattern in usual:
        yield from ((places.named(path), path) for path in sorted(places.root.glob(pattern), reverse=True))


def macros(header: Path, *names: str) -> list[str] | None:
    """Return the numbers that a header defines; None if one is missing."""
    text = read(header)
    if isinstance(text, Missing):
        return None
    found = []
    for name in names:
        match = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(\d+)\b", text, re.MULTILINE)
        if match is None:
            return None
        found.append(match[1])
    return found
