"""`tenv diff`: lock files, targets and what git has of them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.fakes import make_wheel
from tests.support.projects import Project, call

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent


def git(folder: Path, *words: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "t", f"GIT_{role}_EMAIL": "t@example.org"}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def updated(locked: Project) -> Project:
    """The project in git, with its lock moved on since the last commit."""
    locked.ok("update", "tiny")
    git(locked.folder, "init", "-q", "-b", "main")
    git(locked.folder, "add", "manifests", "locks")
    git(locked.folder, "commit", "-qm", "first")
    make_wheel(locked.index.folder, "beta", "1.1")
    locked.ok("update", "tiny", "beta")
    return locked


def test_one_name_is_compared_with_the_last_commit(updated: Project) -> None:
    out = updated.ok("diff", "tiny").out
    assert out.startswith("HEAD:locks/tiny.lock → tiny\npackages: 0 added, 0 removed, 1 changed\n  ~ beta  1.0 → 1.1  ")
    assert updated.ok("diff", "locks/tiny.lock", "--rev", "main").out.startswith("main:locks/tiny.lock → locks/tiny")


def test_without_a_name_it_is_the_default_target(updated: Project) -> None:
    assert updated.ok("diff").out == updated.ok("diff", "tiny").out
    assert updated.ok("diff", "--rev", "main").out.startswith("main:locks/tiny.lock → tiny\n")
    err = updated.fails(2, "unknown-target", "diff", "main")
    assert "hint: `tenv diff --rev main` compares with that revision" in err
    assert "hint: `tenv targets`" in updated.fails(2, "unknown-target", "diff", "no-such")


def test_two_names_may_be_revisions_files_and_targets(updated: Project, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(updated.lock.read_bytes())
    assert updated.ok("diff", "HEAD:locks/tiny.lock", str(sent), "--json").data["changed"][0]["new"] == "1.1"
    assert updated.ok("diff", "tiny", "HEAD:locks/tiny.lock", "--json").data["changed"][0]["new"] == "1.0"


def test_the_same_is_told_as_the_same(updated: Project) -> None:
    ended = updated.ok("diff", "tiny", "locks/tiny.lock", "--exit-code")
    assert (ended.out, ended.err) == ("", "tiny and locks/tiny.lock are equal\n")
    assert (
        updated.ok("diff", "tiny", "tiny", "--format", "markdown").out
        == "### `tiny` → `tiny`\n\nThe locks are equal.\n"
    )


def test_exit_code_tells_that_they_differ(updated: Project) -> None:
    assert call("diff", "tiny").status == 0
    assert call("diff", "tiny", "--exit-code").status == 1


def test_the_json_has_the_keys_of_the_contract(updated: Project) -> None:
    found = json.loads(updated.ok("diff", "tiny", "--json").out)
    assert {"host", "added", "removed", "changed"} <= set(found["data"])
    [row] = found["data"]["changed"]
    assert (row["name"], row["kind"], row["old"], row["new"]) == ("beta", "wheel", "1.0", "1.1")
    [files] = row["platforms"].values()
    assert set(files["old"]) == {"version", "build", "channel", "size", "digest", "values"}
    assert [one["name"] for one in row["fields"]] == ["version", "file", "sha256", "size"]


def test_real_locks_in_the_terms_of_the_field() -> None:
    locks = ROOT / "locks"
    out = call("diff", str(locks / "cuda130.lock"), str(locks / "cuda132.lock")).out
    assert "  CUDA " in out
    assert "13.0 → 13.2\n" in out
    assert "580.65.06 → 595.45.04\n" in out
    text = call("diff", "cpu", "cuda130", "--platform", "linux-64", "--format", "markdown").out
    assert "| minimum NVIDIA driver | none → 580 |\n" in text
    assert "| cuDNN | none → 9.24.0.43 |\n" in text
    assert "<details><summary>packages: 23 added, 0 removed, 0 changed</summary>" in text


@pytest.mark.parametrize(
    ("status", "code", "words", "said"),
    [
        (2, "unknown-target", ("tinny", "tiny"), "there is no target `tinny`"),
        (7, "lock-missing", ("locks/no.lock", "tiny"), "there is no lock file locks/no.lock"),
        (2, "usage", ("nosuch:locks/tiny.lock", "tiny"), "git has no revision `nosuch`"),
        (2, "usage", ("--", "-p:x", "tiny"), "git has no revision `-p`"),
        (7, "lock-missing", ("HEAD:nosuch", "tiny"), "revision HEAD has no nosuch"),
        (2, "usage", ("tiny", "tiny", "--rev", "HEAD"), "`--rev` replaces OLD"),
        (2, "usage", ("tiny", "--platform", "win-64"), "`--platform win-64`: the locks have in common linux-"),
        (7, "lock-corrupt", ("manifests/tiny.toml", "tiny"), "manifests/tiny.toml: "),
    ],
)
def test_what_names_no_lock_is_told(
    updated: Project, status: int, code: str, words: tuple[str, ...], said: str
) -> None:
    assert said in updated.fails(status, code, "diff", *words)


def test_without_git_two_names_are_needed(locked: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    err = locked.fails(2, "usage", "diff", "tiny")
    assert "is not in a git repository" in err
    assert "hint: `tenv diff OLD NEW` compares two files or targets" in err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is not on PATH" in locked.fails(2, "usage", "diff", "tiny")


def test_a_repository_without_a_commit_has_no_lock_of_before(locked: Project) -> None:
    git(locked.folder, "init", "-q", "-b", "main")
    said = locked.fails(2, "usage", "diff", "tiny")
    assert "git has no commit here yet\nhint: `git add locks/tiny.lock && git commit` makes one" in said
