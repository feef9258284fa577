from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sources.source_case import SourceCase
from tests.support.projects import HERE, Project


@contextmanager
def make_case(_: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SourceCase]:
    """The index of the project has this wheel."""
    yield SourceCase("beta", 'beta = "*"', f'python = "{HERE}.*"', "lib/python3*/site-packages/beta.py")
