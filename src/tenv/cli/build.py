"""``tenv plan`` and ``tenv build``."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from tenv.cli.command import FilePath, command, offline_option
from tenv.cli.output import Result, Voice, format_seconds, out, paint, print_findings
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import Exit, UsageError

if TYPE_CHECKING:
    from tenv.builds.build_job import BuildRequest, StepReport
    from tenv.project.context import Context
    from tenv.verbs.build import Built

_pytorch = click.option(
    "--pytorch",
    type=FilePath(),
    metavar="DIR",
    help="The checkout of PyTorch or of an extension; default: that of the working folder.",
)
_allow = click.option(
    "--allow", multiple=True, metavar="NAME", help="Continue despite the finding NAME, a switch or a code (repeatable)."
)
_define = click.option("-D", "defines", multiple=True, metavar="NAME=VALUE", help="A variable of CMake (repeatable).")
_kind = (
    click.option("--only", default="", metavar="NINJA_TARGET", help="Build this Ninja target alone, and no package."),
    _define,
    click.option("--wheel", type=FilePath(), metavar="DIR", help="Write a wheel to DIR; install nothing."),
    click.option("--debug", is_flag=True, help="Compile with debug information and without optimization, as DEBUG=1."),
    click.option(
        "--rel-with-deb-info",
        is_flag=True,
        help="Compile with debug information and optimization, as REL_WITH_DEB_INFO=1.",
    ),
    click.option(
        "--debug-files", default="", metavar="FILES", help="Debug information for these sources, separated by commas."
    ),
    click.option("--portable", is_flag=True, help="No run path names the environment or the checkout."),
)


def _kind_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a kind of build, which a plan and a build share."""
    for option in reversed(_kind):
        function = option(function)
    return function


@command("plan", short_help="Print the plan of a build of PyTorch or an extension.")
@click.argument("target", required=False)
@_pytorch
@click.option("--configure", "configured", is_flag=True, help="Create the environment, configure, and estimate.")
@_allow
@_kind_options
@offline_option
def plan(
    voice: Voice, *, target: str | None, pytorch: Path | None, configured: bool, offline: bool, **settings: Any
) -> Result:
    """Print the plan of `tenv build` for TARGET: the checkout, the target, the commands. It writes nothing.

    With --configure, create the environment, configure the checkout and estimate the time. A folder in place of TARGET
    is the checkout. Status 1 if a step found an error.
    """
    from tenv.verbs.build import plan as work

    request = _request(target, pytorch, verb="plan", **settings)
    return _run(voice, offline, lambda context, say: work(context, request, say, configured=configured), printed=True)


@command("build", short_help="Build a checkout of PyTorch or an extension, up to its import.")
@click.argument("target", required=False)
@_pytorch
@_allow
@click.option("--fresh", is_flag=True, help="Configure again; keep compiled files.")
@click.option("--clean", is_flag=True, help="Remove the build folder first.")
@_kind_options
@offline_option
def build(voice: Voice, *, target: str | None, pytorch: Path | None, offline: bool, **settings: Any) -> Result:
    """Build a checkout of PyTorch, or of a package that compiles against torch, with TARGET, by named steps.

    The steps are checkout, target, create, probe, configure, summary, estimate, canary, build, import, audit; summary
    and canary are for PyTorch, audit is for extensions. A failed step reports a finding with the command that fixes it.

    Without TARGET, it is the default of `tenv.toml`, else the best one for this machine; for an extension, the only one
    with a torch. A folder in place of TARGET is
    the checkout. An interrupted build continues; configured and compiled files are reused. Status 1 if a step failed;
    if the environment can't be created, the status of `tenv create`.
    """
    from tenv.verbs.build import build as work

    request = _request(target, pytorch, **settings)
    return _run(voice, offline, lambda context, say: work(context, request, say))


def _request(
    target: str | None,
    pytorch: Path | None,
    *,
    allow: tuple[str, ...],
    defines: tuple[str, ...],
    debug: bool,
    rel_with_deb_info: bool,
    debug_files: str,
    wheel: Path | None,
    verb: str = "build",
    **settings: Any,
) -> "BuildRequest":
    from tenv.builds.build_job import BuildRequest, DebugKind
    from tenv.builds.checkout_step import named_target
    from tenv.verbs.build import find_checkout

    if debug and rel_with_deb_info:
        raise UsageError(
            "--debug and --rel-with-deb-info exclude each other", hint=f"`tenv {verb} --debug` is an example"
        )
    if target is not None and pytorch is None and _is_folder(target):
        pytorch, target = Path(target), None
    if pytorch is not None and not pytorch.is_dir():
        raise UsageError(f"the folder {pytorch} does not exist", hint="`--pytorch DIR` names a PyTorch checkout")
    start = Path(os.path.abspath(pytorch or Path.cwd()))  # noqa: PTH100 (links stay as they are)
    checkout = start if pytorch is not None else find_checkout(start, verb)
    return BuildRequest(
        checkout,
        target or named_target(checkout),
        frozenset(allow),
        defines=dict(_pair(text) for text in defines),
        debug=DebugKind.DEBUG if debug else DebugKind.REL_WITH_DEB_INFO if rel_with_deb_info else DebugKind.NONE,
        debug_files=tuple(filter(None, debug_files.split(","))),
        wheel=wheel.absolute() if wheel else None,
        **settings,
    )


def _is_folder(word: str) -> bool:
    """Return whether a word in place of the target is a checkout; a folder with the name of a target is not."""
    from tenv.verbs.build import is_checkout

    folder = Path(word)
    return folder.is_dir() and (os.sep in word or word in (".", "..") or is_checkout(folder))


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    name = name.partition(":")[0]
    if not separator or not name:
        raise UsageError(f"-D {text}: expected NAME=VALUE", hint="`tenv build -D USE_MPI=0` is an example")
    return name, value


def _run(
    voice: Voice,
    offline: bool,
    work: "Callable[[Context, Callable[[StepReport], None]], Built]",
    *,
    printed: bool = False,
) -> Result:
    """Run the steps and report each when it ends; a plan is printed to standard output."""
    from tenv.project.context import Context

    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=True) if offline else Context(progress=progress)

        def say(step: "StepReport") -> None:
            tell_step(step, progress.say, sys.stderr)

        found = work(context, (lambda _: None) if printed else say)
    status = Exit.DONE if found.ok else Exit.CHECK
    return Result(found.to_json(), text=lambda: _print(found, whole=printed), findings=found.findings, status=status)


def tell_step(step: "StepReport", write: Callable[[str], None], stream: TextIO) -> None:
    """Print how a step ended.

    Args:
        step: The step.
        write: Takes each line.
        stream: The stream behind it, which decides about colors.
    """
    word = paint("ok", "32", stream) if step.ok else paint("failed", "1;31", stream)
    write(f"{step.name.value}: {word}, {format_seconds(step.seconds)}")
    for line in step.done.lines:
        write(f"  {line}")
    if step.done.findings:
        print_findings(step.done.findings, write, stream)
        write("")
    if step.done.log and not step.ok:
        write(f"log: {step.done.log}")


def _print(found: "Built", *, whole: bool) -> None:
    for step in found.steps if whole else ():
        tell_step(step, out, sys.stdout)
    if found.torch and not found.extension:
        out(f"torch {found.torch['version']}  {found.torch['location']}")
    if found.report:
        out(f"report {found.report}")
