"""A lock, an environment and a host report of another schema are refused with the one command that helps."""

import json
import re
from pathlib import Path

import pytest

from tests.support.projects import Project, call
from tests.verbs.test_lost_scripts import check_ready

NUMBERS = (1, 5, 7)


def with_schema(lock: Path, number: int) -> bytes:
    """Write another schema into a lock, and return its bytes before."""
    whole = lock.read_bytes()
    lock.write_bytes(re.sub(rb"(?m)^  schema: \d+$", b"  schema: %d" % number, whole))
    assert lock.read_bytes() != whole
    return whole


@pytest.mark.parametrize("number", NUMBERS)
def test_a_lock_is_refused_and_left_alone_until_it_is_written_anew(locked: Project, number: int) -> None:
    whole = with_schema(locked.lock, number)
    other = locked.lock.read_bytes()
    for words in (("create", "tiny"), ("create", "tiny", "--frozen"), ("lock", "tiny", "--check"), ("tree", "tiny")):
        said = locked.fails(7, "lock-corrupt", *words)
        assert "tiny.lock: tenv.schema: tenv 0.1.0 reads 6 alone" in said
        assert "hint: `tenv lock tiny` writes the lock anew" in said
        assert locked.lock.read_bytes() == other
    assert not locked.prefix.exists()
    locked.ok("lock", "tiny")
    assert locked.lock.read_bytes() == whole


def test_an_environment_of_such_a_lock_is_used_and_its_standing_unknown(created: Project) -> None:
    with_schema(created.lock, 5)
    assert "is unknown: " in created.ok("activate", "tiny").err
    created.fails(7, "environment-stale", "run", "--locked", "tiny", "--", "true")


def of_schema(project: Project, number: int) -> None:
    """Make the state of an environment one of another schema."""
    project.state_file.write_text(json.dumps({**project.state(), "schema": number}) + "\n")


@pytest.mark.parametrize("number", [1, 3])
def test_an_environment_is_refused_until_it_is_made_anew(created: Project, number: int) -> None:
    (created.prefix / "notes.txt").write_text("mine")
    of_schema(created, number)
    for words in (("activate", "tiny"), ("run", "tiny", "--", "true"), ("env", "tiny")):
        said = created.fails(8, "environment-broken", *words)
        assert "is broken, unreadable or written by another version of tenv" in said
        assert "hint: `tenv create tiny` repairs it" in said
    [row] = call("list", "--json").data
    assert (row["state"], row["reason"]) == ("broken", "gutted")
    assert created.ok("create", "tiny", "--json").data["changed"] is True
    assert (created.prefix / "notes.txt").read_text() == "mine"
    (created.prefix / "notes.txt").unlink()
    check_ready(created)


def test_one_without_a_mark_is_refused_in_the_data_folder_too(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (created.prefix / "tenv-meta" / "id").unlink()
    said = created.fails(8, "environment-broken", "activate", "tiny")
    assert "`tenv create tiny --anew` puts the folder aside" in said
    assert f"`TENV_SAFE_FOLDERS={created.prefix} tenv create tiny` accepts it" in said
    with monkeypatch.context() as safe:
        safe.setenv("TENV_SAFE_FOLDERS", str(created.prefix))
        assert created.ok("create", "tiny", "--json").data["changed"] is False
    check_ready(created)


@pytest.mark.parametrize("number", [1, 3])
def test_a_host_report_is_refused(locked: Project, tmp_path: Path, number: int) -> None:
    report = tmp_path / "node.json"
    report.write_text(json.dumps({**call("host", "--json").data, "schema": number, "tenv": "9.1"}))
    for words in (("check", "tiny"), ("check-driver", "tiny"), ("host",)):
        said = locked.fails(2, "host-report", *words, "--host-report", str(report))
        assert f"tenv 9.1 wrote it in form {number}; this is tenv 0.1.0, which reads form 2" in said
        assert "hint: `tenv host --json > FILE` writes one" in said
