"""Static MKL, found and linked the way PyTorch does it."""

from pathlib import Path

import pytest

from tests.integration.bench import Bench, check

pytestmark = pytest.mark.real


@pytest.mark.parametrize("target", ["cpu", "cuda130"])
def test_pytorch_links_mkl_into_its_library(bench: Bench, checkout: Path, tmp_path: Path, target: str) -> None:
    build = bench.configure_as_pytorch(target, "mkl", tmp_path / "build", f"-DPYTORCH_CMAKE={checkout}")
    prefix = bench.prefix(target)
    found = build.reported()
    archives = [path for path in found["MKL_LIBRARIES"].split(";") if "mkl" in path]
    assert found["MKL_FOUND"] == "TRUE"
    assert found["MKL_INCLUDE_DIR"] == str(prefix / "include")
    assert found["LAPACK_INFO"] == "mkl"
    assert {Path(path).name for path in archives} >= {"libmkl_intel_lp64.a", "libmkl_core.a"}
    assert all(Path(path).is_relative_to(prefix / "lib") and path.endswith(".a") for path in archives)

    bench.compile(target, build)
    talk = check([build.folder / "solve"], tmp_path)
    numbers = {line.split()[0]: [float(word) for word in line.split()[1:]] for line in talk.splitlines()}
    assert numbers["dgemm"] == pytest.approx([19, 22, 43, 50], rel=1e-14)
    assert numbers["dgesv"] == pytest.approx([6, 15, -23], rel=1e-12)
    for program in ("solve", "liblinalg.so"):
        assert not [name for name in bench.libraries(build.folder / program) if "mkl" in name]
