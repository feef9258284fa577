"""``tenv host``."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenv.cli.command import command, not_empty
from tenv.cli.output import Result, Voice, format_bytes

if TYPE_CHECKING:
    from tenv.host.interface import Fact, Missing
    from tenv.host.report import Compiler, Disk, Gpu, HostReport, Toolkit

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
    yield from _entry("host", report.hostname, lambda name: [name])
    yield from _entry("platform", report.platform, lambda name: [name])
    yield from _entry("driver", report.driver, lambda version: [str(version)])
    yield from _entry("cuda", report.cuda, lambda version: [str(version)])
    yield from _entry("cuda-compat", report.compat, lambda compat: [f"{compat.version}  {compat.path}"])
    yield from _entry("gpus", report.gpus, lambda gpus: list(map(_gpu, gpus)))
    yield from _entry("toolkits", report.toolkits, lambda found: [line for one in found for line in _toolkit(one)])
    yield from _entry("compilers", report.compilers, lambda found: list(map(_compiler, found)))
    yield from _entry("glibc", report.libc, lambda version: [str(version)])
    yield from _entry(
        "libstdc++",
        report.libstdcxx,
        lambda library: [f"GLIBCXX_{library.glibcxx}, CXXABI_{library.cxxabi}  {library.path}"],
    )
    yield from _entry("cores", report.cores, lambda count: [str(count)])
    yield from _entry("memory", report.memory, lambda size: [format_bytes(size)])
    yield from _entry("disk", report.disk, lambda disk: [_disk(disk)])
    yield from _entry("wsl", report.wsl, lambda is_wsl: ["yes" if is_wsl else "no"])
    yield from _entry("container", report.container, lambda kind: [kind])
    yield from _entry("ptrace", report.ptrace_scope, lambda scope: [f"scope {scope}"])


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


def _gpu(gpu: "Gpu") -> str:
    words = [
        gpu.name or "a GPU without a name here",
        f"compute capability {gpu.compute_capability}" if gpu.compute_capability else "",
        format_bytes(gpu.memory) if gpu.memory else "",
        gpu.pci_id,
        f"at {gpu.pci_address}" if gpu.pci_address else "",
        "split into instances (MIG)" if gpu.mig else "",
    ]
    return ", ".join(filter(None, words))


def _toolkit(toolkit: "Toolkit") -> Iterator[str]:
    yield f"{toolkit.version or 'unknown'}  {toolkit.path}, by {', '.join(toolkit.found_by)}"
    if toolkit.components:
        yield "  " + ", ".join(f"{name} {version}" for name, version in toolkit.components)
    for problem in toolkit.problems:
        yield f"  problem: {problem}"


def _compiler(compiler: "Compiler") -> str:
    mark = ", taken by default" if compiler.default else ""
    return f"{compiler.kind} {compiler.version}  {compiler.path}, by {compiler.found_by}{mark}"


def _disk(disk: "Disk") -> str:
    return f"{format_bytes(disk.free)} free on {disk.file_system}  {disk.path}"
