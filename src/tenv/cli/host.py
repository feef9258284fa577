"""``tenv host``."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenv.cli.command import command, not_empty
from tenv.cli.output import Result, Voice

if TYPE_CHECKING:
    from tenv.host.interface import Fact, Missing
    from tenv.host.report import HostReport

__all__ = ["host", "host_options", "pytorch_option"]

T = TypeVar("T")


pytorch_option = click.option(
    "--pytorch",
    default="",
    callback=not_empty,
    metavar="VERSION|DIR",
    help="The PyTorch to build; else the checkout here.",
)
"""The PyTorch that is to be built."""


def host_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add the options that name a host other than this one."""
    for option in (
        click.option(
            "--assume-gpu",
            default="",
            callback=not_empty,
            metavar="NAME",
            help="Assume this GPU, such as `GTX 1660 Ti`.",
        ),
        click.option(
            "--assume-driver",
            default="",
            callback=not_empty,
            metavar="VERSION",
            help="Assume this driver: `535.104.12`.",
        ),
        click.option(
            "--host-report",
            default="",
            callback=not_empty,
            metavar="FILE",
            help="Take a report that `tenv host --json` wrote elsewhere; `-` for standard input.",
        ),
    ):
        function = option(function)
    return function


@command("host", short_help="Show what this machine offers, and who says so.")
@host_options
def host(voice: Voice, **options: Any) -> Result:  # noqa: ARG001
    """Show what this machine offers, each value with its origin, and what is missing with the reason.

    `--json` is the form that `--host-report` reads. CONDA_OVERRIDE_CUDA replaces the CUDA version of the driver; set to
    nothing, it means that there is none.
    """
    from tenv.checks.host_options import HostOptions, report  # noqa: PLC0415
    from tenv.host.report_json import to_json  # noqa: PLC0415
    from tenv.project.context import Context  # noqa: PLC0415

    found = report(Context(), HostOptions(**options))
    return Result(to_json(found), text="\n".join(_lines(found)))


def _lines(report: "HostReport") -> Iterator[str]:
    """Yield the report as a list: a label, a value, its origin; more values of one label below each other."""
    from tenv.host.fields import host_fields  # noqa: PLC0415

    for name, field in host_fields().items():
        yield from _entry(field.label, getattr(report, name), field.show)


def _entry(label: str, answer: "Fact[T] | Missing", show: "Callable[[T], list[str]]") -> Iterator[str]:
    from tenv.host.interface import Missing  # noqa: PLC0415

    if isinstance(answer, Missing):
        yield f"{label:<12} missing  ({answer.reason})"
        return
    lines = show(answer.value) or ["none"]
    if len(lines) == 1:
        yield f"{label:<12} {lines[0]}  ({answer.origin})"
        return
    for number, line in enumerate([*lines, f"({answer.origin})"]):
        yield f"{label if number == 0 else '':<12} {line}"
