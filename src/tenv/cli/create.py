"""``tenv create``."""

import contextlib
import functools
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tenv.cli.command import FilePath, command, named_features, not_empty, offline_option, target_argument
from tenv.cli.host import from_report_option, host_options, pytorch_option, taken_from_report
from tenv.cli.output import Result, Voice, count, format_bytes, format_seconds, is_terminal, print_table
from tenv.cli.progress_bar import Terminal
from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError

if TYPE_CHECKING:
    from tenv.checks.before_create import Surroundings
    from tenv.checks.choose_target import TargetChoice
    from tenv.checks.host_options import HostOptions
    from tenv.checks.target_from_report import FromReport
    from tenv.project.context import Context
    from tenv.verbs.beside import Beside
    from tenv.verbs.create import Created, CreateRequest, LockMode, Preview


_BUNDLE_OPTIONS = (
    click.option(
        "--bundle",
        "place",
        metavar="FILE|URL",
        callback=not_empty,
        help="Take every file from a bundle that `tenv bundle` wrote, and use no network.",
    ),
    click.option(
        "--lock-digest",
        default="",
        metavar="SHA256",
        help="The sha256 of the bundle's lock: trust a bundle whose target is unknown here.",
    ),
    click.option(
        "--bundle-digest",
        default="",
        metavar="SHA256",
        help="Likewise the digest of the whole bundle, as `tenv bundle` printed it.",
    ),
)


@dataclass(frozen=True, slots=True)
class GivenBundle:
    """A bundle that the command line names."""

    place: str
    """Its path or its address."""
    lock_digest: str
    """The sha256 that its lock must have; empty for none."""
    bundle_digest: str
    """The digest that it must have; empty for none."""

    def opened(
        self,
        context: "Context",
        target: str | None,
        python: str | None,
        features: tuple[str, ...] | None,
        *,
        dry_run: bool,
        prefix: Path | None,
        anew: bool,
    ) -> "contextlib.AbstractContextManager[tuple[Context, str, str | None]]":
        """Return how to create its environment; options that choose a target or a lock in another way are refused."""
        from tenv.targets.search import AUTO  # late: as above
        from tenv.verbs.bundle import BundleRequest, opened  # late: few environments come from a bundle
        from tenv.verbs.bundle_trust import Trust

        _require_without("--bundle", "--for", "--target-from-report", "--lock-file")
        if target == AUTO:
            raise click.UsageError(f"--bundle and `{AUTO}` exclude each other")

        def ask(lines: Sequence[str]) -> bool:
            context.progress.say("\n".join(lines))
            write = "" if dry_run else ", write its manifest and its lock to your folder, and create it"
            return click.confirm(f"Trust it{write}?", err=True)

        on_terminal = is_terminal(sys.stdin) and is_terminal(sys.stderr)
        trust = Trust(self.lock_digest, self.bundle_digest, ask if on_terminal else None)
        return opened(context, BundleRequest(self.place, target, python, features, trust, dry_run, prefix, anew))


def bundle_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add the options of a bundle, which the function gets as one value `given`."""

    @functools.wraps(function)
    def call(*words: Any, place: str | None, lock_digest: str, bundle_digest: str, **options: Any) -> Result:
        if place is None and (lock_digest or bundle_digest):
            raise click.UsageError("--lock-digest and --bundle-digest are about a bundle: --bundle FILE")
        given = GivenBundle(place, lock_digest, bundle_digest) if place is not None else None
        return function(*words, given=given, **options)

    for option in reversed(_BUNDLE_OPTIONS):
        call = option(call)
    return call


@command("create", short_help="Create or repair the environment of a target.")
@target_argument
@click.option("--prefix", type=FilePath(), help="The folder to create it in.")
@click.option(
    "--locked",
    is_flag=True,
    envvar="TENV_LOCKED",
    help="Stop (status 7) when the lock does not satisfy the manifest (TENV_LOCKED).",
)
@click.option(
    "--frozen",
    is_flag=True,
    envvar="TENV_FROZEN",
    help="Never write a lock; refuse one that does not satisfy the manifest (TENV_FROZEN).",
)
@click.option("--lock-file", type=FilePath(dir_okay=False), help="The lock to use; default: the target's own.")
@click.option(
    "--python", metavar="VERSION|PROGRAM", help="The Python to use, such as 3.12 or python3.11d, or its path."
)
@click.option(
    "--for-others",
    is_flag=True,
    help="With --prefix: set the rights for other users to use it, with a Python that they can run.",
)
@click.option("--exact", is_flag=True, help="Also remove unmanaged files.")
@click.option("--repair", is_flag=True, help="Verify every file, and reinstall packages with changed or missing files.")
@click.option("--anew", is_flag=True, help="Put aside the environment that is there, and make it anew.")
@click.option(
    "--with",
    "features",
    metavar="FEATURES",
    help="The features of the target to install too, such as debug,test; `none` removes all features.",
)
@bundle_options
@offline_option
@click.option("--no-wait", is_flag=True, help="End with status 8 if another process uses the environment.")
@click.option(
    "--for",
    "beside",
    type=FilePath(),
    metavar="PATH",
    help="Make the toolkit for the torch of an environment that exists, such as .venv or a conda prefix.",
)
@pytorch_option
@click.option("--dry-run", is_flag=True, help="Print the files, the download and its servers, and change nothing.")
@click.option("--no-check", is_flag=True, help="Create the environment even if a rule reports an error about building.")
@from_report_option
@host_options
def create(
    voice: Voice,
    *,
    target: str | None,
    prefix: Path | None,
    locked: bool,
    frozen: bool,
    lock_file: Path | None,
    python: str | None,
    for_others: bool,
    exact: bool,
    repair: bool,
    anew: bool,
    features: str | None,
    given: GivenBundle | None,
    offline: bool,
    no_wait: bool,
    beside: Path | None,
    pytorch: str,
    dry_run: bool,
    no_check: bool,
    target_from_report: bool,
    **host: Any,
) -> Result:
    """Create the environment of TARGET from its lock, or repair it.

    If the lock is missing or stale, tenv locks the target first. Before any change, tenv applies the rules of `tenv
    check`: an error about building ends the command with status 4.

    Without TARGET, it is the default target. `auto` selects the best target for this machine and the PyTorch checkout
    in the working folder.

    With --for, tenv reads the torch of another environment, writes the manifest of a target for it, named TARGET or as
    that environment, and makes the toolkit alone: nvcc, CMake, Ninja. Nothing of that environment is run or changed.

    With --bundle, every file comes from that bundle. Its lock has to be the lock of the target here; of a target that
    is unknown here, --lock-digest or --bundle-digest names it, or tenv asks. Every byte is compared before the
    environment changes.
    """
    from tenv.checks.host_options import HostOptions
    from tenv.project.context import Context
    from tenv.verbs import create as workflow

    mode, named = _mode(locked=locked or (given is not None and not frozen), frozen=frozen), named_features(features)
    with Terminal(voice) as progress, contextlib.ExitStack() as held:
        context, begun, options = Context(progress=progress, offline=offline), None, HostOptions(**host)
        if given is not None:
            asked = given.opened(context, target, python, named, dry_run=dry_run, prefix=prefix, anew=anew)
            context, target, python = held.enter_context(asked)
        if beside is not None:
            context, begun, target = _begin(context, beside, target, progress, write=not dry_run)
            if dry_run and begun.text:
                return Result({"target": target, "for": begun.to_json(), "changed": True}, summary=_next(begun))
        taken, target = _from_report(context, target, options, progress, wanted=target_from_report)
        context, around, choice = _judged(context, target, pytorch, taken.options if taken else options, progress)
        name = choice.target if choice else taken.target if taken else str(target)
        request = workflow.CreateRequest(
            *(name, prefix, mode, lock_file, python, exact, not no_wait, not no_check),
            *(around, repair, anew, named, for_others),
        )
        if dry_run:
            previewed = workflow.preview(context, request, progress.report)
            return _previewed(previewed, "a cache" if given is None else "the bundle")
        made, choice = _first_that_is_served(context, request, choice, progress)
    return _result(made, prefix, _data(made, choice, taken) | ({"for": begun.to_json()} if begun else {}))


def _from_report(
    context: "Context", target: str | None, options: "HostOptions", progress: Terminal, *, wanted: bool
) -> "tuple[FromReport | None, str | None]":
    """Return the target that a pasted report leads to, and else the named or the default one."""
    if wanted:
        return taken_from_report(context, target, options, progress.say), target
    return None, target or context.default_target()


def _result(made: "Created", prefix: Path | None, data: dict[str, Any]) -> Result:
    return Result(data, summary=_summary(made, prefix), findings=made.findings)


def _judged(
    context: "Context", target: str | None, pytorch: str, options: "HostOptions", progress: Terminal
) -> "tuple[Context, Surroundings | None, TargetChoice | None]":
    """Return the context with the host that options name, its surroundings, and the choice of `auto`."""
    from tenv.checks.host_options import HostOptions
    from tenv.targets.search import AUTO  # late: loads the manifests

    around = choice = None
    if options != HostOptions():
        context, options = _read_host(context, options)
    if target == AUTO or pytorch or options != HostOptions():
        around, choice = _look(context, pytorch, options, progress.say if target == AUTO else None)
    if choice:
        progress.say("\n".join(choice.lines()))
    return context, around, choice


def _require_without(option: str, *others: str) -> None:
    """Refuse the options that exclude a given one."""
    context = click.get_current_context()
    given = {word for row in context.command.params for word in row.opts if context.params.get(row.name or "")}
    for other in others:
        if other in given:
            raise click.UsageError(f"{option} and {other} exclude each other")


def _begin(
    context: "Context", path: Path, name: str | None, progress: Terminal, *, write: bool
) -> "tuple[Context, Beside, str]":
    """Return the context with the project that the manifest beside an environment makes, its target and its name."""
    from tenv.project.context import Context
    from tenv.verbs.beside import begin  # late: as the verb

    _require_without("--for", "--target-from-report", "--pytorch")
    begun = begin(context, path, name, write=write)
    progress.say("\n".join(begun.lines()))
    made = Context(progress=progress, offline=context.offline) if begun.written else context
    return made, begun, begun.target


def _next(begun: "Beside") -> list[str]:
    return [f"`tenv create {begun.target} --for {shlex.quote(str(begun.torch.prefix))}` writes it, and locks it"]


def _read_host(context: "Context", options: "HostOptions") -> "tuple[Context, HostOptions]":
    """Return the options with the report that they name, and the context with its driver."""
    from tenv.checks.host_options import read, with_driver  # late: loads the readers of hosts

    options = read(options)
    return with_driver(context, options), options


def _previewed(found: "Preview", kept: str) -> Result:
    """Return the files that `create` would install, and the download in a line."""
    rows = [
        (need.name, need.version, need.kind, format_bytes(need.size or 0), kept if need.cached else need.server)
        for need in found.needs
    ]
    new = [need for need in found.needs if not need.cached]
    data = {
        "target": found.found.name,
        "prefix": str(found.prefix),
        "lock": str(found.found.lock_file),
        "changed": found.changed,
        "files": [asdict(need) for need in found.needs],
        "download": {"files": len(new), "bytes": sum(need.size or 0 for need in new)},
    }
    idle = [] if found.changed else [f"{found.found.name} is ready in {found.prefix}: nothing to do"]
    text = partial(print_table, ("NAME", "VERSION", "KIND", "SIZE", "FROM"), rows) if rows else ""
    return Result(data, text=text, summary=[*idle, *found.lines], findings=found.findings)


def _first_that_is_served(
    context: "Context", request: "CreateRequest", choice: "TargetChoice | None", progress: Terminal
) -> "tuple[Created, TargetChoice | None]":
    """Create a target; of `auto` without the network, the best one whose files the caches have."""
    from tenv.verbs import create as workflow

    printed = {*choice.lines()} if choice else set()
    while choice and context.offline:
        try:
            return workflow.create(context, request, progress.report), choice
        except NetworkError as error:  # nothing was changed: files are fetched before the environment changes
            following = choice.without(f"`--offline`: {_one_line(error.message)}")
            if following is None:
                raise
            progress.say("\n".join(line for line in following.lines() if line not in printed))
            printed.update(following.lines())
            choice, request = following, replace(request, target=following.target)
    return workflow.create(context, request, progress.report), choice


def _one_line(message: str) -> str:
    """Return the first line of an error and its first cause, cut: with many targets, each is one reason of many."""
    import textwrap  # late: only a create off the network needs it

    first, *more = [line.strip() for line in message.splitlines()]
    cause = next((line.removeprefix("cause: ") for line in more if line.startswith("cause: ")), "")
    return textwrap.shorten(f"{first} {cause}", 200, placeholder=" …")


def _mode(*, locked: bool, frozen: bool) -> "LockMode":
    from tenv.verbs.create import LockMode

    if locked and frozen:
        source = click.get_current_context().get_parameter_source
        given = [name for name in ("locked", "frozen") if source(name) is not ParameterSource.ENVIRONMENT]
        if len(given) != 1:  # an option wins over a variable
            raise click.UsageError("--locked and --frozen exclude each other")
        locked, frozen = given == ["locked"], given == ["frozen"]
    return LockMode.LOCKED if locked else LockMode.FROZEN if frozen else LockMode.UPDATE


def _look(
    context: "Context", pytorch: str, options: "HostOptions", say: Callable[[str], None] | None
) -> "tuple[Surroundings, TargetChoice | None]":
    """Return the host and PyTorch to judge by, and with `say` the best target, which `say` gets as a message."""
    from tenv.checks.before_create import look_around
    from tenv.checks.choose_target import choose

    around = look_around(context, pytorch, options)
    return around, choose(context, around, say) if say else None


def _data(made: "Created", choice: "TargetChoice | None", taken: "FromReport | None") -> dict[str, Any]:
    from tenv.targets.sections import SECTIONS

    state = made.state
    data = {
        "target": made.target,
        "prefix": str(made.prefix),
        "state": state.status.value,
        "lock": str(made.lock),
        "manifest_origin": made.found.origin.value,
        "lock_origin": made.found.lock_origin.value if made.found.lock_origin else None,
        "lock_digest": state.lock,
        "counts": {section.key: len(state.of(section.key)) for section in SECTIONS if section.noun},
        "bytes": state.bytes,
        "seconds": round(made.seconds, 3),
        "changed": made.changed,
        "python": state.python,
        "features": list(state.features),
    }
    data.update({"auto": choice.to_json()} if choice else {})
    return {**data, "target_from_report": taken.to_json()} if taken else data


def _summary(made: "Created", prefix: Path | None) -> list[str]:
    from tenv.targets.sections import SECTIONS

    lines = [f"note: {note}" for note in made.notes]
    if not made.changed:
        return [*lines, f"{made.target} is ready in {made.prefix}: nothing to do"]
    name = made.target if prefix is None else f"--prefix {shlex.quote(str(prefix))} {made.target}"
    state = made.state
    kinds = ((state.of(section.key), section.noun) for section in SECTIONS)
    parts = [count(len(rows), noun) for rows, noun in kinds if rows] or ["0 wheels"]
    parts += [f"Python {state.python}"] if state.python else []
    parts += [f"with {', '.join(state.features)}"] if state.features else []
    size, seconds = format_bytes(made.state.bytes), format_seconds(made.seconds)
    return [
        *lines,
        f"{made.target} is ready in {made.prefix}",
        f"  {', '.join(parts)}, {size}, {seconds}, from {made.lock} ({made.found.owners})",
        f'  use it: eval "$(tenv activate {name})"  or  tenv run {name} -- COMMAND',
    ]
