"""What is said of a program that is neither in the environment nor on PATH, and of a file to import that is missing."""

from pathlib import Path

import pytest

from tests.support.projects import Project, call


@pytest.fixture
def created(project: Project) -> Project:
    """A project whose target is created."""
    project.edit('native = "*"\n', "")
    project.ok("lock", "tiny")
    project.ok("create", "tiny")
    return project


def test_a_missing_program_leads_to_a_similar_one_or_its_package(
    created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "frobnicate").write_text("#!/bin/sh\n")
    (folder / "frobnicate").chmod(0o755)
    (folder / "frobnicatf").write_text("no program")
    monkeypatch.setenv("PATH", str(folder))
    created.manifest.write_text(created.manifest.read_text() + '[feature.debug.pypi-dependencies]\ndebugpy = "*"\n')
    for typed, hint in (
        ("debugpy", "`tenv create tiny --with debug` installs it"),
        ("frobnicat", "did you mean `frobnicate`?"),
        ("lintrunner", "`tenv add tiny lintrunner` adds it to the environment"),
        ("build", "`tenv build tiny` builds a PyTorch checkout; tenv has no tasks: `pixi run build` runs one of pixi"),
        ("zzzzzzzz", "`tenv packages tiny` lists what the environment has"),
        ("./zzzzzzzz", "`./zzzzzzzz` is a path, here from "),
    ):
        said = created.fails(2, "usage", "run", "tiny", "--", typed)
        assert f"no program `{typed}`" in said
        assert hint in said


def test_a_missing_file_to_import_leads_to_what_is_there(project: Project) -> None:
    for name in ("environment.yml", "dev-requirements.txt", "notes.md"):
        (project.folder / name).write_text("")
    assert "did you mean `environment.yml`?" in call("import", "enviroment.yml").err
    assert "did you mean `dev-requirements.txt` or `environment.yml`" in call("import", "zzz").err
    ended = call("import", "missing/folder/x.yml")
    assert (ended.status, "hint" in ended.err) == (2, False)


def test_an_option_after_the_target_has_the_command_with_it_before(created: Project) -> None:
    for words, line in (
        ("run tiny --with dbg -- python -V", "tenv run --with dbg tiny -- python -V"),
        ("run tiny --with=dbg --sync python -V", "tenv run --with=dbg --sync tiny -- python -V"),
        ("run tiny --locked", "tenv run --locked tiny -- COMMAND"),
    ):
        assert f"hint: `{line}` has it before the target" in created.fails(2, "usage", *words.split())
