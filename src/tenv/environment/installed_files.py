"""What is in a prefix and whose it is, as the records of its packages tell.

Every kind of package leaves a record of its files: a wheel the ``RECORD`` in its ``.dist-info``, a conda package a note
in ``conda-meta``, an archive a note among tenv's own. Each source has a reader of its records, and all have one form,
`Records`. A record that can't be read counts as one that names nothing.
"""

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tenv.core.files import read_regular

__all__ = ["BYTECODE", "POINTER", "Expected", "NothingInstalled", "Records", "listed", "read_note"]


POINTER = "pointer:"
"""Begins the digest of a link that is judged by its text, whatever it leads to."""

BYTECODE = "__pycache__"
"""The folder that Python makes anew, so that nothing is expected of it."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A file that should be in a prefix.

    Attributes:
        name: The file, relative to the prefix.
        owner: The package that it belongs to; empty for what tenv itself makes.
        digest: The algorithm and the digest in hex, such as ``sha256:12ab…``; ``link:`` and where a link leads,
            ``pointer:`` when nothing need be there; empty when nothing is written of its content.
    """

    name: str
    owner: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Records(ABC):
    """The records of one kind of package in a prefix.

    Attributes:
        SOLE: Whether only tenv installs packages of this kind, so that each that is there is its own.
        prefix: The folder.
    """

    SOLE: ClassVar[bool] = False
    prefix: Path

    @abstractmethod
    def names(self) -> Collection[str]:
        """Return the names of the packages that are there."""

    @abstractmethod
    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files of some packages, relative to the prefix, and those of their records."""

    def named(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield all names that the records of packages list, whatever they are, as an installer would take them."""
        yield from self.files(packages)

    @abstractmethod
    def own_files(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the files of the records themselves, relative to the prefix, as far as they are there."""

    @abstractmethod
    def hold(self, packages: Mapping[str, tuple[str, ...]]) -> bool:
        """Tell whether packages are there as a state remembers them, by the names of files alone."""

    @abstractmethod
    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:
        """Yield every file of packages that a state remembers, their records too; what Python makes anew, not.

        Of a package whose record is not there, or is of another version, one file is told that no prefix has.
        """


class NothingInstalled(Records):
    """The records of a source that puts no files into a prefix."""

    __slots__ = ()

    def names(self) -> Collection[str]:
        """Return no names."""
        return ()

    def files(self, names: Iterable[str]) -> Iterator[str]:  # noqa: ARG002
        """Yield no files."""
        return iter(())

    def own_files(self, packages: Iterable[str]) -> Iterator[str]:  # noqa: ARG002
        """Yield no files."""
        return iter(())

    def hold(self, packages: Mapping[str, tuple[str, ...]]) -> bool:
        """Tell whether nothing is asked for."""
        return not packages

    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:  # noqa: ARG002
        """Yield no files."""
        return iter(())


def read_note(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one where it can't be read."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        data = json.loads(read_regular(path))
        return data if isinstance(data, dict) else {}
    return {}


def listed(record: Mapping[str, Any], key: str) -> Iterable[str]:
    """Return the names that a record lists, or has as keys."""
    names = record.get(key)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | dict) else []
