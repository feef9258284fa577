"""``tenv check-driver``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.check import against_option, build_only_option, cell, left_out, show_gpus
from tenv.cli.command import command
from tenv.cli.here import yes
from tenv.cli.host import from_report_option, host_options, taken_from_report
from tenv.cli.output import Result, Voice, out, print_findings, print_table, prose
from tenv.core.errors import Exit
from tenv.core.missing import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenv.checks.judge import Verdicts
    from tenv.checks.judge_targets import DriverReport
    from tenv.checks.rules.interface import Finding


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

    BUILD and RUN are the answers of `tenv check` about each target, DRIVER is about the driver's version alone. Status
    0 if RUN of TARGET is yes, or with --build-only if BUILD is yes; else 1.
    """
    from tenv.checks.host_options import HostOptions
    from tenv.checks.judge_targets import check_driver as judge
    from tenv.host.interface import fact_to_json
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
    report = judge(context, target, host)
    failed = target is not None and not all(_is_fine(row, build_only) for row in report.targets)
    useless = [report.override] if report.override else []
    findings = [*useless, *(finding for row in report.targets for finding in _findings(row))]

    def show() -> None:
        _show(report)
        if target:
            _explain(report)
        print_findings(findings if target else useless)

    left = () if target else left_out(context, [row.target for row in report.targets])
    data = {
        "driver": fact_to_json(report.driver),
        "targets": [_row(row) for row in report.targets],
        "toolkits": [{key: _row(row)[key] for key in _OF_TOOLKIT} for row in report.toolkits],
        **({"target_from_report": taken.to_json()} if taken else {}),
    }
    return Result(data, text=show, summary=left, findings=findings, status=Exit.CHECK if failed else Exit.DONE)


def _fleet(voice: Voice, target: str | None, build_only: bool, against: Path, host: Any) -> Result:
    from tenv.checks.fleet import check_fleet
    from tenv.cli.machines import Machines
    from tenv.project.context import Context

    context, repeats = Context(), list[str]()
    rows = check_fleet(context, target, "", against, host, repeats.append)
    machines = Machines(voice, rows, lambda found: _is_fine(found, build_only), repeats=repeats)
    return machines.result(context, _row, _cell, decides=target is not None)


_OF_TOOLKIT = ("cuda", "verdict", "minimum_driver", "native_driver", "run")
"""The keys of a toolkit's row: it is neither a target nor built."""


def _row(found: "Verdicts") -> dict[str, Any]:
    """Return the verdicts on a target or a toolkit as JSON values."""
    driver = found.driver
    return {
        "target": found.target,
        "cuda": str(found.cuda or ""),
        "verdict": driver.verdict.value,
        "minimum_driver": _minimum(found),
        "native_driver": str(driver.native.driver) if driver.native else "",
        "build": found.build,
        "run": found.run,
        "gpus": [gpu.to_json() for gpu in found.gpus],
    }


def _minimum(found: "Verdicts") -> str:
    """Return the oldest sufficient driver; an empty string if none is needed or known."""
    return str(found.driver.minimum.driver) if found.driver.minimum else ""


def _findings(found: "Verdicts") -> "Iterator[Finding]":
    """Yield the findings about driver, loader and GPUs, and all others that forbid an answer or leave it open."""
    from tenv.checks.rules.catalogue import DRIVER_RULES
    from tenv.checks.rules.interface import Scope

    codes = {code for rule in DRIVER_RULES for code in rule.codes}
    against = found.against(*Scope)
    yield from dict.fromkeys(one for one in found.findings if one.code in codes or one in against)


def _cell(found: "Verdicts") -> str:
    return f"{cell(found)} {_verdict(found)}"


def _show(report: "DriverReport") -> None:
    prose(f"driver: {_driver_text(report)}")
    print_table(
        ("TARGET", "CUDA", "MINIMUM DRIVER", "BUILD", "RUN", "DRIVER"),
        [
            (row.target, row.cuda or "none", _minimum(row) or "none", yes(row.build), yes(row.run), _of_driver(row))
            for row in report.targets
        ],
    )
    show_gpus((row.target, row.gpus) for row in report.targets)
    if report.toolkits:
        out()
        print_table(
            ("CUDA TOOLKIT", "MINIMUM DRIVER", "RUN", "DRIVER"),
            [(row.cuda, _minimum(row) or "none", yes(row.run), _verdict(row)) for row in report.toolkits],
        )
        _name_errors(report)


def _driver_text(report: "DriverReport") -> str:
    driver = report.driver
    return f"not found ({driver.reason})" if isinstance(driver, Missing) else f"{driver.value} ({driver.origin})"


def _explain(report: "DriverReport") -> None:
    """Print the source of a verdict that has no finding."""
    for row in report.targets:
        native = row.driver.native
        if row.run and row.driver.verdict == "native" and native is not None:
            doubt = "" if native.basis.confirmed else " (not confirmed)"
            prose(f"\nnative: CUDA {row.cuda} shipped with driver {native.driver}{doubt}, and the driver is not older")
            prose(f"  evidence: driver {_driver_text(report)}")
            prose(f"  source: {native.basis.source}")


def _is_fine(row: "Verdicts", build_only: bool) -> bool:
    """Return whether the verdict that decides the exit status is yes; unknown is not yes."""
    return (row.build if build_only else row.run) is True


def _verdict(row: "Verdicts") -> str:
    return row.driver.verdict.value


def _of_driver(row: "Verdicts") -> str:
    """Return the verdict on the driver alone; a target without CUDA needs none."""
    return "none" if not row.cuda and row.driver.verdict == "native" else _verdict(row)


def _name_errors(report: "DriverReport") -> None:
    """Print by code the errors that the verdict on the driver does not imply."""
    from tenv.checks.rules.driver_findings import CODES

    names: dict[str, tuple[list[str], list[str]]] = {}
    for rows, place in ((report.targets, 0), (report.toolkits, 1)):
        for row in rows:
            for code in {finding.code for finding in row.findings if finding.severity == "error"}.difference(CODES):
                names.setdefault(code, ([], []))[place].append(row.target or str(row.cuda))
    if names:
        prose("\nErrors besides CUDA's minimum driver (`tenv explain CODE`):")
    for code, (targets, toolkits) in sorted(names.items()):
        parts = [*([", ".join(targets)] if targets else []), *([f"toolkits {', '.join(toolkits)}"] if toolkits else [])]
        prose(f"  {code}: {'; '.join(parts)}")
