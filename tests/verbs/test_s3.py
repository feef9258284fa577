"""Bundles and mirrors on an S3 server: moto, in an environment of its own, from the package index."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from socket import socket
from urllib.parse import quote

import pytest
import requests

from tests.support.archive_server import ask
from tests.support.conda_project import Conda
from tests.support.projects import Project
from tests.support.redist import Server
from tests.verbs.test_mirror import away, files

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_OPEN = {"x-amz-acl": "public-read"}
_START = 60
"""Seconds that the server may take to start."""


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a bucket that anybody may read and write."""
    folder = tmp_path_factory.mktemp("moto")
    uv = [sys.executable, "-m", "uv"]
    program = folder / "bin" / "moto_server"
    subprocess.run([*uv, "venv", "-q", str(folder), "--python", sys.executable], check=True)
    words = ["pip", "install", "-q", "--python", str(folder / "bin" / "python"), "moto[s3,server]>=5.1,<6"]
    subprocess.run([*uv, *words], check=True)
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [str(program), "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}/shelf"
        end = time.monotonic() + _START
        while True:
            try:
                assert requests.put(address, timeout=_START, headers=_OPEN).ok
                break
            except requests.ConnectionError:
                assert time.monotonic() < end, "moto_server does not start"
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait()


def upload(folder: Path, bucket: str) -> None:
    """Put every file of a folder into a bucket, as `aws s3 sync` does."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = quote(path.relative_to(folder).as_posix())
            assert requests.put(f"{bucket}/{name}", data=path.read_bytes(), timeout=_START, headers=_OPEN).ok


def test_wheels_of_a_mirror(created: Project, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(created.prefix)
    made = created.ok("mirror", "tiny", "mirror", "--url", f"{bucket}/wheels", "--json").data
    upload(Path("mirror"), f"{bucket}/wheels")
    away(created, monkeypatch, made["settings"])
    created.ok("create", "tiny")
    assert files(created.prefix) == before


def test_conda_packages_of_a_mirror(conda: Conda, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conda.lock("tool", "data")
    conda.create()
    before = files(conda.prefix)
    made = conda.project.ok("mirror", "tiny", "mirror", "--url", f"{bucket}/conda", "--json").data
    upload(Path("mirror"), f"{bucket}/conda")
    away(conda.project, monkeypatch, made["settings"])
    conda.channel.asked.clear()
    conda.create()
    assert files(conda.prefix) == before
    shown = conda.project.ok("search", "tool", "--channel", made["settings"]["channels"][0]).out
    assert made["settings"]["channels"][0] in shown
    assert conda.channel.asked == []


def test_archives_of_a_mirror(project: Project, served: Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(project, 'cunovel = "7.1.0"')
    project.ok("lock", "tiny")
    made = project.ok("mirror", "tiny", "mirror", "--url", f"{bucket}/archives", "--json").data
    upload(Path("mirror"), f"{bucket}/archives")
    away(project, monkeypatch, made["settings"])
    served.asked.clear()
    project.ok("create", "tiny")
    assert served.asked == []


def test_a_bundle_is_resumed(created: Project, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenv.verbs.bundle import _download_path

    before = files(created.prefix)
    created.ok("bundle")
    raw = Path("tiny.tenv").read_bytes()
    assert requests.put(f"{bucket}/tiny.tenv", data=raw, timeout=_START, headers=_OPEN).ok
    away(created, monkeypatch, {"uv": {}, "config.toml": ""})
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9")
    for part in (b"", raw[: len(raw) // 2], raw):  # the last one is whole: the server has no more bytes of it
        path = _download_path(f"{bucket}/tiny.tenv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(part)
        created.ok("create", "--bundle", f"{bucket}/tiny.tenv", "--exact", *(["--repair"] if part else []))
        assert files(created.prefix) == before
        assert not path.exists()
    assert [name for name in os.listdir(path.parent) if not name.endswith(".lock")] == []  # noqa: PTH208 (names)
