"""One target of everything: conda packages, wheels, archives, and what the machine offers."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tenv.host.machine import current_platform
from tests.support.conda import PLACEHOLDER, Channel, make_conda, make_python
from tests.support.machine_trees import make_gcc, make_toolkit
from tests.support.projects import HERE, Project, call, snapshot, write_config
from tests.support.redist import Server, pack, regular

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="the tools are shell scripts")]

MANIFEST = """\
description = "A bit of everything"
platforms   = ["{platform}"]
channels    = ["conda-forge"]

[requirements]
glibc = "2.17"

[dependencies]
python = "{python}.*"
tool   = "*"

[pypi-dependencies]
alpha = ">=1"

[archives]
magma = {{ url = "{url}/magma.tar.gz", sha256 = "{sha256}" }}

[system]
cuda-toolkit = "99.1.*"
gcc          = "97.*"

[activation.env]
USE_MAGMA = "1"
"""


@dataclass
class Mixed:
    """A project with that target, the toolkit of its machine, and where its archive comes from."""

    project: Project
    toolkit: Path
    gxx: Path
    server: Server


@pytest.fixture
def mixed(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixed]:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    gxx, toolkit = make_gcc(tmp_path / "gcc", "97.2.0"), make_toolkit(tmp_path / "cuda")
    monkeypatch.setenv("CXX", str(gxx))
    monkeypatch.setenv("CC", str(gxx.with_name("gcc")))
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    raw = pack("tar.gz", [regular("include/magma.h", b"/* magma */"), regular("lib/libmagma.a", b"!<arch>\n")])
    with Channel(tmp_path / "channel") as channel, Server({"/magma.tar.gz": raw}) as server:
        make_python(channel.folder)
        make_conda(channel.folder, "tool", "1", files={"bin/tool": f"#!/bin/sh\necho {PLACEHOLDER}\n"})
        channel.refresh()
        write_config(f'[mirrors]\n"https://conda.anaconda.org/conda-forge" = ["{channel.root}"]\n')
        sha256 = hashlib.sha256(raw).hexdigest()
        project.manifest.write_text(
            MANIFEST.format(platform=current_platform(), python=HERE, url=server.url, sha256=sha256)
        )
        yield Mixed(project, toolkit, gxx, server)


def in_shell(project: Project, script: str) -> list[str]:
    """Run a script in a shell in which the environment was activated as `tenv activate` says."""
    activation = project.ok("activate", "tiny", "--shell", "bash").out
    done = subprocess.run(["bash", "-euc", f"{activation}\n{script}"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_all_of_it_is_locked_created_and_activated(mixed: Mixed) -> None:
    project = mixed.project
    project.ok("lock", "tiny")
    lock = yaml.safe_load(project.lock.read_text())
    ours = lock["tenv"]
    platform = current_platform()
    assert set(ours["requests"][platform]) == {"dependencies", "pypi-dependencies", "archives", "system"}
    assert {row["name"] for row in ours["wheels"][platform]} == {"alpha", "beta"}
    assert [row["name"] for row in ours["archives"][platform]] == ["magma"]
    assert all(row["conda"].startswith("https://conda.anaconda.org/conda-forge/") for row in lock["packages"])
    ended = project.ok("create", "tiny", "--json")
    assert ended.data["counts"] == {"conda": 2, "wheels": 2, "archives": 1}
    said = in_shell(
        project,
        'tool; command -v python; python -c "import alpha; print(alpha.__file__)"; '
        'echo "$MAGMA_HOME"; echo "$CUDA_HOME"; echo "$CXX"; echo "$USE_MAGMA"; command -v nvcc',
    )
    prefix = project.prefix
    assert said == [
        str(prefix),
        f"{prefix}/bin/python",
        f"{project.site()}/alpha.py",
        f"{prefix}/opt/magma",
        str(mixed.toolkit),
        str(mixed.gxx),
        "1",
        f"{mixed.toolkit}/bin/nvcc",
    ]


def test_it_is_verified_repaired_and_left_alone(mixed: Mixed) -> None:
    project = mixed.project
    project.ok("create", "tiny")
    assert "nothing to do" in project.ok("create", "tiny").err
    project.ok("verify", "tiny", "--no-probes")
    before = snapshot(project.prefix)
    damaged = [project.prefix / "opt/magma/include/magma.h", project.prefix / "bin/tool", project.site() / "alpha.py"]
    for path in damaged:
        path.unlink()
        path.write_text("other\n")
    found = call("verify", "tiny", "--no-probes", "--json")
    assert found.status == 8
    assert found.data["integrity"]["changed"] == sorted(str(path.relative_to(project.prefix)) for path in damaged)
    assert found.data["integrity"]["packages"] == ["alpha", "magma", "tool"]
    project.ok("create", "tiny", "--repair")
    assert snapshot(project.prefix) == before
    project.ok("verify", "tiny", "--no-probes")


def test_what_is_gone_from_the_manifest_goes_and_comes_back(mixed: Mixed) -> None:
    project = mixed.project
    project.ok("create", "tiny")
    before = {name: data for name, data in snapshot(project.prefix).items() if not name.startswith("tenv-meta")}
    text = project.manifest.read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("tool ", "alpha ", "magma "))]
    project.manifest.write_text("\n".join(lines) + "\n")
    project.ok("create", "tiny")
    assert not (project.prefix / "opt" / "magma").exists()
    assert not (project.prefix / "bin" / "tool").exists()
    assert not (project.site() / "alpha.py").exists()
    project.ok("rollback", "tiny")
    after = {name: data for name, data in snapshot(project.prefix).items() if not name.startswith("tenv-meta")}
    assert after.keys() == before.keys()
    assert in_shell(project, 'echo "$MAGMA_HOME"') == [f"{project.prefix}/opt/magma"]
    verified = project.ran("verify", "tiny", "--no-probes")
    assert "all files are intact" in verified.err
    assert verified.status == 1  # a rollback leaves the environment older than the lock
