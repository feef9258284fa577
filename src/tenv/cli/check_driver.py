"""``tenv check-driver``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.check import against_option, show_machines, summarize
from tenv.cli.command import command
from tenv.cli.host import host_options
from tenv.cli.output import Result, Voice, print_findings
from tenv.cli.table import print_table
from tenv.errors import Exit

if TYPE_CHECKING:
    from tenv.workflows.check_driver import Report, Row

__all__ = ["check_driver"]


@command("check-driver", short_help="Tell whether this machine's driver runs what a target builds.")
@click.argument("target", required=False)
@click.option("--build-only", is_flag=True, help="Ask only whether it can be built here; that needs no driver.")
@against_option
@host_options
def check_driver(voice: Voice, *, target: str | None, build_only: bool, against: Path | None, **options: Any) -> Result:
    """Compare this machine's NVIDIA driver with what TARGET needs; without TARGET, with every target and CUDA toolkit.

    Status 1 when what TARGET builds is not known to run here. Building needs no driver.
    """
    from tenv.workflows.check_driver import check  # noqa: PLC0415
    from tenv.workflows.context import Context  # noqa: PLC0415
    from tenv.workflows.host import HostOptions  # noqa: PLC0415

    host = HostOptions(**options)
    if against is not None:
        return _fleet(voice, target, build_only, against, host)
    report = check(Context(), target, host)
    failed = target is not None and not build_only and not all(row.verdict.run for row in report.rows)
    findings = [row.verdict.finding.to_json() for row in report.rows if row.verdict.finding]

    def show() -> None:
        _show(report)
        if target:
            _explain(report)
            print_findings(findings)

    status = Exit.CHECK if failed else Exit.DONE
    return Result(report.to_json(), text=show, findings=findings, status=status)


def _fleet(voice: Voice, target: str | None, build_only: bool, against: Path, host: Any) -> Result:
    from tenv.workflows.check_driver import check_fleet  # noqa: PLC0415
    from tenv.workflows.context import Context  # noqa: PLC0415

    asked = list(check_fleet(Context(), target, against, host))
    failed = any(row.problem or not all(answer.verdict.run for answer in row.answers) for row in asked)
    return Result(
        {"machines": [row.to_json(lambda answer: answer.to_json()) for row in asked] if voice.json else []},
        text=lambda: show_machines(asked, lambda row: str(row.verdict.verdict.value)),
        summary=summarize(asked),
        status=Exit.CHECK if target and failed and not build_only else Exit.DONE,
    )


def _show(report: "Report") -> None:
    click.echo(f"driver: {report.driver_text()}")
    print_table(
        ("TARGET", "CUDA", "MINIMUM DRIVER", "BUILD", "RUN", "VERDICT"),
        [
            (row.target, row.cuda or "none", row.minimum or "none", "yes", _run(row), _verdict(row))
            for row in report.rows
        ],
    )
    if report.toolkits:
        click.echo()
        print_table(
            ("CUDA TOOLKIT", "MINIMUM DRIVER", "RUN", "VERDICT"),
            [(row.cuda, row.minimum or "none", _run(row), _verdict(row)) for row in report.toolkits],
        )


def _explain(report: "Report") -> None:
    """Say on what a verdict stands that has no finding."""
    for row in report.rows:
        native = row.verdict.native
        if row.verdict.finding is None and native is not None:
            doubt = "" if native.confirmed else " (not confirmed)"
            click.echo(f"\nnative: CUDA {row.cuda} came with driver {native.driver}{doubt}, and this one is not older")
            click.echo(f"  evidence: driver {report.driver_text()}")
            click.echo(f"  source: {native.source}")


def _run(row: "Row") -> str:
    return "yes" if row.verdict.run else "no"


def _verdict(row: "Row") -> str:
    return row.verdict.verdict.value
