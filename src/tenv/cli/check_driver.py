"""``tenv check-driver``."""

from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.check import against_option, build_only_option, cell, left_out, show_gpus, summarize, yes
from tenv.cli.command import command
from tenv.cli.host import from_report_option, host_options, taken_from_report
from tenv.cli.output import Result, Voice, out, print_findings, prose
from tenv.cli.table import print_table
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from tenv.checks.driver_report import Report, TargetVerdict

__all__ = ["check_driver"]


@command("check-driver", short_help="Report whether this machine's driver runs what a target builds.")
@click.argument("target", required=False)
@build_only_option
@against_option
@from_report_option
@host_options
def check_driver(
    voice: Voice,
    *,
    target: str | None,
    build_only: bool,
    against: Path | None,
    target_from_report: bool,
    **options: Any,
) -> Result:
    """Compare this machine's NVIDIA driver with what TARGET needs, or with every target and CUDA toolkit.

    BUILD follows from the manifest alone: its platforms, and the CUDA toolkit that it resolves from the system.
    `tenv check` applies every rule. RUN follows from the driver, the loader and the GPUs. Status 0 if RUN of TARGET is
    yes, or with --build-only if BUILD is yes; else 1.
    """
    from tenv.checks.driver_report import check
    from tenv.checks.host_options import HostOptions
    from tenv.project.context import Context

    host = HostOptions(**options)
    if against is not None:
        if target_from_report:
            raise click.UsageError("--against and --target-from-report exclude each other")
        return _fleet(voice, target, build_only, against, host)
    context = Context()
    taken = taken_from_report(context, target, host, voice.say) if target_from_report else None
    if taken:
        target, host = taken.target, taken.options
    report = check(context, target, host)
    failed = target is not None and not all(_is_fine(row, build_only) for row in report.rows)
    useless = [finding.to_json() for finding in report.findings]
    findings = [*useless, *(finding.to_json() for row in report.rows for finding in row.findings)]

    def show() -> None:
        _show(report)
        if target:
            _explain(report)
        print_findings(findings if target else useless)

    status = Exit.CHECK if failed else Exit.DONE
    left = () if target else left_out(context, [row.target for row in report.rows])
    data = {**report.to_json(), "target_from_report": taken.to_json()} if taken else report.to_json()
    return Result(data, text=show, summary=left, findings=findings, status=status)


def _fleet(voice: Voice, target: str | None, build_only: bool, against: Path, host: Any) -> Result:
    from tenv.checks.driver_report import check_fleet
    from tenv.cli.machines import Machines
    from tenv.project.context import Context

    context = Context()
    machines = Machines(check_fleet(context, target, against, host), attrgetter("target"))
    fine = not target or machines.all(lambda row: _is_fine(row, build_only))
    return Result(
        machines.to_json(lambda row: row.to_json()) if voice.json else [],
        text=lambda: machines.show(_cell),
        summary=summarize(machines, context),
        status=Exit.DONE if fine else Exit.CHECK,
    )


def _cell(row: "TargetVerdict") -> str:
    return f"{cell(row)} {_verdict(row)}"


def _show(report: "Report") -> None:
    prose(f"driver: {report.driver_text()}")
    print_table(
        ("TARGET", "CUDA", "MINIMUM DRIVER", "BUILD", "RUN", "VERDICT"),
        [
            (row.target, row.cuda or "none", row.minimum or "none", yes(row.build), yes(row.run), _verdict(row))
            for row in report.rows
        ],
    )
    show_gpus((row.target, row.gpus) for row in report.rows)
    if report.toolkits:
        out()
        print_table(
            ("CUDA TOOLKIT", "MINIMUM DRIVER", "RUN", "VERDICT"),
            [(row.cuda, row.minimum or "none", yes(row.run), _verdict(row)) for row in report.toolkits],
        )
        _name_errors(report)


def _explain(report: "Report") -> None:
    """Print the source of a verdict that has no finding."""
    for row in report.rows:
        native = row.verdict.native
        if row.run and row.verdict.finding is None and native is not None:
            doubt = "" if native.basis.confirmed else " (not confirmed)"
            prose(f"\nnative: CUDA {row.cuda} shipped with driver {native.driver}{doubt}, and the driver is not older")
            prose(f"  evidence: driver {report.driver_text()}")
            prose(f"  source: {native.basis.source}")


def _is_fine(row: "TargetVerdict", build_only: bool) -> bool:
    """Return whether the verdict that decides the exit status is yes; unknown is not yes."""
    return (row.build if build_only else row.run) is True


def _verdict(row: "TargetVerdict") -> str:
    return row.verdict.verdict.value


def _name_errors(report: "Report") -> None:
    """Print by code the errors that the verdicts on the driver do not say."""
    names: dict[str, tuple[list[str], list[str]]] = {}
    for rows, place in ((report.rows, 0), (report.toolkits, 1)):
        for row in rows:
            said = row.verdict.finding.code if row.verdict.finding else ""
            codes = {finding.code for finding in row.findings if finding.severity == "error"}
            for code in codes - {said}:
                names.setdefault(code, ([], []))[place].append(row.target or str(row.cuda))
    if names:
        prose("\nErrors besides CUDA's minimum driver (`tenv explain CODE`):")
    for code, (targets, toolkits) in sorted(names.items()):
        parts = [*([", ".join(targets)] if targets else []), *([f"toolkits {', '.join(toolkits)}"] if toolkits else [])]
        prose(f"  {code}: {'; '.join(parts)}")
