"""cuda-compat in an environment: used where the driver is too old and its GPUs allow it, and only there."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenv.host.interface import Missing
from tests.support.projects import Project, call
from tests.support.redist import Server, link, pack, regular

A100 = "NVIDIA A100-SXM4-80GB"
GEFORCE = "GTX 1660 Ti"
OLD, NEW = "535.104.12", "580.65.06"


@pytest.fixture
def compat(project: Project) -> Iterator[Path]:
    """A project with a target of CUDA 13.0 that brings cuda-compat; the folder that its libcuda is in."""
    raw = pack("tar.gz", [regular("compat/libcuda.so.580", b"\x7fELF"), link("compat/libcuda.so.1", "libcuda.so.580")])
    with Server({"/cuda-compat.tar.gz": raw}) as server:
        row = f'{{ url = "{server.url}/cuda-compat.tar.gz", sha256 = "{hashlib.sha256(raw).hexdigest()}" }}'
        project.manifest.write_text(
            f'platforms = ["linux-64"]\n[requirements]\ncuda = "13.0"\n[archives]\ncuda-compat = {row}\n'
        )
        yield project.prefix / "opt" / "cuda-compat" / "compat"


def create(project: Project, driver: str, gpu: str) -> str:
    return project.ok("create", "tiny", "--no-check", "--assume-driver", driver, "--assume-gpu", gpu).err


def library_paths(project: Project) -> list[str]:
    """Return what activating the environment puts before the loader's own folders."""
    rows = project.ok("env", "tiny", "--json").data
    return [row["value"] for row in rows if row["name"] == "LD_LIBRARY_PATH"]


@pytest.mark.parametrize(
    ("driver", "gpu", "used"),
    [
        (OLD, A100, True),
        (OLD, GEFORCE, False),  # an end user's GPU
        (NEW, A100, False),  # new enough by itself
        (NEW, GEFORCE, False),
    ],
)
def test_it_comes_before_the_driver_s_own_only_where_the_verdict_is_forward(
    driver: str, gpu: str, used: bool, project: Project, compat: Path
) -> None:
    create(project, driver, gpu)
    assert (compat / "libcuda.so.1").exists()
    assert library_paths(project) == ([str(compat)] if used else [])
    (row,) = call("check-driver", "tiny", "--assume-driver", driver, "--assume-gpu", gpu, "--json").data["targets"]
    assert (row["verdict"] == "forward") is used


def test_without_a_driver_it_is_not_used(project: Project, compat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.host.driver.probe", lambda *_, **__: Missing("no probe answered"))
    project.ok("create", "tiny")
    assert library_paths(project) == []


def test_the_reason_is_told(project: Project, compat: Path) -> None:
    create(project, OLD, A100)
    said = project.ok("env", "tiny", "--explain", "LD_LIBRARY_PATH").out
    assert "the driver is too old for this CUDA, and the GPUs support forward" in said


def test_a_driver_that_has_become_new_enough_ends_its_use(project: Project, compat: Path) -> None:
    create(project, OLD, A100)
    assert "nothing to do" in create(project, OLD, A100)
    assert library_paths(project) == [str(compat)]
    assert "nothing to do" not in create(project, NEW, A100)
    assert library_paths(project) == []
    assert "nothing to do" in create(project, NEW, A100)
