"""The plan to start a program: its arguments and variables."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.replacement import replace

__all__ = ["StartPlan"]


@dataclass(frozen=True, slots=True)
class StartPlan:
    """The plan to start a program.

    Attributes:
        target: The target whose environment it runs in.
        words: The program and its arguments.
        environment: All its variables.
        files: The content of temporary files that it reads, by path.
    """

    target: str
    words: Sequence[str]
    environment: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> int:
        """Replace this process by the program. Returns its status on Windows, which has no exec."""
        return replace(self.words, self.environment)

    def to_data(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the plan as JSON values.

        Args:
            environ: The variables of the caller, to compute the changes.
        """
        changed = {name: value for name, value in self.environment.items() if environ.get(name) != value}
        removed = sorted(name for name in environ if name not in self.environment)
        return {
            "target": self.target,
            "command": list(self.words),
            "environment": {"set": dict(sorted(changed.items())), "unset": removed},
            "files": dict(self.files),
        }
