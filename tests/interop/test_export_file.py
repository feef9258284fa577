"""`tenv export -o`: a file where the format is one, else a folder."""

from pathlib import Path

import pytest

from tests.support.fakes import MINORS
from tests.support.projects import HERE, Project, call


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


def test_a_format_with_one_python_has_that_of_the_environment(project: Project) -> None:
    project.widen_pythons()
    project.ok("lock", "tiny")
    lost = project.ok("export", "environment.yml", "tiny", "-o", "-", "--json").data["lost"]
    assert f"the lock has several Pythons; this is for {MINORS[1]} (`--python` selects another)" in lost
    project.ok("create", "tiny")
    data = project.ok("export", "environment.yml", "tiny", "-o", "-", "--json").data
    assert (
        f"the lock has several Pythons; this is for {HERE}, the environment's (`--python` selects another)"
        in data["lost"]
    )
    assert f"python {HERE}.*" in data["text"]
    other = next(minor for minor in MINORS if minor != HERE)
    assert f"python {other}.*" in project.ok("export", "environment.yml", "tiny", "--python", other, "-o", "-").out


def test_formats_of_the_other_direction_are_no_suggestion(empty_project: Path) -> None:
    ended = call("export", "nothing", "cpu")
    assert "github-actions" in ended.err
    assert "Pipfile" not in ended.err
    Path("requirements.txt").write_text("numpy\n")
    ended = call("import", "requirements.txt", "--format", "nothing")
    assert "Pipfile" in ended.err
    assert "github-actions" not in ended.err
    assert not list(empty_project.glob("manifests/*"))


def test_an_import_makes_its_folder_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    (folder / "requirements.txt").write_text("not a line of pip !\n")
    assert call("import", "requirements.txt").status == 3
    assert [path.name for path in folder.iterdir()] == ["requirements.txt"], "a failed import leaves nothing"
    (folder / "requirements.txt").write_text("numpy\n")
    ended = call("import", "requirements.txt", "--offline")
    assert ended.status == 0, ended.err
    assert f"{folder} is a project now" in ended.err
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
        ".gitignore",
        "manifests/new.toml",
        "requirements.txt",
    ]
    assert call("show", "new").status == 0
    again = call("import", "requirements.txt", "--name", "more", "--offline")
    assert "is a project now" not in again.err
