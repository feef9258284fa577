"""The page that `tenv build` leaves: its steps, Ninja's tasks on a time line, the slowest files, and why it failed."""

from collections.abc import Mapping, Sequence
from typing import Any

from tenv.builds.build_job import BuildJob, StepReport
from tenv.builds.ninja_plan import LogRow
from tenv.core.errors import StorageError
from tenv.core.files import write_atomic
from tenv.core.page import render_page

_PAGE = "report.html"
"""The name of the page in the folder of tenv's notes on a build."""
_TASKS = 6000
"""The longest tasks that the time line shows; a build of PyTorch has as many."""


def write_report(job: BuildJob, steps: Sequence[StepReport], tasks: Mapping[str, LogRow], *, ended: bool) -> str:
    """Write the page of a build and return its path; a disk that does not take it fails no build.

    Args:
        job: The build.
        steps: The steps that were taken.
        tasks: The rows of Ninja's log that are new.
        ended: Whether no error and no signal stopped it between two steps.
    """
    facts: dict[str, Any] = {}
    for step in steps:
        facts |= step.done.facts or {}
    single = {(row.command or output, row.start, row.end): output for output, row in tasks.items()}
    longest = sorted(single.items(), key=lambda one: one[0][2] - one[0][1], reverse=True)[:_TASKS]
    data = {
        "target": job.target.name,
        "checkout": str(job.checkout),
        "folder": str(job.folder),
        "ended": ended,
        "steps": [
            {"name": step.name.value, "ok": step.ok, "seconds": round(step.seconds, 1), "lines": [*step.done.lines]}
            for step in steps
        ],
        "findings": [finding.to_json() for step in steps for finding in step.done.findings],
        "log": next((str(step.done.log) for step in steps if not step.ok and step.done.log), ""),
        "cache": facts.get("cache"),
        "largest": _largest_process(),
        "count": len(single),
        "tasks": [[output, start, end] for (_, start, end), output in longest],
    }
    page = job.notes / _PAGE
    try:
        write_atomic(page, render_page("build", f"tenv build {job.target.name}", data))
    except StorageError:
        return ""
    return str(page)


def _largest_process() -> int:
    """Return the most memory that one process of the build took, in bytes; 0 where the system does not count it."""
    try:
        import resource  # late: Windows has none
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
