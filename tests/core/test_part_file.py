"""Large files that take the place of another one, and the parts that killed processes leave."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.core.part_file import large_file

_WRITE = """
import os, sys
from pathlib import Path
from tenv.core.part_file import large_file
with large_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("there", flush=True)
    sys.stdin.read()
"""


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights and signals")


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_part_of_a_killed_process_goes_and_that_of_a_running_one_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.tenv"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITE, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"there\n"
        with large_file(file) as mine:
            mine.write(b"whole")
        assert file.read_bytes() == b"whole"
        (left,) = (name for name in parts(tmp_path) if name != "a.tenv")
        other.send_signal(signal.SIGKILL)
    assert parts(tmp_path) == [left, "a.tenv"]
    os.utime(tmp_path / left, (1, 1))
    (tmp_path / ".a.tenv.notes").write_text("of the user")
    with large_file(file) as mine:
        mine.write(b"again")
    assert parts(tmp_path) == [".a.tenv.notes", "a.tenv"]


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    file = tmp_path / "below" / "a.tenv"
    with large_file(file) as first:
        first.write(b"old")
    with pytest.raises(KeyboardInterrupt), large_file(file):
        os.kill(os.getpid(), signal.SIGINT)
    assert parts(file.parent) == ["a.tenv"]
    assert file.read_bytes() == b"old"


def test_the_file_obeys_the_umask(tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        with large_file(tmp_path / "a.tenv"):
            pass
    finally:
        os.umask(mask)
    assert (tmp_path / "a.tenv").stat().st_mode & 0o777 == 0o600
