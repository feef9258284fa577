from pathlib import Path

import pytest

from tests.workflows.check_hosts import make_project


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a target for each of some CUDA releases; the test stands in its folder."""
    folder = make_project(tmp_path / "project")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder
