"""Notes are written without the lock of an environment: none brings back a folder that was removed meanwhile."""

import shutil
from pathlib import Path

import pytest

from tenv.environment.create_note import note_files
from tenv.environment.lock_note import LockNote, read_note_of_lock, write_note_of_lock
from tenv.environment.state import Environment, State, Status


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    made = Environment(tmp_path / "tiny")
    made.write_state(State(Status.READY, "tiny"))
    return made


def note_all(environment: Environment, lock: Path) -> None:
    write_note_of_lock(environment, LockNote(lock, 0, "older than its lock"), 1_700_000_000_000_000_000)
    note_files(environment, "1.0", [lock.parent], [lock])


def test_a_note_is_kept(environment: Environment, tmp_path: Path) -> None:
    note_all(environment, tmp_path / "tiny.lock")
    found = read_note_of_lock(environment)
    assert found is not None
    assert found.sentence == "older than its lock"
    assert (environment.meta / "create-note").is_file()


def test_a_note_about_a_removed_environment_leaves_no_folder(environment: Environment, tmp_path: Path) -> None:
    shutil.rmtree(environment.prefix)
    note_all(environment, tmp_path / "tiny.lock")
    assert not environment.prefix.exists()
