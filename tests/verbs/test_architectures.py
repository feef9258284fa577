"""TORCH_CUDA_ARCH_LIST of an activation: the GPUs that nvcc compiles for, where it does not compile for all."""

from pathlib import Path

import pytest

from tests.support.check_hosts import report, write
from tests.support.fakes import make_nvidia
from tests.support.projects import Project


@pytest.fixture
def cuda(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a target of CUDA 13.0 whose wheels have nvcc."""
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    make_nvidia(project.index.folder)
    for name in ("nvidia-cuda-runtime", "nvidia-cuda-nvcc", "cuda-toolkit"):
        project.ask_for(f'{name} = "*"')
    project.edit('glibc = "2.17"', 'glibc = "2.17"\ncuda = "13.0"')
    return project


def host(folder: Path, *capabilities: str) -> str:
    made = report("580.65.06", "GPU", "8.0")
    made["gpus"]["value"] = [{"name": f"GPU {one}", "compute_capability": one} for one in capabilities]
    return write(folder / f"host{len(capabilities)}.json", made)


def listed(project: Project) -> tuple[str, str]:
    rows = [row for row in project.ok("env", "tiny", "--json").data if row["name"] == "TORCH_CUDA_ARCH_LIST"]
    return (rows[0]["value"], rows[0]["reason"]) if rows else ("", "")


def test_activation_lists_the_gpus_in_range(cuda: Project, tmp_path: Path) -> None:
    cuda.ok("create", "tiny", "--no-check", "--host-report", host(tmp_path, "7.0", "9.0", "8.0"))
    value, reason = listed(cuda)
    assert value == "8.0;9.0"
    assert reason.endswith(
        "does not compile for every GPU that PyTorch detects: not for the GPU 7.0; a value of yours stays"
    )
    cuda.ok("create", "tiny", "--no-check", "--repair", "--host-report", host(tmp_path, "8.0"))
    assert "of its own wheels" in listed(cuda)[1]


@pytest.mark.long
def test_activation_lists_a_gpu_whose_capability_pytorch_misreads(cuda: Project, tmp_path: Path) -> None:
    """PyTorch's CMake replaces "2.1" by "2.1(2.0)", also within 12.1."""
    cuda.ok("create", "tiny", "--no-check", "--host-report", host(tmp_path, "12.1"))
    value, reason = listed(cuda)
    assert value == "12.1"
    assert "turns 12.1 into 2.0" in reason


@pytest.mark.long
def test_a_list_of_the_manifest_or_the_user_stays(
    cuda: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("create", "tiny", "--no-check", "--repair", "--host-report", host(tmp_path, "7.0", "8.0"))
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    cuda.ok(*words)
    assert listed(cuda) == ("", "")
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST")
    cuda.ok(*words)
    # What this environment itself sets is no word of the user.
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    monkeypatch.setenv("TENV_PREFIX", str(cuda.prefix))
    cuda.ok(*words)
    assert listed(cuda)[0] == "8.0"
    cuda.manifest.write_text(cuda.manifest.read_text() + '\n[activation.env]\nTORCH_CUDA_ARCH_LIST = "9.0a"\n')
    cuda.ok(*words)
    assert listed(cuda)[0] == "9.0a"
