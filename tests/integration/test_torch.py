"""PyTorch inside an environment: where it looks for CUDA, and what becomes of it when the environment is repaired."""

import json
from pathlib import Path

import pytest

from tests.integration.bench import PROJECTS, Bench, TorchPrefix

pytestmark = pytest.mark.real


def installed(prefix: Path) -> set[str]:
    return {path.name.partition("-")[0] for path in prefix.glob("lib/python3*/site-packages/*.dist-info")}


def test_extensions_are_compiled_with_the_environments_cuda(bench: Bench, torch: TorchPrefix) -> None:
    talk = bench.run(torch.prefix, "python", PROJECTS / "extension" / "probe.py")
    found = json.loads(talk.splitlines()[-1])
    cuda = torch.prefix / "cuda"
    assert found["home"] == str(cuda)
    assert str(cuda / "include") in found["includes"]
    assert str(cuda / "lib64") in found["libraries"]
    assert all(Path(path).is_dir() for path in (*found["includes"], *found["libraries"]))
    # Without TORCH_CUDA_ARCH_LIST this is an IndexError where no GPU is seen.
    assert "-gencode=arch=compute_90,code=sm_90" in found["flags"]


def test_a_repair_leaves_it_alone_and_exact_removes_it(bench: Bench, torch: TorchPrefix) -> None:
    create = ("create", "cuda130", "--prefix", torch.prefix)
    before = installed(torch.prefix)
    assert {"torch", "sympy", "six"} <= before
    assert "nothing to do" in bench.tenv(*create)

    bench.run(torch.prefix, "python", "-m", "pip", "uninstall", "--quiet", "--yes", "six")
    bench.tenv(*create)
    assert installed(torch.prefix) == before
    bench.run(torch.prefix, "python", "-c", "import six, torch")

    bench.tenv(*create, "--exact")
    assert "torch" in before - installed(torch.prefix)  # what torch requires is in the lock and stays
    assert installed(torch.prefix) == installed(bench.prefix("cuda130"))
    assert not list(torch.prefix.glob("lib/python3*/site-packages/torch"))
