"""What ``KEY/case.py`` says of a source: how a project asks something of it, and what an environment then has."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.projects import Project

__all__ = ["MakeCase", "SourceCase"]


@dataclass(frozen=True)
class SourceCase:
    """A request that can be answered on this machine.

    Attributes:
        name: What is requested.
        request: The line of the section that asks for it.
        head: The lines of the manifest that go before all sections.
        file: Where a file of it lies in the prefix, as a pattern; empty for a source that puts none there.
        disturb: Changes what the environment uses from outside its prefix; for a source that puts no file there.
    """

    name: str
    request: str
    head: str = ""
    file: str = ""
    disturb: Callable[[], None] = lambda: None


MakeCase = Callable[[Project, Path, pytest.MonkeyPatch], AbstractContextManager[SourceCase]]
"""Makes what answers the request (a server, a folder), and ends it."""
