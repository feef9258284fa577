"""``tenv check-driver``."""

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice
from tenv.cli.table import print_table
from tenv.errors import Exit

__all__ = ["check_driver"]


@command("check-driver", short_help="Tell whether this machine's driver runs what a target builds.")
@click.argument("target", required=False)
@click.option("--build-only", is_flag=True, help="Ask only whether it can be built here; that needs no driver.")
def check_driver(voice: Voice, *, target: str | None, build_only: bool) -> Result:  # noqa: ARG001
    """Compare this machine's NVIDIA driver with what TARGET needs; without TARGET, with what every target needs.

    Status 1 when what TARGET builds is not known to run here. Building needs no driver.
    """
    from tenv.workflows.check_driver import check  # noqa: PLC0415
    from tenv.workflows.context import Context  # noqa: PLC0415

    report = check(Context(), target)
    failed = target is not None and not build_only and not all(row.verdict.run for row in report.rows)
    findings = [row.verdict.finding.to_json() for row in report.rows if row.verdict.finding]

    def show() -> None:
        click.echo(f"driver: {report.driver_text()}")
        print_table(
            ("TARGET", "CUDA", "MINIMUM DRIVER", "BUILD", "RUN", "VERDICT"),
            [
                (
                    row.target,
                    row.cuda or "none",
                    (row.verdict.minimum.driver if row.verdict.minimum else "none"),
                    "yes",
                    "yes" if row.verdict.run else "no",
                    row.verdict.verdict.value,
                )
                for row in report.rows
            ],
        )
        for finding in findings if target else ():
            click.echo(f"\n{finding['severity']}[{finding['code']}]: {finding['message']}")
            for key in ("evidence", "source", "fix"):
                click.echo(f"  {key}: {finding[key]}")

    status = Exit.CHECK if failed else Exit.DONE
    return Result(report.to_json(), text=show, findings=findings, status=status)
