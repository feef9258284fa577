"""What every command must have: a row of `GROUPS`, rows of the docs, a line in the help, a call in the snapshots.

The snapshots ask for what it prints; here it is run with what no command understands.
"""

import importlib
import json
import pkgutil
import re
from pathlib import Path

import click

from tenv import cli
from tenv.cli.main import COMMANDS, EVERY_DAY, GROUPS
from tests.cli import test_json_snapshot, test_text_snapshot
from tests.support.each import each
from tests.support.projects import call

ROOT = Path(__file__).parents[2]
PAGES = {page: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]}


def command_of(name: str) -> click.Command:
    module, attribute = COMMANDS[name]
    found: click.Command = getattr(importlib.import_module(f"tenv.cli.{module}"), attribute)
    return found


def test_every_command_of_a_module_is_in_the_list_once() -> None:
    made = {
        f"{module.name}.{name}"
        for module in pkgutil.iter_modules(cli.__path__)
        for name, value in vars(importlib.import_module(f"{cli.__name__}.{module.name}")).items()
        if isinstance(value, click.Command)
    }
    listed = [f"{module}.{name}" for module, name in COMMANDS.values()]
    assert sorted(made - set(listed)) == [], "a row of `GROUPS` in src/tenv/cli/main.py is missing"
    assert sorted(made) == sorted(listed)
    assert [command_of(name).name for name in COMMANDS] == list(COMMANDS)


def test_every_command_is_called_in_the_snapshots() -> None:
    for calls in (test_json_snapshot, test_text_snapshot):
        called = {words[0] for words in calls.CALLS.values() if words}
        missing = f"a row of `CALLS` in {calls.__name__.replace('.', '/')}.py is missing"
        assert [name for name in COMMANDS if name not in called] == [], missing


@each("name", COMMANDS)
def test_the_docs_and_the_help_have_every_command(name: str) -> None:
    command = command_of(name)
    assert re.search(rf"^  {re.escape(name)}  +\S", call("--help", "--all").out, re.MULTILINE)
    assert re.search(r"\w", command.short_help or "")
    assert re.search(r"\w", command.help or "")
    used = [page.name for page, text in PAGES.items() if re.search(rf"\btenv {re.escape(name)}\b", text)]
    assert set(used) - {"README.md"}, "no page of docs/ says how it is used"
    rows = re.findall(r"^\| (`[^|]+) \|", PAGES[ROOT / "docs" / "commands.md"], re.MULTILINE)
    assert any(f"`{name}`" in row for row in rows), "the table of data in docs/commands.md lacks a row for it"


def test_the_short_help_has_twelve_commands_and_leads_to_all() -> None:
    short, listed = call("--help").out, [name for group in EVERY_DAY.values() for name in group]
    assert len(short.splitlines()) <= 40
    assert len(listed) == len(set(listed)) == 12
    shown = [name for name in COMMANDS if re.search(rf"^  {re.escape(name)}  +\S", short, re.MULTILINE)]
    assert sorted(shown) == sorted(listed)
    assert "`tenv help --all`" in short
    whole = call("help", "--all").out
    assert whole == call("--all", "--help").out == call("-h", "--all").out
    assert all(f"\n{heading}:\n" in whole for heading in GROUPS)


@each("name", COMMANDS)
def test_every_command_ends_as_all_do(name: str, empty_project: Path) -> None:
    assert not list(empty_project.glob("manifests/*.toml"))
    plain = call(name, "--no-such-option")
    assert (plain.status, plain.out) == (2, "false\n" if name == "activate" else "")  # for `eval` under `set -e`
    assert plain.err.splitlines()[0].startswith("error[usage]: ")
    assert re.match(rf"hint: .*\btenv {re.escape(name)} ", plain.err.splitlines()[-1])
    envelope = json.loads(call(name, "--json", "--no-such-option").out)
    assert (envelope["command"], envelope["ok"], envelope["error"]["code"]) == (name, False, "usage")
    options = {option for param in command_of(name).params for option in param.opts}
    assert {"--json", "--quiet", "-q"} <= options


def test_an_empty_path_is_refused() -> None:
    """An unset variable of a shell (``--prefix "$WORK"``) does not mean the working folder."""
    paths = {
        (name, part.opts[0] if isinstance(part, click.Option) else "")
        for name in COMMANDS
        for part in command_of(name).params
        if isinstance(part.type, click.Path)
    }
    assert {("create", "--prefix"), ("build", "--wheel"), ("audit", "")} <= paths
    for name, option in sorted(paths):
        ended = call(name, *([option] if option else []), "")
        assert ended.status == 2, (name, option)
        assert "the value is empty" in ended.err, (name, option, ended.err)
