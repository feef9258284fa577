"""``tenv default``, ``tenv config`` and ``tenv info``."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, print_labelled, print_table
from tenv.core.untrusted import without_login

if TYPE_CHECKING:
    from tenv.verbs.settings import About, Setting


@command("default", short_help="Print or set the default target.")
@click.argument("target", required=False)
@click.option("--unset", is_flag=True, help="Remove the setting from tenv.toml.")
def default(voice: Voice, *, target: str | None, unset: bool) -> Result:  # noqa: ARG001 (every command has a voice)
    """Print the default target. With TARGET, set it in the project's tenv.toml.

    Without a setting, it is the only manifest of the project, else its only environment.
    """
    from tenv.project.context import Context
    from tenv.verbs.settings import change_setting, default_of, set_default

    context = Context()
    if target and unset:
        raise click.UsageError("TARGET and --unset exclude each other")
    if target or unset:
        file = set_default(context, target) if target else change_setting(context, "default", None)
        said = f"{file}: the default target is {target}" if target else f"{file}: no default target is set"
        return Result({"target": target, "origin": str(file)}, summary=[said])
    name, origin = default_of(context)
    return Result({"target": name, "origin": origin}, text=name, summary=[f"from {origin}"])


@command("config", short_help="Print or change settings.")
@click.argument("key", required=False)
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Remove the setting from its file.")
@click.option("--project", is_flag=True, help="Write to the project's tenv.toml, not to your config.toml.")
def config(voice: Voice, *, key: str | None, value: str | None, unset: bool, project: bool) -> Result:  # noqa: ARG001
    """Print every setting with its origin, or that of KEY. With VALUE, write it to your config.toml.

    KEY is a name that `tenv config` lists, or mirrors.URL, of a conda channel, an index of wheels or a server of
    archives or wheels. Commas separate several mirrors of one URL, and several safe folders. A VALUE of `-` is read
    from a line of standard input, such as a token. `UV_DEFAULT_INDEX` or pip's `index-url` sets the index of wheels,
    too.
    """
    from tenv.project.context import Context
    from tenv.verbs.settings import HIDDEN, WITHHELD, change_setting, settings_in_use

    context = Context()
    if key and (value is not None or unset):
        text = None if unset else sys.stdin.readline().strip() if value == "-" else value
        file = change_setting(context, key, text, project=project)
        shown = HIDDEN if key == WITHHELD and text else text
        return Result({"key": key, "value": shown, "file": str(file)}, summary=[f"{file} written"])
    if unset or project:
        raise click.UsageError("--unset and --project need the KEY of a setting")
    found = settings_in_use(context)
    if key:
        name = key.partition(".")[0]
        found = [setting for setting in found if setting.name == name]
        if not found:
            change_setting(context, key, None)  # raises: there is no such setting
    data = {setting.name: setting.to_json() for setting in found}
    return Result(data, text=lambda: _print_settings(found))


def _print_settings(found: "list[Setting]") -> None:
    rows = [(setting.name, _text(setting.value), setting.origin) for setting in found]
    print_table(("SETTING", "VALUE", "FROM"), rows)


def _text(value: Any) -> str:
    shown = "-" if value in (None, {}) else value if isinstance(value, str) else json.dumps(value)
    return without_login(shown)  # before the columns of a table are measured


@command("info", short_help="Print versions, folders, caches and settings.")
def info(voice: Voice) -> Result:
    """Print the versions, folders and settings of tenv. It connects to no server."""
    from tenv.core.source_commit import source_commit
    from tenv.project.context import Context
    from tenv.verbs.settings import describe_installation

    about = describe_installation(Context(), source_commit())
    for other in about.others:
        voice.say(f"note: {other} is another program called tenv on PATH; `python -m tenv` starts this one")
    return Result(about.to_json(), text=lambda: _print_about(about))


def _print_about(about: "About") -> None:
    data = about.to_json()
    version = f"{data['version']} ({about.commit[:12]})" if about.commit else data["version"]
    rows = [("tenv", version), ("platform", about.platform), *about.versions.items()]
    rows += [(f"folder: {name}", folder) for name, folder in about.folders.items() if folder]
    rows += [(f"cache: {name}", folder) for name, folder in about.caches.items()]
    rows += [("index", about.index)]
    rows += [(f"setting: {row.name}", f"{_text(row.value)} ({row.origin})") for row in about.settings]
    width = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        print_labelled(f"{name}:", width, value)
