"""How files of caches come into environments: linked or cloned, or as copies."""

import os
from pathlib import Path

import pytest

from tests.support.archive_server import ask
from tests.support.conda_project import Conda
from tests.support.projects import Project, write_config
from tests.support.redist import Server


def linked(prefix: Path) -> set[str]:
    """Return the files of an environment that are the same file as one elsewhere."""
    files = [path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()]
    assert files
    return {str(path.relative_to(prefix)) for path in files if path.stat().st_nlink > 1}


def test_conda_packages_are_copied_on_request(conda: Conda) -> None:
    conda.lock("data")
    conda.create()
    usual = linked(conda.prefix)
    conda.project.ok("remove", "tiny")
    conda.project.ok("config", "link-mode", "copy")
    conda.create()
    assert not linked(conda.prefix)
    (conda.prefix / "share/data.txt").write_text("edited\n")
    conda.project.ok("remove", "tiny")
    conda.project.ok("config", "link-mode", "auto")
    conda.create()
    assert (conda.prefix / "share/data.txt").read_text() == "old\n"
    assert linked(conda.prefix) == usual


def test_wheels_are_copied_on_request_unless_uv_says_otherwise(
    locked: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENV_LINK_MODE", "copy")
    locked.ok("create", "tiny")
    assert not linked(locked.prefix)
    locked.ok("remove", "tiny")
    monkeypatch.setenv("UV_LINK_MODE", "hardlink")
    locked.ok("create", "tiny")
    assert any(name.endswith("alpha.py") for name in linked(locked.prefix))


def test_archives_are_copied_on_request(project: Project, served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(project, 'cunovel = "7.1.0"')
    project.ok("lock", "tiny")
    monkeypatch.setenv("TENV_LINK_MODE", "copy")
    project.ok("create", "tiny")
    assert not linked(project.prefix / "opt")
    assert os.access(project.prefix / "opt" / "cunovel" / "include" / "cusparseLt.h", os.R_OK)


def test_a_wrong_word_is_refused(project: Project) -> None:
    write_config('link-mode = "symlink"\n')
    assert "expected auto or copy, got `symlink`" in project.fails(2, "usage", "create", "tiny")
