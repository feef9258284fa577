"""Variants of a request without a solution, to find the conflict."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError
from tenv.rattler_api.records import Record, fits, spec_fault
from tenv.rattler_api.solver import Solver, SolveRequest
from tenv.targets.manifest import CondaRequest

_CHECKED = 8
"""How many differences are solved for, the likeliest first: each takes two solves."""

_HIGHEST = "999999"
"""A version above all others: those nearest to it are the newest."""


class OutOfTimeError(Exception):
    """The time limit of the search is over."""


class Inquiry:
    """A request without a solution, and its variants.

    Attributes:
        question: The request to the solver.
        requests: The requests of the manifest, by name.
    """

    def __init__(
        self, solver: Solver, question: SolveRequest, requests: dict[str, CondaRequest], seconds: float
    ) -> None:
        self.question = question
        self.requests = requests
        self._solver = solver
        self._end = time.monotonic() + seconds
        self._known: dict[object, list[Record] | NoSolutionError] = {}

    def ask(self, question: SolveRequest) -> list[Record] | NoSolutionError:
        """Return the solution of a request, or the error.

        Raises:
            OutOfTimeError: The time limit is over.
        """
        key = (question.specs, question.lowest, question.exclude_newer, tuple(question.virtual.items()))
        if key in self._known:
            return self._known[key]
        left = self._end - time.monotonic()
        if left <= 0:
            raise OutOfTimeError
        try:
            answer: list[Record] | NoSolutionError = self._solver.solve(question, left)
        except NoSolutionError as error:
            if not error.detail:
                raise OutOfTimeError from error
            answer = error
        self._known[key] = answer
        return answer

    def specs(self, names: Iterable[str], *extra: str, changed: dict[str, str] | None = None) -> tuple[str, ...]:
        """Return the specifications of some requests and extra ones, in a stable order."""
        changed = changed or {}
        return (*(changed.get(name) or self.requests[name].spec(name) for name in sorted(names)), *extra)

    def with_specs(self, specs: tuple[str, ...], *, lowest: bool = False) -> list[Record]:
        """Return the solution for other specifications; empty without one."""
        answer = self.ask(replace(self.question, specs=specs, kept=(), lowest=lowest))
        return [] if isinstance(answer, NoSolutionError) else answer

    def reason(self, names: Iterable[str]) -> str:
        """Return the solver's error for some of the requests alone; empty if they have a solution."""
        answer = self.ask(replace(self.question, specs=self.specs(names), kept=()))
        return answer.detail if isinstance(answer, NoSolutionError) else ""

    def candidates(self, name: str) -> dict[str, list[Record]]:
        """Return the packages of a name by channel, best channel first, without empty channels."""
        asked = [channel for channel in self.question.channels if name in self.names(channel)]
        found = self._solver.candidates(asked, self.question.platform, name) if asked else []
        by_channel = {channel: [record for record in found if record.channel == channel] for channel in asked}
        return {channel: records for channel, records in by_channel.items() if records}

    def names(self, channel: str) -> frozenset[str]:
        """Return the names of the packages in a channel."""
        return self._solver.names(channel, self.question.platform)

    def core(self) -> list[str]:
        """Return a minimal set of conflicting requests: without any one of them, there is a solution."""
        names = sorted(self.requests)
        for name in list(names):
            rest = [other for other in names if other != name]
            if rest and self.reason(rest):
                names = rest
        return names

    def clash(self, names: list[str]) -> str:
        """Return which packages of some conflicting requests exclude each other; empty if not found.

        Two packages may differ without being the cause: the newest `libffi` of one request is not that of another. A
        pair counts as the cause where neither side has a solution with the needs of the other one. Of several, one on a
        requested package comes first, then one that a package `constrains`.
        """
        found = sorted(self._differences(names), key=lambda one: one.rank(names))
        sure = (one for one in found[:_CHECKED] if self._excludes(one, names))
        cause = next(sure, next(iter(found), None))
        return cause.words() if cause else ""

    def own_clash(self, name: str) -> str:
        """Return which needs of one requested package exclude each other; empty if none do directly."""
        matching = self._matching(name, replace(self.requests[name], channel="").spec(name))
        newest = next(iter(newest_first(record.version for record in matching)), "")
        for owner in (record for record in matching if record.version == newest):
            served = {
                spec: found for spec in owner.depends if (found := self._matching(spec.split(maxsplit=1)[0], spec))
            }
            for spec, other in permutations(served, 2):
                if against := _against(served[spec], other.split(maxsplit=1)[0], served[other]):
                    record, needs = against
                    verb = "constrains" if needs in record.constrains else "requires"
                    wants = f"{record.name} {record.version} {verb} {needs}"
                    return f"{owner.name} {owner.version} requires {spec} and {other}, and {wants}"
        return ""

    def _matching(self, name: str, spec: str) -> list[Record]:
        """Return the packages of a name that satisfy a specification, of the best channel that has the name."""
        records = next(iter(self.candidates(name).values()), [])
        return [record for record in records if fits(spec, record)]

    def _differences(self, names: list[str]) -> Iterator["Exclusion"]:
        """Yield each package of one request that does not satisfy the needs of a package of the others."""
        for name in names if len(names) > 1 else ():
            mine = {record.name: record for record in self.with_specs(self.specs([name]))}
            for record in self.with_specs(self.specs(other for other in names if other != name)):
                for spec in (*record.constrains, *record.depends):
                    brought = mine.get("".join(spec.split()[:1]))
                    if brought and brought.name != record.name and not fits(spec, brought):
                        yield Exclusion(record, spec, name, brought)

    def _excludes(self, one: "Exclusion", names: list[str]) -> bool:
        """Return whether a difference remains with every version of the two packages."""
        words = dict(zip(("version", "build"), one.spec.split()[1:3], strict=False))
        needed = f"{one.brought.name}[" + ",".join(f'{key}="{value}"' for key, value in words.items()) + "]"
        build = f',build="{one.brought.build}"' if one.by_build else ""
        exact = f'{one.brought.name}[version="=={one.brought.version}"{build}]'
        rest = [name for name in names if name != one.request]
        if spec_fault(needed) or self.with_specs(self.specs([one.request], needed)):
            return False
        return not self.with_specs(self.specs(rest, exact))


def _against(records: list[Record], name: str, served: list[Record]) -> tuple[Record, str] | None:
    """Return the newest package and its need that no package of a name serves, if each package has such a need."""
    unserved: dict[str, bool] = {}
    found: dict[str, tuple[Record, str]] = {}
    for record in records:
        needs = [spec for spec in (*record.depends, *record.constrains) if spec.split()[:1] == [name]]
        for spec in needs:
            if spec not in unserved:
                unserved[spec] = not any(fits(spec, other) for other in served)
        if (need := next((spec for spec in needs if unserved[spec]), None)) is None:
            return None
        found[record.version] = (record, need)
    return found[newest_first(found)[0]]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A package that does not satisfy the specification of another one."""

    owner: Record
    """The package with the specification."""
    spec: str
    """The specification."""
    request: str
    """The name of the request that brings the other package."""
    brought: Record
    """The other package."""

    def rank(self, names: Sequence[str]) -> tuple[bool, bool, bool, str, str]:
        """Return the sort key that puts the likeliest cause first."""
        needs, further = self.spec not in self.owner.constrains, self.owner.name not in names
        if self.brought.name in names:
            return False, further, needs, self.owner.name, self.spec
        return True, needs, further, self.owner.name, self.spec

    @property
    def by_build(self) -> bool:
        """Whether the version fits and the build does not: `blas * mkl` and the blas of OpenBLAS."""
        name, *words = self.spec.split()
        return bool(words[1:]) and fits(f"{name} {words[0]}", self.brought)

    def words(self) -> str:
        """Return the difference in words."""
        verb = "constrains" if self.spec in self.owner.constrains else "requires"
        wants = " ".join(self.spec.split()[: 3 if self.by_build else 2])
        requested = self.brought.name == self.request
        other = self.request if requested else f"{self.request} brings {self.brought.name}"
        build = f" {self.brought.build}" if self.by_build else ""
        end = f"{other} {self.brought.version}{build}{' is requested' if requested else ''}"
        return f"{self.owner.name} {self.owner.version} {verb} {wants}, and {end}"


def nearest_first(versions: Iterable[str], wanted: str) -> list[str]:
    """Return versions, the nearest to another one first; of two equally near, the lower first."""

    def numbers(version: str) -> tuple[int, ...]:
        found = [int(part[:18]) if part.isdecimal() else 0 for part in version.replace("-", ".").split(".")]
        return tuple((found + [0] * 4)[:4])

    aim = numbers(wanted)

    def key(version: str) -> tuple[list[int], tuple[int, ...]]:
        mine = numbers(version)
        same = next((place for place, (a, b) in enumerate(zip(mine, aim, strict=True)) if a != b), len(aim))
        # After the first different number, the highest below and the lowest above are the nearest.
        sign = -1 if mine < aim else 1
        rest = [sign * number for number in mine[same + 1 :]]
        return [*(abs(a - b) for a, b in zip(mine[: same + 1], aim, strict=False)), *rest], mine

    return sorted(set(versions), key=key)


def newest_first(versions: Iterable[str]) -> list[str]:
    """Return versions, the newest first."""
    return nearest_first(versions, _HIGHEST)
