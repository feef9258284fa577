"""What every shell must have: a row of `SHELLS`, a row of the docs, and a way for these tests to run it.

A new module asks for ``dialects/MODULE.py`` in this folder, with `DIALECT`: see `tests.support.dialect`. All that is
tested here is run by each shell that is on PATH; what a shell is asked beside that stands in ``shells/test_MODULE.py``.
"""

import importlib
import os
import pkgutil
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.activation import shells
from tenv.activation.changes import Action, Activation, Change, Watch, read_activation
from tenv.activation.levels import activated, edits
from tenv.activation.shells.interface import SHELLS, STORED, Shell, StoredShell, find_shell, known_shells
from tenv.core.prefix import READY
from tests.support.dialect import AWKWARD, Dialect
from tests.support.marked import mark
from tests.support.projects import Project, call
from tests.support.shells import SPOKEN, Spoken, note_lock, write_activator

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "activation.md").read_text(encoding="utf-8")
MODULES = sorted(
    module.name
    for module in pkgutil.iter_modules(shells.__path__)
    if hasattr(importlib.import_module(f"{shells.__name__}.{module.name}"), "NAMES")
)
FILES = sorted(file.stem for file in (Path(__file__).parent / "dialects").glob("*.py"))
NAMES = known_shells()

DUMP = '#!/bin/sh\nprintf "[%s]\\0" "$*"\nexec env -0\n'
"""The program with which a shell shows, under a label, what its programs are given."""

OF_THE_SHELL = {"_", "SHLVL", "OLDPWD", "PWD", "LC_CTYPE", "XONSH_CAPTURE_ALWAYS"}


def module_of(shell: Shell) -> str:
    return str(vars(shell).get("__name__", type(shell).__module__)).rpartition(".")[2]


def dialect_of(name: str) -> Dialect:
    found: Dialect = importlib.import_module(f"tests.activation.dialects.{module_of(find_shell(name))}").DIALECT
    return found


def test_every_module_is_in_the_list_once() -> None:
    assert [name for name in MODULES if name not in map(module_of, SHELLS)] == [], "a name in `SHELLS` is missing"
    assert sorted(map(module_of, SHELLS)) == MODULES
    assert len(set(NAMES)) == len(NAMES)


def test_every_module_says_how_it_is_run() -> None:
    assert [name for name in MODULES if name not in FILES] == [], "tests/activation/dialects/MODULE.py is missing"
    assert MODULES == FILES


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_is_installed_where_the_tests_run(name: str) -> None:
    dialect = dialect_of(name)
    if name in dialect.installed_by:
        package = re.escape(dialect.installed_by[name])
        installed = re.search(rf"(?<!\S){package}(?!\S)", (ROOT / ".ci" / "run").read_text())
        assert installed, f"`.ci/run` installs no package {dialect.installed_by[name]}"
    elif name in dialect.never_run:
        assert shutil.which(name) is None, f"{name} is here: it can be run"
    else:
        assert shutil.which(name), f"`installed_by` or `never_run` of its dialect says why {name} is not on PATH"


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_is_in_the_matrix_or_has_tests_of_its_own(name: str) -> None:
    module = module_of(find_shell(name))
    if module in [module_of(spoken.module) for spoken in SPOKEN]:
        return
    assert name in dialect_of(name).never_run, f"a row of `SPOKEN` in tests/support/shells.py for {module} is missing"
    file = Path(__file__).parent / "shells" / f"test_{module}.py"
    tests = re.findall(r"^def test_\w+\(", file.read_text(), re.MULTILINE) if file.is_file() else []
    assert tests, f"a row of `SPOKEN` in tests/support/shells.py, or tests/activation/shells/{file.name}, is missing"


@pytest.mark.parametrize("name", NAMES)
def test_the_docs_have_every_shell(name: str) -> None:
    rows = re.findall(rf"^\| `{re.escape(name)}` \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 1, f"the table of shells in docs/activation.md lacks a row for `{name}`"
    line = dialect_of(name).hook_line(name).replace("|", "\\|")
    assert f"`{line}`" in rows[0]


@pytest.mark.parametrize("command", ["activate", "deactivate", "hook"])
def test_the_help_has_every_shell(command: str) -> None:
    words = re.findall(r"[\w-]+", call(command, "--help").out.partition("Shells:")[2])
    assert [name for name in NAMES if name not in words] == []


def test_the_commands_print_what_the_shell_says(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    meta = created.prefix / "tenv-meta"
    activation = read_activation(meta / "activation.json")
    monkeypatch.delenv("TENV_LEVEL", raising=False)
    for name in NAMES:
        shell = find_shell(name)
        printed = created.ok("activate", "tiny", "--shell", name).out
        undone = created.ok("deactivate", "--shell", name).out
        if isinstance(shell, StoredShell):
            script = meta / shell.SCRIPT
            assert script.read_bytes() == os.fsencode(shell.render_activation(activation)), name
            assert printed == shell.render_source(str(script))
            assert undone.rstrip("\n") == shell.render_deactivation().rstrip("\n")
        else:
            assert printed == shell.render_edits(edits(os.environ, activated(os.environ, activation)))
            assert undone == shell.render_edits({})
            assert f" tenv: {name}\n" in printed[:20]
        assert "tenv" in created.ok("hook", name).out


@pytest.mark.parametrize("name", NAMES)
def test_awkward_values_are_quoted(name: str, tmp_path: Path) -> None:
    quoted, shell = dialect_of(name).quoted, find_shell(name)
    assert sorted(quoted) == sorted(AWKWARD)
    for value in AWKWARD:
        made = Activation("x", tmp_path, (Change("VALUE", Action.SET, value, ""),))
        if isinstance(shell, StoredShell):
            assert quoted[value] in shell.render_activation(made)
        else:
            assert quoted[value] in shell.render_edits({"VALUE": value})


class Session:
    """A folder in which one shell runs scripts."""

    def __init__(self, name: str, folder: Path) -> None:
        """Take a shell that is on PATH."""
        self.name, self.folder = name, folder
        self.shell, self.dialect = find_shell(name), dialect_of(name)
        self.spoken = Spoken(name, self.shell, self.dialect.ending, (), "", spoken=name)
        self.program = shutil.which(name) or pytest.skip(f"no {name} on PATH")
        (folder / "dump").write_text(DUMP)
        (folder / "dump").chmod(0o755)
        (folder / "home").mkdir()

    def dump(self, label: str) -> str:
        """Return the line that shows, under a label, what programs are given."""
        return f"{self.folder}/dump {label}\n"

    def script(self, made: Activation, path: Path) -> str:
        """Store an activation, and return the line that activates it."""
        return self.spoken.activate(path.parent, path.name, made)

    def undo(self) -> str:
        """Return the text that undoes the innermost activation, as lines of a script."""
        return f"{self.spoken.deactivate(self.folder)}\n"

    def run(self, text: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a text that must succeed."""
        file = self.folder / f"run{self.dialect.ending}"
        file.write_text(text, encoding="utf-8")
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder / "home"), "LC_ALL": "C.UTF-8", **variables}
        words = self.dialect.words(self.name, self.program, file)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        return done

    def seen(self, text: str, **variables: str) -> dict[str, dict[str, str]]:
        """Run a text that must say nothing, and return the variables under each label."""
        done = self.run(text, **variables)
        assert done.stderr == ""
        return labelled(done.stdout)


def labelled(output: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in output.split("\0")[:-1]:
        name, equals, value = row.partition("=")
        if not equals:
            found[row.strip("[]")] = current = {}
        elif name not in OF_THE_SHELL:
            current[name] = value
    return found


@pytest.fixture
def session(name: str, tmp_path: Path) -> Session:
    return Session(name, tmp_path)


def activation(target: str, prefix: Path) -> Activation:
    values = [Change(f"VALUE_{number}", Action.SET, value, "") for number, value in enumerate(AWKWARD)]
    return Activation(
        target,
        prefix,
        (
            Change("TENV_TARGET", Action.SET, target, ""),
            Change("TENV_PREFIX", Action.SET, str(prefix), ""),
            Change("PATH", Action.PREPEND, f"{prefix}/bin:{prefix}/cuda/bin", ""),
            Change("CMAKE_PREFIX_PATH", Action.PREPEND, str(prefix), ""),
            Change("PYTHONHOME", Action.UNSET, "", ""),
            *values,
        ),
    )


@pytest.mark.parametrize("name", NAMES)
def test_activation_sets_and_deactivation_restores_to_the_byte(session: Session, tmp_path: Path) -> None:
    prefix = tmp_path / "it's a folder"
    source = session.script(activation("cuda130", prefix), tmp_path / "it's a script")
    text = f"{session.dump('before')}{source}\n{session.dump('active')}{session.undo()}{session.dump('after')}"
    before = {"VALUE_0": AWKWARD[2], "VALUE_1": "", "CMAKE_PREFIX_PATH": "/old one"}
    seen = session.seen(text, **before)
    active = seen["active"]
    assert [active[f"VALUE_{number}"] for number in range(len(AWKWARD))] == list(AWKWARD)
    assert active["PATH"] == f"{prefix}/bin:{prefix}/cuda/bin:/usr/bin:/bin"
    assert active["CMAKE_PREFIX_PATH"] == f"{prefix}:/old one"
    assert (active["TENV_TARGET"], active["TENV_PREFIX"]) == ("cuda130", str(prefix))
    assert seen["after"] == seen["before"]
    assert {name: seen["after"][name] for name in before} == before


@pytest.mark.parametrize("name", NAMES)
def test_what_is_to_be_unset_comes_back(session: Session, tmp_path: Path) -> None:
    made = Activation("x", tmp_path, (Change("GONE", Action.UNSET, "", ""), Change("NEW", Action.PREPEND, "/x", "")))
    source = session.script(made, tmp_path / "script")
    text = f"{source}\n{session.dump('active')}{session.undo()}{session.dump('after')}"
    seen = session.seen(text, GONE="was here")
    assert "GONE" not in seen["active"]
    assert seen["active"]["NEW"] == "/x"
    assert seen["after"]["GONE"] == "was here"
    assert "NEW" not in seen["after"]


@pytest.mark.parametrize("name", NAMES)
def test_activations_nest_and_one_that_is_active_is_renewed(session: Session, tmp_path: Path) -> None:
    outer = session.script(activation("cuda130", tmp_path / "a"), tmp_path / "outer")
    inner = session.script(activation("cpu", tmp_path / "b"), tmp_path / "inner")
    text = (
        f"{session.dump('before')}{outer}\n{session.dump('outer')}{outer}\n{session.dump('renewed')}"
        f"{inner}\n{session.dump('inner')}{session.undo()}{session.dump('again')}{session.undo()}{session.dump('after')}"
    )
    seen = session.seen(text)
    assert seen["renewed"] == seen["outer"]
    assert seen["inner"]["TENV_TARGET"] == "cpu"
    assert seen["inner"]["PATH"].startswith(f"{tmp_path}/b/bin:{tmp_path}/b/cuda/bin:{tmp_path}/a/bin:")
    assert seen["again"] == seen["outer"]
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("name", NAMES)
def test_what_was_added_to_path_meanwhile_stays(session: Session, tmp_path: Path) -> None:
    source = session.script(activation("cuda130", tmp_path / "a"), tmp_path / "script")
    text = f"{source}\n{session.dialect.append('/new')}\n{session.undo()}{session.dump('after')}"
    assert session.seen(text)["after"]["PATH"] == "/usr/bin:/bin:/new"


@pytest.mark.parametrize("name", NAMES)
def test_with_nothing_active_deactivation_says_so_and_does_not_leave(session: Session) -> None:
    done = session.run(f"{session.undo()}{session.dump('still here')}")
    assert list(labelled(done.stdout)) == ["still here"]
    assert done.stderr == "tenv: no environment is active\n"


@pytest.mark.parametrize("name", [name for shell in STORED for name in shell.NAMES])
def test_a_file_of_the_machine_that_is_gone_is_reported(session: Session, tmp_path: Path) -> None:
    file, stamp = tmp_path / "it's nvcc", tmp_path / "stamp"
    for path in (file, stamp):
        path.touch()
        os.utime(path, (1_600_000_000, 1_600_000_000))
    sentence = 'warning: it\'s %s "gone" $HOME'
    made = replace(activation("cuda130", tmp_path / "a"), watches=(Watch(((str(file), str(stamp)),), sentence),))
    source = session.script(made, tmp_path / "script")
    assert session.run(source).stderr == ""
    file.unlink()
    done = session.run(f"{source}\n{session.dump('active')}")
    assert done.stderr == f"tenv: {sentence}\n"
    assert labelled(done.stdout)["active"]["TENV_TARGET"] == "cuda130"


@pytest.mark.parametrize("name", NAMES)
def test_the_line_of_the_docs_defines_a_function_that_activates(session: Session, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    started = programs / "started"
    answers = f'case $1 in activate | deactivate) exec {write_activator(tmp_path)} "$@" ;; esac\n'
    started.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>"$0.txt"\n{answers}')
    home = tmp_path / "data" / "envs"
    shell = session.shell
    stored = isinstance(shell, StoredShell)
    # This one stands for tenv itself: it knows one command, which prints the function.
    if isinstance(shell, StoredShell):
        hook = shell.render_hook([str(started)], home)
    else:
        hook = shell.render_hook([str(started)])
    (programs / "hook").write_text(hook, encoding="utf-8")
    (programs / "tenv").write_text(f'#!/bin/sh\n[ "$*" = "hook {session.name}" ] && exec cat {programs}/hook\nexit 9\n')
    started.chmod(0o755)
    (programs / "tenv").chmod(0o755)
    meta = home / "cpu" / "tenv-meta"
    meta.mkdir(parents=True)
    (meta / "state.json").write_text(f'{READY} "target": "tiny"}}\n')
    note_lock(meta)
    made = activation("cpu", meta.parent)
    (meta / "activation.json").write_text(made.to_json())
    for one in STORED:
        (meta / one.SCRIPT).write_text(one.render_activation(made), encoding="utf-8")
    mark(meta.parent, home)
    target = "cpu" if stored else meta / "activation.json"
    text = (
        f"{session.dialect.hook_line(session.name)}\n{session.dump('before')}tenv activate {target}\n"
        f"{session.dump('active')}tenv deactivate\n{session.dump('after')}tenv list 'two words'\n"
    )
    seen = session.seen(text, PATH=f"{programs}:/usr/bin:/bin")
    assert seen["active"]["TENV_PREFIX"] == str(meta.parent)
    assert seen["after"] == seen["before"]
    edited = f"activate\n--shell\n{session.name}\n{target}\ndeactivate\n--shell\n{session.name}\n"
    assert (programs / "started.txt").read_text() == ("" if stored else edited) + "list\ntwo words\n"
