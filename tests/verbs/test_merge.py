"""`tenv merge-driver`: real merges by git, in which locks are solved again from both sides."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenv.locks.lock_file import read_lock
from tests.support.fakes import Fault, make_native, make_wheel
from tests.support.projects import SOURCE, Project

pytestmark = pytest.mark.long

BASE = "first"


@dataclass
class Merging:
    """A project in a git repository that leaves the merging of locks to tenv, and what its branches do.

    Attributes:
        project: The project.
    """

    project: Project

    def git(self, *words: str, fails: bool = False) -> str:
        identity = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_EDITOR": "true"}
        done = subprocess.run(
            ["git", *words],
            cwd=self.project.folder,
            env={**os.environ, **identity, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        assert (done.returncode != 0) is fails, said
        return said

    def commit(self, message: str) -> None:
        self.git("add", "manifests", "locks", ".gitattributes")
        self.git("commit", "-qm", message)

    def update(self, *packages: str) -> None:
        self.project.ok("update", "tiny", *packages)
        self.commit(f"update {packages}")

    def branch(self) -> None:
        self.git("checkout", "-qb", "side", BASE)

    def main(self) -> None:
        self.git("checkout", "-q", "main")

    def versions(self) -> dict[str, str]:
        lock = read_lock(self.project.lock, "tiny")
        return {wheel.name: wheel.version for wheel in lock.wheels[lock.platforms[0]]}


def with_driver(project: Project, monkeypatch: pytest.MonkeyPatch) -> Merging:
    """Make a repository of a project, with one commit, in which git leaves the merging of locks to tenv."""
    program = project.folder / ".git-programs" / "tenv"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -m tenv "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    made = Merging(project)
    made.git("init", "-q", "-b", "main")
    project.ok("merge-driver", "--install")
    made.commit("first")
    made.git("tag", BASE)
    return made


@pytest.fixture
def merging(locked: Project, monkeypatch: pytest.MonkeyPatch) -> Merging:
    """A repository whose first commit has everything at 1.0, with an index that now has more."""
    project = locked
    made = with_driver(project, monkeypatch)
    make_wheel(project.index.folder, "alpha", "1.1", requires=["beta>=1"])
    make_wheel(project.index.folder, "beta", "1.1")
    make_wheel(project.index.folder, "beta", "1.2")
    make_native(project.index.folder, "native", "1.1")
    return made


def diverge(merging: Merging) -> None:
    """Let the side update alpha, and main native; neither beta."""
    merging.branch()
    merging.update("alpha")
    merging.main()
    merging.update("native")


def test_what_both_sides_have_updated_is_kept(merging: Merging) -> None:
    diverge(merging)
    said = merging.git("merge", "side")
    assert merging.versions() == {"alpha": "1.1", "beta": "1.0", "native": "1.1"}
    assert "locks/tiny.lock: solved again from both sides\n" in said
    assert "  ~ alpha  1.0 → 1.1  " in said
    assert merging.git("status", "--short", "--untracked-files=no") == ""
    merging.project.ok("lock", "tiny", "--check")


def test_the_newer_is_taken_where_both_have_updated_one(merging: Merging) -> None:
    merging.branch()
    merging.project.edit('native = "*"', 'native = "*"\nbeta = "1.1"')
    merging.project.ok("lock", "tiny")
    merging.project.edit('beta = "1.1"', 'beta = "*"')
    merging.project.ok("lock", "tiny", "--check")
    merging.commit("beta 1.1")
    assert merging.versions()["beta"] == "1.1"
    merging.main()
    merging.update("beta")
    assert merging.versions()["beta"] == "1.2"
    merging.git("merge", "side")
    assert merging.versions() == {"alpha": "1.0", "beta": "1.2", "native": "1.0"}


def test_manifests_that_git_can_merge_decide_what_is_locked(merging: Merging) -> None:
    merging.branch()
    merging.project.edit('description = "A few small wheels"', 'description = "Fewer"')
    merging.project.edit('alpha  = ">=1"', 'alpha  = ">=1.1"')
    merging.project.ok("lock", "tiny")
    merging.commit("alpha")
    merging.main()
    merging.project.ask_for('\n[activation.env]\nA = "1"\n[platform.win-64.activation.env]\nB = "1"')
    manifest = merging.project.manifest
    manifest.write_text(manifest.read_text().partition("[platform.win-64")[0])
    merging.project.edit('glibc = "2.17"', 'glibc = "2.28"')
    merging.project.ok("lock", "tiny")
    merging.commit("glibc")
    merging.git("merge", "side")
    assert merging.versions()["alpha"] == "1.1"
    assert read_lock(merging.project.lock, "tiny").requirements["glibc"] == "2.28"
    merging.project.ok("lock", "tiny", "--check")


def test_manifests_in_conflict_leave_a_conflict_that_is_solved_later(merging: Merging) -> None:
    merging.branch()
    merging.project.edit('alpha  = ">=1"', 'alpha  = ">=1.1"')
    merging.project.ok("lock", "tiny")
    merging.commit("alpha 1.1")
    merging.main()
    merging.project.edit('alpha  = ">=1"', 'alpha  = ">=1.0,<2"')
    merging.update("native")
    said = merging.git("merge", "side", fails=True)
    assert "error[lock-conflict]: locks/tiny.lock can't be merged while manifests/tiny.toml is in conflict\n" in said
    assert "hint: resolve manifests/tiny.toml first; then `tenv merge-driver locks/tiny.lock`" in said
    assert merging.git("diff", "--name-only", "--diff-filter=U").split() == ["locks/tiny.lock", "manifests/tiny.toml"]
    err = merging.project.fails(3, "manifest", "create", "tiny", "--frozen")
    assert "manifests/tiny.toml: has conflict markers of an unresolved merge\n" in err

    err = merging.project.fails(7, "lock-conflict", "merge-driver", "locks/tiny.lock")
    assert "can't be merged while manifests/tiny.toml is in conflict" in err
    merging.git("checkout", "--theirs", "manifests/tiny.toml")
    err = merging.project.fails(7, "lock-conflict", "create", "tiny", "--frozen")
    assert f"hint: `tenv merge-driver {merging.project.lock}` merges both sides" in err
    err = merging.project.ok("merge-driver", "locks/tiny.lock").err
    assert err.endswith("`git add locks/tiny.lock` marks the conflict as resolved\n")
    assert merging.versions() == {"alpha": "1.1", "beta": "1.0", "native": "1.1"}
    merging.project.ok("lock", "tiny", "--check")


def test_a_conflict_in_a_manifest_of_another_target_is_no_matter(merging: Merging) -> None:
    other = merging.project.manifest.with_name("other.toml")
    merging.branch()
    other.write_text('platforms = ["linux-64"]\n')
    merging.update("alpha")
    merging.main()
    other.write_text('platforms = ["win-64"]\n')
    merging.update("native")
    merging.git("merge", "side", fails=True)
    assert merging.git("diff", "--name-only", "--diff-filter=U").split() == ["manifests/other.toml"]
    assert merging.versions() == {"alpha": "1.1", "beta": "1.0", "native": "1.1"}


def test_sides_that_do_not_fit_together_are_solved_by_what_fits(merging: Merging) -> None:
    make_native(merging.project.index.folder, "native", "1.2", requires=["beta<1.2"])
    merging.branch()
    merging.update("native")
    merging.main()
    merging.update("beta")
    assert merging.versions()["beta"] == "1.2"
    merging.git("merge", "side")
    versions = merging.versions()
    assert (versions["native"], versions["beta"]) in (("1.2", "1.1"), ("1.1", "1.2"), ("1.2", "1.0"))
    merging.project.ok("lock", "tiny", "--check")


def test_an_index_that_is_gone_leaves_a_conflict(
    merging: Merging, impatient: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    diverge(merging)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "empty"))
    with merging.project.index.failing(Fault.ERROR, "simple"):
        said = merging.git("merge", "side", fails=True)
    assert "error[network]" in said
    assert "then `tenv merge-driver locks/tiny.lock`" in said
    assert merging.git("diff", "--name-only", "--diff-filter=U").split() == ["locks/tiny.lock"]
    merging.project.fails(7, "lock-conflict", "lock", "tiny", "--check")
    merging.project.ok("merge-driver", "locks/tiny.lock")
    assert merging.versions() == {"alpha": "1.1", "beta": "1.0", "native": "1.1"}
    merging.git("add", "locks")
    merging.git("commit", "-qm", "merged")


def test_offline_with_a_warm_cache_it_works(merging: Merging, monkeypatch: pytest.MonkeyPatch) -> None:
    diverge(merging)
    monkeypatch.setenv("UV_OFFLINE", "1")
    merging.git("merge", "side")
    assert merging.versions() == {"alpha": "1.1", "beta": "1.0", "native": "1.1"}


@pytest.mark.parametrize("words", [("rebase", "main"), ("cherry-pick", "main")])
def test_rebases_and_cherry_picks_too(merging: Merging, words: tuple[str, ...]) -> None:
    merging.branch()
    merging.project.edit('alpha  = ">=1"', 'alpha  = ">=1.1"')
    merging.project.ok("lock", "tiny")
    merging.commit("alpha")
    merging.main()
    merging.update("native")
    merging.git("checkout", "-q", "side")
    merging.git(*words)
    assert merging.versions() == {"alpha": "1.1", "beta": "1.0", "native": "1.1"}
    merging.project.ok("lock", "tiny", "--check")


def test_both_sides_may_have_added_the_lock(merging: Merging) -> None:
    merging.git("rm", "-q", "locks/tiny.lock")
    merging.git("commit", "-qm", "no lock")
    merging.git("tag", "-f", BASE)
    merging.branch()
    merging.project.ok("lock", "tiny")
    merging.commit("with everything new")
    merging.main()
    merging.project.edit('native = "*"', 'native = "1.0"')
    merging.project.ok("lock", "tiny")
    merging.commit("with an old native")
    merging.git("merge", "side")
    assert merging.versions() == {"alpha": "1.1", "beta": "1.2", "native": "1.0"}


def test_installing_twice_changes_nothing(merging: Merging) -> None:
    attributes = merging.project.folder / ".gitattributes"
    assert attributes.read_text() == "locks/*.lock merge=tenv\n"
    assert merging.git("config", "merge.tenv.driver") == "tenv merge-driver %O %A %B %P\n"
    data = merging.project.ok("merge-driver", "--install", "--json").data
    assert (data["written"], data["line"]) == (False, "locks/*.lock merge=tenv")
    assert attributes.read_text() == "locks/*.lock merge=tenv\n"


def test_installing_keeps_what_else_is_in_the_file(merging: Merging) -> None:
    attributes = merging.project.folder / ".gitattributes"
    attributes.write_text("*.png binary")
    err = merging.project.ok("merge-driver", "--install").err
    assert attributes.read_text() == "*.png binary\nlocks/*.lock merge=tenv\n"
    assert f"{attributes} now has the line `locks/*.lock merge=tenv`\n" in err


def test_a_lock_without_a_conflict_is_refused(merging: Merging) -> None:
    err = merging.project.fails(2, "usage", "merge-driver", "locks/tiny.lock")
    assert "locks/tiny.lock is not in conflict, or one side has removed it" in err


@pytest.mark.parametrize("words", [(), ("a", "b"), ("--install", "a")])
def test_other_words_are_a_matter_of_usage(merging: Merging, words: tuple[str, ...]) -> None:
    assert "merge-driver" in merging.project.fails(2, "usage", "merge-driver", *words)


def test_a_side_that_is_no_lock_leaves_a_conflict(merging: Merging) -> None:
    merging.branch()
    merging.project.lock.write_text("nonsense\n")
    merging.commit("nonsense")
    merging.main()
    merging.update("native")
    said = merging.git("merge", "side", fails=True)
    assert "error[lock-corrupt]: locks/tiny.lock (theirs): is not a lock of tenv" in said


def test_outside_a_repository_there_is_nothing_to_install(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert "is not in a git repository" in project.fails(2, "usage", "merge-driver", "--install")
