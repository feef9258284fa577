"""Questions about many hosts: one that reads equal values of two hosts is answered once."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from tenv.host.report import HostReport

__all__ = ["Memos"]

T = TypeVar("T")

_REMEMBERED = 4096
"""How many answers are kept for a question. For a value that differs on each host, more would only use memory."""


class Memos(Generic[T]):
    """Questions about a host report, each answered once for all hosts that are equal to it.

    A question records which values it reads. Its answer is reused for a host with the same values, since a pure
    function can't distinguish the two. Questions that read the same values share a cache, so that a host takes a few
    lookups.
    """

    def __init__(self, questions: Iterable[Callable[[HostReport], T]]) -> None:
        self._questions = tuple(questions)
        self._names: list[frozenset[str]] = [frozenset()] * len(self._questions)
        self._groups: list[_Group[T]] = []
        self._numbers: dict[tuple[str, object], int] = {}
        self._seen: dict[int, tuple[object, int]] = {}
        self._count = itertools.count()
        self._tuples: dict[tuple[int, ...], tuple[T, ...]] = {}
        self._regroup()

    def __call__(self, report: HostReport) -> list[T]:
        """Return the answers for a host, in the order of the questions."""
        return self.in_order(self.parts(report))

    def parts(self, report: HostReport) -> "tuple[tuple[T, ...], ...]":
        """Return the answers for a host as one tuple for each set of values that questions read.

        Hosts with the same answers get the same tuples, as long as these are remembered, so that what follows from the
        answers can be kept by the identity of a few tuples. `in_order` has the answers in the order of the questions.
        """
        numbers: dict[str, int] = {}
        before = list(self._names)
        parts = []
        for group in self._groups:
            key = self._key(group, report, numbers)
            found = group.answers.get(key)
            if found is None:
                found = self._shared(self._work_out(group, report))
                group.remember(key, found)
            parts.append(found)
        if self._names != before:
            answers = self.in_order(parts)
            self._regroup()
            parts = [tuple(answers[index] for index in group.questions) for group in self._groups]
            for group, found in zip(self._groups, parts, strict=True):
                group.remember(self._key(group, report, numbers), self._shared(found))
        return tuple(parts)

    def in_order(self, parts: "Iterable[tuple[T, ...]]") -> list[T]:
        """Return the answers of the latest `parts` in the order of the questions."""
        answers: list[Any] = [None] * len(self._questions)
        for group, found in zip(self._groups, parts, strict=True):
            for index, answer in zip(group.questions, found, strict=True):
                answers[index] = answer
        return answers

    def _shared(self, found: "tuple[T, ...]") -> "tuple[T, ...]":
        """Return the tuple of the very same answers that was remembered first."""
        if len(self._tuples) >= _REMEMBERED:
            self._tuples.clear()
        return self._tuples.setdefault(tuple(map(id, found)), found)  # kept, so that no other has their identity

    def _key(self, group: "_Group[T]", report: HostReport, numbers: dict[str, int]) -> tuple[int, ...]:
        for name in group.names:
            if name not in numbers:
                numbers[name] = self._number(name, getattr(report, name))
        return tuple(numbers[name] for name in group.names)

    def _number(self, name: str, value: object) -> int:
        """Return a number that equal values share, so that a value is hashed once, however many hosts have it."""
        if (seen := self._seen.get(id(value))) is not None:
            return seen[1]
        if len(self._seen) >= _REMEMBERED * 4:
            self._seen.clear()
            self._numbers.clear()  # numbers are never reused, so entries with old numbers are never found
        number = self._numbers.setdefault((name, value), next(self._count))
        self._seen[id(value)] = (value, number)  # kept, so that no other value has its identity
        return number

    def _work_out(self, group: "_Group[T]", report: HostReport) -> "tuple[T, ...]":
        """Return the answers of a group, and record the values that each question read."""
        if group.names:  # all are expected to read these values and no other
            watched = _Watched(report)
            found = tuple(self._questions[index](cast("HostReport", watched)) for index in group.questions)
            if watched.names.issubset(group.names):
                return found
        return tuple(self._ask(index, report) for index in group.questions)

    def _ask(self, index: int, report: HostReport) -> T:
        watched = _Watched(report)
        answer = self._questions[index](cast("HostReport", watched))
        self._names[index] |= watched.names
        return answer

    def _regroup(self) -> None:
        """Group the questions that read the same values and clear the cache."""
        together: dict[frozenset[str], list[int]] = {}
        for index, names in enumerate(self._names):
            together.setdefault(names, []).append(index)
        self._groups = [_Group(tuple(sorted(names)), tuple(found)) for names, found in together.items()]
        self._tuples.clear()


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
    """A host report that records which of its values were read."""

    def __init__(self, report: HostReport) -> None:
        self.report = report
        self.names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        value = getattr(self.report, name)
        setattr(self, name, value)  # read again, it is an ordinary attribute
        return value
