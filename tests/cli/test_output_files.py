"""A file of the user is not overwritten by the output of a command, and `-` is no file."""

import json
from pathlib import Path

import pytest

from tests.support.projects import Project, call

WAYS = {
    "page": ("check", "tiny", "--against", "fleet.json", "--html"),
    "lock": ("lock", "tiny", "--lock-file"),
    "bundle": ("bundle", "tiny", "-o"),
    "bill": ("bundle", "tiny", "-o", "b.tenv", "--sbom"),
    "tenv": ("bundle", "--self", "-o"),
}


@pytest.mark.parametrize("kind", [*WAYS])
def test_the_users_file_stays(kind: str, locked: Project) -> None:
    Path("fleet.json").write_text(json.dumps({"schema": 2, "tenv": "0"}))
    before = locked.manifest.read_text()
    for name in (str(locked.manifest), "fleet.json"):
        said = locked.fails(2, "file-exists", *WAYS[kind], name)
        assert f"{name} exists, and is not a" in said
    assert locked.manifest.read_text() == before
    assert "not to standard output" in locked.fails(2, "usage", *WAYS[kind], "-")
    assert not Path("-").exists()


def test_a_file_of_the_same_kind_is_written_anew(locked: Project) -> None:
    Path("fleet.json").write_text(json.dumps({"schema": 2, "tenv": "0"}))
    for _ in range(2):
        assert call(*WAYS["page"], "page.html").status in (0, 1)
        locked.ok(*WAYS["lock"], "other.lock")
    assert Path("page.html").read_bytes().startswith(b"<!doctype html>")
    Path("other.lock").write_text(f"<<<<<<< ours\n{locked.lock.read_text()}=======\n>>>>>>> theirs\n")
    assert "exists" not in locked.fails(7, "lock-conflict", *WAYS["lock"], "other.lock")
