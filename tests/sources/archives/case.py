import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sources.source_case import SourceCase
from tests.support.projects import Project
from tests.support.redist import Server, pack, regular


@contextmanager
def make_case(_: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SourceCase]:
    monkeypatch.setenv("TENV_CACHE_DIR", str(folder / "cache"))
    data = pack("tar.gz", [regular("stuff-1/include/stuff.h")])
    with Server({"/stuff-1.tar.gz": data}) as server:
        known = f'url = "{server.url}/stuff-1.tar.gz", sha256 = "{hashlib.sha256(data).hexdigest()}"'
        yield SourceCase("stuff", f"stuff = {{ {known}, strip = 1 }}", file="opt/stuff/include/stuff.h")
