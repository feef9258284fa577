"""cmd's batch files: run by Wine's cmd where it is installed, and read as text everywhere.

Wine is on the machines of developers and not in CI. The lines of a batch file are read here by the three rules that
Windows documents: a doubled percent sign is one, a caret takes the meaning of the next character, and the word of
``set`` loses its first and its last quote.
"""

import os
import re
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Activation, Change
from tenv.activation.levels import activated, deactivated, edits
from tenv.activation.shells import cmd
from tests.support.each import each
from tests.support.projects import Project
from tests.support.shells import HOSTILE
from tests.support.wine import WINE, Cmd, on_windows

runs = pytest.mark.skipif(not WINE, reason="needs Debian's wine64, which CI does not install")
HELD = [value for value in HOSTILE if cmd.holds(value)]
AS_WINDOWS = [value for value in HELD if value.count("%") < 2 and value.isascii()]
"""Of those, the values that Wine's cmd can put into a variable as Windows' does: see `tests.support.wine`."""


def activation(*changes: Change) -> Activation:
    prefix = "C:\\a folder's (x86)\\cuda130"
    own = (
        Change("TENV_TARGET", Action.SET, "cuda130", ""),
        Change("TENV_PREFIX", Action.SET, prefix, ""),
        Change("PATH", Action.PREPEND, "C:\\a (x86)\\cuda130;D:\\b", "", ";"),
        Change("OWN_HOME", Action.UNSET, "", ""),
    )
    return Activation("cuda130", Path(prefix), (*own, *changes))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Cmd:
    return Cmd(tmp_path_factory.mktemp("cmd"))


def store(folder: Path, name: str, before: dict[str, str], after: dict[str, str]) -> str:
    """Write a batch file that makes variables of others; return the line that runs it and goes on."""
    (folder / f"{name}.bat").write_bytes(os.fsencode(cmd.render_edits(edits(before, after))))
    return f"call {name}.bat\n"


@runs
@pytest.mark.long
def test_hostile_values_come_and_go_byte_for_byte_in_a_crowd(shell: Cmd, tmp_path: Path) -> None:
    old = {f"OLD_{i:03}": value for i, value in enumerate(AS_WINDOWS)}
    crowd = {f"FILL_{i:03}": f"{i} {'x ' * (i % 7)}" for i in range(200 - len(old))}
    shifted = [*AS_WINDOWS[7:], *AS_WINDOWS[:7]]
    changes = [Change(f"OLD_{i:03}", Action.SET, value, "") for i, value in enumerate(shifted) if i % 2]
    changes += [Change(f"OLD_{i:03}", Action.UNSET, "", "") for i in range(0, len(old), 4)]
    changes += [Change(f"HELD_{i:03}", Action.SET, value, "") for i, value in enumerate(HELD) if value.isascii()]
    environment = {**old, **crowd, "OWN_HOME": "/odd (one) & two"}
    before = shell.run(tmp_path, [shell.shot("before")], environment)[0]["before"]
    active = activated(before, cmd.with_prompt(activation(*changes), before))
    steps = [store(tmp_path, "on", before, active), shell.shot("active")]
    steps += [store(tmp_path, "off", active, deactivated(active)), shell.shot("after")]
    seen, _, said = shell.run(tmp_path, steps, environment)
    assert (said, seen["active"], seen["after"]) == ("", active, before)
    assert seen["active"]["PROMPT"] == "(cuda130) $P$G"
    assert len(AS_WINDOWS) > 30
    assert len(before) > 200


@runs
@pytest.mark.long
def test_with_delayed_expansion_nothing_is_set(shell: Cmd, tmp_path: Path) -> None:
    script = store(tmp_path, "on", {}, {"GOOD": "1!"})
    steps = ["setlocal EnableDelayedExpansion\n", shell.shot("before"), script, shell.shot("after")]
    seen, _, said = shell.run(tmp_path, steps, {})
    assert seen["after"] == seen["before"]
    assert "delayed expansion is on" in said


@runs
@pytest.mark.long
def test_the_hook_runs_what_tenv_prints_and_passes_on_the_rest(shell: Cmd, tmp_path: Path) -> None:
    """tenv decides: its answer is run, its errors and its help are shown, and a failure is one."""
    store(tmp_path, "one", {}, {"A": "a b", "TENV_TARGET": "one"})
    store(tmp_path, "none", {"A": "a b", "TENV_TARGET": "one"}, {})
    (tmp_path / "program.bat").write_text(
        f'@if "%~2"=="one" type "{on_windows(tmp_path / "one.bat")}"& exit /b 0\r\n'
        '@if "%~2"=="--help" echo Usage: tenv& exit /b 0\r\n'
        '@if "%~1"=="activate" exit /b 8\r\n'
        f'@if "%~1"=="deactivate" type "{on_windows(tmp_path / "none.bat")}"& exit /b 0\r\n'
        "@echo told %*\r\n"
        "@exit /b 3\r\n"
    )
    hook = cmd.render_hook([str(on_windows(tmp_path / "program.bat"))])
    (tmp_path / "tenv.bat").write_bytes(os.fsencode(hook.replace("\n", "\r\n")))
    tenv = f'call "{on_windows(tmp_path / "tenv.bat")}"'
    steps = [shell.shot("before"), f"{tenv} activate one\n", shell.shot("active")]
    steps += [f"{tenv} deactivate\n", shell.shot("after"), f"{tenv} activate broken\nif errorlevel 1 echo failed\n"]
    steps += [f'{tenv} create "two words" --json\nif errorlevel 1 echo failed\n', f"{tenv} activate --help\n"]
    steps += [shell.shot("end")]
    seen, printed, said = shell.run(tmp_path, steps, {"TEMP": "Z:" + str(tmp_path).replace("/", "\\")})
    assert (seen["active"]["TENV_TARGET"], seen["active"]["A"]) == ("one", "a b")
    assert seen["after"] == seen["before"] == seen["end"]
    lines = ["failed", 'told create "two words" --json', "failed", "Usage: tenv"]
    assert [line.rstrip() for line in printed.splitlines()] == lines
    assert said == ""
    assert not list(tmp_path.glob("tenv-*.bat"))


def read_line(line: str) -> tuple[str, str]:
    """Return the variable and the value that a line with ``set`` sets."""
    text, quoted, escaped = "", False, False
    for letter in line.replace("%%", "\0"):
        if escaped:
            text, escaped = text + letter, False
        elif letter == "^" and not quoted:
            escaped = True
        else:
            assert quoted or letter not in "&|<>", f"{letter} is read as a sign: {line}"
            quoted ^= letter == '"'
            text += letter
    assert not quoted, line
    assert "%" not in text, line
    command, _, rest = text.replace("\0", "%").partition(" ")
    assert (command, rest[0], rest[-1]) == ("@set", '"', '"')
    name, _, value = rest[1:-1].partition("=")
    return name, value


def test_every_line_sets_the_value_that_it_is_to_set() -> None:
    wanted = {f"H_{i}": value for i, value in enumerate(HELD)}
    lines = cmd.render_edits({**wanted, "GONE": None}).split("\n")
    assert dict(read_line(line) for line in lines if line.startswith("@set ^")) == {**wanted, "GONE": ""}
    assert len(HELD) > 35


def test_a_script_shows_none_of_its_lines() -> None:
    lines = cmd.render_edits({"A": "é"}).split("\n")[:-1]
    block = slice(lines.index('@if "!!"=="" (') + 1, lines.index(")") + 1)
    assert [line for line in lines if not line.startswith("@") and line not in lines[block]] == []
    assert lines[0] == "@rem tenv: cmd"


def test_every_label_of_the_hook_is_there() -> None:
    text = cmd.render_hook(["C:\\p.exe"])
    labels = re.findall(r"(?m)^:(tenv_\w+)$", text)
    assert set(re.findall(r"(?:call :|goto )(tenv_\w+)", text)) == set(labels)
    assert len(set(labels)) == len(labels)
    assert "@PROGRAM" not in text


def test_text_beyond_ascii_is_read_as_utf_8_and_the_code_page_comes_back() -> None:
    text = cmd.render_edits({"A": "é"})
    assert text.index("chcp 65001") < text.index("A=é") < text.index("chcp %_tenv_page%")
    assert "chcp" not in cmd.render_edits({"A": "e"})


@each("value", ["line\nbreak", "\r", "\udcff", "x" * 8200])
def test_a_value_that_cmd_cannot_hold_is_refused_by_name(
    value: str, created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", value)
    err = created.fails(2, "usage", "activate", "tiny", "--shell", "cmd")
    assert "cmd can't hold the value of _TENV_SAVED_1_VIRTUAL_ENV; no variable was set" in err


def test_a_value_that_is_nothing_is_refused_at_activation_and_restored_as_unset(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not cmd.holds("")
    for name, value in {"TENV_LEVEL": "1", "_TENV_NAMES_1": "A", "_TENV_SAVED_1_A": "=", "A": "x"}.items():
        monkeypatch.setenv(name, value)
    assert '@set ^"A=^"\n' in created.ok("deactivate", "--shell", "cmd").out


def test_the_prompt_shows_the_target_and_comes_back() -> None:
    before = {"PROMPT": "$P$G"}
    active = activated(before, cmd.with_prompt(activation(), before))
    assert active["PROMPT"] == "(cuda130) $P$G"
    assert deactivated(active) == before
    for environ in ({}, {"PROMPT": "$G", "TENV_NO_PROMPT": "1"}):
        assert cmd.with_prompt(activation(), environ) == activation()
