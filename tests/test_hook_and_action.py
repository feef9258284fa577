"""The hook for pre-commit and the action of GitHub: their own words are run, as scripts."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.projects import SOURCE, Project

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The variables of a runner, with `tenv` of this checkout and its Python on PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "tenv").write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -P -m tenv "$@"\n')
    (programs / "tenv").chmod(0o755)
    (programs / "python").symlink_to(sys.executable)
    files = {name: str(tmp_path / name) for name in ("GITHUB_PATH", "GITHUB_OUTPUT")}
    return {**os.environ, **files, "RUNNER_TEMP": str(tmp_path / "temp"), "PATH": f"{programs}:{os.environ['PATH']}"}


def step(name: str) -> dict[str, Any]:
    (found,) = [row for row in ACTION["runs"]["steps"] if row["id"] == name]
    return dict(found)


def run(name: str, folder: Path, variables: dict[str, str], **inputs: str) -> "subprocess.CompletedProcess[str]":
    """Run a step as a runner does: its script in a file, by bash with `-e` and `pipefail`."""
    row = step(name)
    assert row["shell"] == "bash"
    assert "${{" not in row["run"]  # an input in a script would be run
    given = {key: default["default"] for key, default in ACTION["inputs"].items()} | inputs
    values = {f"inputs.{key}": value for key, value in given.items()} | {"github.action_path": str(ROOT)}
    own = {key: re.sub(r"\$\{\{ (.+?) \}\}", lambda match: values[match[1]], text) for key, text in row["env"].items()}
    script = folder.parent / f"{name}.sh"
    script.write_text(row["run"])
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    return subprocess.run(
        words, cwd=folder, env={**variables, **own, "PWD": str(folder)}, capture_output=True, text=True, check=False
    )


def test_the_action_creates_the_environment_of_its_lock(locked: Project, runner: dict[str, str]) -> None:
    done = run("create", locked.folder, runner)
    assert done.returncode == 0, done.stderr
    assert Path(runner["GITHUB_OUTPUT"]).read_text() == f"prefix={locked.prefix}\n"
    assert (locked.prefix / "tenv-meta" / "state.json").is_file()
    locked.ask_for('gamma = "*"')
    stale = run("create", locked.folder, runner, target="tiny")
    assert stale.returncode == 7
    assert "does not satisfy its manifest" in stale.stdout + stale.stderr
    assert run("create", locked.folder, runner, target="$(touch ran)").returncode != 0
    assert not (locked.folder / "ran").exists()


@pytest.mark.real
def test_a_clean_clone_has_the_action_and_the_hook(
    tmp_path: Path, runner: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The install step takes tenv from a clone; the other step and the hook are run with that tenv alone."""
    clone, folder = tmp_path / "clone", tmp_path / "project"

    def ask(words: str, where: Path, variables: dict[str, str]) -> str:
        done = subprocess.run(words.split(), cwd=where, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    ask(f"git clone -q --depth 1 {ROOT.as_uri()} {clone}", tmp_path, runner)
    monkeypatch.setitem(globals(), "ROOT", clone)
    done = run("install", clone, runner)
    assert done.returncode == 0, done.stderr
    programs = Path(runner["GITHUB_PATH"]).read_text().strip()
    assert [file.name for file in Path(programs).iterdir()] == ["tenv"]
    variables = {**runner, "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"}
    assert ask("git rev-parse HEAD", clone, runner)[:12] in ask("tenv --version", tmp_path, variables)
    (folder / "manifests").mkdir(parents=True)
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    text = f'platforms = ["linux-64"]\npython = "{python}.*"\n[pypi-dependencies]\nsix = "*"\n'
    (folder / "manifests" / "mine.toml").write_text(text)
    ask("tenv lock mine", folder, variables)
    done = run("create", folder, variables)
    assert done.returncode == 0, done.stderr
    prefix = Path(runner["GITHUB_OUTPUT"]).read_text().strip().removeprefix("prefix=")
    assert (Path(prefix) / "tenv-meta" / "state.json").is_file()
    ask(HOOK["entry"], folder, variables)


def test_the_hook_refuses_a_stale_lock(locked: Project, runner: dict[str, str]) -> None:
    def hook() -> int:
        words = [shutil.which(word, path=runner["PATH"]) or word for word in HOOK["entry"].split()]
        return subprocess.run(words, cwd=locked.folder, env=runner, capture_output=True, check=False).returncode

    assert HOOK["pass_filenames"] is False
    assert all(re.search(HOOK["files"], file) for file in ("manifests/a.toml", "sub/locks/a.lock"))
    assert not re.search(HOOK["files"], "src/manifests.py")
    assert hook() == 0
    locked.ask_for('gamma = "*"')
    assert hook() == 7
