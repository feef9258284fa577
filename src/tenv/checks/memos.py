"""Questions about many hosts: one that reads equal values of two hosts is answered once."""

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from tenv.checks.compared import MEASURES, ComparedNumber, ReadWholeError
from tenv.host.interface import Fact
from tenv.host.report import HostReport

__all__ = ["Memos"]

T = TypeVar("T")

_REMEMBERED = 4096
"""How many answers are kept for a question. For a value that differs on each host, more would only use memory."""


class Memos(Generic[T]):
    """Questions about a host report, each answered once for all hosts that are equal to it.

    A question records which values it reads. Its answer is reused for a host with the same values, since a pure
    function can't distinguish the two. Questions that read the same values share a cache, so that a host takes a few
    lookups. Of a number that questions only compare (`tenv.checks.compared`), those between the same limits are equal.

    Attributes:
        generation: Changes whenever `number` may tell values apart in another way than before.
    """

    def __init__(self, questions: Iterable[Callable[[HostReport], T]]) -> None:
        self._questions = tuple(questions)
        self._names: list[frozenset[str]] = [frozenset()] * len(self._questions)
        self._read: frozenset[str] = frozenset()
        self._limits: dict[str, list[int]] = {name: [] for name in MEASURES}
        self._whole: set[tuple[str, int]] = set()
        self._groups: list[_Group[T]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._seen: dict[int, tuple[object, int]] = {}
        self._count = itertools.count(1)
        self._tuples: dict[tuple[int, ...], tuple[T, ...]] = {}
        self.generation = 0
        self._regroup()

    def __call__(self, report: HostReport) -> list[T]:
        """Return the answers for a host, in the order of the questions."""
        return self.in_order(self.parts(report))

    def parts(self, report: HostReport) -> "tuple[tuple[T, ...], ...]":
        """Return the answers for a host as one tuple for each set of values that questions read.

        Hosts with the same answers get the same tuples, as long as these are remembered, so that what follows from the
        answers can be kept by the identity of a few tuples. `in_order` has the answers in the order of the questions.
        """
        before = self.generation
        parts = []
        for group in self._groups:
            key = self._key(group, report)
            found = group.answers.get(key)
            if found is None:
                found = self._shared(self._work_out(group, report))
                group.remember(key, found)
            parts.append(found)
        if self.generation != before:
            answers = self.in_order(parts)
            self._regroup()
            parts = [tuple(answers[index] for index in group.questions) for group in self._groups]
            for group, found in zip(self._groups, parts, strict=True):
                group.remember(self._key(group, report), self._shared(found))
        return tuple(parts)

    def in_order(self, parts: "Iterable[tuple[T, ...]]") -> list[T]:
        """Return the answers of the latest `parts` in the order of the questions."""
        answers: list[Any] = [None] * len(self._questions)
        for group, found in zip(self._groups, parts, strict=True):
            for index, answer in zip(group.questions, found, strict=True):
                answers[index] = answer
        return answers

    def number(self, name: str, value: object, *, shown: bool = False) -> int:
        """Return a number for the value of a field, the same one only for values that no question tells apart.

        No two fields share a number, except for 0, that of a value which no question reads.

        Args:
            name: The field.
            value: Its value.
            shown: Whether different values differ, even if no question reads them.
        """
        if name not in self._read and not shown:
            return 0
        if (seen := self._seen.get(id(value))) is not None:  # so that a value is hashed once
            return seen[1]
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        if len(self._numbers) >= _REMEMBERED * 4:
            self._numbers.clear()  # numbers are never reused, so entries with old numbers are never found
        number = self._numbers.setdefault(self._equal(name, value), next(self._count))
        self._seen[id(value)] = (value, number)  # kept, so that no other value has its identity
        return number

    def _equal(self, name: str, value: object) -> tuple[Any, ...]:
        """Return what is equal for values that no question tells apart."""
        measure = MEASURES.get(name)
        if measure is None or not isinstance(value, Fact):
            return (name, value)
        between = self._between(name, value)
        return (name, value) if (name, between) in self._whole else (name, between, measure.put(value, 0))

    def _shared(self, found: "tuple[T, ...]") -> "tuple[T, ...]":
        """Return the tuple of the very same answers that was remembered first."""
        if len(self._tuples) >= _REMEMBERED:
            self._tuples.clear()
        return self._tuples.setdefault(tuple(map(id, found)), found)  # kept, so that no other has their identity

    def _key(self, group: "_Group[T]", report: HostReport) -> tuple[int, ...]:
        return tuple([self.number(name, getattr(report, name)) for name in group.names])

    def _work_out(self, group: "_Group[T]", report: HostReport) -> "tuple[T, ...]":
        """Return the answers of a group, and record the values that each question read."""
        if group.names:  # all are expected to read these values and no other
            watched = _Watched(report, self._needed(report))
            try:
                found = tuple(self._questions[index](cast("HostReport", watched)) for index in group.questions)
            except ReadWholeError:
                return tuple(self._ask(index, report) for index in group.questions)
            if watched.names.issubset(group.names):
                self._learn(watched)
                return found
        return tuple(self._ask(index, report) for index in group.questions)

    def _ask(self, index: int, report: HostReport) -> T:
        whole = self._needed(report)
        while True:
            watched = _Watched(report, whole)
            try:
                answer = self._questions[index](cast("HostReport", watched))
            except ReadWholeError as error:
                whole |= {error.name}
                continue
            break
        if not watched.names <= self._names[index]:
            self._names[index] |= watched.names
            self._read |= watched.names
            self.generation += 1
        self._learn(watched)
        return answer

    def _needed(self, report: HostReport) -> frozenset[str]:
        """Return the fields whose numbers a question is known to need between the limits that they lie between."""
        needed = {name for name, _ in self._whole if isinstance(getattr(report, name), Fact)}
        return frozenset(name for name in needed if (name, self._between(name, getattr(report, name))) in self._whole)

    def _between(self, name: str, value: Fact[Any]) -> int:
        """Return how many limits of a field are not above the number of a value."""
        return bisect_right(self._limits[name], MEASURES[name].get(value))

    def _learn(self, watched: "_Watched") -> None:
        """Note the limits of compared numbers, and between which limits a question needs the number itself."""
        for name, limits in watched.limits.items():
            if not limits.issubset(self._limits[name]):
                self._limits[name] = sorted(limits.union(self._limits[name]))
                self._whole.clear()  # they are numbered by the limits
                self.generation += 1
        for name in watched.whole.intersection(watched.names):
            between = (name, self._between(name, getattr(watched.report, name)))
            if between not in self._whole:
                self._whole.add(between)
                self.generation += 1

    def _regroup(self) -> None:
        """Group the questions that read the same values and clear the cache."""
        together: dict[frozenset[str], list[int]] = {}
        for index, names in enumerate(self._names):
            together.setdefault(names, []).append(index)
        self._groups = [_Group(tuple(sorted(names)), tuple(found)) for names, found in together.items()]
        self._tuples.clear()
        self._seen.clear()
        self._numbers.clear()


@dataclass(slots=True)
class _Group(Generic[T]):
    """Questions that read the same values of a report, by their indexes, and their answers."""

    names: tuple[str, ...]
    questions: tuple[int, ...]
    answers: dict[tuple[int, ...], tuple[T, ...]] = field(default_factory=dict)

    def remember(self, key: tuple[int, ...], answers: tuple[T, ...]) -> None:
        if len(self.answers) >= _REMEMBERED:
            self.answers.clear()
        self.answers[key] = answers


class _Watched:
    """A host report that records which of its values were read, and with what its numbers were compared."""

    def __init__(self, report: HostReport, whole: frozenset[str] = frozenset()) -> None:
        self.report = report
        self.whole = whole
        self.names: set[str] = set()
        self.limits: dict[str, set[int]] = {}

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        value = getattr(self.report, name)
        if name in MEASURES and name not in self.whole and isinstance(value, Fact):
            limits = self.limits.setdefault(name, set())
            value = MEASURES[name].put(value, ComparedNumber(name, MEASURES[name].get(value), limits))
        setattr(self, name, value)  # read again, it is an ordinary attribute
        return value
