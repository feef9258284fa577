"""The changes of an activation and their reasons, as an ordered list.

`tenv.activation.variables` computes the list once, at the end of ``create``, and stores it in the prefix. Shells
replay it, so that an activation runs no program of a package.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.file_content import read_text
from tenv.targets.variable_requests import VARIABLE_PATTERN, Action

__all__ = ["Action"]

ACTIVATION = "activation.json"
"""The file with it, among tenv's notes in an environment."""

GIVEN = "_TENV_GIVEN_"
"""Begins the name of the variable with the default that an activation has set."""

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one variable."""

    name: str
    """The variable."""
    action: Action
    """The kind of change."""
    value: str
    """The new value, or the text to add before or after the old one; empty for `unset`."""
    reason: str
    """The origin and the reason, in one sentence."""
    separator: str = os.pathsep
    """The separator between the old value and the added text."""
    default: bool = False
    """Whether a value of the user stays; only of `set`."""

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values; separator and default only if they are not the usual ones."""
        row = {"name": self.name, "action": self.action.value, "value": self.value, "reason": self.reason}
        separator = {} if self.separator == os.pathsep else {"separator": self.separator}
        return {**row, **separator, **({"default": True} if self.default else {})}

    def on(self, old: str | None) -> str | None:
        """Return the changed value; None means a variable that is not set."""
        match self.action:
            case Action.SET:
                return self.value
            case Action.PREPEND:
                return f"{self.value}{self.separator}{old}" if old else self.value
            case Action.APPEND:
                return f"{old}{self.separator}{self.value}" if old else self.value
            case Action.UNSET:
                return None


@dataclass(frozen=True, slots=True)
class Watch:
    """Host files that an environment depends on and a shell can check without running a program."""

    files: tuple[tuple[str, str], ...]
    """Each file with a stamp: an empty file of tenv's with the same modification time."""
    sentence: str
    """The warning if a file is missing or its modification time differs from its stamp's."""

    def to_json(self) -> dict[str, Any]:
        """Return the watch as JSON values."""
        return {"files": [list(pair) for pair in self.files], "sentence": self.sentence}


@dataclass(frozen=True, slots=True)
class Activation:
    """All changes of an activation, in order."""

    target: str
    """The target."""
    prefix: Path
    """The environment's folder."""
    changes: tuple[Change, ...]
    """The changes; a variable occurs once, or twice if a list gets additions at both ends."""
    watches: tuple[Watch, ...] = ()
    """The files that shells check first."""
    left_out: tuple[Change, ...] = ()
    """Variables that packages' activation scripts set but this activation does not, with the reasons."""

    def changes_in(self, environment: Mapping[str, str]) -> Iterator[Change]:
        """Yield the changes of an environment: a default only if the user has no value, and with a note of it."""
        for change in self.changes:
            if not change.default:
                yield change
            elif not is_own(environment, change.name):
                yield change
                yield Change(GIVEN + change.name, Action.SET, change.value, "")

    def apply(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return environment variables with the changes applied."""
        new = dict(environment)
        for change in self.changes_in(environment):
            value = change.on(new.pop(change.name, None))
            if value is not None:
                new[change.name] = value
        return new

    def to_json(self) -> str:
        """Return the text of ``activation.json``."""
        rows = [change.to_json() for change in self.changes]
        data: dict[str, Any] = {"schema": _SCHEMA, "target": self.target, "prefix": str(self.prefix), "changes": rows}
        if self.watches:
            data["watches"] = [watch.to_json() for watch in self.watches]
        if self.left_out:
            data["left-out"] = [change.to_json() for change in self.left_out]
        return json.dumps(data, indent=1) + "\n"


def is_own(environment: Mapping[str, str], name: str) -> bool:
    """Return whether a variable has a value that no activation has given it as a default."""
    return name in environment and environment[name] != environment.get(GIVEN + name)


def read_activation(path: Path) -> Activation:
    """Read ``activation.json``.

    Raises:
        EnvironmentBrokenError: It is missing or unreadable.
    """
    try:
        data = json.loads(read_text(path))
        changes, left_out = _read_changes(data["changes"]), _read_changes(data.get("left-out", ()))
        watches = tuple(
            Watch(tuple((_text(file), _text(stamp)) for file, stamp in row["files"]), _text(row["sentence"]))
            for row in data.get("watches", ())
        )
        return Activation(_text(data["target"]), Path(_text(data["prefix"])), changes, watches, left_out)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        hint = "`tenv create TARGET --repair` creates it again"
        raise EnvironmentBrokenError(f"{path}: can't be read: {error}", hint=hint) from error


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError("a value that is not a text")
    return value


def _read_changes(rows: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    rows = list(rows)
    if any(not re.fullmatch(VARIABLE_PATTERN, row["name"]) for row in rows):  # the name is code in a shell's script
        raise ValueError("a name that no variable can have")
    return tuple(
        Change(
            row["name"],
            Action(row["action"]),
            _text(row["value"]),
            _text(row["reason"]),
            _text(row.get("separator", os.pathsep)),
            row.get("default", False) is True,
        )
        for row in rows
    )
