from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sources.source_case import SourceCase
from tests.support.machine_trees import make_gcc
from tests.support.projects import Project


def patch(program: Path) -> None:
    program.write_text(f"{program.read_text()}# patched\n")


@contextmanager
def make_case(_: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SourceCase]:
    """A compiler of a release that no machine has, so that the test sees the same everywhere."""
    gxx = make_gcc(folder / "gcc", "97.2.0")
    monkeypatch.setenv("CXX", str(gxx))
    monkeypatch.setenv("CC", str(gxx.with_name("gcc")))
    yield SourceCase("gcc", 'gcc = "97.*"', disturb=lambda: patch(gxx))
