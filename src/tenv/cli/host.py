"""``tenv host``."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenv.cli.command import command, not_empty
from tenv.cli.output import Result, Voice, print_labelled
from tenv.core.untrusted import json_without_login

if TYPE_CHECKING:
    from tenv.checks.host_options import HostOptions
    from tenv.checks.target_from_report import FromReport
    from tenv.host.interface import Fact, Missing
    from tenv.host.report import HostReport
    from tenv.project.context import Context

T = TypeVar("T")

_WIDTH = 13
"""The columns of a label and the blank after it."""

_OF_TORCH = {"pytorch": "pytorch", "pytorch_cuda": "torch's cuda", "wheels": "wheels"}
"""The labels of pasted values that the report has no row for."""


pytorch_option = click.option(
    "--pytorch",
    default="",
    callback=not_empty,
    metavar="VERSION|DIR",
    help="The PyTorch to build; default: the checkout in the working folder.",
)
"""The option for the PyTorch to build."""

from_report_option = click.option(
    "--target-from-report",
    is_flag=True,
    help="Select the target by the CUDA that the PyTorch of the pasted report was built with.",
)
"""The option that replaces TARGET."""


def taken_from_report(
    context: "Context", target: str | None, options: "HostOptions", say: Callable[[str], None]
) -> "FromReport":
    """Return the target that fits a report, and report why; raises UsageError if TARGET is given too."""
    from tenv.checks.target_from_report import from_report

    if target is not None:
        raise click.UsageError("TARGET and --target-from-report exclude each other")
    taken = from_report(context, options)
    say(taken.line())
    return taken


def _one_gpu(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str:
    """Return the one GPU to assume, or an empty text."""
    if len(values) > 1 or any("," in value for value in values):
        raise click.BadParameter("takes one GPU; a host report (`--host-report`) can have several", param=option)
    value = values[0] if values else ""
    if values and not value.strip():
        raise click.BadParameter("the value is empty", ctx=context, param=option)
    return value


def host_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add the options that replace this host or parts of it."""
    for option in (
        click.option(
            "--assume-gpu",
            multiple=True,
            callback=_one_gpu,
            metavar="NAME",
            help="Assume this GPU, for example `GTX 1660 Ti`.",
        ),
        click.option(
            "--assume-driver",
            default="",
            callback=not_empty,
            metavar="VERSION",
            help="Assume this driver, for example `535.104.12`.",
        ),
        click.option(
            "--host-report",
            default="",
            callback=not_empty,
            metavar="FILE",
            help="Read a report of `tenv host --json`, or output of `collect_env` or `nvidia-smi`; `-` for stdin.",
        ),
    ):
        function = option(function)
    return function


@command("host", short_help="Print the host report: each value with its origin.")
@click.option(
    "--compact",
    is_flag=True,
    help="Print it as JSON on one line, for srun, pdsh and other programs that gather the lines of many machines.",
)
@host_options
def host(voice: Voice, *, compact: bool, **options: Any) -> Result:
    """Print the host report: each value with its origin, and each missing value with the reason.

    `--host-report` reads the output of `--json`, `tenv check --against -` the lines of `--compact`. CONDA_OVERRIDE_CUDA
    replaces the CUDA version of the driver; an empty value means no CUDA.
    """
    from tenv.checks.host_options import HostOptions, read, report
    from tenv.host.report_json import to_json
    from tenv.project.context import Context

    asked = read(HostOptions(**options))
    found = report(Context(), asked)
    pasted = asked.given.pasted if asked.given else {}
    notes = [f"note: {clash['item']}: {clash['taken']} counts, not {clash['left']}" for clash in _clashes(pasted)]
    data = {**to_json(found), "pasted": pasted} if pasted else to_json(found)
    if compact:
        voice.json = False  # the line is JSON already
        return Result(data, text=json_without_login(json.dumps(data, separators=(",", ":"))), summary=notes)
    return Result(data, text=lambda: _print(found, pasted), summary=notes)


def _clashes(pasted: dict[str, Any]) -> list[dict[str, str]]:
    """Return the contradictions in a pasted text."""
    found = pasted.get("contradictions")
    rows = found if isinstance(found, list) else []  # else the report was edited by hand
    return [row for row in rows if isinstance(row, dict) and {"item", "taken", "left"} <= set(row)]


def _print(report: "HostReport", pasted: dict[str, Any]) -> None:
    """Print the report: label, value, origin; further values of a label stand below it.

    Args:
        report: The report.
        pasted: All values of a pasted text; those of torch, which the report has no row for, stand at the end.
    """
    from tenv.host.field import host_fields

    for name, field in host_fields().items():
        for number, line in enumerate(_entry(getattr(report, name), field.show)):
            print_labelled(field.label if number == 0 else "", _WIDTH, line)
    for name, label in _OF_TORCH.items():
        answer = pasted.get(name)
        if isinstance(answer, dict) and {"value", "origin"} <= set(answer):  # else the report was edited by hand
            print_labelled(label, _WIDTH, f"{answer['value']}  ({answer['origin']})")


def _entry(answer: "Fact[T] | Missing", show: "Callable[[T], list[str]]") -> list[str]:
    from tenv.host.interface import Missing

    if isinstance(answer, Missing):
        return [f"missing  ({answer.reason})"]
    lines = show(answer.value) or ["none"]
    return [f"{lines[0]}  ({answer.origin})"] if len(lines) == 1 else [*lines, f"({answer.origin})"]
