"""The short way and the whole program give the same answer; where they might not, the short way gives none."""

import contextlib
import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from tenv.activation.shells import posix
from tenv.core.files import digest
from tenv.quick import short_way as quick
from tenv.quick.noted_environment import look
from tests.quick.ways import ways
from tests.support.projects import Project, call

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the short way is for Linux alone")

META = "tenv-meta"
SOURCE = str(Path(quick.__file__).parents[2])


def found(project: Project) -> bool:
    """Return whether the short way takes the environment; if so, the program must take it without a word."""
    taken = quick._find("tiny")
    if taken:
        said = project.ok("activate", "tiny", "--shell", "bash")
        assert (said.out, said.err) == (f". {taken.prefix}/{META}/activate.sh\n", "")
    return bool(taken)


def test_a_ready_environment_is_taken(both: Project) -> None:
    assert found(both)


def _append(name: str) -> Callable[[Project], object]:
    def change(project: Project) -> None:
        path = project.prefix / name
        before = path.stat()
        path.write_bytes(path.read_bytes() + b" ")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return change


def _remove(name: str) -> Callable[[Project], object]:
    return lambda project: (project.prefix / name).unlink()


def _moved(project: Project) -> None:
    project.prefix.rename(project.prefix.with_name("aside"))
    project.prefix.with_name("aside").rename(project.prefix)
    shutil.move(project.folder, project.folder.with_name("other"))
    shutil.copytree(project.folder.with_name("other"), project.folder, symlinks=True)


def _replaced_by_link(project: Project) -> None:
    project.prefix.rename(project.prefix.with_name("aside"))
    project.prefix.symlink_to("aside")


def _state(key: str, value: object) -> Callable[[Project], object]:
    return lambda project: project.state_file.write_text(json.dumps(project.state() | {key: value}))


def _touch_lock(project: Project) -> None:
    os.utime(project.lock, (1, 1))


def _grow_lock(project: Project) -> None:
    info = project.lock.stat()
    project.lock.write_bytes(project.lock.read_bytes() + b"\n# more\n")
    os.utime(project.lock, ns=(info.st_atime_ns, info.st_mtime_ns))


def _give_away(name: str) -> Callable[[Project], object]:
    def change(project: Project) -> None:
        if os.geteuid():
            pytest.skip("root alone gives files away")
        os.chown(project.folder / name, 4711, 4711)

    return change


def _mark_of_another(project: Project) -> None:
    if os.geteuid():
        pytest.skip("root alone gives files away")
    name = (project.prefix / META / "id").read_text().strip()
    marks = Path(os.environ["XDG_DATA_HOME"]) / "tenv" / "marks"
    os.chown(marks / name, 4711, 4711)


def _without_rights(project: Project) -> None:
    _remove("bin/python")(project)
    (project.prefix / "bin/python").touch(0o644)


def _fifo(project: Project) -> None:
    project.state_file.unlink()
    os.mkfifo(project.state_file)


CHANGES: dict[str, Callable[[Project], object]] = {
    "a copy": _moved,
    "a link": _replaced_by_link,
    "no mark": _remove(f"{META}/id"),
    "a mark of another user": _mark_of_another,
    "a prefix of another user": _give_away(".tenv/envs/tiny"),
    "a project of another user": _give_away("."),
    "no state": _remove(f"{META}/state.json"),
    "state: creating": _state("state", "creating"),
    "state: a newer schema": _state("schema", 3),
    "state: a list for a number": _state("schema", [2]),
    "state: another target": _state("target", "other"),
    "state: a number": _state("target", 1),
    "state: made is empty": _state("made", ""),
    "state: packages": _state("packages", {"alpha": ["1"]}),
    "state: features": _state("features", "debug"),
    "state: bytes": _state("bytes", "many"),
    "state is cut after a brace": lambda project: project.state_file.write_text("{"),
    "state is cut in a text": lambda project: project.state_file.write_text('{"state": "rea'),
    "state is no value": lambda project: project.state_file.write_text('{"state": nothing}'),
    "state is no JSON": lambda project: project.state_file.write_text('{"state": "ready"'),
    "made.json changed": _append(f"{META}/made.json"),
    "no made.json": _remove(f"{META}/made.json"),
    "activation.json changed": _append(f"{META}/activation.json"),
    "no activation.json": _remove(f"{META}/activation.json"),
    "activate.sh changed": _append(f"{META}/activate.sh"),
    "pyvenv.cfg changed": _append("pyvenv.cfg"),
    "no pyvenv.cfg": _remove("pyvenv.cfg"),
    "no Python": _remove("bin/python"),
    "a Python that can't be run": _without_rights,
    "a fifo": _fifo,
    "no note": _remove(f"{META}/lock-note"),
    "a lock of another time": _touch_lock,
    "a lock of another size": _grow_lock,
    "no lock": lambda project: project.lock.unlink(),
    "no manifest": lambda project: project.manifest.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_as_it_was_made_is_left_to_the_program(change: str, both: Project) -> None:
    both.ok("create", "tiny")
    CHANGES[change](both)
    assert not found(both)
    assert not quick._create(["tiny"])


def _signed(project: Project, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the activation and every digest that vouches for it, as only the user's own programs can."""
    meta = project.prefix / META
    data = json.loads((meta / "activation.json").read_text())
    change(data)
    (meta / "activation.json").write_text(json.dumps(data))
    made = json.loads((meta / "made.json").read_text())
    made[f"{META}/activation.json"] = f"sha256:{digest(meta / 'activation.json')}"
    (meta / "made.json").write_text(json.dumps(made))
    project.state_file.write_text(json.dumps(project.state() | {"made": digest(meta / "made.json")}))


@pytest.mark.parametrize(
    ("key", "value", "taken"),
    [
        ("reason", "another", True),
        ("name", "A;B", False),
        ("name", "Ä", False),
        ("name", 1, False),
        ("value", "a\0b", False),
        ("value", None, False),
        ("action", "replace", False),
        ("separator", 1, False),
    ],
)
def test_an_activation_that_tenv_would_not_write_is_left_to_the_program(
    key: str, value: object, *, taken: bool, both: Project
) -> None:
    _signed(both, lambda data: data["changes"][0].update({key: value}))
    assert found(both) is taken


def test_no_byte_of_a_note_can_change(both: Project) -> None:
    """What a record says is never taken on trust: with any of its lines gone, the program decides."""
    for name in ("made.json", "activation.json", "state.json", "id"):
        path = both.prefix / META / name
        before = path.read_bytes()
        for cut in range(0, len(before) - 1, max(1, len(before) // 40)):
            path.write_bytes(before[:cut] + before[cut + 1 :])
            found(both)  # if it is taken, the program takes it as well
            assert name == "state.json" or not look(str(both.prefix), _data()), (name, cut)
        path.write_bytes(before)
    assert found(both)


def _data() -> str:
    return str(Path(os.environ["XDG_DATA_HOME"]) / "tenv")


PROGRAM = "env | grep -v ^_= | sort; grep SigIgn /proc/self/status"


def test_both_ways_start_the_same_program(both: Project) -> None:
    short, whole = ways(both, "run", "tiny", "--", "sh", "-c", PROGRAM, A="1", PYTHONHOME="")
    assert short.status == whole.status == 0
    assert (short.out, short.err) == (whole.out.replace(f"{quick.OFF}=0\n", ""), whole.err)
    assert f"TENV_PREFIX={both.prefix}" in short.out
    assert int(short.out.split()[-1], 16) & 1 << signal.SIGPIPE - 1 == 0


COMMANDS = [
    ("list",),
    ("list", "--json"),
    ("list", "extra"),
    ("run", "tiny", "--", "sh", "-c", "exit 3"),
    ("run", "tiny", "sh", "-c", "echo $0 $1", "--json", "-q"),
    ("run", "tiny", "--json", "true"),
    ("run", "tiny", "--", "no-such-program"),
    ("run", "tiny", "--"),
    ("run", "tiny"),
    ("run",),
    ("run", "", "--", "true"),
    ("run", "", "true"),
    ("activate", "", "--shell", "sh"),
    ("run", "--", "printenv", "TENV_TARGET"),
    ("run", "tniy", "--", "true"),
    ("run", "--locked", "tiny", "--", "printenv", "TENV_PREFIX"),
    ("activate", "tiny", "--shell", "zsh"),
    ("activate", "--shell", "dash"),
    ("activate", "tiny", "--shell", "fish"),
    ("activate", "tiny", "--shell", "tclsh"),
    ("activate", "tiny", "--shell"),
    ("activate", "tiny", "more", "--shell", "sh"),
    ("--version",),
    ("version",),
    ("-V",),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_both_ways_say_the_same(words: tuple[str, ...], both: Project) -> None:
    short, whole = ways(both, *words)
    assert short == whole


@pytest.mark.parametrize("value", ["1", "0", "", "maybe"])
def test_a_flag_of_the_environment_counts_on_both_ways(value: str, both: Project) -> None:
    short, whole = ways(both, "run", "tiny", "--", "true", TENV_LOCKED=value)
    assert short == whole
    assert short.status == (2 if value == "maybe" else 0)


def test_a_file_without_an_interpreter_is_reported_by_the_program(both: Project) -> None:
    program = both.folder / "program"
    program.write_bytes(b"\x7fELF nothing")
    program.chmod(0o755)
    short, whole = ways(both, "run", "tiny", "--", "./program")
    assert short == whole
    assert short.status != 0


def test_an_output_that_can_t_be_written_is_reported_by_the_program(both: Project) -> None:
    short, whole = ways(both, "list", wrapped=("sh", "-c", 'exec "$@" >/dev/full', "sh"))
    assert short == whole
    assert (short.status, short.err.count("No space left")) == (8, 1)


def test_a_built_torch_is_listed_on_both_ways(both: Project) -> None:
    note = both.site() / "torch-2.9.0.dist-info" / "tenv-build.json"
    note.parent.mkdir()
    values = {"version": "2.9.0", "target": "tiny", "prefix": str(both.prefix), "checkout": "/src", "commit": "abc"}
    note.write_text(json.dumps(values))
    short, whole = ways(both, "list")
    assert short == whole
    assert "2.9.0 (commit abc)" in short.out


def _rest_of(terminal: int) -> bytes:
    """Return what was written to a terminal, in however many pieces, and close it."""
    pieces = b""
    with contextlib.suppress(OSError):  # EIO: nobody writes to it any more
        while piece := os.read(terminal, 65536):
            pieces += piece
    os.close(terminal)
    return pieces


@pytest.mark.parametrize("columns", [40, 70, 400])
def test_a_terminal_shows_the_same_on_both_ways(columns: int, both: Project) -> None:
    shown = []
    for value in ("1", "0"):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        words = [sys.executable, "-m", "tenv", "list"]
        environ = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
        subprocess.run(words, stdout=theirs, env={**environ, quick.OFF: value}, check=True, timeout=60)
        os.close(theirs)
        shown.append(_rest_of(ours))
    assert shown[0] == shown[1]
    assert b"tiny" in shown[0]
    assert both.prefix.is_dir()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": "ready", "schema": 99}', '{"state": "ready"'])
def test_a_state_that_is_not_tenv_s_is_a_row_of_the_list_on_both_ways(text: str, both: Project) -> None:
    both.state_file.write_text(text)
    short, whole = ways(both, "list")
    assert short == whole
    assert (short.status, short.out.splitlines()[1].split()[:2]) == (0, ["tiny", "broken"])
    assert call("list", "--check").status == 1


def test_a_lost_state_is_a_row_of_the_list_on_both_ways(both: Project) -> None:
    both.state_file.unlink()
    short, whole = ways(both, "list")
    assert short == whole
    assert short.out.splitlines()[1].split()[:2] == ["tiny", "broken"]
    assert call("list", "--check").status == 1


def test_the_shells_are_those_of_the_program() -> None:
    assert quick._POSIX == posix.NAMES


HEAVY = {
    "click",
    "collections",
    "dataclasses",
    "enum",
    "hashlib",
    "json",
    "pathlib",
    "re",
    "shutil",
    "signal",
    "typing",
}


def start(*words: str, out: "IO[str] | int" = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    """Run a command and print the modules that it has loaded, unless it becomes another program."""
    code = (
        f"import os, sys; sys.path.insert(0, {SOURCE!r}); sys.argv = ['tenv', *sys.argv[1:]]\n"
        "from tenv import __main__\n"
        "end = __main__.leave\n"
        "__main__.leave = lambda status: (print(*sys.modules, file=sys.stderr), end(status))\n"
        "__main__.run()"
    )
    program = [sys.executable, "-I", "-S", "-c", code, *words]
    return subprocess.run(program, stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=60)


@pytest.mark.parametrize("words", [("list",), ("--version",), ("activate", "tiny", "--shell", "sh")], ids=" ".join)
def test_a_short_command_loads_no_library(words: tuple[str, ...], both: Project) -> None:
    done = start(*words)
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr
    assert HEAVY.intersection(done.stderr.split()) == set()
    assert both.prefix.is_dir()
