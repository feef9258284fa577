"""ROCm trees and KFD nodes that no package makes, which must not end a command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenv.host import amd, rocms
from tenv.host.interface import Fact, Missing
from tests.host.builders import places, put
from tests.support.each import each
from tests.support.machine_trees import make_rocm


def test_a_folder_of_kernels_that_no_user_may_list_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, real = make_rocm(tmp_path / "opt/rocm-6.4.3") / "lib/rocblas/library", Path.iterdir

    def denied(folder: Path) -> Iterator[Path]:
        if folder == closed:
            raise PermissionError(13, "Permission denied", str(folder))
        return real(folder)

    monkeypatch.setattr(Path, "iterdir", denied)
    (found,) = rocms.probe(places(tmp_path)).value
    assert (str(found.version), found.problems) == ("6.4.3", ())


@each("number", ["7" * 6000, "\u0667", "6\u0664"])
def test_an_odd_number_of_a_header_is_no_version(number: str, tmp_path: Path) -> None:
    root = make_rocm(tmp_path / "opt/rocm-6.4.3")
    lines = [f"#define HIP_VERSION_{part} {number}" for part in ("MAJOR", "MINOR", "PATCH")]
    put(root / "include/hip/hip_version.h", "\n".join(lines))
    (found,) = rocms.probe(places(tmp_path)).value
    assert (str(found.version), found.hip) == ("6.4.3", None)


def test_a_path_that_is_too_long_is_a_problem_of_its_rocm(tmp_path: Path) -> None:
    make_rocm(tmp_path / "opt/rocm-6.4.3")
    found = rocms.probe(places(tmp_path, variables={"ROCM_PATH": "/" + "x" * 5000})).value
    assert [str(one.version) for one in found] == ["None", "6.4.3"]
    assert [problem.partition(" ")[0] for problem in found[0].problems] == ["ROCM_PATH"]  # 3.13 finds no folder there


def test_an_odd_number_of_kfd_is_no_gpu(tmp_path: Path) -> None:
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    put(nodes / "1/properties", f"gfx_target_version {'9' * 6000}\n")
    assert isinstance(amd.probe(places(tmp_path)), Missing)
    put(nodes / "2/properties", "gfx_target_version 110000\n")
    found = amd.probe(places(tmp_path))
    assert isinstance(found, Fact)
    assert [gpu.gfx for gpu in found.value] == ["gfx1100"]
