"""`tenv remove`: what tenv made goes as a whole, what it did not make stays."""

import os
import pty
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.projects import Project, held


def test_removes_the_environment_and_says_what_it_freed(created: Project) -> None:
    size = created.state()["bytes"]
    data = created.ok("remove", "tiny", "--json").data
    freed = {"target": "tiny", "prefix": str(created.prefix), "bytes": size}
    assert data == freed | {"removed": True, "breaks": []}
    assert not created.prefix.exists()
    assert created.ok("list", "--json").data == []


def test_removes_one_that_is_elsewhere(locked: Project, tmp_path: Path) -> None:
    prefix = tmp_path / "elsewhere"
    locked.ok("create", "tiny", "--prefix", str(prefix))
    locked.ok("remove", "tiny", "--prefix", str(prefix))
    assert not prefix.exists()


def test_removes_one_that_is_not_ready(created: Project) -> None:
    created.state_file.write_text("{")
    created.ok("remove", "tiny")
    assert not created.prefix.exists()


def test_leaves_a_folder_that_tenv_did_not_make(locked: Project, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    err = locked.fails(8, "foreign-folder", "remove", "tiny", "--prefix", str(tmp_path / "mine"))
    assert f"{tmp_path / 'mine'} is not managed by tenv (it has no tenv-meta/state.json), so it is not removed" in err
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_a_missing_one_is_told(locked: Project) -> None:
    err = locked.fails(8, "environment-missing", "remove", "tiny")
    assert f"there is no environment `tiny` ({locked.prefix})" in err
    assert "did you mean `tiny`?" in locked.fails(2, "unknown-target", "remove", "tinny")


def test_waits_for_who_is_at_it(created: Project) -> None:
    with held(created.prefix) as release:
        threading.Timer(0.2, release.set).start()
        err = created.ok("remove", "tiny").err
    assert f"waiting: {created.prefix} is in use by process {os.getpid()} (`tenv create tiny`)\n" in err
    assert not created.prefix.exists()


@pytest.mark.parametrize("words", [("remove", "tiny"), ("create", "tiny", "--exact")])
def test_does_not_wait_when_told_so(created: Project, words: tuple[str, ...]) -> None:
    with held(created.prefix):
        err = created.fails(8, "environment-busy", *words, "--no-wait")
    assert f"{created.prefix} is in use by process {os.getpid()} (`tenv create tiny`)" in err
    assert created.state()["state"] == "ready"


def test_create_has_nothing_to_wait_for_when_there_is_nothing_to_do(created: Project) -> None:
    with held(created.prefix):
        assert created.ok("create", "tiny", "--no-wait", "--json").data["changed"] is False


def test_without_a_target_nothing_goes_unasked(created: Project, tmp_path: Path) -> None:
    err = created.fails(2, "usage", "remove")
    assert f"no TARGET is given; the default one has the environment {created.prefix}" in err
    assert "hint: `tenv remove tiny` removes it" in err
    created.fails(2, "usage", "remove", "--quiet")
    assert created.ok("remove", "--dry-run", "--json").data["removed"] is False
    assert created.prefix.is_dir()
    elsewhere = tmp_path / "elsewhere"
    created.ok("create", "tiny", "--prefix", str(elsewhere))
    assert created.ok("remove", "--prefix", str(elsewhere), "--json").data["target"] == "tiny"
    assert created.prefix.is_dir()
    created.ok("remove", "--yes")
    assert not created.prefix.exists()
    created.fails(8, "environment-missing", "remove")


@pytest.mark.parametrize(("typed", "status"), [("\n", 130), ("y\n", 0)])
def test_a_terminal_is_asked_first(created: Project, typed: str, status: int) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "tenv", "remove"], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        assert select.select([ours], [], [], 60)[0], said
        said += os.read(ours, 4096)
    os.write(ours, typed.encode())
    assert child.wait(180) == status
    os.close(ours)
    assert created.prefix.is_dir() == (status != 0)
    assert "the environment of the default target tiny?" in said.decode()


def test_the_removal_of_an_active_environment_says_so(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENV_PREFIX", str(created.prefix))
    assert "is active in this shell" not in created.ok("remove", "tiny", "--dry-run").err
    assert "it is active in this shell" in created.ok("remove", "tiny").err
