"""What a command would start: a program, its words, its variables; started at once, or printed with ``--json``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenv.core import process

__all__ = ["StartPlan"]


@dataclass(frozen=True, slots=True)
class StartPlan:
    """A program that is to be started.

    Attributes:
        target: The target whose environment it runs in.
        words: The program and its arguments.
        environment: All its variables.
        files: Files that it reads and that exist only once it is started: their content, by path.
    """

    target: str
    words: Sequence[str]
    environment: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> int:
        """Become the program; returns its status only where the system can't do that (Windows)."""
        return process.replace(self.words, self.environment)

    def to_data(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the plan as plain values.

        Args:
            environ: The variables of the caller, against which the changes are named.
        """
        changed = {name: value for name, value in self.environment.items() if environ.get(name) != value}
        removed = sorted(name for name in environ if name not in self.environment)
        return {
            "target": self.target,
            "command": list(self.words),
            "environment": {"set": dict(sorted(changed.items())), "unset": removed},
            "files": dict(self.files),
        }
