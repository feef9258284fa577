"""The packages of what a toolkit lacks, the switches that turn parts off, and what CMake is asked for."""

from dataclasses import replace

from tenv.checks.rules.whole_toolkit import cmake_targets, exported_switches
from tenv.core.versions import Range, Version
from tests.checks.rules.cases import case, facts, found, toolkit
from tests.support.each import each

TAKES = {"cuda-toolkit": Range("*")}


@each(
    "path, apart, cuda, fix",
    [
        (
            "/usr/local/cuda-13.0",
            "",
            "13.0",
            "apt install libcusparse-dev-13-0 libcufile-dev-13-0 (NVIDIA's repository;",
        ),
        ("/usr/local/cuda-10.2", "", "10.2", "apt install cuda-cusparse-dev-10-2 libcufile-dev-10-2 (NVIDIA's"),
        ("/usr/lib/nvidia-cuda-toolkit", "/usr", "12.4", "apt install nvidia-cuda-dev libcufile-dev"),
        ("/home/me/miniconda3/envs/a", "", "12.8", 'conda install -c conda-forge "cuda-version=12.8" libcusparse-dev'),
    ],
)
def test_the_packages_are_those_of_where_the_toolkit_comes_from(path: str, apart: str, cuda: str, fix: str) -> None:
    mine = toolkit(path, f"{cuda}.1", "nvcc on PATH", home=apart, absent=("libcusparse", "libcufile"))
    asked = case(cuda=cuda, torch="2.9.1", manifest={"system": TAKES}, toolkits=(mine,))
    (error,) = found("TE311", asked)
    assert error.fix.startswith(fix)
    assert "USE_CUFILE" not in error.fix, "without cuSPARSE nothing helps"


def test_a_switch_turns_a_part_off() -> None:
    mine = toolkit("/usr/local/cuda-13.0", "13.0.1", "nvcc on PATH", absent=("libcufile", "cufile.h"))
    asked = case(torch="2.9.1", manifest={"system": TAKES}, toolkits=(mine,))
    (error,) = found("TE311", asked)
    assert error.fix.endswith("or build with USE_CUFILE=0")


@each("exported, own, count", [("0", "", 0), ("1", "", 1), ("0", "1", 1), ("1", "OFF", 0)])
def test_a_switch_of_the_shell_counts_and_one_of_the_manifest_overrides_it(exported: str, own: str, count: int) -> None:
    mine = toolkit("/usr/local/cuda-13.0", "13.0.1", "nvcc on PATH", absent=("libcufile", "cufile.h"))
    variables = {"environment": {"USE_CUFILE": own}} if own else {}
    asked = case(torch="2.9.1", manifest={"system": TAKES, **variables}, toolkits=(mine,))
    switches = exported_switches(facts(), {"USE_CUFILE": exported, "HOME": "/root"})
    assert switches == {"USE_CUFILE": exported}
    assert len(found("TE311", replace(asked, exported=switches))) == count


def test_what_only_kernels_need_is_a_warning_of_its_own() -> None:
    mine = toolkit(
        "/usr/local/cuda-13.0", "13.0.1", "nvcc on PATH", absent=("libcufft", "libdevice", "cuda/std/cstddef")
    )
    asked = case(manifest={"system": TAKES}, toolkits=(mine,))
    assert [str(one.severity) for one in found("TE311", asked)] == ["error", "warning"]


def test_what_cmake_is_asked_for() -> None:
    for_all = cmake_targets(case(manifest={"pytorch": Range(">=2.8,<2.16")}).manifest, facts(), Version("13.0"), {})
    assert {"cublas", "cublasLt", "cusparse", "cuda_driver", "cuFile", "nvrtc", "cudart"} <= set(for_all)
    assert not {"nvToolsExt", "cudadevrt", "cicc"} & set(for_all)
    older = case(manifest={"pytorch": Range(">=2.1,<2.5")}).manifest
    assert "cuFile" not in cmake_targets(older, facts(), Version("12.1"), {})
    assert "nvToolsExt" in cmake_targets(older, facts(), Version("12.1"), {})
    newer = case(manifest={"pytorch": Range(">=2.8,<2.16")}).manifest
    assert "cuFile" not in cmake_targets(newer, facts(), Version("13.0"), {"USE_CUFILE": "0"})
