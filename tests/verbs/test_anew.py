"""`tenv create --anew` that fails: the old environment is restored, or its place is named."""

from pathlib import Path

import pytest

from tenv.core.errors import StorageError
from tenv.install import make
from tests.support.projects import Project, snapshot


def _without_network(project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the index and uv's cache away."""
    project.index.stop()
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_CACHE_DIR", str(folder))


@pytest.mark.long
def test_what_was_there_is_back_when_a_file_can_not_be_fetched(
    created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (created.prefix / "mine.txt").write_text("the user's own")
    before, state = snapshot(created.prefix), created.state_file.read_bytes()
    _without_network(created, tmp_path / "empty", monkeypatch)
    said = created.fails(6, "network", "create", "tiny", "--anew")
    assert f"restored {created.prefix}" in said
    assert (snapshot(created.prefix), created.state_file.read_bytes()) == (before, state)
    assert [*created.prefix.parent.glob(".tiny.aside*")] == []
    assert created.ok("list", "--json").data[0]["state"] == "ready"
    assert created.ran("run", "tiny", "--", "python", "-c", "import alpha").status == 0
    assert "nothing to do" in created.ok("create", "tiny").err


@pytest.mark.parametrize("step", ["assemble", "flush"])
def test_what_was_there_is_back_after_ctrl_c(created: Project, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    before = snapshot(created.prefix)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(make, step, interrupt)
    said = created.fails(130, "cancelled", "create", "tiny", "--anew")
    assert f"restored {created.prefix}" in said
    assert snapshot(created.prefix) == before
    assert created.ok("list", "--json").data[0]["state"] == "ready"


def test_a_folder_that_tenv_did_not_mark_is_back_too(
    created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (created.prefix / "tenv-meta" / "id").write_text("0" * 32)
    assert created.ok("list", "--json").data[0]["state"] == "broken"
    before = snapshot(created.prefix)
    _without_network(created, tmp_path / "empty", monkeypatch)
    created.fails(6, "network", "create", "tiny", "--anew")
    assert snapshot(created.prefix) == before
    assert created.ok("list", "--json").data[0]["state"] == "broken"


def test_the_place_of_one_that_can_not_be_put_back_is_named(
    created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (created.prefix / "mine.txt").write_text("the user's own")

    def refuse(*_: object) -> None:
        raise StorageError("can't remove it: Device or resource busy")

    def fail(*_: object) -> None:
        raise StorageError("can't write: No space left on device")

    monkeypatch.setattr(make, "remove_tree", refuse)
    monkeypatch.setattr(make, "assemble", fail)
    said = created.fails(8, "storage", "create", "tiny", "--anew")
    there = created.prefix.with_name(".tiny.aside-1")
    assert f"the environment of {created.prefix} is in {there}: can't remove it: Device or resource busy" in said
    assert (there / "mine.txt").read_text() == "the user's own"
