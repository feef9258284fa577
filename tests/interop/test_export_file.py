"""`tenv export -o`: a file where the format is one, else a folder."""

from pathlib import Path

import pytest

from tests.support.projects import Project


@pytest.mark.parametrize(
    ("output", "written"),
    [
        ("mine.txt", "mine.txt"),
        ("deep/wheels.txt", "deep/wheels.txt"),
        ("out", "out/requirements.txt"),
        ("there.d", "there.d/requirements.txt"),
        (".", "requirements.txt"),
    ],
)
def test_output_names_a_file_or_a_folder(locked: Project, output: str, written: str) -> None:
    (locked.folder / "there.d").mkdir()
    data = locked.ok("export", "requirements.txt", "tiny", "-o", output, "--json").data
    assert data["files"] == [written]
    assert "alpha==1.0" in (locked.folder / written).read_text()
    locked.fails(2, "file-exists", "export", "requirements.txt", "tiny", "-o", output)
    assert Path(written) in [file.relative_to(locked.folder) for file in locked.folder.rglob("*.txt")]


def test_a_typing_error_makes_no_folders(locked: Project) -> None:
    ended = locked.fails(2, "usage", "export", "requirements.txt", "tiny", "-o", "locsk/ci/wheels.txt")
    assert "mkdir -p locsk" in ended
    locked.fails(2, "usage", "export", "schema", "-o", "none/x")
    assert not (locked.folder / "locsk").exists()
    assert not (locked.folder / "none").exists()
