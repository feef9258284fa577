"""``tenv add`` and ``tenv drop``."""

import re
import shlex
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import command, not_empty, offline_option
from tenv.cli.output import Result, Voice
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import NoSolutionError

if TYPE_CHECKING:
    from tenv.project.context import Context
    from tenv.verbs.edit_manifest import Edited
    from tenv.verbs.edited_target import EditedTarget

_LINE = re.compile(r'set (?P<name>[\w.-]+) = "(?P<version>[^"]+)"(?! in \[)')
"""A line of a manifest in a hint; one for another section has the section behind it."""
_REQUIRES = re.compile(r"`(?P<name>[\w.-]+) = \{ [^`]*, requires = (?P<rows>\[[^`]*\]) \}` in the manifest")
"""The line in a hint that names the requirements of a package."""
_NAMES = re.compile(r"`requires = \[…\]` at \S+ in the manifest names them")
"""The hint for a package whose requirements are nowhere."""
_PERMIT = re.compile(
    r'`(?P<name>[\w.-]+) = \{ version = "[^"]*"(?:, index = "[^"]*")?, build = true(?P<apart>, isolation = false)? \}`'
)
"""The line in a hint that permits the build of a package."""
_UNKNOWN = re.compile(
    r"(did you mean (?P<meant>`[\w.\[\]-]+`(?: or `[\w.-]+`)*)\? Else )?remove (?P<name>[\w.-]+), or correct its name"
    r"(?P<index> or its index)?"
)
"""The hint for a package that no index has: an edit of a manifest."""
_REMOVE = re.compile(r"(?:, or )?remove (?P<name>[\w.-]+)(?: from \[dependencies\])?(?=, or |$)")
_NO_CHANNEL = "correct the name, or add a channel that has the package to `channels`"
_NAME = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?P<extras> *\[[^\]]*\])?")
"""The beginning of a typed package."""

_Tell = Callable[[Sequence[Any]], None]

no_create_option = click.option("--no-create", is_flag=True, help="Do not update an existing environment.")


def _source_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add an option for each source of packages."""
    from tenv.targets.sections import SECTIONS

    for section in reversed([section for section in SECTIONS if section.option]):
        said = f"They are {section.noun}s ([{section.name}])."
        function = click.option(f"--{section.option}", "key", flag_value=section.key, help=said)(function)
    return function


@command("add", short_help="Add packages to a manifest, and lock it.")
@click.argument("target", required=False)
@click.argument("specs", nargs=-1, metavar="SPEC...")
@_source_options
@click.option("--feature", default="", callback=not_empty, help="Add them to this feature of the target.")
@click.option("--platform", default="", callback=not_empty, help="Add them for this platform alone: linux-64.")
@click.option("-e", "--editable", is_flag=True, help="They are folders; Python imports from them, as with ./FOLDER.")
@click.option("--branch", default="", callback=not_empty, help="The branch of a git repository.")
@click.option("--tag", default="", callback=not_empty, help="The tag of a git repository.")
@click.option("--rev", default="", callback=not_empty, help="The commit of a git repository.")
@click.option("--index", default="", metavar="INDEX", help="Their only index: NAME, NAME=URL (added) or URL.")
@click.option("--build", is_flag=True, help="Build them from source archives where no wheel fits; runs their code.")
@click.option("--no-isolation", "isolation", flag_value="no", help="Compile them against the torch of the target.")
@click.option("--no-build-isolation", "isolation", flag_value="no", hidden=True)  # its name in pip and uv
@click.option(
    "--requires", multiple=True, metavar="REQUIREMENT", help="One of their requirements; '' for none, repeatable."
)
@click.option("--cxx", type=click.Choice(["14", "17", "20", "23"]), help="The C++ standard to compile with.")
@click.option("--archs", default="", callback=not_empty, help="The GPU architectures to compile for, as 8.0;9.0.")
@no_create_option
@offline_option
def add(
    voice: Voice,
    *,
    target: str | None,
    specs: tuple[str, ...],
    key: str | None,
    isolation: str | None,
    no_create: bool,
    offline: bool,
    **placement: Any,
) -> Result:
    """Add each SPEC to the manifest of TARGET, lock it, and update an existing environment.

    The first word is TARGET if a target has that name. Without TARGET, it is the default target of the project.

    Without an option, a package stays in its present section. A new one is a conda package if the target's Python is
    one, else a wheel. An existing range is replaced. Without a solution, tenv writes nothing. `tenv create TARGET
    --with FEATURE` installs a feature.
    """
    from tenv.targets.sections import SECTIONS
    from tenv.verbs.edit_manifest import add as edit  # late: heavy
    from tenv.verbs.edited_target import names_of
    from tenv.verbs.requests import AddOptions

    given = AddOptions(**placement, no_isolation=isolation is not None)

    def work(context: "Context", tell: _Tell) -> "Edited":
        chosen = _chosen(context, "add", (target, *specs), voice.say)
        try:
            return edit(context, chosen.name, chosen.packages, key, tell, made=not no_create, options=given)
        except NoSolutionError as error:
            options = [f"--{section.option}" for section in SECTIONS if key == section.key]
            named = [] if chosen.packages == (target, *specs) else [chosen.name]
            start = ["tenv", "add", *named, *options, *given.words(), *(["--no-create"] if no_create else [])]
            error.hint = _as_words(error.hint, start, chosen.packages, names_of(context, chosen.name))
            if not error.hint:
                error.hint = (
                    f"`{shlex.join(['tenv', 'search', _name(chosen.packages[0]), chosen.name])}` lists versions"
                )
            raise

    return _edited(voice, work, offline=offline, feature=given.feature)


@command("drop", short_help="Remove packages from a manifest, and lock it.")
@click.argument("target", required=False)
@click.argument("packages", nargs=-1, metavar="PACKAGE...")
@click.option("--feature", default="", callback=not_empty, help="Drop them from this feature alone.")
@click.option("--platform", default="", callback=not_empty, help="Drop them from this platform's sections alone.")
@no_create_option
@offline_option
def drop(
    voice: Voice, *, target: str | None, packages: tuple[str, ...], no_create: bool, offline: bool, **placement: Any
) -> Result:
    """Remove each PACKAGE from the manifest of TARGET, lock it, and update an existing environment.

    The first word is TARGET if a target has that name. Without TARGET, it is the default target of the project.

    `PACKAGE = false` drops a request of a parent. `tenv remove TARGET` removes an environment.
    """
    return drop_packages(voice, (target, *packages), made=not no_create, offline=offline, **placement)


def drop_packages(
    voice: Voice, words: Sequence[str | None], *, made: bool = True, offline: bool = False, **placement: Any
) -> Result:
    """Remove packages from the manifest of a target; the first word is the target if one has that name.

    Args:
        voice: The voice of the command.
        words: The target and the packages; None for a word that is not given.
        made: Whether to update an existing environment.
        offline: Whether to use the cache alone.
        placement: The feature and the platform.
    """
    from tenv.verbs.edit_manifest import drop as edit  # late: heavy
    from tenv.verbs.requests import AddOptions

    given = AddOptions(**placement)

    def work(context: "Context", tell: _Tell) -> "Edited":
        chosen = _chosen(context, "drop", words, voice.say)
        return edit(context, chosen.name, chosen.packages, tell, made=made, options=given)

    return _edited(voice, work, offline=offline)


def _name(spec: str) -> str:
    """Return the normalized name of a typed package."""
    from tenv.core.names import normalize

    typed = _NAME.match(spec.rpartition("::")[2])
    return normalize(typed["name"]) if typed else ""


def _with_permission(hint: str, start: Sequence[str], spec: str) -> str:
    """Return a hint with the command that permits the build of a package, in place of its line of a manifest."""

    def permitted(match: re.Match[str]) -> str:
        words = [word for word in ("--build", *["--no-isolation"] * bool(match["apart"])) if word not in start]
        return f"`{shlex.join([*start, *words, spec])}`" if match["name"] == _name(spec) else match[0]

    return _PERMIT.sub(permitted, hint)


def _as_words(hint: str, start: Sequence[str], specs: Sequence[str], held: Collection[str]) -> str:
    """Return a hint with the command to type in place of the line of a manifest, for a package of the command line.

    A package that the target does not ask for is not to remove.

    Args:
        hint: The hint, such as ``set numpy = "2.4.6", or remove scipy``.
        start: The command up to its packages.
        specs: The packages as typed.
        held: The normalized names of the packages that the target asks for.
    """
    import tomli  # late: only for errors

    from tenv.core.names import normalize

    def command(match: re.Match[str]) -> str:
        version = match["version"] if match["version"][0] in "<>=!~" else f"=={match['version']}"
        words = []
        for spec in specs:
            typed = _NAME.match(spec)
            named = typed is not None and normalize(typed["name"]) == normalize(match["name"])
            words.append(f"{typed[0]}{version}" if typed and named else spec)
        return f"`{shlex.join([*start, *words])}`" if words != [*specs] else match[0]

    def required(match: re.Match[str]) -> str:
        rows = [
            words for text in tomli.loads(f"rows = {match['rows']}")["rows"] or [""] for words in ("--requires", text)
        ]
        return f"`{shlex.join([*start, *rows, *specs])}`"

    def unknown(match: re.Match[str]) -> str:
        name = normalize(match["name"])
        if name in held or name not in map(_name, specs):
            return match[0]
        lines = []
        for meant in re.findall(r"`([^`]+)`", match["meant"] or ""):
            words = [spec.replace(match["name"], meant) if _name(spec) == name else spec for spec in specs]
            lines.append(f"`{shlex.join([*start, *words])}`")
        did = f"did you mean {' or '.join(lines)}? " if lines else ""
        index = "another `--index` may have it" if match["index"] else "`--index URL` asks another index"
        return f"{did}{index}, `--conda` the channels"

    def removal(match: re.Match[str]) -> str:
        name = normalize(match["name"])
        return match[0] if name in held or name not in map(_name, specs) else ""

    hint = _REMOVE.sub(removal, _UNKNOWN.sub(unknown, hint)).removeprefix(", or ")
    if _NO_CHANNEL in hint and specs and (name := _name(specs[0])):
        line = shlex.join([*start, *(["--conda"] if "--conda" not in start else []), f"CHANNEL::{name}"])
        hint = hint.replace(_NO_CHANNEL, f"`{line}` takes it from another channel")
    named = shlex.join([*start, "--requires", "REQUIREMENT", *specs])
    hint = _NAMES.sub(f"`{named}` names them, `--requires ''` none", hint)
    if len(specs) == 1:
        hint = _with_permission(_REQUIRES.sub(required, hint), start, specs[0])
    return _LINE.sub(command, hint)


def _chosen(context: "Context", verb: str, words: Sequence[str | None], say: Callable[[str], None]) -> "EditedTarget":
    """Separate the target from the packages, and report the decision where the words are ambiguous."""
    from tenv.verbs.edited_target import edited_target  # late: heavy

    chosen = edited_target(context, verb, [word for word in words if word is not None])
    if chosen.note:
        say(f"note: {chosen.note}")
    return chosen


def _edited(voice: Voice, work: "Callable[[Context, _Tell], Edited]", *, offline: bool, feature: str = "") -> Result:
    from tenv.project.context import Context

    with Terminal(voice) as progress:
        done = work(Context(progress=progress, offline=offline), progress.report)
    data = {
        "target": done.target.name,
        "manifest": str(done.target.file),
        "section": done.section,
        "lines": list(done.lines),
        "notes": list(done.notes),
        "lock": str(done.locked.path),
        "changed": done.locked.changed,
        "prefix": str(done.created.prefix) if done.created else None,
    }
    lines = [f"{done.target.file} [{done.section}]: {line}" for line in done.lines]
    lines += [f"note: {note}" for note in done.notes]
    lines.append(f"{done.locked.path} {'written' if done.locked.changed else 'is up to date'}")
    held = done.created.state.features if done.created else ()
    if feature and feature not in held:
        every = ",".join(sorted({*held, feature}))
        lines.append(f"next: `tenv create {done.target.name} --with {every}`")
    elif done.created:
        lines.append(f"{done.target.name} is ready in {done.created.prefix}")
    elif done.missing:
        lines.append(f"next: `tenv create {done.target.name}`")
    return Result(data, summary=lines)
