"""`tenv --version` and `tenv info` name the commit: of the checkout, or as pip and uv noted it."""

import subprocess
from pathlib import Path

import pytest

from tenv import __version__
from tenv.core.source_commit import source_commit
from tests.support.each import each
from tests.support.projects import SOURCE

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "repository" / "src" / "tenv"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*GIT, "-C", str(package.parents[1]), *words], check=True)
    return package


def head(package: Path) -> str:
    done = subprocess.run(["git", "-C", str(package), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_of_a_checkout_is_that_of_git(checkout: Path) -> None:
    assert len(source_commit(str(checkout))) == 40
    assert source_commit(str(checkout)) == head(checkout)


@pytest.mark.parametrize("words", [["pack-refs", "--all"], ["checkout", "-q", "--detach"], ["checkout", "-qb", "a/b"]])
def test_it_is_found_however_git_keeps_it(checkout: Path, words: list[str]) -> None:
    subprocess.run([*GIT, "-C", str(checkout), *words], check=True)
    assert source_commit(str(checkout)) == head(checkout)


def test_a_worktree_has_its_own(checkout: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    subprocess.run([*GIT, "-C", str(checkout), "worktree", "add", "-q", "-b", "other", str(tree)], check=True)
    subprocess.run([*GIT, "-C", str(tree), "commit", "-q", "--allow-empty", "-m", "second"], check=True)
    package = tree / "src" / "tenv"
    assert source_commit(str(package)) == head(package) != head(checkout)


@each("name", ["tenv", "torch_tenv"])
def test_an_installation_from_git_has_the_noted_one(name: str, tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "tenv"
    note = package.parent / f"{name}-{__version__}.dist-info" / "direct_url.json"
    note.parent.mkdir(parents=True)
    assert source_commit(str(package)) == ""
    note.write_text('{"url": "https://h/r.git", "vcs_info": {"vcs": "git", "commit_id": "' + "ab" * 20 + '"}}')
    assert source_commit(str(package)) == "ab" * 20
    note.write_text('{"url": "file:///x", "dir_info": {}}')
    assert source_commit(str(package)) == ""


@each("folder", ["site-packages", "src"])
def test_a_wheel_and_an_sdist_have_the_noted_one(folder: str, tmp_path: Path) -> None:
    package = tmp_path / folder / "tenv"
    package.mkdir(parents=True)
    (package / "commit.txt").write_text("cd" * 20 + "\n")
    assert source_commit(str(package)) == "cd" * 20
    (package / "commit.txt").write_text("no commit\n")
    assert source_commit(str(package)) == ""


def test_a_checkout_counts_more_than_a_note(checkout: Path) -> None:
    (checkout / "commit.txt").write_text("cd" * 20 + "\n")
    assert source_commit(str(checkout)) == head(checkout)


@pytest.mark.parametrize("text", ["", "ref: refs/heads/none", "ref: ../../../etc/passwd", "no commit", "\udcff"])
def test_what_is_no_commit_is_not_printed(text: str, checkout: Path) -> None:
    (checkout.parents[1] / ".git" / "HEAD").write_bytes(text.encode(errors="surrogateescape"))
    assert source_commit(str(checkout)) == ""


def test_version_prints_it() -> None:
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "tenv", "--version"],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    commit = source_commit()
    assert done.stdout == (f"tenv {__version__} ({commit[:12]})\n" if commit else f"tenv {__version__}\n")
