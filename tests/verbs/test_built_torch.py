"""The built torch of an environment, as `tenv list` and `tenv remove` show it."""

import json
from pathlib import Path

import pytest

from tests.support.projects import HERE, Project

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def leave_note(prefix: Path, built_by: Path, **values: str) -> Path:
    """Leave in an environment what `tenv build` leaves of a torch."""
    folder = prefix / "lib" / f"python{HERE}" / "site-packages" / "torch-2.9.0a0.dist-info"
    folder.mkdir(parents=True)
    note = {
        "target": "tiny",
        "version": "2.9.0a0",
        "prefix": str(built_by),
        "checkout": "/src/pytorch",
        "commit": COMMIT,
    }
    (folder / "tenv-build.json").write_text(json.dumps(note | values))
    return folder


def test_list_shows_the_built_torch(created: Project) -> None:
    assert "BUILT TORCH" not in created.ok("list").out
    leave_note(created.prefix, created.prefix)
    [row] = created.ok("list", "--json").data
    assert row["torch"] == {
        "version": "2.9.0a0",
        "target": "tiny",
        "prefix": str(created.prefix),
        "checkout": "/src/pytorch",
        "commit": COMMIT,
    }
    assert "2.9.0a0 (commit 0123456789ab)" in created.ok("list").out


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "{}", '{"target": 3}', "\0"])
def test_a_note_that_is_none_is_no_torch(created: Project, text: str) -> None:
    (leave_note(created.prefix, created.prefix) / "tenv-build.json").write_text(text)
    assert created.ok("list", "--json").data[0]["torch"] is None


def test_a_link_of_setup_py_develop(created: Project) -> None:
    folder = leave_note(created.prefix, created.prefix)
    note = created.prefix.parent.parent / "builds" / "tiny" / "tenv-build.json"
    note.parent.mkdir(parents=True)
    (folder / "tenv-build.json").rename(note)
    assert created.ok("list", "--json").data[0]["torch"] is None
    (folder.parent / "torch.egg-link").write_text("/src/pytorch\n.")
    assert created.ok("list", "--json").data[0]["torch"]["version"] == "2.9.0a0"


def test_remove_names_the_torch_that_breaks(created: Project) -> None:
    other = created.prefix.with_name("other")
    created.ok("create", "tiny", "--prefix", str(other))
    leave_note(created.prefix, created.prefix)
    leave_note(other, created.prefix, commit="")
    dry = created.ok("remove", "tiny", "--dry-run")
    lines = [line for line in dry.err.splitlines() if line.startswith("warning: ")]
    assert lines == [
        "warning: torch 2.9.0a0 (commit 0123456789ab), built from /src/pytorch, is installed in this environment alone",
        f"warning: torch 2.9.0a0, built from /src/pytorch and installed in {other}, takes its libraries from "
        f"{created.prefix}",
    ]
    assert f"would remove {created.prefix}" in dry.err
    assert created.prefix.is_dir()
    data = created.ok("remove", "tiny", "--json").data
    assert ([row["environment"] for row in data["breaks"]], data["removed"]) == (
        [str(created.prefix), str(other)],
        True,
    )
    assert not created.prefix.exists()
    data = created.ok("remove", "tiny", "--prefix", str(other), "--json").data
    assert [row["environment"] for row in data["breaks"]] == [str(other)]
