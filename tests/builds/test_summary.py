"""The summary of a configuration, held against what the target has and what the user has turned off."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tenv.builds.configure_step import check_summary
from tests.support.each import each

PARTS = ("cuda", "cudnn", "cusparselt", "nccl", "mkl")


def job(
    folder: Path, switches: dict[str, str], rows: dict[str, str], before: str = "", parts: tuple[str, ...] = PARTS
) -> Any:
    """Return a job whose configuration printed some rows, with a target that has all parts."""
    log = folder / "configure.log"
    lines = [before, "-- ******** Summary ********", *(f"--   {name:<20} : {value}" for name, value in rows.items())]
    log.write_text("\n".join([*lines, "-- Configuring done (1.0s)", ""]))
    return SimpleNamespace(
        log=lambda _: log,
        folder=folder,
        environ=switches,
        request=SimpleNamespace(defines={}),
        toolchain=SimpleNamespace(**dict.fromkeys(parts, Path("/env"))),
        context=SimpleNamespace(environ=switches),
        target=SimpleNamespace(name="cuda130"),
        cmake_cache=dict,
    )


ON = {"USE_CUDA": "1", "USE_CUDNN": "ON", "USE_NCCL": "ON", "USE_MKL": "ON", "USE_DISTRIBUTED": "ON"}
OFF = {"USE_CUDA": "0", "USE_CUDNN": "OFF", "USE_NCCL": "OFF", "USE_CUSPARSELT": "OFF"}


@each(
    "switches, rows, named",
    [
        ({}, ON, []),
        ({}, {**ON, "USE_NCCL": "OFF"}, ["USE_NCCL"]),
        ({"USE_DISTRIBUTED": "0"}, {**ON, "USE_DISTRIBUTED": "0", "USE_NCCL": "OFF"}, []),
        ({"USE_DISTRIBUTED": "0", "USE_NCCL": "1"}, {**ON, "USE_NCCL": "OFF"}, ["USE_NCCL"]),
        ({"USE_DISTRIBUTED": "0"}, {**ON, "USE_CUDNN": "OFF"}, ["USE_CUDNN"]),
        ({"USE_CUDA": "0"}, {**ON, **OFF}, []),
        ({}, {**ON, **OFF}, ["USE_CUDA", "USE_CUDNN", "USE_CUSPARSELT", "USE_NCCL"]),
    ],
)
def test_what_the_user_turned_off_takes_what_hangs_on_it_along(
    switches: dict[str, str], rows: dict[str, str], named: list[str], tmp_path: Path
) -> None:
    assert [finding.subject for finding in check_summary(job(tmp_path, switches, rows)).findings] == named


HIP = """\
Building PyTorch for GPU arch: gfx90a;gfx1100
HIP VERSION: 6.1.40091
***** Library versions from cmake find_package *****
rocblas VERSION: 4.1.0
Optional package rccl not found
"""
ROCM = {"USE_CUDA": "OFF", "USE_ROCM": "ON", "ROCM_VERSION": "6.1.0", "USE_NCCL": "ON"}


def test_the_part_of_hip_is_read_and_told(tmp_path: Path) -> None:
    done = check_summary(job(tmp_path, {}, ROCM, HIP, ("rocm",)))
    assert not done.findings
    assert done.facts is not None
    assert done.facts["hip"] == {
        "architectures": ["gfx90a", "gfx1100"],
        "parts": {"HIP": "6.1.40091", "rocblas": "4.1.0"},
        "absent": ["rccl"],
    }
    assert list(done.lines) == [
        *("USE_ROCM: ON", "ROCM_VERSION: 6.1.0", "USE_NCCL: ON", "compiled for gfx90a, gfx1100"),
        *("parts of ROCm: HIP 6.1.40091, rocblas 4.1.0", "without the optional rccl"),
    ]


def test_a_rocm_of_the_target_that_cmake_turned_off_ends_the_build(tmp_path: Path) -> None:
    said = "CMake Warning: HIP was not found, ROCm is disabled"
    (finding,) = check_summary(job(tmp_path, {}, {**ROCM, "USE_ROCM": "OFF"}, said, ("rocm",))).findings
    assert (finding.code, finding.subject, str(finding.severity)) == ("TE941", "USE_ROCM", "error")
    assert "line 1" in finding.evidence
    assert not check_summary(job(tmp_path, {}, {"USE_CUDA": "0", "USE_ROCM": "OFF"}, "", ())).findings
