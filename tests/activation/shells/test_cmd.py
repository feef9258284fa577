"""cmd's batch files: run by Wine's cmd where it is installed, and read as text everywhere.

Wine is on the machines of developers and not in CI. What a line of a batch file sets is read here by the three rules
that Windows documents for one: a doubled percent sign is one, a caret takes the meaning of the next character, and the
word that ``set`` gets loses its first and its last quote.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Activation, Change, Watch
from tenv.activation.shells import cmd, posix
from tenv.activation.shells.interface import refused
from tests.support.shells import HOSTILE
from tests.support.wine import WINE, Cmd, on_windows

runs = pytest.mark.skipif(not WINE, reason="needs Debian's wine64, which CI does not install")
HELD = [value for value in HOSTILE if cmd.holds(value)]
AS_WINDOWS = [value for value in HELD if value.count("%") < 2 and value.isascii()]
"""Of those, what Wine's cmd can put into a variable as Windows' does: see `tests.support.wine`."""


def activation(name: str, *changes: Change, watches: Sequence[Watch] = ()) -> Activation:
    return Activation(
        name,
        Path(f"C:\\a folder's (x86)\\{name}"),
        (
            Change("TENV_TARGET", Action.SET, name, ""),
            Change("TENV_PREFIX", Action.SET, f"C:\\a folder's (x86)\\{name}", ""),
            Change("PATH", Action.PREPEND, f"C:\\a (x86)\\{name};D:\\b", "", ";"),
            Change("OWN_HOME", Action.UNSET, "", ""),
            *changes,
        ),
        tuple(watches),
    )


def store(folder: Path, made: Activation) -> str:
    """Write a script; return the line that runs it and goes on."""
    (folder / f"{made.target}.bat").write_bytes(os.fsencode(cmd.render_activation(made)))
    (folder / "undo.bat").write_bytes(os.fsencode(cmd.render_deactivation().replace("\n", "\r\n")))
    return f"call {made.target}.bat\n"


def changes_of(values: Sequence[str]) -> tuple[Change, ...]:
    shifted = [*values[7:], *values[:7]]
    sides = (Action.PREPEND, Action.APPEND, Action.UNSET)
    return (
        *(Change(f"NEW_{i:03}", Action.SET, value, "") for i, value in enumerate(values)),
        *(Change(f"OLD_{i:03}", Action.SET, value, "") for i, value in enumerate(shifted) if i % 2),
        *(
            Change(f"OLD_{i:03}", sides[i % 3], "" if i % 3 == 2 else "C:\\x y;D:\\z", "", ";")
            for i in range(0, len(values), 2)
        ),
        *(Change(f"OLD_{i:03}", Action.APPEND, "E:\\back", "", ";") for i in range(0, len(values), 6)),
    )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Cmd:
    return Cmd(tmp_path_factory.mktemp("cmd"))


@runs
@pytest.mark.long
def test_hostile_values_come_and_go_byte_for_byte_in_a_crowd(shell: Cmd, tmp_path: Path) -> None:
    old = {f"OLD_{i:03}": value for i, value in enumerate(AS_WINDOWS)}
    crowd = {f"FILL_{i:03}": f"{i} {'x ' * (i % 7)}" for i in range(200 - len(old))}
    new = [Change(f"HELD_{i:03}", Action.SET, value, "") for i, value in enumerate(HELD) if value.isascii()]
    changes = (*changes_of(AS_WINDOWS), *new)
    steps = [shell.shot("before"), store(tmp_path, activation("cuda130", *changes)), shell.shot("active")]
    seen, _, said = shell.run(tmp_path, [*steps, "call undo.bat\n", shell.shot("after")], old | crowd)
    assert said == ""
    wanted = activation("cuda130", *changes).apply(seen["before"])
    names = {change.name for change in changes} | {"PATH", "TENV_TARGET", "TENV_PREFIX"}
    assert {n: v for n, v in seen["active"].items() if n in names} == {n: v for n, v in wanted.items() if n in names}
    assert seen["active"]["PROMPT"] == "(cuda130) $P$G"
    assert seen["after"] == seen["before"]
    assert len(AS_WINDOWS) > 30
    assert old.items() <= seen["before"].items()
    assert len(seen["before"]) > 200


@runs
@pytest.mark.long
def test_activations_nest_and_renew(shell: Cmd, tmp_path: Path) -> None:
    few = changes_of(AS_WINDOWS[:6])
    outer = store(tmp_path, activation("outer", *few, Change("LDFLAGS", Action.PREPEND, "-L/o", "", " ")))
    inner = store(tmp_path, activation("inner", *few, Change("LDFLAGS", Action.APPEND, '-L"/i i"', "", " ")))
    undo, shot = "call undo.bat\n", shell.shot
    steps = [shot("before"), outer, shot("outer"), outer, shot("renewed"), inner, shot("inner"), inner]
    steps += [shot("inner-again"), undo, shot("outer-again"), undo, shot("after"), undo]
    seen, _, said = shell.run(tmp_path, steps, {"LDFLAGS": "-L/u -Wl,-x", "OWN_HOME": "/odd (one) & two"})
    assert said.strip() == "tenv: no environment is active"
    assert seen["outer"]["LDFLAGS"] == "-L/o -L/u -Wl,-x"
    assert seen["inner"]["LDFLAGS"] == '-L/o -L/u -Wl,-x -L"/i i"'
    assert (seen["inner"]["TENV_LEVEL"], seen["inner"]["PROMPT"]) == ("2", "(inner) (outer) $P$G")
    assert "OWN_HOME" not in seen["inner"]
    assert seen["renewed"] == seen["outer"]
    assert seen["inner-again"] == seen["inner"]
    assert seen["outer-again"] == seen["outer"]
    assert seen["after"] == seen["before"]


@runs
@pytest.mark.long
def test_what_others_did_to_a_list_meanwhile_is_kept(shell: Cmd, tmp_path: Path) -> None:
    usual, new = "C:\\u (1);D:\\v", "E:\\new & more"
    cases = {
        "A": ("{front};{usual};{new}", "{usual};{new}"),
        "B": ("{new};{front};{usual}", "{new};{usual}"),
        "C": ("{new}", "{new}"),
        "D": ("{new};{front}x;{usual}", "{new};{front}x;{usual}"),
    }
    front = "C:\\f;D:\\g"
    words = {"front": front, "usual": usual, "new": new}
    lists = [Change(name, Action.PREPEND, front, "", ";") for name in cases]
    others = [Change("NEW", Action.PREPEND, front, "", ";"), Change("ODD", Action.PREPEND, "a=b", "", ";")]
    steps = [store(tmp_path, activation("cuda130", *lists, *others))]
    steps += [f'set "{name}={now.format(**words)}"\n' for name, (now, _) in cases.items()]
    steps += [f'set "NEW=D:\\mine;{front}"\n', 'set "ODD=mine;a=b;C:\\x"\n', "call undo.bat\n", shell.shot("after")]
    seen, _, said = shell.run(tmp_path, steps, {**dict.fromkeys(cases, usual), "ODD": "C:\\x"})
    after = seen["after"]
    assert {name: after[name] for name in cases} == {name: left.format(**words) for name, (_, left) in cases.items()}
    assert (after["NEW"], after["ODD"]) == ("D:\\mine", "mine;a=b;C:\\x")
    assert said.strip() == "tenv: ODD was changed meanwhile and keeps what was added to it"


@runs
@pytest.mark.long
def test_a_value_that_cmd_cannot_hold_is_refused_by_name(shell: Cmd, tmp_path: Path) -> None:
    for value in ("line\nbreak", "\r", "", "\udcff", "x" * 8200):
        made = activation("cuda130", Change("GOOD", Action.SET, "1", ""), Change("BAD_ONE", Action.SET, value, ""))
        assert refused(cmd, made) == ("BAD_ONE",)
        seen, _, said = shell.run(tmp_path, [shell.shot("before"), store(tmp_path, made), shell.shot("after")], {})
        assert seen["after"] == seen["before"]
        assert "can't hold the value of BAD_ONE" in said


@runs
@pytest.mark.long
def test_with_delayed_expansion_nothing_is_set(shell: Cmd, tmp_path: Path) -> None:
    script = store(tmp_path, activation("cuda130", Change("GOOD", Action.SET, "1!", "")))
    steps = ["setlocal EnableDelayedExpansion\n", shell.shot("before"), script, shell.shot("after")]
    seen, _, said = shell.run(tmp_path, steps, {})
    assert seen["after"] == seen["before"]
    assert "delayed expansion is on" in said


@runs
@pytest.mark.long
def test_a_file_of_the_machine_is_watched(shell: Cmd, tmp_path: Path) -> None:
    lines = []
    for name, shift in (("same", 0), ("newer", 3600), ("gone", None)):
        file, stamp = tmp_path / f"{name} (1)", tmp_path / f"{name}.stamp"
        for path, time in ((file, shift), (stamp, 0)):
            if time is not None:
                path.touch()
                os.utime(path, (1_600_000_000 + time, 1_600_000_000 + time))
        watch = Watch(((str(on_windows(file)), str(on_windows(stamp))),), f'warning: {name} is "new" & (90%) <x> ^')
        lines.append(store(tmp_path, activation(name, watches=[watch])))
    seen, _, said = shell.run(tmp_path, [*lines, shell.shot("active")], {})
    assert seen["active"]["TENV_LEVEL"] == "3"
    told = [f'tenv: warning: {name} is "new" & (90%) <x> ^' for name in ("newer", "gone")]
    assert [line.rstrip() for line in said.splitlines()] == told


@runs
@pytest.mark.long
def test_what_bash_activated_is_undone(shell: Cmd, tmp_path: Path) -> None:
    changes = (Change("LIST", Action.PREPEND, "/f:/g", ""), Change("WORDS", Action.SET, 'one  "two" & ^', ""))
    (tmp_path / "activate.sh").write_text(posix.render_activation(Activation("p", tmp_path, changes)))
    before = {"PATH": "/usr/bin:/bin", "LIST": "/a:/b", "WORDS": 'a "b" | (c)'}
    done = subprocess.run(
        ["bash", "-c", ". ./activate.sh; env -0"], cwd=tmp_path, env=before, capture_output=True, check=True
    )
    active = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0")[:-1])
    assert active["LIST"] == "/f:/g:/a:/b"
    store(tmp_path, activation("x"))
    seen, _, said = shell.run(tmp_path, ["call undo.bat\n", shell.shot("after")], active)
    after = seen["after"]
    assert (said, after["LIST"], after["WORDS"]) == ("", before["LIST"], before["WORDS"])
    assert [name for name in after if name.upper().startswith(("_TENV", "TENV"))] == []


@runs
@pytest.mark.long
def test_the_hook_runs_what_tenv_prints_and_passes_on_the_rest(shell: Cmd, tmp_path: Path) -> None:
    """tenv decides: its answer is run, its errors and its help are shown, and a failure is one."""
    store(tmp_path, activation("one", Change("A", Action.SET, "a b", "")))
    answer = cmd.render_source(str(on_windows(tmp_path / "one.bat")))
    (tmp_path / "answer").write_text(answer)
    (tmp_path / "program.bat").write_text(
        f'@if "%~2"=="one" type "{on_windows(tmp_path / "answer")}"& exit /b 0\r\n'
        '@if "%~2"=="--help" echo Usage: tenv& exit /b 0\r\n'
        '@if "%~1"=="activate" exit /b 8\r\n'
        "@echo told %*\r\n"
        "@exit /b 3\r\n"
    )
    hook = cmd.render_hook([str(on_windows(tmp_path / "program.bat"))], Path("C:\\data\\envs"))
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
    changes = [Change(f"H_{i}", Action.SET, value, "") for i, value in enumerate(HELD)]
    text = cmd.render_activation(activation("cuda130", *changes))
    lines = text.partition(":tenv_values\r\n")[2].split("\r\n")
    found = dict(read_line(line) for line in lines if line.startswith("@set ^"))
    assert {name: found[name] for name in found if name.startswith("H_")} == {c.name: c.value for c in changes}
    assert len(HELD) > 35


def test_a_script_is_of_windows_lines_that_show_nothing() -> None:
    text = cmd.render_activation(activation("cuda130", Change("A", Action.SET, "1", "")))
    lines = text.split("\r\n")[:-1]
    assert [line for line in lines if not line.startswith(("@", ":tenv_"))] == []
    assert "\n" not in text.replace("\r\n", "")
    called = set(re.findall(r"(?:call :|goto )(tenv_\w+)", text))
    assert called <= {line[1:] for line in lines if line.startswith(":")}


def test_every_label_of_the_hook_is_there() -> None:
    for text in (cmd.render_hook(["C:\\p.exe"], Path("C:\\data\\envs")), cmd.render_deactivation()):
        labels = re.findall(r"(?m)^:(tenv_\w+)$", text)
        assert set(re.findall(r"(?:call :|goto )(tenv_\w+)", text)) <= set(labels)
        assert len(set(labels)) == len(labels)
        assert "@PROGRAM" not in text


def test_text_beyond_ascii_is_read_as_utf_8_and_the_code_page_comes_back() -> None:
    text = cmd.render_activation(activation("cuda130", Change("A", Action.SET, "é", "")))
    assert text.index("chcp 65001") < text.index("A=é") < text.index("chcp %_tenv_page%")
    assert "chcp" not in cmd.render_activation(activation("cuda130", Change("A", Action.SET, "e", "")))
