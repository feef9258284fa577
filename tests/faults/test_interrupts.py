"""Ctrl-C, signals, kills and races: the next `create` always ends with the environment that the lock says."""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenv.core.file_stamps import note_stamps
from tenv.core.files import digest
from tenv.sources.wheels.installed import Wheels
from tests.support.fakes import Fault, unpack
from tests.support.projects import Project, call, finish, snapshot, until

if TYPE_CHECKING:
    import subprocess

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc as Linux has them"),
]

KILLS = 4
"""The tests on real packages kill a `create` thirty times."""


def workers(project: Project) -> list[int]:
    """Return the running programs, other than tenv's own, that work on this project's environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/uv") and any(os.fsencode(project.prefix) in word for word in words):
            found.append(int(folder.name))
    return found


def start_slow(project: Project) -> "subprocess.Popen[str]":
    """Start a `create` and return it when it is in the middle of a download."""
    (wheel,) = project.index.folder.glob("large-*.whl")
    note_stamps(f"unpacked-{digest(wheel)}", {wheel.name: (1 << 18, 5, 0)})  # else tenv itself would read it first
    project.index.fail(Fault.SLOW, r"large.*whl$")
    project.index.asked.clear()
    child = project.start("create", "tiny")
    until(lambda: any("large-1.0" in path and path.endswith(".whl") for path in project.index.asked))
    time.sleep(0.05)
    assert workers(project)
    return child


def check_stopped(project: Project) -> None:
    """Nobody works on it any more, and it is not taken for ready."""
    until(lambda: not workers(project))
    assert project.state()["state"] == "creating"
    project.fails(8, "environment-broken", "activate", "tiny")


def check_finishes(project: Project) -> None:
    project.index.fail(None)
    project.ok("create", "tiny")
    project.ok("activate", "tiny")
    assert project.state()["packages"]["large"][0] == "1.0"


def test_ctrl_c_in_a_download_ends_with_130_and_the_next_create_finishes(heavy: Project) -> None:
    child = start_slow(heavy)
    os.killpg(child.pid, signal.SIGINT)
    ended = finish(child)
    assert ended.status == 130
    assert "error[cancelled]: interrupted\nhint: run the same command again to continue\n" in ended.err
    assert "Traceback" not in ended.err
    check_stopped(heavy)
    check_finishes(heavy)


def test_ctrl_c_in_a_lock_ends_with_130_and_leaves_the_old_one(locked: Project) -> None:
    before = locked.lock.read_bytes()
    locked.ask_for('gamma = "*"')
    with locked.index.failing(Fault.SILENT, "gamma"):
        child = locked.start("lock", "tiny")
        until(lambda: any("gamma" in path for path in locked.index.asked))
        os.killpg(child.pid, signal.SIGINT)
        assert finish(child).status == 130
    assert locked.lock.read_bytes() == before


def test_an_interrupt_of_tenv_alone_ends_a_lock_at_once(project: Project) -> None:
    with project.index.failing(Fault.SILENT, "native"):
        child = project.start("lock", "tiny")
        until(lambda: any("native" in path for path in project.index.asked))
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert finish(child).status == 130
    assert time.monotonic() - begun < 25  # uv itself waits for 30
    assert not project.lock.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_temporary_folder(project: Project, tmp_path: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:  # under nohup, which programs that are started obey
        signal.signal(number, signal.SIG_DFL)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with project.index.failing(Fault.SILENT, "native"):
        child = project.start("lock", "tiny", environment={"TMPDIR": str(temporary)})
        until(lambda: any("native" in path for path in project.index.asked))
        assert list(temporary.iterdir())
        child.send_signal(number)
        ended = finish(child)
    assert ended.status == -number
    assert "error[cancelled]: interrupted\n" in ended.err
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_tenv_alone_takes_its_installer_along(heavy: Project, number: signal.Signals) -> None:
    child = start_slow(heavy)
    child.send_signal(number)
    ended = finish(child)
    assert ended.status == (130 if number == signal.SIGINT else -number)
    check_stopped(heavy)
    check_finishes(heavy)


def test_what_was_installed_by_hand_survives_a_kill_and_the_repair(created: Project) -> None:
    unpack(created.index.folder / "gamma-1.0-py3-none-any.whl", created.site())
    (created.prefix / "notes.txt").write_text("mine")
    created.ask_for('large = "*"')
    created.ok("lock", "tiny")
    for _ in range(2):  # the second kill hits a repair
        child = start_slow(created)
        child.kill()
        finish(child)
        check_stopped(created)
    check_finishes(created)
    assert Wheels(created.prefix).versions()["gamma"] == "1.0"
    assert (created.site() / "gamma.py").is_file()
    assert (created.prefix / "notes.txt").read_text() == "mine"
    created.ok("create", "tiny", "--exact")
    assert not (created.site() / "gamma.py").exists()


def test_a_killed_holder_holds_nobody_up(heavy: Project) -> None:
    child = start_slow(heavy)
    child.kill()
    finish(child)
    heavy.index.fail(None)
    heavy.ok("create", "tiny", "--no-wait")
    assert heavy.state()["state"] == "ready"


def test_eight_at_once_make_one_environment(locked: Project) -> None:
    children = [locked.start("create", "tiny", "--json") for _ in range(8)]
    ended = [finish(child) for child in children]
    assert [one.status for one in ended] == [0] * 8, [one.err for one in ended]
    assert sum(one.data["changed"] for one in ended) == 1
    assert {one.data["prefix"] for one in ended} == {str(locked.prefix)}
    together = snapshot(locked.prefix)
    assert [row["state"] for row in call("list", "--json").data] == ["ready"]
    locked.ok("remove", "tiny")
    locked.ok("create", "tiny")
    assert snapshot(locked.prefix) == together


def test_several_at_once_without_a_lock_make_one_lock(project: Project) -> None:
    children = [project.start("create", "tiny") for _ in range(4)]
    ended = [finish(child) for child in children]
    assert [one.status for one in ended] == [0] * 4, [one.err for one in ended]
    project.ok("create", "tiny", "--locked")


def test_creates_and_removals_at_once_leave_it_whole_or_gone(created: Project) -> None:
    words = [("create", "tiny"), ("remove", "tiny"), ("create", "tiny"), ("remove", "tiny"), ("create", "tiny")]
    ended = [finish(child) for child in [created.start(*word) for word in words]]
    for word, one in zip(words, ended, strict=True):
        assert one.status == 0 or (word[0] == "remove" and "environment-missing" in one.err), one.err
    created.ok("create", "tiny")
    assert {path.name for path in created.prefix.parent.iterdir()} == {"tiny", ".tiny.lock"}


def test_two_removals_at_once_are_one_removal_and_one_miss(created: Project) -> None:
    ended = [finish(child) for child in [created.start("remove", "tiny") for _ in range(3)]]
    assert sorted(one.status for one in ended) == [0, 8, 8]
    assert all("error[environment-missing]" in one.err for one in ended if one.status)


def test_kills_at_any_moment_leave_what_the_next_create_repairs(created: Project) -> None:
    clean = snapshot(created.prefix)
    created.ok("remove", "tiny")
    start = time.monotonic()
    assert created.run("create", "tiny").status == 0
    whole = time.monotonic() - start
    moments = random.Random(20240229)
    for number in range(KILLS):
        if number % 2:  # half of them from nothing, half of them while a ready one is made anew
            created.ok("remove", "tiny")
        child = created.start("create", "tiny", *(() if number % 2 else ("--exact",)))
        time.sleep(moments.uniform(0, whole))
        child.kill()
        finish(child)
        until(lambda: not workers(created))
        created.ok("create", "tiny")
        assert created.state()["state"] == "ready"
        assert snapshot(created.prefix) == clean, number


def test_what_a_killed_write_left_is_removed_where_there_is_nothing_to_do(created: Project) -> None:
    left = created.prefix / "tenv-meta" / ".state.json.abc"
    left.write_text("{")
    assert "nothing to do" in created.ok("create", "tiny").err
    assert not left.exists()
