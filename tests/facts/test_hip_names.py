"""The names of HIP: their releases, CUDA's names for them, and the causes of failed builds that follow."""

from itertools import pairwise
from pathlib import Path

import pytest

from tenv.checks.build_log.diagnose import diagnose
from tenv.checks.build_log.hip_release import ReleaseInLog
from tenv.checks.build_log.log_lines import LogLine
from tenv.core.versions import Version
from tenv.facts.hip_names import NameStanding, NameTable, spelled
from tenv.facts.tables import Facts, load_facts
from tests.support.each import each


@pytest.fixture(scope="module")
def names() -> NameTable:
    return load_facts().hip_names


STANDINGS = [
    ("hipMemcpyBatchAsync", "", "7.0", NameStanding.NEWER, "ROCm 7.1"),
    ("hipMemcpyBatchAsync", "", "7.1.1", NameStanding.PRESENT, "hip/hip_runtime_api.h"),
    ("hipMemcpyBatchAsync", "", "", NameStanding.ADDED, "ROCm 7.1"),
    ("hipMalloc", "", "", NameStanding.PRESENT, "hip/hip_runtime_api.h"),
    ("hipStreamCaptureModeRelaxed", "", "4.1.20104", NameStanding.NEWER, "ROCm 4.3"),
    ("hipJitInputType", "", "6.3", NameStanding.NEWER, "ROCm 7.1 or one after 6.3"),
    ("hipJitInputType", "", "7.0.1", NameStanding.ADDED, "ROCm 7.1 or one after 6.3"),
    ("__syncwarp", "", "6.4.43484", NameStanding.NEWER, "ROCm 7.0"),
    ("__ballot_sync", "", "6.3.1", NameStanding.MACRO, "HIP_ENABLE_WARP_SYNC_BUILTINS"),
    ("__ballot_sync", "", "6.0", NameStanding.NEWER, "ROCm 6.2"),
    ("gcnArch", "hipDeviceProp_tR0600", "6.2", NameStanding.GONE, "ROCm 6.0"),
    ("memoryType", "hipPointerAttribute_t", "", NameStanding.GONE, "hipPointerAttribute_t.memoryType"),
    ("hipblasDatatype_t", "", "6.4", NameStanding.PRESENT, "hipblas/hipblas.h"),
    ("hipblasDatatype_t", "", "7.2.0", NameStanding.GONE, "ROCm 7.0"),
    ("hipblasZgemmStridedBatched", "", "", NameStanding.PRESENT, "hipBLAS"),
    ("cudaMemcpyAsync", "", "", NameStanding.CUDA, "hipMemcpyAsync"),
    ("cudaPointerAttributes", "", "", NameStanding.CUDA, "hipPointerAttribute_t"),
    ("cudaDevAttrMaxThreadsPerBlock", "", "", NameStanding.CUDA, "hipDeviceAttributeMaxThreadsPerBlock"),
    ("cublasComputeType_t", "", "6.2", NameStanding.CUDA, "ROCm 6.0"),
    ("cublasComputeType_t", "", "5.7", NameStanding.NEWER, "hipblasComputeType_t, HIP's name for cublasComputeType_t,"),
    ("cublasDgemm_v2", "", "", NameStanding.CUDA, "hipblasDgemm"),
    ("nv_bfloat16", "", "", NameStanding.CUDA, "__hip_bfloat16"),
    ("cuMemAlloc_v2", "", "", NameStanding.CUDA, "hipMalloc"),
    ("cudaGraphConditionalHandle", "", "", NameStanding.ALONE, "CUDA's runtime"),
    ("hipReel_t", "", "", NameStanding.UNKNOWN, "hipReel_t"),
    ("__shfl_sync", "", "7.0", NameStanding.PRESENT, "hip/hip_runtime.h"),
    ("saturate", "", "6.2", NameStanding.UNKNOWN, "saturate"),
    ("umin", "", "6.2", NameStanding.ALONE, "CUDA's kernels"),
    ("hipDeviceAttributeMaxSurface2D", "", "4.5", NameStanding.NEWER, "ROCm 5.0"),
    ("hipImportExternalSemaphore", "", "4.3", NameStanding.NEWER, "ROCm 4.5"),
    ("hipHostRegisterIoMemory", "", "5.6", NameStanding.PRESENT, "hip/hip_runtime_api.h"),
    ("HIPBLAS_R_16F", "", "6.4", NameStanding.PRESENT, "hipblas/hipblas.h"),
    ("HIPBLAS_R_16F", "", "7.0", NameStanding.GONE, "ROCm 7.0"),
    ("rocblas_gemm_ex3", "", "5.7", NameStanding.PRESENT, "rocblas/rocblas.h"),
    ("rocsparse_spmv_ex", "", "7.1", NameStanding.GONE, "ROCm 7.0"),
]


@each("name, owner, here, standing, said", STANDINGS)
def test_a_name_has_a_standing_in_a_release(
    names: NameTable, name: str, owner: str, here: str, standing: NameStanding, said: str
) -> None:
    found = names.standing(name, owner, Version(here) if here else None)
    assert found
    assert found[0] is standing
    assert said in found[1].values()


def test_a_function_of_kernels_that_every_release_has_says_nothing(names: NameTable) -> None:
    assert names.standing("__hadd2", "", Version("6.0")) is None, "its types may be others"


def test_the_release_that_changed_arguments_is_the_next_one(names: NameTable) -> None:
    for here, release in (("6.4", "ROCm 7.0"), ("7.1", "ROCm 7.0"), ("", "ROCm 7.0")):
        found = names.changed("hipblasGemmEx", Version(here) if here else None)
        assert found
        assert (found[0], found[1]["changed"]) == (NameStanding.CHANGED, release)
    assert names.changed("hipMalloc", None) is None


def test_families_of_names_are_spelled_out() -> None:
    assert list(spelled("hipMalloc")) == ["hipMalloc"]
    assert list(spelled("hipblas[DS]gemm(|Batched)")) == [
        *("hipblasDgemm", "hipblasDgemmBatched", "hipblasSgemm", "hipblasSgemmBatched"),
    ]


def test_the_rows_fit_each_other(names: NameTable) -> None:
    rows = {id(row): row for every in names.histories.values() for row in every}.values()
    assert len(names.histories) > 4000
    assert all(row.since is None or row.gone is None or row.since < row.gone for row in rows)
    assert all(row.after is None or (row.since and row.after < row.since) for row in rows)
    assert all(bool(row.macro) == bool(row.without_macro) for row in rows)
    assert not names.alone.keys() & names.renamed.keys()
    assert not names.alone.keys() & names.histories.keys()
    for name, every in names.histories.items():
        spans = sorted((row.since or Version("0"), row.gone or Version("99")) for row in every)
        assert all(one[1] <= two[0] for one, two in pairwise(spans)), name


LINES = {
    "/opt/rocm-5.4.2/bin/hipcc -c a.hip": "5.4.2",
    '-- Found HIP: /opt/rocm (found suitable version "5.7.31921", minimum required is "1.0")': "5.7.31921",
    "HIP version  : 5.2.21151-afdc89f8": "5.2.21151",
    "HIP VERSION: 6.1.40091": "6.1.40091",
    "HIP version: 4.4.21432-f9dccde4": "4.5",
    "Building for ROCm version 6.2.1": "6.2.1",
    "Found HIP installation: /opt/rocm-6.4.2/lib/llvm/bin/../../.., version 6.4.43484": "6.4.2",
    "clang++ -DROCM_VERSION=40300 -c a.cpp": "4.3",
    "ROCM_VERSION_DEV: 6.2.4": "6.2.4",
    "AMD clang version 18.0.0git (https://github.com/RadeonOpenCompute/llvm-project roc-6.2.0 24292 2)": "6.2.0",
    "c++ x.o /opt/rocm/hip/lib/libamdhip64.so.5.1.20531": "5.1.20531",
    r"C:\Program Files\AMD\ROCm\6.2\include\hip\hip_runtime.h:1:1: note: here": "6.2",
    "/s/opt/linux-zen4/gcc-13/hip-5.7.1-i4qz6bf7p2/include/hip/hip_runtime.h:1:1: note: here": "5.7.1",
    "/nix/store/2kx6-clr-6.0.2/include/hip/hip_runtime.h:1:1: note: here": "6.0.2",
    "/usr/tce/packages/rocmcc/rocmcc-7.2.0-magic/include/hip/amd_detail/a.h:1:1: note: here": "7.2.0",
}


@each("line, release", LINES.items())
def test_the_release_here_is_read_in_a_log(line: str, release: str) -> None:
    reader = ReleaseInLog(load_facts().build_failures.marks.release)
    reader.read(LogLine(1, line))
    assert reader.at(LogLine(2, "")) == Version(release)


@each(
    "line",
    [
        "pip install torch --index-url https://e/whl/rocm6.4",
        "src/hipSPARSE-rocm-3.5.0/library/src/a.cpp",
        "FROM x",
        "CMake Warning: FP8 requires ROCm version 6.2",
        "-- hipTensor: ROCm version 5.7 or newer",
    ],
)
def test_the_release_of_something_else_is_not_the_one_here(line: str) -> None:
    reader = ReleaseInLog(load_facts().build_failures.marks.release)
    reader.read(LogLine(1, line))
    assert reader.at(LogLine(2, "")) is None


def test_the_last_release_before_an_error_counts_else_the_first_behind_it() -> None:
    error = "a.hip:1:2: error: use of undeclared identifier 'hipStreamGetId'"
    for lines, said in (
        (["/opt/rocm-6.0.0/bin/hipcc -c b.hip", "/opt/rocm-6.4.1/bin/hipcc -c a.hip", error], "of ROCm 6.4.1"),
        ([error, "make: *** [/opt/rocm-6.2.0/share/a.make:1: a.o] Error 1"], "of ROCm 6.2.0"),
        ([error], "are older"),
    ):
        found = diagnose(lines, load_facts().build_failures).cause
        assert found
        assert said in found.title


def test_the_names_are_read_for_an_error_with_one_alone() -> None:
    facts = Facts()
    diagnose(["a.cpp:1:10: fatal error: boost/any.hpp: No such file or directory"], facts.build_failures)
    assert "hip_names" not in vars(facts)
    diagnose(["a.hip:1:2: error: use of undeclared identifier 'hipMalloc'"], facts.build_failures)
    assert "hip_names" in vars(facts)


def test_a_row_of_the_user_counts(tmp_path: Path) -> None:
    own = tmp_path / "hip_names.toml"
    own.write_text(
        '[[name]]\nlibrary = "HIP"\nheader = "hip/hip_reel.h"\nsince = "11.0"\nnames = "hipReel[AB](|_t)"\n'
        'confirmed = true\nsource = "a changelog"\n'
    )
    found = diagnose(
        ["/opt/rocm-10.2.0/bin/hipcc a.hip", "a.hip:1:2: error: use of undeclared identifier 'hipReelA_t'"],
        load_facts([own]).build_failures,
    ).cause
    assert found
    assert found.failure.name == "hip-name-newer"
    assert "hip/hip_reel.h of ROCm 10.2.0" in found.reason
