"""A CUDA toolkit from NVIDIA's archives: `[archives] cuda` takes a release, as NVIDIA's own manifests have it."""

from pathlib import Path

import pytest

from tests.support.archive_server import NVIDIA, ask, rows
from tests.support.projects import Project
from tests.support.redist import Server

DATA = Path(__file__).parent.parent / "data" / "redist"


@pytest.fixture
def nvidia(served: Server) -> Server:
    """NVIDIA's manifests of three releases."""
    for label in ("11.7.1", "12.4.1", "13.0.2"):
        text = (DATA / f"cuda_redistrib_{label}.json").read_bytes()
        served.files[f"/compute/cuda/redist/redistrib_{label}.json"] = text
    return served


def parts(project: Project, platform: str) -> set[str]:
    return {str(row["name"]) for row in rows(project)[platform]}


def test_a_release_is_every_component_that_a_build_uses(project: Project, nvidia: Server) -> None:
    ask(project, 'cuda = "12.4.1"')
    project.ok("lock", "tiny")
    linux = {row["name"]: row for row in rows(project)["linux-64"]}
    assert {"cuda_nvcc", "cuda_cudart", "cuda_profiler_api", "libcublas", "libcufile", "libnvjitlink"} <= set(linux)
    assert not {"nsight_compute", "nvidia_driver", "cuda_documentation", "cuda_nvprof", "libnpp"} & set(linux)
    nvcc = linux["cuda_nvcc"]
    assert (nvcc["version"], nvcc["release"], nvcc["part_of"]) == ("12.4.131", "12.4.1", "cuda")
    assert nvcc["sha256"] == "7ffba1ada0e4b8c17e451ac7a60d386aa2642ecd08d71202a0b100c98bd74681"
    path = "/compute/cuda/redist/cuda_nvcc/linux-x86_64/cuda_nvcc-linux-x86_64-12.4.131-archive.tar.xz"
    assert nvcc["url"] == NVIDIA + path
    assert "libcufile" in parts(project, "linux-aarch64")
    assert "libcufile" not in parts(project, "win-64")
    project.ok("lock", "tiny", "--check")


def test_the_components_are_those_of_the_release(project: Project, nvidia: Server) -> None:
    ask(project, 'cuda = "11.7.1"')
    project.ok("lock", "tiny")
    assert "cuda_nvprof" in parts(project, "linux-64")  # cuda_profiler_api.h
    assert "nsight_nvtx" in parts(project, "win-64")
    assert "nsight_nvtx" not in parts(project, "linux-64")
    assert not {"cuda_profiler_api", "libnvjitlink"} & parts(project, "linux-64")
    ask(project, 'cuda = "13.0.2"')
    project.ok("lock", "tiny")
    assert {"cuda_crt", "cuda_culibos", "libnvvm", "libnvptxcompiler"} <= parts(project, "linux-64")


@pytest.mark.parametrize("wanted", ["12.4", "12.4.*", ">=12.4,<12.5", "~=12.4.0"])
def test_a_range_takes_the_newest_release_in_it(project: Project, nvidia: Server, wanted: str) -> None:
    ask(project, f'cuda = "{wanted}"')
    project.ok("lock", "tiny")
    assert {row["release"] for row in rows(project)["linux-64"]} == {"12.4.1"}
    before = project.lock.read_bytes()
    ask(project, 'cuda = ">=12.3,<12.5"')
    project.ok("lock", "tiny")
    assert {row["release"] for row in rows(project)["linux-64"]} == {"12.4.1"}  # what is locked stays
    assert project.lock.read_bytes() == before


def test_components_by_name(project: Project, nvidia: Server) -> None:
    ask(project, 'cuda = { version = "12.4.1", components = ["cuda_nvcc", "cuda_sanitizer_api"] }')
    project.ok("lock", "tiny")
    assert parts(project, "linux-64") == {"cuda_nvcc", "cuda_sanitizer_api"}


@pytest.mark.parametrize(
    ("lines", "message", "hint"),
    [
        (
            'cuda = "12.4.1"\nlibnpp = { product = "cuda", version = "13.0.2" }',
            "mixes releases of CUDA on linux-64: cuda 12.4.1, libnpp 13.0.2",
            'version = "13.0.2"',
        ),
        (
            'cuda = { version = "12.4.1", components = ["cuda_nvc"] }',
            "CUDA 12.4.1 has no component cuda_nvc for linux-x86_64",
            "did you mean `cuda_nvcc`?",
        ),
        ('cuda = "12.7.*"', "no release of CUDA in `12.7.*` is known", "known releases: "),
    ],
)
def test_what_can_t_be_one_toolkit(project: Project, nvidia: Server, lines: str, message: str, hint: str) -> None:
    ask(project, lines)
    error = project.fails(5, "no-solution", "lock", "tiny")
    assert message in error
    assert hint in error
    assert not project.lock.exists()


def test_a_release_that_lacks_what_a_build_uses_is_refused(project: Project, nvidia: Server) -> None:
    path = "/compute/cuda/redist/redistrib_12.4.1.json"
    raw = nvidia.files[path]
    assert isinstance(raw, bytes)
    nvidia.files[path] = raw.replace(b'"libcurand"', b'"libcurandom"')
    ask(project, 'cuda = "12.4.1"')
    error = project.fails(5, "no-solution", "lock", "tiny")
    assert "CUDA 12.4.1 lacks libcurand for linux-x86_64: cuRAND" in error
