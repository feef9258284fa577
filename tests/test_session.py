"""A session of the tests themselves: it ends with its summary, and its folders are in memory where there is room."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import memory_folder
from tests.support.each import each

ROOT = Path(__file__).parent.parent

TESTS = """\
import os, signal, time

def test_a_snapshot(snapshot):
    assert snapshot

def test_ctrl_c():
    os.killpg(os.getpgrp(), signal.SIGINT)
    time.sleep(60)

def test_that_is_never_run():
    time.sleep(60)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_session_of_several_processes_with_its_summary(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    words = ["-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), "-n", "2", "test_it.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert done.returncode == pytest.ExitCode.INTERRUPTED, done.stdout + done.stderr
    assert "KeyboardInterrupt !!!" in done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="a file system of POSIX")
def test_folders_are_in_memory_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(memory_folder, "_FOLDER", tmp_path)
    monkeypatch.setattr(memory_folder, "_ROOM", 1)
    assert memory_folder.memory_folder() == tmp_path
    monkeypatch.setattr(memory_folder, "_ROOM", 1 << 60)
    assert memory_folder.memory_folder() is None
    monkeypatch.setattr(memory_folder, "_ROOM", 1)
    monkeypatch.setattr(memory_folder, "_FOLDER", tmp_path / "nowhere")
    assert memory_folder.memory_folder() is None
    monkeypatch.setattr(memory_folder, "_FOLDER", tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert memory_folder.memory_folder() is None


def test_a_test_of_each_value_runs_all_and_names_those_that_fail(tmp_path: Path) -> None:
    seen, rows = [], [("a", 1), ("b", 2), ("c", 3)]

    @each("first, second", rows)
    @each("third", "xy")
    def body(first: str, second: int, third: str, tmp_path: Path) -> None:
        seen.append((first, second, third, tmp_path))
        assert second == 2, "is not 2"

    with pytest.raises(AssertionError, match=r"(?s)2 of 3 fail:\n\('a', 1\): .*2 of 2 fail.*\('c', 3\): .*is not 2"):
        body(tmp_path=tmp_path)
    folders = [tmp_path / f"{one}" / f"{other}" for one in range(3) for other in range(2)]
    assert seen == [(*row, third, folders.pop(0)) for row in rows for third in "xy"]
    assert folders == []
