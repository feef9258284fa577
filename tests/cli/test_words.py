"""Words of other tools, options before the command, and the examples in the help."""

import itertools
import json
import shlex

import click
import pytest

from tenv.cli.examples import EXAMPLES
from tenv.cli.main import COMMANDS
from tenv.cli.other_words import OTHER_OPTIONS, OTHER_WORDS, SECOND_WORDS
from tenv.interop.formats import FORMATS, find_format
from tests.cli.test_command_family import command_of
from tests.support.each import each
from tests.support.fakes import MINORS
from tests.support.projects import HERE, Project, call


@each("words", [*((word,) for word in OTHER_WORDS), *SECOND_WORDS])
def test_a_word_of_another_tool_leads_to_the_command_of_tenv(words: tuple[str, ...]) -> None:
    ended = call(*words, "numpy")
    assert (ended.status, f"error[usage]: there is no command `{' '.join(words)}`" in ended.err) == (2, True)
    hint = ended.err.partition("hint: ")[2]
    named = [shlex.split(part) for part in hint.split("`")[1::2]]
    assert named
    for program, verb, *_ in named:
        assert (program, verb in COMMANDS) == ("tenv", True)


def test_each_option_in_a_hint_is_one_of_its_command() -> None:
    texts = (*OTHER_WORDS.values(), *SECOND_WORDS.values(), *OTHER_OPTIONS.values())
    ways = {part for text in texts for part in text.split("`")[1::2] if " tenv " in f" {part}"}
    for way in ways:
        verb, *rest = shlex.split(way.partition("tenv ")[2])
        own = [*itertools.takewhile(lambda word: word != "--", rest)]
        known = {option for parameter in command_of(verb).params for option in parameter.opts}
        assert {word for word in own if word.startswith("-")} <= known, way


@each(
    "words, command",
    [
        ("install numpy", "tenv add tiny numpy"),
        ("install tiny", "tenv create tiny"),
        ("install 'numpy>=2' scipy", "tenv add tiny 'numpy>=2' scipy"),
        ("uninstall numpy", "tenv drop tiny numpy"),
        ("pip install -U numpy", "tenv add tiny numpy"),
        ("pip freeze", "tenv run tiny -- sh -c 'python -m ensurepip && python -m pip install PACKAGE'"),
        ("pip install scipy", "tenv run tiny -- sh -c 'python -m ensurepip && python -m pip install scipy'"),
        ("why alpha", "tenv tree tiny --invert alpha"),
        ("--json sync", "tenv create tiny"),
        ("env remove other", "tenv remove other"),
        ("config set sync true", "tenv config sync true"),
        ("exec other", "tenv run other -- COMMAND"),
        ("remove numpy", "tenv drop tiny numpy"),
        ("update numpy", "tenv update tiny numpy"),
        ("run python -V", "tenv run tiny -- python -V"),
        ("run -- FOO=1 'BAR=a b' env -0", "FOO=1 BAR='a b' tenv run tiny -- env -0"),
        ("run other FOO= env", "FOO='' tenv run other -- env"),
        ("run --env X=1 other -- env", "X=1 tenv run other -- COMMAND"),
        ("create other --platform win-64", "tenv packages other --platform win-64"),
        ("lock --platform win-64", "tenv lock tiny"),
        ("lock -P alpha other", "tenv update other alpha"),
        ("export other --to vscode", "tenv export vscode other"),
        ("export --format=pixi", "tenv export pixi tiny"),
        ("add --git https://example.com/it", "tenv add tiny 'NAME @ git+https://example.com/it'"),
        ("add other --git https://example.com/it it", "tenv add other 'it @ git+https://example.com/it'"),
        ("add other it --dev", "tenv add other --feature dev it"),
        ("list alpha", "tenv packages tiny alpha"),
        ("list other", "tenv packages other"),
        ("targets other", "tenv show other"),
        ("direnv other", "tenv export direnv other"),
        ("size", "tenv packages tiny --sort size"),
        ("init --platform linux-64", "tenv init NAME"),
        ("create -n other numpy", "tenv add other numpy"),
        ("create -f environment.yml", "tenv import environment.yml"),
        ("create next --clone other", "tenv init next --extends other"),
        ("add other rich --index-url https://e.org/s", "tenv add other --index https://e.org/s rich"),
        ("add other it --no-build-isolation", "tenv add other --build --no-isolation it"),
        ("list -n other", "tenv packages other"),
        ("load other", "tenv shell other"),
        ("run -n other env", "tenv run other -- COMMAND"),
    ],
)
def test_the_hint_has_the_target_and_the_packages(words: str, command: str, project: Project) -> None:
    """`tiny` is the default, `other` another target."""
    text = (project.folder / "manifests" / "tiny.toml").read_text()
    (project.folder / "manifests" / "other.toml").write_text(text)
    (project.folder / "tenv.toml").write_text('default = "tiny"\n')
    ended = call(*shlex.split(words))
    said = json.loads(ended.out)["error"]["hint"] if "--json" in words else ended.err.partition("hint: ")[2]
    assert (ended.status, f"`{command}`" in said) == (2, True), ended


@each("row", OTHER_OPTIONS)
def test_an_option_of_another_tool_leads_to_the_command_of_tenv(row: tuple[str, str]) -> None:
    name, option = row
    ended = call(name, option, "value")
    assert (ended.status, f"`tenv {name}` has no option `{option}`" in ended.err) == (2, True), ended
    quoted = ended.err.partition("hint: ")[2].split("`")[1::2]
    verbs = {words[words.index("tenv") + 1] for part in quoted if "tenv" in (words := shlex.split(part))}
    assert verbs
    assert verbs <= {*COMMANDS}


@each("name", [*(name for name in FORMATS if find_format(name).export), "docker"])
def test_a_format_in_the_place_of_a_command_is_exported(name: str) -> None:
    err = call(name).err
    assert f"error[usage]: there is no command `{name}`\n" in err
    assert "`tenv export " in err


def test_a_target_may_have_the_name_of_a_second_word(created: Project) -> None:
    (created.folder / "manifests" / "tiny.toml").rename(created.folder / "manifests" / "list.toml")
    assert call("env", "list").status == 8  # it is asked for, and was not created


def test_help_is_a_word_too() -> None:
    assert call("help").out == call("--help").out
    assert call("help", "create").out == call("create", "--help").out


@pytest.mark.parametrize("option", ["--json", "--quiet", "-q"])
def test_json_and_quiet_may_stand_before_the_command(option: str, project: Project) -> None:
    assert call(option, "show", "tiny").out == call("show", option, "tiny").out
    assert call(option, "run", "tiny", "--", "true").status == 8


def test_every_command_has_two_examples() -> None:
    assert list(EXAMPLES) == [name for name in EXAMPLES if name in COMMANDS]
    assert sorted(EXAMPLES) == sorted(COMMANDS)


@each("name", COMMANDS)
def test_the_examples_are_what_the_command_takes(name: str) -> None:
    shown = call(name, "--help").out
    for line in EXAMPLES[name]:
        assert f"  {line}\n" in shown
        inner = line.partition("$(")[2].rpartition(")")[0] or line.partition(" | ")[0]
        words = shlex.split(inner.removeprefix("git bisect run "))
        assert words[:2] == ["tenv", name]
        with click.Context(click.Command("tenv"), help_option_names=["-h", "--help"]) as above:
            command_of(name).make_context(name, words[2:], parent=above)


@each(
    "words, status, said",
    [
        ("drop numpy scipy", 2, "note: tiny is the default target"),
        ("add tinny numpy", 2, "hint: did you mean `tiny`? `tenv add tiny tinny numpy` takes it as a package"),
        ("verify other-thing", 2, "hint: `tenv targets` lists the targets, tiny among them"),
        ("create auot", 2, "hint: did you mean `auto`?"),
        (
            "add tiny hg+http://example.org/it",
            2,
            "hint: `tenv run tiny -- sh -c 'python -m ensurepip && python -m pip install hg+http://example.org/it'`",
        ),
        ("remove tiny", 8, "hint: `tenv list` lists them"),
        (f"create tiny --python {MINORS[0][:-1]}99", 2, f"hint: `tenv create tiny --python {HERE}` takes"),
        ("create tiny --lock-file no.lock", 7, "hint: `tenv lock tiny --lock-file no.lock` writes it"),
        ("diff no.lock", 7, "there is no lock file no.lock"),
        ("explain numpy", 2, "`tenv explain TE101`"),
    ],
)
def test_a_hint_can_be_pasted(words: str, status: int, said: str, locked: Project) -> None:
    ended = call(*shlex.split(words))
    assert (ended.status, said in ended.err) == (status, True), ended


def test_a_package_in_the_place_of_the_target_of_update_is_named(project: Project) -> None:
    assert "`tenv update tiny numpy` updates one package" in call("update", "numpy").err
    assert "updates one package" not in call("update", "nosuch", "numpy").err


def test_a_first_word_that_is_no_target_shows_both_forms_first(created: Project) -> None:
    hint = call("run", "python", "-V").err.partition("hint: ")[2]
    forms = "`tenv run tiny -- python -V` names a target, `tenv run -- python -V` uses the default; "
    assert hint.startswith(forms)


@each(
    "words, message, hint",
    [
        ("create cpu -C /", "`tenv create` has no option `-C`", "`tenv -C DIR create` works in DIR\n"),
        ("export", "`tenv export` lacks FORMAT", "the form is `tenv export FORMAT [TARGET]`, such as `tenv export "),
        (
            "check cpu cuda130",
            "`tenv check` does not take the further word `cuda130`",
            "it takes one target: `tenv check cpu`, then `tenv check cuda130`\n",
        ),
        (
            "create a b c",
            "`tenv create` does not take the further words `b c`",
            "the form is `tenv create [TARGET]`, such as `tenv create auto`; `tenv create --help` shows its options\n",
        ),
        (
            "tree tiny rich",
            "`tenv tree` does not take the further word `rich`",
            "`tenv tree tiny --invert rich` prints what requires rich\n",
        ),
        ("remove tiny a tiny", "`tenv remove` removes one environment, and `tiny` is a target", "`tenv remove tiny`, "),
        ("remove tiny a --yes", "the options of `tenv remove` are for environments", "`tenv drop tiny a` takes a out"),
        ("create tiny a", "`tenv create` does not take the further word `a`", "`tenv add tiny a` asks for it "),
        ("info all", "`tenv info` does not take the word `all`", "the form is `tenv info`"),
        ("run", "`tenv run` lacks ", "the form is `tenv run "),
    ],
)
def test_a_missing_or_superfluous_word_leads_to_the_form(words: str, message: str, hint: str, project: Project) -> None:
    assert project.folder
    ended = call(*words.split())
    assert (ended.status, ended.out) == (2, "")
    assert f"error[usage]: {message}" in ended.err
    assert f"hint: {hint}" in ended.err
