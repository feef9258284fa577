"""Which Python process is which: command lines as debugpy, torch and multiprocessing make them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenv.debugging.python_processes import PythonProcess, Role, choose, matching, python_processes

EXTENSION = "/home/me/.vscode/extensions/ms-python.debugpy-2024.6.0/bundled/libs/debugpy"


def write_process(proc: Path, pid: int, parent: int, words: Sequence[str], exe: str = "/usr/bin/python3.11") -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_text("\0".join(words) + "\0")
    (folder / "status").write_text(f"Name:\tpython\nPPid:\t{parent}\nTracerPid:\t0\nUid:\t7\t7\t7\t7\n")
    (folder / "exe").symlink_to(exe)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine on which an editor debugs a program with two workers."""
    script = ["/env/bin/python", "/src/aaa.py"]
    rows: list[tuple[int, int, list[str]]] = [
        (100, 1, ["/env/bin/python", f"{EXTENSION}/adapter", "--access-token", "x"]),
        (101, 1, ["/env/bin/python", f"{EXTENSION}/launcher", "63215", "--", "/src/aaa.py"]),
        (102, 101, ["/env/bin/python", f"{EXTENSION}/launcher/../../debugpy", "--connect", "1:2", "/src/aaa.py"]),
        (110, 1, ["/env/bin/python", "-m", "debugpy", "--listen", "5678", "/src/bbb.py"]),
        (111, 110, ["/env/bin/python", "/env/lib/python3.11/site-packages/debugpy/adapter", "--for-server", "1"]),
        (120, 1, script),
        (121, 120, script),
        (122, 120, script),
        (123, 120, ["/env/bin/python", "-c", "from multiprocessing.resource_tracker import main;main(3)"]),
        (124, 120, ["/env/bin/python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()", "--f"]),
        (130, 1, ["/env/bin/python", "/env/bin/torchrun", "--nproc-per-node=2", "train.py"]),
        (131, 130, ["/env/bin/python", "-u", "train.py"]),
    ]
    for pid, parent, words in rows:
        write_process(tmp_path, pid, parent, words)
    write_process(tmp_path, 140, 1, ["vim", "aaa.py"], "/usr/bin/vim")
    (tmp_path / "self").mkdir()
    return tmp_path


def test_each_process_has_its_role(proc: Path) -> None:
    roles = {row.pid: row.role for row in python_processes(proc)}
    assert roles == {
        100: Role.ADAPTER,
        101: Role.LAUNCHER,
        102: Role.DEBUGGED,
        110: Role.DEBUGGED,
        111: Role.ADAPTER,
        120: Role.PROGRAM,
        121: Role.FORKED,
        122: Role.FORKED,
        123: Role.TRACKER,
        124: Role.SPAWNED,
        130: Role.TORCHRUN,
        131: Role.PROGRAM,
    }


def test_a_name_finds_the_program_among_its_helpers(proc: Path) -> None:
    found = matching(python_processes(proc), "bbb.py")
    assert [row.pid for row in found] == [110]
    found = matching(python_processes(proc), "train.py")
    assert [row.pid for row in found] == [130, 131]
    chosen = choose(found)
    assert chosen
    assert chosen.pid == 131


def test_two_programs_of_one_name_are_left_to_the_user(proc: Path) -> None:
    found = matching(python_processes(proc), "aaa.py")
    assert [row.pid for row in found] == [101, 102, 120, 121, 122]
    assert choose(found) is None


def test_a_part_of_the_command_line_counts_where_no_word_does(proc: Path) -> None:
    assert [row.pid for row in matching(python_processes(proc), "nproc")] == [130]
    assert matching(python_processes(proc), "vim") == []


def test_a_long_command_is_shown_on_one_line() -> None:
    row = PythonProcess(1, 0, ("python", "-c", "import a\nimport b\n" * 40), Role.PROGRAM, 0, 0)
    assert row.command.startswith("python -c import a import b")
    assert (len(row.command), "\n" in row.command) == (160, False)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_process_of_this_machine_is_found() -> None:
    words = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", "a-mark-of-this-test"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        (row,) = matching(python_processes(), "a-mark-of-this-test")
        assert (row.pid, row.parent, row.role, row.user) == (child.pid, os.getpid(), Role.PROGRAM, os.getuid())
        child.communicate()
