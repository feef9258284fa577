"""The parts that every shell must have: a row of `SHELLS`, a row of the docs, and a row of `SPOKEN` that runs it.

A new module asks for ``dialects/MODULE.py`` in this folder, with `DIALECT`: see `tests.support.dialect`. The cases that
each shell runs stand in ``shells/test_matrix.py``, further ones in ``shells/test_MODULE.py``.
"""

import importlib
import os
import pkgutil
import re
import shutil
from pathlib import Path

import pytest

from tenv.activation import shells
from tenv.activation.changes import Action, Activation, Change, read_activation
from tenv.activation.levels import activated, edits
from tenv.activation.shells.interface import (
    _UNSUPPORTED,
    SHELLS,
    STORED,
    Shell,
    StoredShell,
    find_shell,
    known_shells,
)
from tenv.core.prefix import READY
from tests.support.dialect import AWKWARD, Dialect
from tests.support.each import each
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
OF_SYSTEM = ("sh", "bash")
"""The shells that every machine of the tests has, and that `.ci/run` so need not install."""


def module_of(shell: Shell) -> str:
    return str(vars(shell).get("__name__", type(shell).__module__)).rpartition(".")[2]


def dialect_of(name: str) -> Dialect:
    found: Dialect = importlib.import_module(f"tests.activation.dialects.{module_of(find_shell(name))}").DIALECT
    return found


def test_every_module_is_in_the_list_once() -> None:
    assert [name for name in MODULES if name not in map(module_of, SHELLS)] == [], "a name in `SHELLS` is missing"
    assert sorted(map(module_of, SHELLS)) == MODULES
    assert len(set(NAMES)) == len(NAMES)
    assert [name for name in NAMES if name in _UNSUPPORTED] == [], "`_UNSUPPORTED` in shells/interface.py lists it, too"


def test_every_module_says_how_it_is_run() -> None:
    assert [name for name in MODULES if name not in FILES] == [], "tests/activation/dialects/MODULE.py is missing"
    assert MODULES == FILES


@each("name", NAMES)
def test_a_shell_is_installed_where_the_tests_run(name: str) -> None:
    dialect = dialect_of(name)
    if name in dialect.installed_by:
        package = re.escape(dialect.installed_by[name])
        installed = re.search(rf"(?<!\S){package}(?!\S)", (ROOT / ".ci" / "run").read_text())
        assert installed, f"`.ci/run` installs no package {dialect.installed_by[name]}"
    elif name in dialect.never_run:
        assert shutil.which(name) is None, f"{name} is here: it can be run"
    else:
        file = f"tests/activation/dialects/{module_of(find_shell(name))}.py"
        assert name in OF_SYSTEM, f"{file} lacks `installed_by`, the package that `.ci/run` installs, or `never_run`"
        assert shutil.which(name), f"{name} is not on PATH"


@each("name", NAMES)
def test_a_shell_is_in_the_matrix_or_has_tests_of_its_own(name: str) -> None:
    module = module_of(find_shell(name))
    if module in [module_of(spoken.module) for spoken in SPOKEN]:
        return
    assert name in dialect_of(name).never_run, f"a row of `SPOKEN` in tests/support/shells.py for {module} is missing"
    file = Path(__file__).parent / "shells" / f"test_{module}.py"
    tests = re.findall(r"^def test_\w+\(", file.read_text(), re.MULTILINE) if file.is_file() else []
    assert tests, f"a row of `SPOKEN` in tests/support/shells.py, or tests/activation/shells/{file.name}, is missing"


@each("name", NAMES)
def test_the_docs_have_every_shell(name: str) -> None:
    rows = re.findall(rf"^\| `{re.escape(name)}` \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 1, f"the table of shells in docs/activation.md lacks a row for `{name}`"
    line = dialect_of(name).hook_line(name).replace("|", "\\|")
    assert f"`{line}`" in rows[0]


@each("command", ["activate", "deactivate", "hook"])
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


@each("name", NAMES)
def test_awkward_values_are_quoted(name: str, tmp_path: Path) -> None:
    quoted, shell = dialect_of(name).quoted, find_shell(name)
    assert sorted(quoted) == sorted(AWKWARD)
    for value in AWKWARD:
        made = Activation("x", tmp_path, (Change("VALUE", Action.SET, value, ""),))
        if isinstance(shell, StoredShell):
            assert quoted[value] in shell.render_activation(made)
        else:
            assert quoted[value] in shell.render_edits({"VALUE": value})


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


@pytest.mark.parametrize("spoken", [pytest.param(s, id=s.name) for s in SPOKEN if s.program and s.name in NAMES])
def test_the_line_of_the_docs_defines_a_function_that_activates(spoken: Spoken, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    started = programs / "started"
    answers = f'case $1 in activate | deactivate) exec {write_activator(tmp_path)} "$@" ;; esac\n'
    started.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>"$0.txt"\n{answers}')
    home = tmp_path / "data" / "envs"
    # This one stands for tenv itself: it knows one command, which prints the function.
    if isinstance(spoken.module, StoredShell):
        hook = spoken.module.render_hook([str(started)], home)
    else:
        hook = spoken.module.render_hook([str(started)])
    (programs / "hook").write_text(hook, encoding="utf-8")
    (programs / "tenv").write_text(f'#!/bin/sh\n[ "$*" = "hook {spoken.name}" ] && exec cat {programs}/hook\nexit 9\n')
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
    target = "cpu" if spoken.stored else meta / "activation.json"
    steps = [f"{dialect_of(spoken.name).hook_line(spoken.name)}\n", spoken.shot("before"), f"tenv activate {target}\n"]
    steps += [spoken.shot("active"), "tenv deactivate\n", spoken.shot("after"), "tenv list 'two words'\n"]
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    seen, said = spoken.run(tmp_path, steps, environment)
    assert (said, seen["active"][b"TENV_PREFIX"]) == ("", os.fsencode(meta.parent))
    assert seen["after"] == seen["before"]
    edited = f"activate\n--shell\n{spoken.name}\n{target}\ndeactivate\n--shell\n{spoken.name}\n"
    assert (programs / "started.txt").read_text() == ("" if spoken.stored else edited) + "list\ntwo words\n"
