"""The environment that both ways answer for."""

import pytest

from tests.support.projects import Project


@pytest.fixture
def both(created: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with an environment, which the test stands in."""
    monkeypatch.setenv("PWD", str(created.folder))
    created.ok("list")  # notes what it looked at
    return created
