"""What activating an environment sets, and why: an ordered list of changes, as data.

`tenv.activation.variables` computes it once, at the end of ``create``, and it is stored in the prefix; shells replay
it, and no program of a package runs when somebody activates.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenv.core.errors import EnvironmentBrokenError
from tenv.targets.variable_requests import Action

__all__ = ["ACTIVATION", "Action", "Activation", "Change", "Watch", "read_activation"]

ACTIVATION = "activation.json"
"""The file with it, among tenv's notes in an environment."""

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Change:
    """One variable's change.

    Attributes:
        name: The variable.
        action: What happens to it.
        value: The new value, or what is put before or after the old one; empty for `unset`.
        reason: Who wants it and why, in one sentence.
        separator: What stands between the old value and what is put before or after it.
    """

    name: str
    action: Action
    value: str
    reason: str
    separator: str = os.pathsep

    def to_json(self) -> dict[str, str]:
        """Return the change as plain values; the separator only where it is not that of paths."""
        row = {"name": self.name, "action": self.action.value, "value": self.value, "reason": self.reason}
        return row if self.separator == os.pathsep else {**row, "separator": self.separator}

    def on(self, old: str | None) -> str | None:
        """Return what becomes of a value; None stands for a variable that is not set."""
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
    """Files of the machine that an environment depends on, as far as a shell can watch them without a program.

    Attributes:
        files: Each file with a stamp: an empty file of tenv's that has the same time of last change.
        sentence: What is said when a file is gone, or its time is no longer that of its stamp.
    """

    files: tuple[tuple[str, str], ...]
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return the watch as plain values."""
        return {"files": [list(pair) for pair in self.files], "sentence": self.sentence}


@dataclass(frozen=True, slots=True)
class Activation:
    """Everything that activating an environment changes, in order.

    Attributes:
        target: The target.
        prefix: The environment's folder.
        changes: The changes; a variable stands in it once, or twice where a list is added to at both ends.
        watches: What shells look at before they make them.
        left_out: What activation scripts of packages set and this activation does not, each with the reason.
    """

    target: str
    prefix: Path
    changes: tuple[Change, ...]
    watches: tuple[Watch, ...] = ()
    left_out: tuple[Change, ...] = ()

    def apply(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with the changes made."""
        new = dict(environment)
        for change in self.changes:
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


def read_activation(path: Path) -> Activation:
    """Read ``activation.json``.

    Raises:
        EnvironmentBrokenError: It is not there or can't be read.
    """
    try:
        data = json.loads(path.read_text())
        changes, left_out = _read_changes(data["changes"]), _read_changes(data.get("left-out", ()))
        watches = tuple(
            Watch(tuple((file, stamp) for file, stamp in row["files"]), row["sentence"])
            for row in data.get("watches", ())
        )
        return Activation(data["target"], Path(data["prefix"]), changes, watches, left_out)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        hint = "`tenv create TARGET --repair` makes it again"
        raise EnvironmentBrokenError(f"{path}: can't be read: {error}", hint=hint) from error


def _read_changes(rows: Iterable[Mapping[str, str]]) -> tuple[Change, ...]:
    rows = list(rows)
    if any(not isinstance(value, str) for row in rows for value in row.values()):
        raise TypeError("a change that is no text")
    return tuple(
        Change(row["name"], Action(row["action"]), row["value"], row["reason"], row.get("separator", os.pathsep))
        for row in rows
    )
