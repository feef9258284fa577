"""The names of HIP and of ROCm's libraries, the releases that have them, and CUDA's names for them."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import product
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText, Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data

_FAMILY = re.compile(r"\[([A-Za-z]+)\]|\(([\w|]+)\)")
_SUFFIX = re.compile(r"_v[2-9](?=_64$|$)|R(?!0000)\d{4}$")
"""The ends by which CUDA and HIP tell forms of a name apart."""
_OF_KERNELS = re.compile(r"__(?!hip)[a-z]|atomic[A-Z]")


class NameStanding(StrEnum):
    """The knowledge of the table about a name in an error of a build."""

    NEWER = "newer"
    """A release after the one here brought it."""
    ADDED = "added"
    """A release brought it; the one here is not known."""
    GONE = "gone"
    """The release here, or the one before it, dropped it; or one dropped it, and the one here is not known."""
    MACRO = "macro"
    """The release here has it behind a macro."""
    PRESENT = "present"
    """The release here has it."""
    CHANGED = "changed"
    """A release changed the types of its arguments."""
    CUDA = "cuda"
    """It is CUDA's, and HIP's is another."""
    ALONE = "alone"
    """It is CUDA's, and HIP has nothing for it."""
    UNKNOWN = "unknown"
    """No row has it."""


def _words(row: Table, key: str) -> tuple[str, ...]:
    return tuple(name for word in row.text(key).split() for name in spelled(word))


def spelled(word: str) -> Iterator[str]:
    """Yield the names of a family, as ``hipblas[CDSZ]gemm(|Batched)``."""
    parts, end = [], 0
    for found in _FAMILY.finditer(word):
        parts += [[word[end : found.start()]], list(found[1] or "") or found[2].split("|")]
        end = found.end()
    return map("".join, product(*parts, [word[end:]]))


@dataclass(frozen=True, slots=True)
class NameHistory:
    """Names that the same releases have."""

    library: str
    """Their library, ``hipBLAS``."""
    header: str
    """The header that declares them."""
    since: Version | None
    """The first release that has them; None for the oldest that was read."""
    after: Version | None
    """The last release that was read before that one, where releases between were not read."""
    gone: Version | None
    """The first release without them."""
    macro: OptionalText
    """The macro that the first releases have them behind."""
    without_macro: Version | None
    """The first release that needs no macro."""
    names: Annotated[tuple[str, ...], Column(read=_words)]
    """The names; a member is ``STRUCT.MEMBER``."""
    basis: Basis

    def standing(self, here: Version | None) -> NameStanding:
        """Return the standing of the names in a release; None for an unknown release."""
        if self.gone and (here is None or here >= self.gone):
            return NameStanding.GONE
        if here is None:
            return NameStanding.MACRO if self.macro else NameStanding.ADDED if self.since else NameStanding.PRESENT
        if self.since and here < self.since:
            return NameStanding.ADDED if self.after and here > self.after else NameStanding.NEWER
        return NameStanding.MACRO if self.without_macro and here < self.without_macro else NameStanding.PRESENT

    def slots(self) -> dict[str, str]:
        """Return the values for the slots of a text."""
        releases = {"since": self.since, "gone": self.gone, "always": self.without_macro}
        named = {name: f"ROCm {release}" for name, release in releases.items() if release}
        if self.after:
            named["since"] += f" or one after {self.after}"
        return named | {"library": self.library, "header": self.header} | ({"macro": self.macro} if self.macro else {})


@dataclass(frozen=True, slots=True)
class ChangedNames:
    """Functions whose arguments have other types from a release on."""

    library: str
    """Their library."""
    release: Version
    """The release."""
    names: Annotated[tuple[str, ...], Column(read=_words)]
    """The functions."""
    basis: Basis


@dataclass(frozen=True, slots=True)
class CudaNames:
    """The names of a library of CUDA."""

    library: str
    """The library, ``cuBLAS``."""
    prefix: str
    """The start of its names."""
    becomes: str
    """The start of HIP's."""
    renamed: Annotated[tuple[str, ...], Column(read=_words)]
    """Each ``CUDA=HIP`` where more than the start differs."""
    alone: Annotated[tuple[str, ...], Column(read=_words)]
    """Those that HIP has nothing for."""
    basis: Basis


@dataclass(frozen=True, slots=True)
class NameTable:
    """Every row of the table."""

    histories: Mapping[str, tuple[NameHistory, ...]]
    """The rows of each name."""
    changes: Mapping[str, tuple[ChangedNames, ...]]
    """The releases that changed each function, oldest first, with its library."""
    renamed: Mapping[str, tuple[str, str]]
    """The names of CUDA that HIP has another for, each with that and with its library."""
    alone: Mapping[str, str]
    """The names of CUDA that HIP has nothing for, each with its library."""
    prefixes: tuple[tuple[str, str, str], ...]
    """The starts of CUDA's names, each with HIP's and with the library."""

    def standing(self, name: str, owner: str, here: Version | None) -> tuple[NameStanding, dict[str, str]] | None:
        """Return the standing of a name, with the values for the slots of a text.

        None for a function of kernels that every release has: headers declare these for some types, options and GPUs
        alone, so that the name says little.

        Args:
            name: The name in an error.
            owner: The type that it is said to be a member of; empty for none.
            here: The release of ROCm that the build uses; None if that is not known.
        """
        name = f"{_SUFFIX.sub('', owner)}.{name}" if owner else name
        values = {"name": name} | _release_here(here)
        if rows := self.histories.get(name):
            found = [(row.standing(here), row) for row in rows]
            standing, row = next((one for one in found if one[0] is not NameStanding.GONE), found[-1])
            is_vague = standing is NameStanding.PRESENT and not row.since and _OF_KERNELS.match(name)
            return None if is_vague else (standing, values | row.slots())
        if other := self.counterpart(name):
            history = self.histories.get(other[0], (None,))[0]
            slots = history.slots() if history else {}
            if history and here and history.standing(here) is NameStanding.NEWER:
                return NameStanding.NEWER, values | slots | {"name": f"{other[0]}, HIP's name for {name},"}
            return NameStanding.CUDA, values | slots | {"other": other[0], "library": other[1]}
        library = self.alone.get(name)
        return (NameStanding.ALONE, values | {"library": library}) if library else (NameStanding.UNKNOWN, values)

    def counterpart(self, name: str) -> tuple[str, str] | None:
        """Return HIP's name for one of CUDA's, with CUDA's library; None if there is none that is known."""
        plain = _SUFFIX.sub("", name)
        if found := self.renamed.get(name) or self.renamed.get(plain):
            return found
        for prefix, becomes, library in self.prefixes:
            for start, other in ((prefix, becomes), (prefix.upper(), becomes.upper())):
                if plain.startswith(start) and (hip := other + plain.removeprefix(start)) in self.histories:
                    return hip, library
        return None

    def changed(self, name: str, here: Version | None) -> tuple[NameStanding, dict[str, str]] | None:
        """Return the release that changed a function, with the values for the slots; None if none did.

        Args:
            name: The function.
            here: The release that the build uses. Of several, the first one after it is meant, else the last.
        """
        rows = self.changes.get(name)
        if not rows:
            return None
        row = next((row for row in rows if here and row.release > here), rows[-1])
        values = {"library": row.library, "changed": f"ROCm {row.release}"}
        return NameStanding.CHANGED, values | _release_here(here)


def _release_here(here: Version | None) -> dict[str, str]:
    return {"here": f"ROCm {here}"} if here else {}


def read(data: Data) -> NameTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    histories: dict[str, tuple[NameHistory, ...]] = {}
    for row in data.read("name", NameHistory):
        for name in row.names:
            histories[name] = (*histories.get(name, ()), row)
    changes: dict[str, tuple[ChangedNames, ...]] = {}
    for change in data.read("changed", ChangedNames, by=lambda row: row.release):
        for name in change.names:
            changes[name] = (*changes.get(name, ()), change)
    cuda = data.read("cuda", CudaNames)
    pairs = [(word.partition("="), row.library) for row in cuda for word in row.renamed]
    renamed = {name: (other, library) for (name, _, other), library in pairs}
    return NameTable(
        histories,
        changes,
        renamed,
        {name: row.library for row in cuda for name in row.alone if name not in renamed},
        tuple(sorted(((row.prefix, row.becomes, row.library) for row in cuda), key=lambda row: -len(row[0]))),
    )
