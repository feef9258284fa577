"""The hook of each installed shell: POSIX shells and fish activate by a stored script, the others ask tenv."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Activation, Change
from tenv.activation.shells.interface import StoredShell
from tenv.core.prefix import STATE_SCHEMA
from tenv.targets.search import find_places
from tests.support.marked import mark
from tests.support.project_folders import LAYOUTS
from tests.support.shells import SPOKEN, Spoken, note_lock, write_activator

STORED = [pytest.param(shell, id=shell.name) for shell in SPOKEN if shell.program and shell.stored]
_RARE = {"xonsh": [pytest.mark.long]}
"""It takes ten times as long to start as the others: the fast tests ask it for the variables alone."""
EDITED = [
    pytest.param(shell, id=shell.name, marks=_RARE.get(shell.name, []))
    for shell in SPOKEN
    if shell.program and not shell.stored
]
QUICK = [pytest.param(shell, id=shell.name, marks=_RARE.get(shell.name, [])) for shell in SPOKEN if shell.program]
PATH = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
DATA = Path("da'ta") / "envs"
NEEDED = ("bin/python3", "bin/python", "pyvenv.cfg")


def make_environment(shell: Spoken, folder: Path, home: Path, state: str = "ready", schema: int = STATE_SCHEMA) -> None:
    meta = folder / "tenv-meta"
    meta.mkdir(parents=True)
    (meta / "state.json").write_text(f'{{"state": "{state}", "schema": {schema}, "target": "tiny"}}\n')
    note_lock(meta)
    changes = (
        Change("TENV_TARGET", Action.SET, folder.name, ""),
        Change("TENV_PREFIX", Action.SET, str(folder), ""),
        Change("PATH", Action.PREPEND, f"{folder}/bin", ""),
    )
    made = Activation(folder.name, folder, changes)
    (meta / "activation.json").write_text(made.to_json())
    if shell.stored:
        (meta / shell.stored.SCRIPT).write_text(shell.stored.render_activation(made))
    for name in NEEDED:
        (folder / name).parent.mkdir(exist_ok=True)
        if name == "bin/python":
            (folder / name).symlink_to("python3")
        else:
            (folder / name).touch(0o755)
    mark(folder, home, *NEEDED)


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """What the stand-in for tenv was asked, a line a call; it ends with 8, as for an environment that is not ready."""
    program = tmp_path / "tenv program"
    program.write_text(f"#!/bin/sh\nprintf '<%s>' \"$@\" >>'{tmp_path}/told'\necho >>'{tmp_path}/told'\nexit 8\n")
    program.chmod(0o755)
    (tmp_path / "told").write_text("")
    return tmp_path / "told"


def load(shell: Spoken, folder: Path, *words: str) -> str:
    program = words or (str(folder / "tenv program"),)
    if isinstance(shell.module, StoredShell):
        return shell.load(folder, shell.module.render_hook(program, folder / DATA))
    return shell.load(folder, shell.module.render_hook(program))


@pytest.mark.parametrize("shell", STORED)
def test_a_project_s_environment_is_activated_from_any_folder_of_it(shell: Spoken, tmp_path: Path, told: Path) -> None:
    project = tmp_path / "my project"
    (project / "manifests").mkdir(parents=True)
    (project / "manifests" / "cuda130.toml").touch()
    (project / "src" / "deep").mkdir(parents=True)
    make_environment(shell, project / ".tenv" / "envs" / "cuda130", tmp_path / DATA)
    steps = [load(shell, tmp_path), shell.cd(project / "src" / "deep"), shell.shot("before")]
    steps += ["tenv activate cuda130\n", shell.shot("active"), "tenv deactivate\n", shell.shot("after")]
    seen, said = shell.run(tmp_path, steps, PATH)
    assert (said, told.read_text()) == ("", "")
    assert seen["active"][b"TENV_PREFIX"] == os.fsencode(project / ".tenv" / "envs" / "cuda130")
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", STORED)
def test_outside_a_project_the_user_s_own_are_found(shell: Spoken, tmp_path: Path, told: Path) -> None:
    make_environment(shell, tmp_path / DATA / "cpu", tmp_path / DATA)
    make_environment(shell, tmp_path / DATA / "gpu", tmp_path / DATA)
    steps = [load(shell, tmp_path), shell.cd(Path("/")), shell.shot("before"), "tenv activate cpu\n"]
    steps += ["tenv activate gpu\n", shell.shot("inner"), "tenv deactivate\n", shell.shot("outer")]
    steps += ["tenv deactivate\n", shell.shot("after")]
    seen, said = shell.run(tmp_path, steps, PATH)
    assert (said, told.read_text()) == ("", "")
    assert (seen["inner"][b"TENV_TARGET"], seen["inner"][b"TENV_LEVEL"]) == (b"gpu", b"2")
    assert (seen["outer"][b"TENV_TARGET"], seen["outer"][b"TENV_LEVEL"]) == (b"cpu", b"1")
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", STORED)
def test_through_the_hook_no_program_of_tenv_s_starts(shell: Spoken, tmp_path: Path, told: Path) -> None:
    strace = shutil.which("strace")
    assert strace, "strace is not installed"
    make_environment(shell, tmp_path / DATA / "cpu", tmp_path / DATA)
    steps = [load(shell, tmp_path), shell.shot("before"), "tenv activate cpu\n", shell.shot("active")]
    steps += ["tenv deactivate\n", shell.shot("after")]
    trace = tmp_path / "trace"
    # A file for each process: in one file, a call that another interrupts stands in two pieces.
    before = (strace, "-ff", "-qq", "-ttt", "-e", "trace=execve", "-o", str(trace))
    seen, said = shell.run(tmp_path, steps, PATH, before)
    assert (said, told.read_text(), seen["active"][b"TENV_TARGET"]) == ("", "", b"cpu")
    lines = sorted(line for file in tmp_path.glob("trace.*") for line in file.read_text().splitlines())
    started = [found[1] for line in lines if (found := re.search(r'execve\("([^"]+)".* = 0$', line))]
    between = started[started.index("/usr/bin/env") :]
    assert between.count("/usr/bin/env") == len(seen)
    # The `test` of fish compares no times in old versions.
    assert {Path(name).name for name in between} <= {"env", "wc", "test"}


@pytest.mark.parametrize(
    "shell", [pytest.param(s, id=s.name) for s in SPOKEN if s.program and s.name in ("bash", "zsh")]
)
def test_bash_and_zsh_activate_without_a_process(shell: Spoken, tmp_path: Path, told: Path) -> None:
    strace = shutil.which("strace")
    assert strace, "strace is not installed"
    make_environment(shell, tmp_path / DATA / "cpu", tmp_path / DATA)
    trace = tmp_path / "trace"
    steps = [
        load(shell, tmp_path),
        "tenv activate cpu\n",
        "tenv activate cpu\n",
        shell.shot("active"),
        "tenv deactivate\n",
    ]
    before = (strace, "-f", "-qq", "-e", "trace=fork,vfork,clone,clone3", "-o", str(trace))
    seen, said = shell.run(tmp_path, [*steps, shell.shot("after")], PATH, before)
    assert (said, told.read_text(), seen["active"][b"TENV_LEVEL"]) == ("", "", b"1")
    started = [line for line in trace.read_text().splitlines() if re.search(r"fork\(|clone3?\(", line)]
    assert len(started) <= len(seen), started  # the snapshots


@pytest.mark.parametrize("shell", STORED)
def test_a_lock_of_another_size_and_the_same_time_is_looked_at(shell: Spoken, tmp_path: Path, told: Path) -> None:
    locks = {"same": b"a LOCK\n", "longer": b"a lock, longer\n", "wide": "ä lock\n".encode(), "nul": b"a lock\0\n"}
    steps = [load(shell, tmp_path), shell.cd(Path("/"))]
    for name, lock in locks.items():
        make_environment(shell, tmp_path / DATA / name, tmp_path / DATA)
        file = tmp_path / DATA / name / "tenv-meta" / "its lock"
        noted = file.stat().st_mtime_ns
        file.write_bytes(lock)
        os.utime(file, ns=(noted, noted))
        steps.append(shell.attempt(f"tenv activate {name}"))
    shell.run(tmp_path, steps, PATH)
    asked = f"<activate><--shell><{shell.spoken}>"
    assert told.read_text().splitlines() == [f"{asked}<{name}>" for name in locks if name != "same"]


@pytest.mark.parametrize("shell", STORED)
def test_what_is_not_ready_is_left_to_tenv(shell: Spoken, tmp_path: Path, told: Path) -> None:
    states = [("creating", STATE_SCHEMA), ("broken", STATE_SCHEMA), ("ready", 1), ("ready", 20)]
    steps = [load(shell, tmp_path), shell.cd(Path("/"))]
    for number, (state, schema) in enumerate(states):
        make_environment(shell, tmp_path / DATA / f"e{number}", tmp_path / DATA, state, schema)
        steps.append(shell.attempt(f"tenv activate e{number}"))
    seen, _ = shell.run(tmp_path, [*steps, shell.shot("after")], PATH)
    asked = f"<activate><--shell><{shell.spoken}>"
    assert told.read_text().splitlines() == [f"{asked}<e{number}>" for number in range(len(states))]
    assert b"TENV_TARGET" not in seen["after"]


@pytest.mark.parametrize("shell", QUICK)
def test_everything_else_is_passed_on(shell: Spoken, tmp_path: Path, told: Path) -> None:
    """Neither loading the hook nor the prompt asks tenv anything."""
    calls = ["tenv create 'two words' --json", "tenv", "tenv activate ../x", "tenv activate", "tenv deactivate --help"]
    prompt = "do $env.PROMPT_COMMAND | print\n" if shell.name == "nu" else ""
    steps = [load(shell, tmp_path), prompt, shell.shot("loaded"), *map(shell.attempt, calls)]
    seen, _ = shell.run(tmp_path, steps, PATH | {"TENV_TARGET": "cpu"})
    ask, undo = f"<activate><--shell><{shell.spoken}>", "<deactivate><--help>"
    if not shell.stored:
        undo = f"<deactivate><--shell><{shell.spoken}><--help>"
    asked = ["<create><two words><--json>", "<>", f"{ask}<../x>", ask, undo]
    assert (told.read_text().splitlines(), seen["loaded"][b"TENV_TARGET"]) == (asked, b"cpu")


@pytest.mark.parametrize("shell", STORED)
def test_what_tenv_prints_activates(shell: Spoken, tmp_path: Path, told: Path) -> None:
    make_environment(shell, tmp_path / "el'sewhere", tmp_path / DATA)
    assert shell.stored
    script = tmp_path / "el'sewhere" / "tenv-meta" / shell.stored.SCRIPT
    program = told.with_name("tenv program")
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{shell.stored.render_source(str(script))}EOF\n")
    steps = [load(shell, tmp_path), shell.shot("before"), f"tenv activate --prefix {tmp_path}/x\n"]
    steps += [shell.shot("active"), "tenv deactivate\n", shell.shot("after")]
    seen, _ = shell.run(tmp_path, steps, PATH)
    assert seen["active"][b"TENV_TARGET"] == b"el'sewhere"
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", STORED)
def test_the_hook_finds_the_environments_that_python_finds(shell: Spoken, tmp_path: Path, told: Path) -> None:
    steps, folders = [load(shell, tmp_path)], {}
    make_environment(shell, tmp_path / DATA / "cpu", tmp_path / DATA)
    for number, (name, (make, _)) in enumerate(LAYOUTS.items()):
        folder = folders[name] = tmp_path / f"p{number}"
        (folder / "deep").mkdir(parents=True)
        for home in (folder, folder / "deep"):
            make_environment(shell, home / ".tenv" / "envs" / "cpu", tmp_path / DATA)
        make(folder)
        steps += [shell.cd(folder / "deep"), shell.attempt("tenv activate cpu"), shell.shot(folder.name)]
        steps += [shell.attempt("tenv deactivate")]
    seen, _ = shell.run(tmp_path, steps, PATH)
    for name, folder in folders.items():
        places = find_places(folder / "deep")
        wanted = places.environments() if places.checkout or places.project else tmp_path / DATA
        found = seen[folder.name].get(b"TENV_PREFIX", b"").decode()
        assert found == ("" if places.refused else str(wanted / "cpu")), name
        assert bool(places.project) == LAYOUTS[name][1], name


@pytest.mark.parametrize("shell", EDITED)
def test_other_shells_get_the_variables_from_tenv(shell: Spoken, tmp_path: Path) -> None:
    program = str(write_activator(tmp_path))
    for name in ("cpu", "gpu"):
        make_environment(shell, tmp_path / name, tmp_path / DATA)
    steps = [load(shell, tmp_path, program), shell.shot("before")]
    for name in ("cpu", "gpu"):
        steps += [f"tenv activate {tmp_path / name / 'tenv-meta' / 'activation.json'}\n", shell.shot(name)]
    steps += ["tenv deactivate\n", shell.shot("outer"), "tenv deactivate\n", shell.shot("after"), "tenv deactivate\n"]
    seen, said = shell.run(tmp_path, steps, PATH)
    assert said == "tenv: no environment is active\n"
    assert (seen["cpu"][b"TENV_TARGET"], seen["cpu"][b"TENV_LEVEL"]) == (b"cpu", b"1")
    assert seen["cpu"][b"PATH"] == f"{tmp_path}/cpu/bin:/usr/bin:/bin".encode()
    assert (seen["gpu"][b"TENV_TARGET"], seen["gpu"][b"TENV_LEVEL"]) == (b"gpu", b"2")
    assert seen["outer"] == seen["cpu"]
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize(
    "shell",
    [pytest.param(s, id=s.name, marks=_RARE.get(s.name, [])) for s in SPOKEN if s.program and not s.stored],
)
def test_help_and_json_are_printed_and_not_run(shell: Spoken, tmp_path: Path, told: Path) -> None:
    texts = {"--help": "Usage: tenv activate [TARGET]\n", "--json": '{\n  "tenv": "1",\n  "data": null\n}\n'}
    cases = "".join(f"*{word}*) cat <<'EOF'\n{text}EOF\n;;\n" for word, text in texts.items())
    told.with_name("tenv program").write_text(f'#!/bin/sh\ncase "$*" in\n{cases}esac\n')
    steps = [load(shell, tmp_path), shell.shot("before")]
    for word in texts:
        steps += [f"tenv activate {word}\n", shell.shot(word), shell.shot(f"after{word}")]
    seen, said = shell.run(tmp_path, steps, PATH)
    assert said == ""
    for word, text in texts.items():
        assert next(iter(seen[word])).startswith(text.strip().encode())  # the snapshot begins behind it
        assert seen[f"after{word}"] == seen["before"]


@pytest.mark.parametrize("shell", STORED)
def test_no_hook_uses_an_environment_of_another_user(shell: Spoken, tmp_path: Path, told: Path) -> None:
    """tenv, which is asked instead, refuses such a folder: `test_search.py`, `test_foreign.py`."""
    if os.geteuid():
        pytest.skip("root alone gives folders away")
    for name in ("own", "given"):
        make_environment(shell, tmp_path / DATA / name, tmp_path / DATA)
    project = tmp_path / "project"
    (project / "manifests").mkdir(parents=True)
    (project / "manifests" / "cpu.toml").touch()
    make_environment(shell, project / ".tenv" / "envs" / "cpu", tmp_path / DATA)
    for folder in (tmp_path / DATA / "given", project):
        os.chown(folder, 65534, 65534)
    steps = [load(shell, tmp_path), shell.cd(Path("/")), shell.attempt("tenv activate own"), shell.shot("own")]
    steps += [shell.attempt("tenv deactivate"), shell.attempt("tenv activate given"), shell.shot("given")]
    steps += [shell.cd(project), shell.attempt("tenv activate cpu"), shell.shot("project")]
    seen, _ = shell.run(tmp_path, steps, PATH)
    assert [name for name in ("own", "given", "project") if b"TENV_PREFIX" in seen[name]] == ["own"]
    asked = f"<activate><--shell><{shell.spoken}>"
    assert told.read_text().splitlines() == [f"{asked}<given>", f"{asked}<cpu>"]


def link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


CHANGES: dict[str, Callable[[Path], object]] = {
    "unmarked": lambda prefix: (prefix / "tenv-meta" / "id").unlink(),
    "other-id": lambda prefix: (prefix / "tenv-meta" / "id").write_text("0" * 32),
    "climbing-id": lambda prefix: (prefix / "tenv-meta" / "id").write_text("../marks"),
    "no-python": lambda prefix: (prefix / "bin" / "python").unlink(),
    "dead-python": lambda prefix: (prefix / "bin" / "python").chmod(0o644),
    "other-python": lambda prefix: link(prefix / "bin" / "python", "/bin/true"),
    "other-program": lambda prefix: link(prefix / "bin" / "python3", "/bin/true"),
    "python-folder": lambda prefix: link(prefix / "bin" / "python", "."),
    "folder": lambda prefix: as_folder(prefix / "bin" / "python3"),
    "no-config": lambda prefix: (prefix / "pyvenv.cfg").unlink(),
    "newer-config": lambda prefix: os.utime(prefix / "pyvenv.cfg", (2e9, 2e9)),
    "moved": lambda prefix: prefix.rename(prefix.with_name("aside")),
}


@pytest.mark.parametrize("shell", STORED)
def test_what_carries_no_mark_or_is_not_whole_is_left_to_tenv(shell: Spoken, tmp_path: Path, told: Path) -> None:
    names = ["aside", "linked", *(name for name in CHANGES if name != "moved")]
    for name, change in CHANGES.items():
        make_environment(shell, tmp_path / DATA / name, tmp_path / DATA)
        change(tmp_path / DATA / name)
    make_environment(shell, tmp_path / DATA / "real", tmp_path / DATA)
    (tmp_path / DATA / "linked").symlink_to("real")
    steps = [load(shell, tmp_path), shell.cd(Path("/"))]
    for name in names:
        steps += [shell.attempt(f"tenv activate {name}"), shell.shot(name)]
    seen, _ = shell.run(tmp_path, steps, PATH)
    assert [name for name in names if b"TENV_PREFIX" in seen[name]] == []
    assert len(told.read_text().splitlines()) == len(names)
