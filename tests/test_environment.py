"""What tenv knows about a prefix, and what in it is not its own."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.environment import Environment, State, Status
from tenv.errors import EnvironmentBrokenError, EnvironmentMissingError, ForeignFolderError, StorageError
from tests.fakes import make_wheel, unpack

WHOLE = State(
    Status.READY,
    "tiny",
    lock="1" * 64,
    manifest="2" * 64,
    platform="linux-64",
    python="3.12",
    packages={"alpha": ("1.0", "0" * 64)},
    foreign=("notes.txt",),
    bytes=12,
    written_by="0.0.1",
)
SITE = "lib/python3.12/site-packages"


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A prefix with two packages, one of them not tenv's, and loose files."""
    made = Environment(tmp_path / "tiny")
    site = made.prefix / SITE
    unpack(make_wheel(tmp_path / "wheels", "alpha", "1.0", files={"alpha/core.py": ""}), site)
    with (site / "alpha-1.0.dist-info" / "RECORD").open("a") as record:
        record.write("../../../bin/alpha,,\n")
    unpack(make_wheel(tmp_path / "wheels", "By_Hand", "2.0", files={"hand.py": ""}), site)
    for name in ("pyvenv.cfg", "bin/python3.12", "bin/alpha", "bin/activate.csh", "notes.txt", f"{SITE}/loose.pth"):
        (made.prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (made.prefix / name).write_text("")
    for name in (f"{SITE}/_virtualenv.py", f"{SITE}/alpha/__pycache__/core.pyc", "cuda/lib/x.so", ".tenv.lock"):
        (made.prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (made.prefix / name).write_text("")
    made.write_state(WHOLE)
    return made


# The state.


def test_the_state_comes_back_as_it_was_written(environment: Environment) -> None:
    assert environment.state() == WHOLE


def test_the_state_is_one_line_that_begins_with_itself() -> None:
    text = WHOLE.to_json()
    assert text.startswith('{"state": "ready", ')
    assert text.count("\n") == 1
    assert json.loads(text)["schema"] == 1


def test_there_is_no_state_where_there_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Environment(tmp_path / "nowhere").state() is None
    assert Environment(tmp_path).state() is None
    assert Environment(tmp_path / "file").state() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '"ready"', "3", "null", '{"state": "ready"}', "\udcff"])
def test_a_state_that_can_not_be_read_counts_as_broken(environment: Environment, text: str) -> None:
    (environment.meta / "state.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert environment.state() == State(Status.BROKEN, "tiny")


@pytest.mark.parametrize(
    ("key", "value"),
    [("packages", []), ("packages", "x"), ("foreign", 3), ("bytes", "many"), ("lock", 1)],
)
def test_a_state_with_a_value_of_another_kind_counts_as_broken(
    environment: Environment, key: str, value: object
) -> None:
    data = json.loads(WHOLE.to_json())
    (environment.meta / "state.json").write_text(json.dumps({**data, key: value}))
    state = environment.state()
    assert state is not None
    assert state.status is Status.BROKEN


def test_a_ready_environment_is_handed_out(environment: Environment) -> None:
    assert environment.require_ready("tiny") == WHOLE


@pytest.mark.parametrize("status", [Status.CREATING, Status.BROKEN])
def test_one_that_is_not_ready_is_refused(environment: Environment, status: Status) -> None:
    environment.write_state(replace(WHOLE, status=status))
    with pytest.raises(EnvironmentBrokenError) as caught:
        environment.require_ready("tiny")
    assert caught.value.message == f"the environment `tiny` is not ready (its state is `{status}`)"
    assert caught.value.hint == "`tenv create tiny` finishes or repairs it"


def test_a_missing_one_is_told_with_the_nearest_that_is_there(environment: Environment) -> None:
    with pytest.raises(EnvironmentMissingError) as caught:
        Environment(environment.prefix.with_name("tinny")).require_ready("tinny")
    assert caught.value.hint == "did you mean `tiny`?"
    with pytest.raises(EnvironmentMissingError) as caught:
        Environment(environment.prefix.with_name("other")).require_ready("other")
    assert caught.value.hint == "`tenv create other` makes it"


# Whose folder it is.


def test_a_new_an_empty_and_an_own_folder_may_be_taken(environment: Environment, tmp_path: Path) -> None:
    environment.check_ours()
    Environment(tmp_path / "new").check_ours()
    (tmp_path / "empty").mkdir()
    Environment(tmp_path / "empty").check_ours()
    (tmp_path / "empty" / "tenv-meta").mkdir()  # all that a create has done that was killed at once
    (tmp_path / "empty" / ".tenv.lock").write_text("")
    Environment(tmp_path / "empty").check_ours()


def test_another_folder_a_file_and_a_dead_link_may_not(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "b").write_text("")
    (tmp_path / "mine" / "a").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("/nowhere")
    for name, inside in (("mine", "a"), ("file", "file"), ("link", "link")):
        with pytest.raises(ForeignFolderError) as caught:
            Environment(tmp_path / name).check_ours()
        assert caught.value.message == (
            f"{tmp_path / name} holds something else (such as {inside}), so nothing is installed there"
        )


# What is in it.


def test_installed_packages_are_known_by_their_normalized_names(environment: Environment) -> None:
    assert environment.installed() == {"alpha": "1.0", "by-hand": "2.0"}


def test_the_files_of_a_package_are_those_of_its_record_and_its_notes(environment: Environment) -> None:
    (environment.prefix / SITE / "alpha-1.0.dist-info" / "INSTALLER").write_text("uv")
    found = {*environment.files_of(["alpha"])}
    assert found == {
        f"{SITE}/alpha/core.py",
        "bin/alpha",
        *(f"{SITE}/alpha-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "INSTALLER")),
    }


def test_what_is_not_tenvs_is_told_from_what_it_makes(environment: Environment) -> None:
    (environment.prefix / "linked").symlink_to("/somewhere")
    assert environment.foreign_files(["alpha"]) == (
        f"{SITE}/By_Hand-2.0.dist-info/METADATA",
        f"{SITE}/By_Hand-2.0.dist-info/RECORD",
        f"{SITE}/By_Hand-2.0.dist-info/WHEEL",
        f"{SITE}/hand.py",
        f"{SITE}/loose.pth",
        "linked",
        "notes.txt",
    )


def test_wiping_removes_all_but_tenvs_notes(environment: Environment) -> None:
    environment.wipe(())
    assert {path.name for path in environment.prefix.iterdir()} == {"tenv-meta", ".tenv.lock"}
    assert environment.state() == WHOLE


def test_wiping_keeps_what_it_is_told_to_keep(environment: Environment) -> None:
    (environment.prefix / "linked").symlink_to("/somewhere")
    kept = environment.foreign_files(["alpha"])
    environment.wipe(kept)
    left = {
        os.path.relpath(path, environment.prefix)
        for path in environment.prefix.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    assert left == {*kept, "tenv-meta/state.json", ".tenv.lock"}
    assert {path.name for path in environment.prefix.iterdir()} == {
        "lib",
        "linked",
        "notes.txt",
        "tenv-meta",
        ".tenv.lock",
    }


def test_wiping_follows_no_link(environment: Environment, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (environment.prefix / "linked").symlink_to(outside)
    environment.wipe(["notes.txt"])
    assert not (environment.prefix / "linked").is_symlink()
    environment.wipe(())
    assert (outside / "file").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_what_can_not_be_removed_is_told(environment: Environment) -> None:
    (environment.prefix / "bin").chmod(0o500)
    with pytest.raises(StorageError, match="can't clear"):
        environment.wipe(())
    (environment.prefix / "bin").chmod(0o700)


def test_the_last_three_locks_are_kept_and_the_same_one_once(environment: Environment) -> None:
    for text in (b"1", b"2", b"2", b"3", b"4", b"5", b"5"):
        environment.keep_lock(text)
    kept = sorted((environment.meta / "locks").iterdir())
    assert [(path.name, path.read_bytes()) for path in kept] == [
        ("000003.lock", b"3"),
        ("000004.lock", b"4"),
        ("000005.lock", b"5"),
    ]
