"""The note about the lock: it is written without the lock of the environment, and brings back no removed folder."""

import os
import shutil
import time
from pathlib import Path

import pytest

from tenv.environment.lock_note import LockNote, LockStamp, read_lock_note, write_lock_note
from tenv.environment.state import Environment, State, Status

OLD = 1_700_000_000_000_000_000


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    made = Environment(tmp_path / "tiny")
    made.write_state(State(Status.READY, "tiny"))
    return made


def test_a_note_comes_back_as_it_was_written(environment: Environment, tmp_path: Path) -> None:
    note = LockNote(tmp_path / "tiny.lock", 12, OLD, "older than its lock", (tmp_path / "nearer.lock",))
    write_lock_note(environment, note)
    assert read_lock_note(environment) == note


def test_an_equal_note_is_not_written_again(environment: Environment, tmp_path: Path) -> None:
    note = LockNote(tmp_path / "tiny.lock", 12, OLD, "")
    write_lock_note(environment, note)
    file = environment.meta / "lock-note"
    before = file.stat().st_ino
    write_lock_note(environment, note)
    assert file.stat().st_ino == before


def test_a_note_about_a_removed_environment_leaves_no_folder(environment: Environment, tmp_path: Path) -> None:
    shutil.rmtree(environment.prefix)
    write_lock_note(environment, LockNote(tmp_path / "tiny.lock", 12, OLD, ""))
    assert not environment.prefix.exists()


def test_a_lock_that_changed_just_now_has_no_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "tiny.lock"
    assert LockStamp.of(lock) is None
    lock.write_text("old")
    changed = lock.stat().st_ctime_ns
    for age, known in ((0, False), (5_000_000, False), (50_000_000, True)):
        monkeypatch.setattr(time, "time_ns", lambda now=changed + age: now)
        assert bool(LockStamp.of(lock)) is known


def test_other_content_of_the_same_size_and_time_has_another_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "tiny.lock"
    lock.write_text("old")
    later = lock.stat().st_ctime_ns + 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    before = LockStamp.of(lock)
    assert before
    times = (before.time, before.time)
    (tmp_path / "new").write_text("new")
    os.utime(tmp_path / "new", ns=times)
    (tmp_path / "new").rename(lock)  # as rsync replaces a file
    assert before != LockStamp.of(lock)
