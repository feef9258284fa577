"""The files of a prefix and their owners, from the records of packages.

Every kind of package has a record of its files: a wheel has ``RECORD`` in its ``.dist-info``, a conda package has a
file in ``conda-meta``, an archive has a file in ``tenv-meta``. Each source has a reader with one interface, `Records`.
A record that can't be read counts as empty.
"""

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tenv.core.dataclass import dataclass
from tenv.core.files import read_regular

LINK = "link:"
"""The prefix of the digest of a symbolic link to an existing path; the target follows."""

POINTER = "pointer:"
"""The prefix of the digest of a symbolic link that may dangle; the target follows."""

TEXT = "text:"
"""The prefix of the digest of a symbolic link whose target is known by its sha256, which follows; empty for any."""

FOLDER = "folder:"
"""The digest of a folder."""

BYTECODE = "__pycache__"
"""The folder of compiled Python files, which are not verified, since Python rewrites them."""


class Expected(NamedTuple):  # tens of thousands are made by a command: a dataclass takes three times as long
    """A path that a prefix must have."""

    name: str
    """The path, relative to the prefix."""
    owner: str
    """The package that owns it; empty for a file that tenv made."""
    digest: str = ""
    """The algorithm and the digest of a regular file in hex, such as ``sha256:12ab…``, or empty where its content is
    not recorded; for other kinds as `LINK`, `POINTER`, `TEXT` and `FOLDER` have it."""
    executable: bool | None = None
    """Whether a regular file is executable; None where that is not recorded."""


@dataclass(frozen=True, slots=True)
class Records(ABC):
    """The records of one kind of package in a prefix."""

    SOLE: ClassVar[bool] = False
    """Whether only tenv installs packages of this kind, so each package in the prefix is its own."""
    prefix: Path
    """The folder."""

    @abstractmethod
    def names(self) -> Collection[str]:
        """Return the names of the installed packages."""

    @abstractmethod
    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files of some packages and of their records, relative to the prefix."""

    def named(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield all names in the records of packages, unchecked, as an installer would use them."""
        yield from self.files(packages)

    @abstractmethod
    def own_files(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the files of the records themselves, relative to the prefix, as far as they are there."""

    @abstractmethod
    def hold(self, packages: Mapping[str, tuple[str, ...]]) -> bool:
        """Return whether the packages of a state are installed, by file names alone."""

    @abstractmethod
    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:
        """Yield every file of the packages of a state, records included, without compiled Python files.

        A package whose record is missing, or has another version, yields one file that no prefix has.
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
        """Return whether the state names no package."""
        return not packages

    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:  # noqa: ARG002
        """Yield no files."""
        return iter(())


def read_note(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if it can't be read."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        data = json.loads(read_regular(path))
        return data if isinstance(data, dict) else {}
    return {}


def listed(record: Mapping[str, Any], key: str) -> Iterable[str]:
    """Return the items or keys of a value of a record, if they are names."""
    names = record.get(key)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | dict) else []
