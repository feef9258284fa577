"""What tenv asks of git."""

import os
from pathlib import Path

import pytest

from tenv.core.errors import UsageError
from tenv.core.git import Repository, find_repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with two commits of one file."""
    folder = tmp_path / "r"
    folder.mkdir()
    identity = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    made = Repository(folder, environment)
    assert made.ask("init", "-q", "-b", "main") is not None
    for text in ("one\n", "two\n"):
        (folder / "größe.txt").write_text(text)
        assert made.ask("add", ".") is not None
        assert made.ask("commit", "-qm", text) is not None
    return made


def test_a_file_of_a_revision(repository: Repository) -> None:
    assert repository.read("HEAD", "größe.txt") == b"two\n"
    assert repository.read("HEAD~1", "größe.txt") == b"one\n"
    assert repository.read("HEAD~9", "größe.txt") is None
    assert repository.read("HEAD", "nowhere") is None
    assert repository.read("--help", "größe.txt") is None


def test_the_files_of_a_folder(repository: Repository) -> None:
    assert repository.files("HEAD", "") == ("größe.txt",)
    assert repository.files("HEAD", "nowhere") == ()


def test_the_commits_that_brought_a_text(repository: Repository) -> None:
    head, before = repository.commit("HEAD"), repository.commit("HEAD~1")
    assert repository.bringers("größe.txt", b"two\n") == (head,)
    assert repository.bringers("größe.txt", b"one\n") == (head, before)
    assert repository.bringers("größe.txt", b"three\n") == ()
    assert repository.commit("nosuch") is None


def test_texts_are_merged_or_in_conflict(repository: Repository) -> None:
    base = b"a\n" * 3 + b"b\n" * 3
    assert repository.merge_texts(b"x\n" + base, base, base + b"y\n") == b"x\n" + base + b"y\n"
    assert repository.merge_texts(b"x\n", b"a\n", b"y\n") is None


def test_paths_are_from_the_top(repository: Repository, tmp_path: Path) -> None:
    assert repository.relative(repository.folder / "a" / "b") == "a/b"
    assert repository.relative(tmp_path / "elsewhere") is None


def test_outside_a_repository_or_without_git(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not in a git repository"):
        find_repository(tmp_path, {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    with pytest.raises(UsageError, match="git is not on PATH"):
        find_repository(tmp_path, {"PATH": str(tmp_path)})


def test_the_repository_of_a_folder_below_it(repository: Repository) -> None:
    (repository.folder / "sub").mkdir()
    found = find_repository(repository.folder / "sub", dict(os.environ))
    assert found.folder.samefile(repository.folder)
