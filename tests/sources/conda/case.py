from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sources.source_case import SourceCase
from tests.support.conda import Channel, make_conda
from tests.support.projects import Project


@contextmanager
def make_case(_: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SourceCase]:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(folder / "packages"))
    with Channel(folder / "channel") as channel:
        make_conda(channel.folder, "tool", "1", files={"share/tool.txt": "one\n"})
        channel.refresh()
        yield SourceCase("tool", 'tool = "*"', f'channels = ["{channel.root}"]', "share/tool.txt")
