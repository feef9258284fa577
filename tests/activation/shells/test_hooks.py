"""The hook of each installed shell activates without running a program, except where it needs one."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Activation, Change
from tenv.core.prefix import STATE_SCHEMA
from tenv.targets.search import find_project
from tests.support.marked import mark
from tests.support.project_folders import LAYOUTS
from tests.support.shells import SPOKEN, Spoken, note_lock

AT_HAND = [pytest.param(shell, id=shell.name) for shell in SPOKEN if shell.program]
PATH = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
DATA = Path("da'ta") / "envs"
NEEDED = ("bin/python", "pyvenv.cfg")


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
    (meta / shell.module.SCRIPT).write_text(shell.module.render_activation(made))
    for name in NEEDED:
        (folder / name).parent.mkdir(exist_ok=True)
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


def load(shell: Spoken, folder: Path) -> str:
    return shell.load(folder, shell.module.render_hook([str(folder / "tenv program")], folder / DATA))


@pytest.mark.parametrize("shell", AT_HAND)
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


@pytest.mark.parametrize("shell", AT_HAND)
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


@pytest.mark.parametrize("shell", AT_HAND)
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
    # fish and elvish have no `test` of their own, and nushell starts `tput` by itself.
    assert {Path(name).name for name in between} <= {"env", "wc", "test", "tput"}


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


@pytest.mark.parametrize("shell", AT_HAND)
@pytest.mark.parametrize("lock", [b"a LOCK\n", b"a lock, longer\n", "ä lock\n".encode(), b"a lock\0\n"])
def test_a_lock_of_another_size_and_the_same_time_is_looked_at(
    shell: Spoken, lock: bytes, tmp_path: Path, told: Path
) -> None:
    make_environment(shell, tmp_path / DATA / "cpu", tmp_path / DATA)
    file = tmp_path / DATA / "cpu" / "tenv-meta" / "its lock"
    noted, size = file.stat().st_mtime_ns, file.stat().st_size
    file.write_bytes(lock)
    os.utime(file, ns=(noted, noted))
    steps = [load(shell, tmp_path), shell.cd(Path("/")), shell.attempt("tenv activate cpu"), shell.shot("after")]
    shell.run(tmp_path, steps, PATH)
    asked = f"<activate><--shell><{shell.spoken}><cpu>\n"
    assert told.read_text() == (asked if len(lock) != size else "")


@pytest.mark.parametrize("shell", AT_HAND)
@pytest.mark.parametrize(
    ("state", "schema"), [("creating", STATE_SCHEMA), ("broken", STATE_SCHEMA), ("ready", 1), ("ready", 20)]
)
def test_what_is_not_ready_is_left_to_tenv(shell: Spoken, state: str, schema: int, tmp_path: Path, told: Path) -> None:
    make_environment(shell, tmp_path / DATA / "cpu", tmp_path / DATA, state, schema)
    steps = [load(shell, tmp_path), shell.cd(Path("/")), shell.attempt("tenv activate cpu"), shell.shot("after")]
    seen, _ = shell.run(tmp_path, steps, PATH)
    assert told.read_text() == f"<activate><--shell><{shell.spoken}><cpu>\n"
    assert b"TENV_TARGET" not in seen["after"]


@pytest.mark.parametrize("shell", AT_HAND)
def test_everything_else_is_passed_on(shell: Spoken, tmp_path: Path, told: Path) -> None:
    calls = ["tenv create 'two words' --json", "tenv", "tenv activate ../x", "tenv activate", "tenv deactivate --help"]
    shell.run(tmp_path, [load(shell, tmp_path), *map(shell.attempt, calls)], PATH)
    ask = f"<activate><--shell><{shell.spoken}>"
    asked = ["<create><two words><--json>", "<>", f"{ask}<../x>", ask, "<deactivate><--help>"]
    assert told.read_text().splitlines() == asked


@pytest.mark.parametrize("shell", AT_HAND)
def test_what_tenv_prints_activates(shell: Spoken, tmp_path: Path, told: Path) -> None:
    make_environment(shell, tmp_path / "el'sewhere", tmp_path / DATA)
    script = tmp_path / "el'sewhere" / "tenv-meta" / shell.module.SCRIPT
    program = told.with_name("tenv program")
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{shell.module.render_source(str(script))}EOF\n")
    steps = [load(shell, tmp_path), shell.shot("before"), f"tenv activate --prefix {tmp_path}/x\n"]
    steps += [shell.shot("active"), "tenv deactivate\n", shell.shot("after")]
    seen, _ = shell.run(tmp_path, steps, PATH)
    assert seen["active"][b"TENV_TARGET"] == b"el'sewhere"
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", AT_HAND)
def test_the_hook_finds_the_projects_that_python_finds(shell: Spoken, tmp_path: Path, told: Path) -> None:
    steps, folders = [load(shell, tmp_path)], {}
    for number, (name, (make, _)) in enumerate(LAYOUTS.items()):
        folder = folders[name] = tmp_path / f"p{number}"
        (folder / "deep").mkdir(parents=True)
        make_environment(shell, folder / ".tenv" / "envs" / "cpu", tmp_path / DATA)
        make(folder)
        steps += [shell.cd(folder / "deep"), shell.attempt("tenv activate cpu"), shell.shot(folder.name)]
        steps += [shell.attempt("tenv deactivate")]
    seen, _ = shell.run(tmp_path, steps, PATH)
    python = {name: bool(find_project(folder / "deep")[0]) for name, folder in folders.items()}
    assert python == {name: is_project for name, (_, is_project) in LAYOUTS.items()}
    found = {name: b"TENV_PREFIX" in seen[folder.name] for name, folder in folders.items()}
    if shell.name in ("elvish", "nu"):  # they can't ask for owners; the mark decides there
        del found["of another user"], python["of another user"]
    assert found == python


CHANGES: dict[str, Callable[[Path], object]] = {
    "unmarked": lambda prefix: (prefix / "tenv-meta" / "id").unlink(),
    "other-id": lambda prefix: (prefix / "tenv-meta" / "id").write_text("0" * 32),
    "climbing-id": lambda prefix: (prefix / "tenv-meta" / "id").write_text("../marks"),
    "no-python": lambda prefix: (prefix / "bin" / "python").unlink(),
    "dead-python": lambda prefix: (prefix / "bin" / "python").chmod(0o644),
    "no-config": lambda prefix: (prefix / "pyvenv.cfg").unlink(),
    "newer-config": lambda prefix: os.utime(prefix / "pyvenv.cfg", (2e9, 2e9)),
    "moved": lambda prefix: prefix.rename(prefix.with_name("aside")),
}


@pytest.mark.parametrize("shell", AT_HAND)
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
