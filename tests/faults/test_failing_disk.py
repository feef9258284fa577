"""A disk that fails at any change of a file: one sentence says so, and the next `create` is right.

A library (`failing_disk.c`) is preloaded into tenv, uv and rattler, which lets the Nth write, link, rename, mkdir or
fsync below the project and the caches fail: as a full disk, a used-up quota or a read-only disk does (all later ones
fail, too), or once, as a bad block does.

    TENV_TESTS_FAULTS   how many changes of a `create` fail, spread over all of them, with each error in turn;
                        `all` for each one with each error
    TENV_TESTS_JOURNAL  a file of what has passed, which the next run leaves out
"""

import errno
import hashlib
import os
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.conda_project import Conda
from tests.support.projects import Ended, Project, call, snapshot

SOURCE = Path(__file__).with_name("failing_disk.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux" or COMPILER is None, reason="no C compiler, or not Linux"),
]

FAULTS = os.environ.get("TENV_TESTS_FAULTS", "4")
JOURNAL = os.environ.get("TENV_TESTS_JOURNAL", "")
ALWAYS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
ERRORS = (*ALWAYS, errno.EIO)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library") / "failing_disk.so"
    subprocess.run(
        [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(made), str(SOURCE), "-ldl"],
        check=True,
        capture_output=True,
    )
    return made


@dataclass
class Disk:
    """The disk of a project, whose Nth change fails.

    Attributes:
        project: The project.
        library: What is preloaded.
        caches: The caches, which are emptied before each `create`.
    """

    project: Project
    library: Path
    caches: tuple[Path, ...]

    def create(self, at: int = 0, error: int = 0) -> tuple[Ended, int]:
        """Make the environment anew; return how that ended, and how many changes there were."""
        for folder in (self.project.folder / ".tenv", *self.caches):
            shutil.rmtree(folder, ignore_errors=True)
        counter = self.project.folder.parent / "counter"
        counter.write_bytes(bytes(8))
        under = (self.project.folder, *self.caches, Path(os.environ["XDG_DATA_HOME"]))
        variables = {
            "LD_PRELOAD": str(self.library),
            "FAILING_COUNTER": str(counter),
            "FAILING_AT": str(at),
            "FAILING_ERRNO": str(error),
            "FAILING_ALWAYS": str(int(error in ALWAYS)),
            "FAILING_UNDER": ":".join(map(str, under)),
            "UV_LINK_MODE": "copy",
        }
        ended = self.project.run("create", "tiny", "--frozen", environment=variables)
        return ended, struct.unpack("q", counter.read_bytes())[0]


def chosen(count: int) -> list[tuple[int, int]]:
    """Return the numbers of the changes that fail, each with its error."""
    if FAULTS == "all":
        return [(at, error) for error in ERRORS for at in range(1, count + 1)]
    step = count / int(FAULTS)
    return [(1 + int(step * (number + 0.5)), ERRORS[number % len(ERRORS)]) for number in range(int(FAULTS))]


def passed() -> set[str]:
    return set(Path(JOURNAL).read_text().splitlines()) if JOURNAL and Path(JOURNAL).is_file() else set()


def contents(prefix: Path) -> dict[str, str]:
    """Return what the names of an environment lead to, but rattler's records and tenv's list of what it made.

    Where a disk refuses a symbolic link, rattler copies the file instead, and its record says so.
    """
    names = [name for name in snapshot(prefix) if not name.startswith("conda-meta/") and name != "tenv-meta/made.json"]
    return {name: hashlib.sha256((prefix / name).read_bytes()).hexdigest() for name in names}


def hammer(disk: Disk, kind: str, *, copied: bool = False) -> None:
    """Let changes fail, one `create` each; `copied` if a file may stand for a link that the disk once refused."""
    ended, count = disk.create()
    assert ended.status == 0, ended.err
    assert count > 50
    right, done = snapshot(disk.project.prefix), passed()
    same = contents(disk.project.prefix) if copied else {}
    for at, error in chosen(count):
        row = f"disk {kind} {errno.errorcode[error]} {at}"
        if row in done:
            continue
        ended, _ = disk.create(at, error)
        said = (row, count, ended)
        assert "Traceback" not in ended.err, said
        assert ended.status in (0, 8), said  # a cache that can't be written is no obstacle
        if ended.status:
            assert ended.err.count("error[") == 1, said
            assert len(next(line for line in ended.err.splitlines() if "error[" in line)) < 600, said
            state = disk.project.state()["state"] if disk.project.state_file.is_file() else "missing"
            assert state != "ready", said
        again = disk.project.run("create", "tiny", "--frozen")
        assert again.status == 0, (row, again)
        if copied and error not in ALWAYS:
            assert contents(disk.project.prefix) == same, row
        else:
            assert snapshot(disk.project.prefix) == right, row
        verified = disk.project.run("verify", "tiny", "--no-probes")
        assert verified.status == 0, (row, verified)
        if JOURNAL:
            with Path(JOURNAL).open("a") as file:
                file.write(f"{row}\n")


def test_a_create_of_wheels(locked: Project, library: Path) -> None:
    hammer(Disk(locked, library, (Path(os.environ["UV_CACHE_DIR"]),)), "wheels")


def test_a_create_of_conda_packages(conda: Conda, library: Path) -> None:
    conda.lock("tool", "data")
    hammer(Disk(conda.project, library, (Path(os.environ["RATTLER_CACHE_DIR"]),)), "conda", copied=True)


def test_settings_that_uv_could_not_write_end_the_create(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv reports nothing where the disk takes the file `pyvenv.cfg` and not its bytes."""
    from tenv.sources.wheels.uv import Uv

    run = Uv.run

    def run_without_settings(uv: Uv, *words: Any, **options: Any) -> Any:
        done = run(uv, *words, **options)
        if words[0] == "venv":
            Path(words[1], "pyvenv.cfg").write_bytes(b"")
        return done

    monkeypatch.setattr(Uv, "run", run_without_settings)
    ended = call("create", "tiny", "--frozen")
    assert ended.status == 8
    assert "pyvenv.cfg: it is empty" in ended.err
    assert not locked.state_file.is_file() or locked.state()["state"] != "ready"


def test_a_record_that_uv_could_not_write_is_installed_again(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenv.sources.wheels.uv import Uv

    install, emptied = Uv.install, list[Path]()

    def install_without_record(uv: Uv, python: Path, *words: Any) -> None:
        install(uv, python, *words)
        if not emptied:
            emptied.append(next(locked.prefix.glob("lib/python3*/site-packages/alpha-*.dist-info/RECORD")))
            emptied[0].unlink()
            emptied[0].touch()

    monkeypatch.setattr(Uv, "install", install_without_record)
    locked.ok("create", "tiny", "--frozen")
    assert emptied[0].stat().st_size > 0
    assert call("verify", "tiny", "--no-probes").status == 0
