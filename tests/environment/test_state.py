"""What tenv knows about a prefix."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.core.errors import EnvironmentBrokenError, EnvironmentMissingError, ForeignFolderError
from tenv.core.prefix import READY, STATE_SCHEMA
from tenv.environment.state import Environment, State, Status

WHOLE = State(
    Status.READY,
    "tiny",
    lock="1" * 64,
    manifest="2" * 64,
    platform="linux-64",
    python="3.12",
    owned={"wheels": {"alpha": ("1.0", "0" * 64)}},
    foreign=("notes.txt",),
    bytes=12,
    written_by="0.0.1",
)
OLD, NEW = (WHOLE.to_json().replace(f'"schema": {STATE_SCHEMA}', f'"schema": {number}') for number in (1, 3))
"""The same in another schema."""


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A prefix of which no more is there than its state."""
    made = Environment(tmp_path / "tiny")
    made.write_state(WHOLE)
    return made


# The state.


def test_the_state_comes_back_as_it_was_written(environment: Environment) -> None:
    assert environment.state() == WHOLE


def test_the_state_is_one_line_that_begins_with_itself() -> None:
    text = WHOLE.to_json()
    assert text.startswith(READY)
    assert text.count("\n") == 1
    assert json.loads(text)["schema"] == STATE_SCHEMA


def test_there_is_no_state_where_there_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Environment(tmp_path / "nowhere").state() is None
    assert Environment(tmp_path).state() is None
    assert Environment(tmp_path / "file").state() is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"ready"', "3", "null", '{"state": "ready"}', "\udcff", "[" * 20_000, OLD, NEW]
)
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
    assert caught.value.hint == "`tenv create tiny` repairs it"


def test_a_missing_one_leads_to_its_creation(environment: Environment) -> None:
    with pytest.raises(EnvironmentMissingError) as caught:
        Environment(environment.prefix.with_name("tinny")).require_ready("tinny")
    assert caught.value.hint == "`tenv create tinny` creates it"  # a name that is similar is another target


# Whose folder it is.


def test_a_new_an_empty_and_an_own_folder_may_be_taken(environment: Environment, tmp_path: Path) -> None:
    environment.check_ours()
    Environment(tmp_path / "new").check_ours()
    (tmp_path / "empty").mkdir()
    Environment(tmp_path / "empty").check_ours()
    (tmp_path / "empty" / "tenv-meta").mkdir()  # all that a create has done that was killed at once
    (tmp_path / "empty" / ".tenv.lock").write_text("")
    Environment(tmp_path / "empty").check_ours()
    assert not (tmp_path / "new").exists(), "a check makes nothing"
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == [".tenv.lock", "tenv-meta"]


def test_another_folder_a_file_and_a_dead_link_may_not(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "b").write_text("")
    (tmp_path / "mine" / "a").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("/nowhere")
    for name, said in (
        ("mine", "is not an environment of tenv and holds files (such as a)"),
        ("file", "is not an environment of tenv and holds files (such as file)"),
        ("link", "leads by a link to /nowhere, so nothing is written or removed there"),
    ):
        with pytest.raises(ForeignFolderError) as caught:
            Environment(tmp_path / name).check_ours()
        assert caught.value.message == f"{tmp_path / name} {said}"


def test_the_last_three_locks_are_kept_and_the_same_one_once(environment: Environment) -> None:
    for text in (b"1", b"2", b"2", b"3", b"4", b"5", b"5"):
        environment.keep_lock(text)
    kept = sorted((environment.meta / "locks").iterdir())
    assert [(path.name, path.read_bytes()) for path in kept] == [
        ("000003.lock", b"3"),
        ("000004.lock", b"4"),
        ("000005.lock", b"5"),
    ]
