"""``tenv check-driver``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.check import against_option, answer, build_only_option, left_out, show_machines, summarize
from tenv.cli.command import command
from tenv.cli.host import host_options
from tenv.cli.output import Result, Voice, print_findings
from tenv.cli.table import print_table
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from tenv.checks.driver_report import Report, Row

__all__ = ["check_driver"]


@command("check-driver", short_help="Tell whether this machine's driver runs what a target builds.")
@click.argument("target", required=False)
@build_only_option
@against_option
@host_options
def check_driver(voice: Voice, *, target: str | None, build_only: bool, against: Path | None, **options: Any) -> Result:
    """Compare this machine's NVIDIA driver with what TARGET needs; without TARGET, with every target and CUDA toolkit.

    BUILD is what the manifest alone tells: its platforms, and the CUDA toolkit that it takes from the machine. `check`
    asks every rule. Status 1 when what TARGET builds is not known to run here, or with --build-only, when it can't be
    built here.
    """
    from tenv.checks.driver_report import check  # noqa: PLC0415
    from tenv.checks.host_options import HostOptions  # noqa: PLC0415
    from tenv.project.context import Context  # noqa: PLC0415

    host = HostOptions(**options)
    if against is not None:
        return _fleet(voice, target, build_only, against, host)
    context = Context()
    report = check(context, target, host)
    failed = target is not None and not all(answer(row, build_only) for row in report.rows)
    useless = [finding.to_json() for finding in report.findings]
    findings = [*useless, *(finding.to_json() for row in report.rows for finding in row.findings)]

    def show() -> None:
        _show(report)
        if target:
            _explain(report)
        print_findings(findings if target else useless)

    status = Exit.CHECK if failed else Exit.DONE
    left = () if target else left_out(context, [row.target for row in report.rows])
    return Result(report.to_json(), text=show, summary=left, findings=findings, status=status)


def _fleet(voice: Voice, target: str | None, build_only: bool, against: Path, host: Any) -> Result:
    from tenv.checks.driver_report import check_fleet  # noqa: PLC0415
    from tenv.project.context import Context  # noqa: PLC0415

    context = Context()
    machines = list(check_fleet(context, target, against, host))
    failed = any(machine.problem or not all(answer(row, build_only) for row in machine.answers) for machine in machines)
    return Result(
        {"machines": [machine.to_json(lambda row: row.to_json()) for machine in machines] if voice.json else []},
        text=lambda: show_machines(machines, _cell),
        summary=summarize(machines, context),
        status=Exit.CHECK if target and failed else Exit.DONE,
    )


def _cell(row: "Row") -> str:
    return _verdict(row) if row.build else f"{_verdict(row)}, no build"


def _show(report: "Report") -> None:
    click.echo(f"driver: {report.driver_text()}")
    print_table(
        ("TARGET", "CUDA", "MINIMUM DRIVER", "BUILD", "RUN", "VERDICT"),
        [
            (row.target, row.cuda or "none", row.minimum or "none", _yes(row.build), _yes(row.run), _verdict(row))
            for row in report.rows
        ],
    )
    if report.toolkits:
        click.echo()
        print_table(
            ("CUDA TOOLKIT", "MINIMUM DRIVER", "RUN", "VERDICT"),
            [(row.cuda, row.minimum or "none", _yes(row.run), _verdict(row)) for row in report.toolkits],
        )


def _explain(report: "Report") -> None:
    """Say on what a verdict stands that has no finding."""
    for row in report.rows:
        native = row.verdict.native
        if row.run and row.verdict.finding is None and native is not None:
            doubt = "" if native.basis.confirmed else " (not confirmed)"
            click.echo(f"\nnative: CUDA {row.cuda} came with driver {native.driver}{doubt}, and this one is not older")
            click.echo(f"  evidence: driver {report.driver_text()}")
            click.echo(f"  source: {native.basis.source}")


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _verdict(row: "Row") -> str:
    return row.verdict.verdict.value
