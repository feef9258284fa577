"""A Python that the host lacks is fetched through uv."""

import hashlib
import io
import json
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.fakes import MINORS, Fault
from tests.support.projects import HERE, Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the stand-in for a Python is a shell script")

OTHER = next(minor for minor in MINORS if minor != HERE)


def pack(program: Path) -> bytes:
    """Return an archive as uv expects one, whose Python hands over to one of this machine."""
    settings = "# system configuration generated and used by the sysconfig module\nbuild_time_vars = {}\n"
    files = {
        f"python/bin/python{OTHER}": f'#!/bin/sh\nexec {program} "$@"\n',
        f"python/lib/python{OTHER}/_sysconfigdata__linux_{platform.machine()}-linux-gnu.py": settings,
    }
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.fixture
def offered(project: Project, other_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project on a host that has only one Python, and a place from which uv can fetch the other one."""
    project.widen_pythons()
    project.ok("lock", "tiny")
    data = pack(other_python)
    (project.index.folder / "python.tar.gz").write_bytes(data)
    version = subprocess.run([other_python, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    major, minor, patch = version.split(".")
    row = {
        "name": "cpython",
        "arch": {"family": platform.machine(), "variant": None},
        "os": "linux",
        "libc": "gnu",
        "major": int(major),
        "minor": int(minor),
        "patch": int(patch),
        "prerelease": "",
        "url": f"{project.index.url.removesuffix('/simple')}/files/python.tar.gz",
        "sha256": hashlib.sha256(data).hexdigest(),
        "variant": None,
        "build": "20240101",
    }
    listing = tmp_path / "downloads.json"
    listing.write_text(json.dumps({f"cpython-{version}-linux-{platform.machine()}-gnu": row}))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(listing))
    return project


def test_a_python_that_the_host_lacks_is_fetched(offered: Project) -> None:
    offered.ok("create", "tiny", "--python", OTHER)
    assert offered.state()["python"] == OTHER
    assert any(path.endswith("python.tar.gz") for path in offered.index.asked)
    command = [str(offered.prefix / "bin" / "python"), "-c", "import native; print(native.TAG)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"cp{OTHER.replace('.', '')}-")


def test_a_python_that_can_not_be_fetched_is_a_network_error(offered: Project, impatient: None) -> None:
    with offered.index.failing(Fault.ERROR, "python.tar.gz"):
        err = offered.fails(6, "network", "create", "tiny", "--python", OTHER)
    assert f"this machine has no Python {OTHER}, and uv can't download one" in err
    [hint] = [line for line in err.splitlines() if line.startswith("hint: ")]
    assert f"this machine has Python {HERE}: `tenv create tiny --python {HERE}` takes it" in hint
    assert "UV_PYTHON_INSTALL_MIRROR" in hint
    assert "UV_DEFAULT_INDEX" not in hint
