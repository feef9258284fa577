"""``tenv check``."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import FilePath, command, not_empty, target_argument
from tenv.cli.here import fits_here, yes
from tenv.cli.host import from_report_option, host_options, pytorch_option, taken_from_report
from tenv.cli.output import Result, Voice, out, paint_verdict, print_findings, print_table, prose
from tenv.core.errors import Exit, UsageError

if TYPE_CHECKING:
    from tenv.checks.host_options import HostOptions
    from tenv.checks.judge import GpuVerdict, Verdicts
    from tenv.checks.torch_fit import TorchFit
    from tenv.project.context import Context

against_option = click.option(
    "--against",
    type=FilePath(),
    metavar="FILE|DIR",
    help="Judge every machine that has a host report there, in place of this one; `-` for stdin.",
)
"""A fleet in place of one host."""


build_only_option = click.option("--build-only", is_flag=True, help="Judge building alone, which needs no driver.")
"""Which verdict decides the exit status."""


def cell(found: Any) -> str:
    """Return both verdicts as one cell of a table; of several kinds of GPUs, for how many they hold."""
    word = _cell_word(found)
    if len(found.gpus) < 2 or all(_cell_word(gpu) == word for gpu in found.gpus):  # noqa: PLR2004 (two kinds)
        return word
    same = sum(gpu.count for gpu in found.gpus if _cell_word(gpu) == word)
    return f"{word} ({same} of {sum(gpu.count for gpu in found.gpus)} GPUs)"


def _cell_word(found: Any) -> str:
    """Return both verdicts as one word. A question mark means that running is unknown."""
    if found.build is None:
        return "unknown"
    if found.run is None:
        return "build?" if found.build else "no?"
    return "+".join(name for name, answer in (("build", found.build), ("run", found.run)) if answer) or "no"


def show_gpus(rows: "Iterable[tuple[str, Sequence[GpuVerdict]]]") -> None:
    """Print a table with the verdicts for each kind of GPU if a host has several.

    Args:
        rows: The name of each target, empty if one target is judged, with its verdicts.
    """
    shown = [(name, gpu) for name, gpus in rows if len(gpus) > 1 for gpu in gpus]
    named = any(name for name, _ in shown)
    if shown:
        head = ("GPU", "CAPABILITY", "COUNT", "BUILD", "RUN")
        cells = [
            (*[name][: int(named)], gpu.name, gpu.capability or "?", gpu.count, yes(gpu.build), yes(gpu.run))
            for name, gpu in shown
        ]
        out()
        print_table(("TARGET", *head) if named else head, cells)


def _is_fine(found: "Verdicts", build_only: bool) -> bool:
    """Return whether all verdicts that decide the exit status are yes; unknown is not yes."""
    return found.build is True and (build_only or found.run is True)


_FROM_REPORT = "--target-from-report"

torch_option = click.option(
    "--torch",
    default="",
    callback=not_empty,
    metavar="PATH|VERSION",
    help="The torch that extensions are for: an environment, its Python, a wheel, or a version (`2.9+cu128`).",
)
"""The option for a torch that is there; ``--pytorch`` names the one to build."""


@command("check", short_help="Judge whether a target builds and runs on this machine.")
@target_argument
@pytorch_option
@torch_option
@build_only_option
@click.option("--here", is_flag=True, help="List the targets that fit this machine; the default outside a project.")
@click.option("--all", "every", is_flag=True, help="With --here: list the other targets too, each with the reason.")
@against_option
@click.option(
    "--html",
    type=FilePath(dir_okay=False),
    metavar="FILE",
    help="With --against: write the answers and their findings as a page to look at.",
)
@click.option(
    "--slurm",
    is_flag=True,
    help="With --against: print the targets of each machine as features of Slurm, for `--constraint`.",
)
@from_report_option
@host_options
def check(
    voice: Voice,
    *,
    target: str | None,
    pytorch: str,
    torch: str,
    build_only: bool,
    here: bool,
    every: bool,
    against: Path | None,
    html: Path | None,
    slurm: bool,
    target_from_report: bool,
    **options: Any,
) -> Result:
    """Judge whether TARGET builds on this machine, and whether the result runs here.

    Status 0 when both answers are yes, or with --build-only, when it can be built here; else 1.

    Without TARGET, all targets of the project are judged. In a project without targets of its own, outside a project
    and with --here, the machine and the targets that fit it are printed, newest first; * marks the one that `create
    auto` takes. Status 0 when at least one fits, else 1. With --against and without TARGET, every target is judged on
    every machine, and the status is 0.

    `auto` is the target that `create auto` takes, with the reason; status 4 when no target suits.

    With --torch, no target is judged but this machine: whether extensions for that torch compile and run here.
    `--torch report` takes the torch of the host report.
    """
    from tenv.checks.host_options import HostOptions
    from tenv.checks.judge_targets import check as judge
    from tenv.project.context import Context
    from tenv.targets.search import AUTO

    host, here = HostOptions(**options), here or every
    _refuse_together({"--torch": torch, "--here": here, "--against": against, _FROM_REPORT: target_from_report})
    _refuse_together({"--torch": torch, "--pytorch": pytorch})
    _refuse_together({"--torch": torch, "TARGET": target})
    if here and target:
        hint = f"`tenv check {shlex.quote(target)}` judges that target, `tenv check --here` this machine"
        raise UsageError("--here and TARGET exclude each other", hint=hint)
    _refuse_alone({"--html": html, "--slurm": slurm}, against)
    if torch:
        return _torch(Context(), torch, host, build_only=build_only)
    if against is not None:
        return _fleet(voice, target, pytorch, against, host, build_only=build_only, html=html, slurm=slurm)
    context = Context()
    if target == AUTO:
        return _auto(context, pytorch, host, voice, build_only=build_only)
    if here or (target is None and not target_from_report and not context.places.project_targets()):
        return _here(context, pytorch, host, voice, build_only=build_only, every=every)
    if target is None and not target_from_report:
        names = context.chosen_targets(None)
        if len(names) > 1:
            return _all(judge(context, names, pytorch, host), build_only=build_only)
    taken = taken_from_report(context, target, host, voice.say) if target_from_report else None
    (found,) = judge(context, [taken.target if taken else target], pytorch, taken.options if taken else host)
    return Result(
        {**found.to_json(), "target_from_report": taken.to_json()} if taken else found.to_json(),
        text=lambda: _show(found),
        summary=(f"without the lock: {found.lock_problem}",) if found.lock_problem else (),
        findings=found.findings,
        status=Exit.DONE if _is_fine(found, build_only) else Exit.CHECK,
    )


def _refuse_together(given: dict[str, object]) -> None:
    """Raise a usage error if two of the words are given that exclude each other."""
    first, second = [*[name for name, value in given.items() if value], "", ""][:2]
    if second:
        raise click.UsageError(f"{first} and {second} exclude each other")


def _refuse_alone(given: dict[str, object], against: Path | None) -> None:
    """Raise a usage error for a way to show a fleet without one, and for two of them."""
    _refuse_together(given)
    for name in filter(given.get, given):
        if against is None:
            raise click.UsageError(f"{name} is for the machines of --against")


def _here(
    context: "Context", pytorch: str, host: "HostOptions", voice: Voice, *, build_only: bool, every: bool
) -> Result:
    """Return the machine and the targets that fit it."""
    from tenv.checks.judge_targets import check_here

    found = check_here(context, pytorch, host, voice.say)
    return fits_here(found, build_only=build_only, every=every)


def _auto(context: "Context", pytorch: str, host: "HostOptions", voice: Voice, *, build_only: bool) -> Result:
    """Return the target that `create auto` takes, why, and the verdicts on it."""
    from tenv.checks.judge_targets import check_auto

    choice, found = check_auto(context, pytorch, host, voice.say)

    def show() -> None:
        prose("\n".join(choice.lines()))
        _show(found)

    status = Exit.DONE if _is_fine(found, build_only) else Exit.CHECK
    return Result({**found.to_json(), "auto": choice.to_json()}, text=show, findings=found.findings, status=status)


def _torch(context: "Context", asked: str, host: "HostOptions", *, build_only: bool) -> Result:
    """Return the answers about an installed torch."""
    from tenv.checks.torch_fit import check_torch

    found = check_torch(context, asked, host)
    fine = found.build is True and (build_only or found.run is True)
    return Result(
        found.to_json(),
        text=lambda: _show_torch(found),
        findings=found.findings,
        status=Exit.DONE if fine else Exit.CHECK,
    )


def _show_torch(found: "TorchFit") -> None:
    torch = found.torch
    out(f"torch: {torch.label}  ({torch.place})")
    out(f"build: {paint_verdict(yes(found.build))}  (extensions for it on {found.platform})")
    out(f"run:   {paint_verdict(yes(found.run))}")
    for one in found.taken if torch.has_cuda else ():
        what = (
            f"{one.folder} ({f'CUDA {one.version}, ' if one.version else ''}{one.way})" if one.folder else "no toolkit"
        )
        out(f"{one.by} takes: {what}")
    if found.targets:
        out(f"targets with its CUDA: {', '.join(found.targets)}")
    print_findings(found.findings)


def _all(found: "Sequence[Verdicts]", *, build_only: bool) -> Result:
    """Return the verdicts on all targets of the project."""
    findings = [finding for one in found for finding in one.findings]

    def show() -> None:
        for one in found:
            _show(one)
            out()

    runs = [one.run for one in found]
    data = {
        "build": all(one.build for one in found),
        "run": None if None in runs and False not in runs else all(runs),
        "targets": [one.to_json() for one in found],
    }
    fine = all(_is_fine(one, build_only) for one in found)
    return Result(data, text=show, findings=findings, status=Exit.DONE if fine else Exit.CHECK)


def _fleet(
    voice: Voice,
    target: str | None,
    pytorch: str,
    against: Path,
    host: "HostOptions",
    *,
    build_only: bool,
    html: Path | None,
    slurm: bool,
) -> Result:
    from tenv.checks.fleet import check_fleet
    from tenv.cli.machines import FleetPage, Machines
    from tenv.project.context import Context

    context, repeats = Context(), list[str]()
    rows = check_fleet(context, target, pytorch, against, host, repeats.append)
    page = FleetPage(html, cell) if html else None
    machines = Machines(voice, rows, lambda found: _is_fine(found, build_only), page, repeats, slurm=slurm)
    if slurm:

        def feature(found: "Verdicts") -> str:
            return f"tenv-{found.target}" if (found.build if build_only else found.run) else ""

        return machines.result(context, _in_fleet, feature, decides=False)
    return machines.result(context, _in_fleet, _cell, decides=target is not None)


def _show(found: "Verdicts") -> None:
    asked = f" of PyTorch {found.pytorch}" if found.pytorch else ""
    out(f"build: {paint_verdict(yes(found.build))}  ({found.target}{asked} on {found.platform})")
    alone = "  (`--build-only` judges building alone)" if found.build and found.run is None else ""
    out(f"run:   {paint_verdict(yes(found.run))}{alone}")
    show_gpus([("", found.gpus)])
    print_findings(found.findings)


def _in_fleet(found: "Verdicts") -> dict[str, Any]:
    codes = [finding.code for finding in found.findings]
    gpus = [gpu.to_json() for gpu in found.gpus]
    return {"target": found.target, "build": found.build, "run": found.run, "findings": codes, "gpus": gpus}


def _cell(found: "Verdicts") -> str:
    codes = dict.fromkeys(finding.code for finding in found.findings if finding.severity != "note")
    return " ".join([cell(found), *codes])


def left_out(context: "Context", judged: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each target whose manifest can't be read, so that tenv did not judge it."""
    return tuple(f"without {name}: {fault}" for name, fault in context.places.faults(judged))
