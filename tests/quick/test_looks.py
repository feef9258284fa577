"""Looks that are repeated: what each sees, and how the programs among them end."""

import glob
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenv.cli import answer_note
from tenv.core import process
from tenv.quick import looks
from tenv.quick.noted_answer import is_as_noted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there looks are repeated")


@pytest.fixture(params=["on a disk", "in memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    shared = Path("/dev/shm")  # noqa: S108 (files among devices)
    if request.param == "on a disk" or not os.access(shared, os.W_OK):
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(dir=shared))
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("kind", looks.LOOKS)
def test_each_look_sees_what_changes(kind: str, folder: Path) -> None:
    path = folder / "it"
    look = looks.LOOKS[kind]
    words = f"{path}\0{os.R_OK}" if kind == "a" else str(path)
    seen = [look(words)]
    if kind in "de":
        path.mkdir()
        seen.append(look(words))
        (path / "file").touch()
        seen.append(look(words))
        if kind == "e":
            (path / "file").unlink()
            (path / "file").mkdir()
            seen.append(look(words))
    elif kind == "r":
        path.symlink_to("here")
        seen.append(look(words))
        path.unlink()
        path.symlink_to("there")
        seen.append(look(words))
    else:
        path.write_text("one")
        seen.append(look(words))
        if kind != "a":
            path.write_text("three")
            seen.append(look(words))
            path.chmod(0o600)
            seen.append(look(words))
    assert len(set(seen)) == len(seen)
    assert look(words) == seen[-1]


def test_a_program_that_goes_on_without_streams_is_not_waited_for() -> None:
    program = looks.Program(["/bin/sh", "-c", "exec >&- 2>&-; sleep 30"], {})
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        program.end()
    program.stop()
    assert time.monotonic() - begun < 20


def test_a_program_that_does_not_start_leaves_no_pipe() -> None:
    before = [*Path("/proc/self/fd").iterdir()]
    with pytest.raises(FileNotFoundError):
        looks.Program(["/nowhere/program"], {})
    assert [*Path("/proc/self/fd").iterdir()] == before


def test_no_program_is_left_behind(tmp_path: Path) -> None:
    words = ["/bin/sh", "-c", f"sleep 3; touch {tmp_path / 'late'}"]
    with pytest.raises(KeyError):
        is_as_noted({"programs": [[words, {}, ""]], "looks": [["unknown", "/", ""]]})
    time.sleep(4)
    assert not (tmp_path / "late").exists()


def test_a_glob_is_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Globber:
        scandir: Any = staticmethod(os.scandir)  # as Python 3.13 has them
        lstat: Any = staticmethod(os.lstat)

    monkeypatch.setattr(glob, "_StringGlobber", Globber, raising=False)
    record = answer_note._Record()
    with record.watching():
        Globber.scandir(str(tmp_path)).close()
        Globber.lstat(str(tmp_path))
    noted = record.content(time.time_ns())["looks"][:2]
    assert noted == [(kind, str(tmp_path), looks.LOOKS[kind](str(tmp_path))) for kind in "el"]


OWN = [sys.executable, "-I", "-S", "-c"]


@pytest.mark.parametrize(
    "code",
    [
        "import os, sys; print(sys.argv[1]); print(os.read(0, 1), file=sys.stderr); sys.stdout.flush(); os._exit(0)",
        "print('13000')",
        "import os, sys; sys.exit('no driver')",
        "import os; os.abort()",
    ],
    ids=["prints and ends", "prints", "says why not", "crashes"],
)
def test_code_of_tenv_gives_the_same_in_a_copy_of_the_process(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import sys; from tenv.quick.looks import Program\n"
        "words = sys.argv[1:]\n"
        "print(Program(words, {}).end(), Program(words, {'A': 'B'}).end(), sep='\\n')"
    )
    monkeypatch.setenv("PYTHONPATH", str(Path(looks.__file__).parents[2]))
    told = process.run([sys.executable, "-c", script, *OWN, code, "word"])
    assert isinstance(told, process.Completed)
    copied, started = told.stdout.splitlines()
    assert copied == started


def test_a_copy_of_the_process_is_ended_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import os, sys, time; from tenv.quick.looks import Program\n"
        "for number in range(40):\n"
        "    program = Program([*sys.argv[1:], 'import time; time.sleep(60)'], {})\n"
        "    time.sleep(number / 10_000)\n"
        "    process = program._id\n"
        "    program.stop()\n"
        "    for _ in range(1000):\n"
        "        try:\n"
        "            if os.waitpid(process, os.WNOHANG)[0]: break\n"
        "        except ChildProcessError: break\n"
        "        time.sleep(0.01)\n"
        "    else: sys.exit('it goes on')\n"
        "print('over')"
    )
    monkeypatch.setenv("PYTHONPATH", str(Path(looks.__file__).parents[2]))
    told = process.run([sys.executable, "-c", script, *OWN])
    assert told == process.Completed(0, "over\n", "")
