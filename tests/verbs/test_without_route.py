"""Wheels, conda packages and archives in one target: bundled or mirrored, and created in a namespace without a route.

The namespace has no interface but its own loopback: the servers that the files came from are not reached, either.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tenv.core.files import digest
from tenv.host.machine import current_platform
from tests.faults.test_storage import ROOT
from tests.support.conda_project import Conda
from tests.support.projects import HERE, Project, snapshot, write_config
from tests.support.redist import Server

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")]

_PORT = 8000  # of a namespace of its own, in which nobody else listens
_HOME = f"http://127.0.0.1:{_PORT}"
_ALONE = ("unshare", "--net", *(() if ROOT else ("--map-current-user",)))
_SERVED = f"""\
import fcntl, functools, http.server, socket, struct, subprocess, sys, threading

with socket.socket() as any_socket:  # SIOCSIFFLAGS, IFF_UP (netdevice(7))
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1))
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", {_PORT}), functools.partial(Quiet, directory=sys.argv[1]))
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""


@pytest.fixture
def whole(conda: Conda, served: Server, python_package: Path) -> Project:
    """A target with files of each source, created online."""
    if not shutil.which("unshare", path=os.defpath) or subprocess.run([*_ALONE, "true"], check=False).returncode:
        pytest.skip("this user may make no network namespace")
    project = conda.project
    conda.take(python_package)
    conda.channel.refresh()
    project.manifest.write_text(
        f'platforms = ["{current_platform()}"]\nchannels = ["{conda.channel.root}"]\n[requirements]\ncuda = "12.1"\n'
        f'[dependencies]\npython = "{HERE}.*"\ntool = "*"\ndata = "*"\n[pypi-dependencies]\nalpha = "*"\n'
        f'[archives]\ncunovel = "7.1.0"\nmagma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2" }}\n'
    )
    project.ok("lock", "tiny", "--trust-first-use")
    project.ok("create", "tiny")
    return project


def files(project: Project) -> dict[str, str]:
    """Return the content of the environment, without the notes that name times, caches and addresses."""
    return {
        name: text
        for name, text in snapshot(project.prefix).items()
        if not name.startswith(("tenv-meta", "conda-meta"))
    }


def create(project: Project, *words: str, settings: Mapping[str, Any], serve: Path | None = None) -> None:
    """Create the environment on another machine: without the caches of this one, and without a route."""
    if project.prefix.exists():
        shutil.rmtree(project.folder / ".tenv")
    other = project.folder.parent / "other"
    shutil.rmtree(other, ignore_errors=True)
    caches = ("UV_CACHE_DIR", "TENV_CACHE_DIR", "XDG_CACHE_HOME", "RATTLER_CACHE_DIR")
    environment = {name: str(other / name) for name in caches} | {"TENV_HTTP_RETRIES": "0", "UV_HTTP_RETRIES": "0"}
    server = (sys.executable, "-c", _SERVED, str(serve)) if serve else ()
    write_config(settings.get("config.toml", ""))
    ended = project.run(
        "create", "tiny", *words, wrapped=(*_ALONE, *server), environment=environment | settings.get("uv", {})
    )
    assert ended.status == 0, ended.err


def test_a_bundle_carries_all_of_it(whole: Project) -> None:
    before = files(whole)
    made = whole.ok("bundle", "--json").data
    assert {row["kind"] for row in made["files"]} == {"archives", "conda", "wheels"}
    with pytest.raises(AssertionError, match=r"error\[network\]"):
        create(whole, settings={})
    create(whole, "--bundle", "tiny.tenv", settings={})
    assert files(whole) == before
    for name in ("bin/tool", "opt/magma/lib/libmagma.a"):
        assert name in before
    whole.ok("verify", "tiny", "--no-probes")  # the made libraries of the archives do not load
    create(whole, "--bundle", f"{_HOME}/tiny.tenv", settings={}, serve=whole.folder)
    assert files(whole) == before


@pytest.mark.parametrize("web", [True, False])
def test_a_mirror_has_all_of_it(whole: Project, web: bool) -> None:
    before = files(whole)
    words = ("--url", _HOME) if web else ()
    made = whole.ok("mirror", "tiny", "mirror", *words, "--json").data
    assert {row["kind"] for row in made["files"]} == {"archives", "conda", "wheels"}
    assert all(digest(Path("mirror", row["path"])) == row["sha256"] for row in made["files"])
    create(whole, settings=made["settings"], serve=Path("mirror") if web else None)
    assert files(whole) == before
    whole.ok("verify", "tiny", "--no-probes")  # the made libraries of the archives do not load
