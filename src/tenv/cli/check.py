"""``tenv check``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import command, target_argument
from tenv.cli.host import host_options
from tenv.cli.output import Result, Voice, count, print_findings
from tenv.cli.table import print_table
from tenv.errors import Exit

if TYPE_CHECKING:
    from tenv.workflows.check import Verdicts
    from tenv.workflows.fleet import Asked

__all__ = ["against_option", "answer", "build_only_option", "check", "show_machines", "summarize"]

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
@click.option("--pytorch", default="", metavar="VERSION|DIR", help="The PyTorch to build; else the checkout here.")
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
    from tenv.workflows.check import check as judge  # noqa: PLC0415
    from tenv.workflows.context import Context  # noqa: PLC0415
    from tenv.workflows.host import HostOptions  # noqa: PLC0415

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
    from tenv.workflows.check import check_fleet  # noqa: PLC0415
    from tenv.workflows.context import Context  # noqa: PLC0415

    machines = list(check_fleet(Context(), target, pytorch, against, host))
    failed = any(
        machine.problem or not all(answer(found, build_only) for found in machine.answers) for machine in machines
    )
    return Result(
        {"machines": [machine.to_json(_in_fleet) for machine in machines] if voice.json else []},
        text=lambda: show_machines(machines, _cell),
        summary=summarize(machines),
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
    rows = []
    for row in asked:
        driver = row.driver.get("value", "" if row.problem else "none")
        cells = [cell(answer) for answer in row.answers] if not row.problem else [""] * len(names)
        last = (row.problem,) if problems else ()
        rows.append((row.machine, driver or "?", ", ".join(dict.fromkeys(row.gpus)) or "-", *cells, *last))
    print_table(("MACHINE", "DRIVER", "GPU", *names, *problems), rows)


def summarize(asked: "Sequence[Asked[Any]]") -> tuple[str, ...]:
    """Return what is said below the machines."""
    broken = sum(bool(row.problem) for row in asked)
    return (count(len(asked), "machine") + (f", {count(broken, 'broken report')}" if broken else ""),)
