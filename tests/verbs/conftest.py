from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archive_server import CUSPARSELT, MAGMA, NVIDIA
from tests.support.check_hosts import make_project
from tests.support.conda import PLACEHOLDER, Channel, Link, make_python
from tests.support.conda_project import Conda
from tests.support.projects import Project, write_config
from tests.support.redist import Files, Server, pack
from tests.support.torch_extension import Extension, request_it


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a target for each of some CUDA releases; the test stands in its folder."""
    folder = make_project(tmp_path / "project")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder


@pytest.fixture
def conda(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conda]:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    with Channel(tmp_path / "channel") as channel:
        made = Conda(project, channel)
        text = f"#!/bin/sh\necho {PLACEHOLDER}\n"
        made.make("tool", files={"bin/tool": text, "lib/libtool.so": b"\x7fELF\0" + PLACEHOLDER.encode() + b"/lib\0x"})
        made.make("data", files={"share/data.txt": "old\n", "share/link": Link("data.txt")})
        yield made


@pytest.fixture(scope="session")
def python_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_python(tmp_path_factory.mktemp("python"))


@pytest.fixture
def served(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of a product that no facts know, which stands in for NVIDIA's."""
    files = Files()
    files.add("cunovel", "7.1.0", "libcunovel", "7.1.0.3", CUSPARSELT, cuda="cuda12")
    files.data["/magma-cuda121-2.6.1-1.tar.bz2"] = pack("tar.bz2", MAGMA)
    with Server(files.data) as server:
        write_config(f'[mirrors]\n"{NVIDIA}" = ["{server.url}"]\n')
        monkeypatch.setenv("TENV_HTTP_RETRIES", "0")
        yield server


@pytest.fixture
def extension(project: Project, tmp_path: Path) -> Extension:
    """The archive on the index, and a manifest that asks for it and for a torch."""
    request_it(project)
    return Extension(project, tmp_path)
