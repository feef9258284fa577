"""``tenv check``."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import command, target_argument
from tenv.cli.host import host_options, pytorch_option
from tenv.cli.output import Result, Voice, count, print_findings
from tenv.cli.table import print_table
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from tenv.checks.fleet import Asked
    from tenv.checks.judge import Verdicts
    from tenv.project.context import Context

__all__ = ["against_option", "answer", "build_only_option", "check", "left_out", "show_machines", "summarize"]

against_option = click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="Ask about every machine whose host report is there, and not about this one.",
)
"""A fleet in place of one host."""


build_only_option = click.option(
    "--build-only", is_flag=True, help="Ask only whether it can be built here; that needs no driver."
)
"""Which verdict the exit status tells."""


def answer(found: Any, build_only: bool) -> bool:
    """Return the verdict that the exit status tells: on running, which is what a target is for, or on building."""
    return bool(found.build if build_only else found.run)


@command("check", short_help="Judge a target on this machine by every rule.")
@target_argument
@pytorch_option
@build_only_option
@against_option
@host_options
def check(
    voice: Voice,
    *,
    target: str | None,
    pytorch: str,
    build_only: bool,
    against: Path | None,
    **options: Any,
) -> Result:
    """Judge whether TARGET can be built on this machine and whether what it builds runs here.

    Status 1 when it is not known to run here, or with --build-only, when it can't be built here. With --against and
    without TARGET, every target is judged on every machine, and the status is 0.
    """
    from tenv.checks.host_options import HostOptions  # noqa: PLC0415
    from tenv.checks.judge import check as judge  # noqa: PLC0415
    from tenv.project.context import Context  # noqa: PLC0415

    host = HostOptions(**options)
    if against is not None:
        return _fleet(voice, target, pytorch, build_only, against, host)
    found = judge(Context(), target, pytorch, host)
    findings = [finding.to_json() for finding in found.findings]
    return Result(
        found.to_json(),
        text=lambda: _show(found, findings),
        summary=(f"without the lock: {found.lock_problem}",) if found.lock_problem else (),
        findings=findings,
        status=Exit.DONE if answer(found, build_only) else Exit.CHECK,
    )


def _fleet(voice: Voice, target: str | None, pytorch: str, build_only: bool, against: Path, host: Any) -> Result:
    from tenv.checks.judge import check_fleet  # noqa: PLC0415
    from tenv.project.context import Context  # noqa: PLC0415

    context = Context()
    machines = list(check_fleet(context, target, pytorch, against, host))
    failed = any(
        machine.problem or not all(answer(found, build_only) for found in machine.answers) for machine in machines
    )
    return Result(
        {"machines": [machine.to_json(_in_fleet) for machine in machines] if voice.json else []},
        text=lambda: show_machines(machines, _cell),
        summary=summarize(machines, context),
        status=Exit.CHECK if target and failed else Exit.DONE,
    )


def _show(found: "Verdicts", findings: Sequence[dict[str, str]]) -> None:
    asked = f" of PyTorch {found.pytorch}" if found.pytorch else ""
    click.echo(f"build: {'yes' if found.build else 'no'}  ({found.target}{asked} on {found.platform})")
    click.echo(f"run:   {'yes' if found.run else 'no'}")
    print_findings(findings)


def _in_fleet(found: "Verdicts") -> dict[str, Any]:
    codes = [finding.code for finding in found.findings]
    return {"target": found.target, "build": found.build, "run": found.run, "findings": codes}


def _cell(found: "Verdicts") -> str:
    verdict = "runs" if found.run else "builds" if found.build else "no"
    codes = dict.fromkeys(finding.code for finding in found.findings if finding.severity != "note")
    return " ".join([verdict, *codes])


def show_machines(asked: "Sequence[Asked[Any]]", cell: Callable[[Any], str]) -> None:
    """Print a row a machine, with a column for each target."""
    names = next(([answer.target for answer in row.answers] for row in asked if not row.problem), [])
    problems = ("PROBLEM",) if any(row.problem for row in asked) else ()
    times = Counter(row.machine for row in asked)
    rows = []
    for row in asked:
        machine = f"{row.machine} ({row.source})" if times[row.machine] > 1 else row.machine
        driver = row.driver.get("value", "" if row.problem else "none")
        cells = [cell(answer) for answer in row.answers] if not row.problem else [""] * len(names)
        last = (row.problem,) if problems else ()
        rows.append((machine, driver or "?", ", ".join(dict.fromkeys(row.gpus)) or "-", *cells, *last))
    print_table(("MACHINE", "DRIVER", "GPU", *names, *problems), rows)


def summarize(asked: "Sequence[Asked[Any]]", context: "Context") -> tuple[str, ...]:
    """Return what is said below the machines, of targets that have no column too."""
    broken = sum(bool(row.problem) for row in asked)
    judged = next(([answer.target for answer in row.answers] for row in asked if not row.problem), None)
    left = () if judged is None or len(judged) == 1 else left_out(context, judged)
    return (count(len(asked), "machine") + (f", {count(broken, 'broken report')}" if broken else ""), *left)


def left_out(context: "Context", judged: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each target that is not among those that were judged, since it can't be read."""
    return tuple(f"without {name}: {fault}" for name, fault in context.places.faults(judged))
