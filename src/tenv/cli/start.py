"""Starts or prints the plan of `run`, `shell` and `gdb`."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.cli.output import Result, Voice
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from tenv.project.context import Context
    from tenv.verbs.start_plan import StartPlan

__all__ = ["begin", "program_words"]


def program_words() -> list[str]:
    """Return the words that start this tenv from anywhere."""
    program = os.path.abspath(sys.argv[0])  # noqa: PTH100 (a link must stay a link)
    return [sys.executable, "-P", "-m", "tenv"] if program.endswith("__main__.py") else [program]


def begin(voice: Voice, context: "Context", plan: "StartPlan") -> Result:
    """Replace this process by the program of a plan; with ``--json``, return the plan."""
    if not voice.json:
        return Result(status=_status(plan.start()))
    for folder in {Path(file).parent for file in plan.files}:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(plan.to_data(context.environ))


def _status(status: int) -> Exit:
    """Return the exit status of the program (only on Windows, where exec is not available)."""
    return status  # type: ignore[return-value]
