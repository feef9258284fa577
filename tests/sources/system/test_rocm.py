"""ROCm taken from the machine: which one, why not another, its fingerprint, and the variables that builds read."""

from pathlib import Path
from typing import Any

from tenv.activation.variables import Archs, derive
from tenv.checks.pytorch_source import RocmPart, read_source
from tenv.core.missing import Missing
from tenv.core.versions import Range, Version
from tenv.host.interface import Fact
from tenv.host.machine import BuildResources
from tenv.sources.system.fingerprint import take_fingerprint
from tenv.sources.system.gpu_toolkits import find_rocm
from tenv.sources.system.interface import Lack, Tool, ToolRequest
from tenv.sources.system.taken import fit
from tenv.targets.manifest import Manifest
from tenv.toolchain.discover import Toolchain
from tests.host.builders import places, put
from tests.support.machine_trees import make_debian_rocm, make_rocm


def taken(root: Path, accepted: str = "*", kept: str = "", **variables: str) -> Tool | Lack:
    return find_rocm(ToolRequest("rocm", Range(accepted), places(root, variables=variables), kept))


def tool(root: Path, *asked: str, **variables: str) -> Tool:
    found = taken(root, *asked, **variables)
    assert isinstance(found, Tool)
    return found


def test_the_named_one_then_the_kept_one_then_the_default_then_the_newest(tmp_path: Path) -> None:
    for release in ("6.4.3", "7.1.1", "7.2.0"):
        make_rocm(tmp_path / f"opt/rocm-{release}", release)
    assert tool(tmp_path).version == "7.2.0"
    (tmp_path / "opt/rocm").symlink_to("rocm-6.4.3")
    assert tool(tmp_path).version == "6.4.3"
    assert tool(tmp_path, "*", str(tmp_path / "opt/rocm-7.1.1")).version == "7.1.1"
    assert tool(tmp_path, ROCM_PATH=str(tmp_path / "opt/rocm-7.2.0")).version == "7.2.0"
    assert tool(tmp_path, "7.1").version == "7.1.1"


def test_what_does_not_fit_is_refused_with_the_reason(tmp_path: Path) -> None:
    make_rocm(tmp_path / "opt/rocm-6.4.3")
    broken = make_rocm(tmp_path / "opt/rocm-7.2.0", "7.2.0")
    (broken / "lib/llvm/bin/clang++").unlink()
    lack = taken(tmp_path, ">=7")
    assert isinstance(lack, Lack)
    assert [text.partition(": ")[2] for text in lack.refused] == ["it has no clang++ for HIP", "6.4.3 is not >=7"]
    assert "hipcc" in lack.install


def test_debian_s_has_hip_s_number_and_its_files_are_fingerprinted(tmp_path: Path) -> None:
    make_debian_rocm(tmp_path)
    found = tool(tmp_path)
    assert (found.version, found.path) == ("5.7", tmp_path / "usr")
    names = {path.name for path in found.files}
    assert {"hip_version.h", "hipcc", "hip-config-version.cmake", "oclc_isa_version_942.bc"} <= names
    assert {path.name for path in found.watched} == {"hip_version.h", "hipcc"}
    assert any("compiles for gfx90a, gfx942, gfx1100" in note for note in found.notes)


def values(root: Path, archs: Archs | None = None) -> dict[str, Any]:
    toolchain = fit(Toolchain(root / "env", root / "env/bin/python", root / "env/lib"), [take_fingerprint(tool(root))])
    machine = BuildResources(Fact(4, "nproc"), Missing("unknown"))
    return {change.name: change for change in derive(Manifest("t", "t.toml"), toolchain, machine, archs).changes}


def test_the_variables_that_builds_read(tmp_path: Path) -> None:
    home = str(make_rocm(tmp_path / "opt/rocm-6.4.3"))
    found = values(tmp_path, Archs(("gfx90a", "gfx942"), "why"))
    read = ("ROCM_PATH", "ROCM_HOME", "HIP_PATH", "HIP_CLANG_PATH", "HIP_DEVICE_LIB_PATH", "USE_ROCM", "USE_CUDA")
    assert [found[name].value for name in read] == [
        *(home, home, home, f"{home}/lib/llvm/bin", f"{home}/amdgcn/bitcode", "1", "0")
    ]
    assert found["CMAKE_PREFIX_PATH"].value == f"{tmp_path}/env:{home}"
    assert found["PATH"].value == f"{tmp_path}/env/bin:{home}/bin"
    assert (found["PYTORCH_ROCM_ARCH"].value, found["PYTORCH_ROCM_ARCH"].default) == ("gfx90a;gfx942", True)


def test_what_a_checkout_requires_of_rocm(tmp_path: Path) -> None:
    put(tmp_path / "version.txt", "2.9.0a0\n")
    put(tmp_path / "CMakeLists.txt", "project(Torch CXX C)\n")
    put(
        tmp_path / "cmake/public/LoadHIP.cmake",
        "find_package_and_print_version(hip REQUIRED CONFIG)\n"
        "find_package_and_print_version(rccl)\n"
        'if(ROCM_VERSION_DEV VERSION_GREATER_EQUAL "5.7.0")\n'
        "  find_package_and_print_version(hipblaslt REQUIRED)\n"
        "else()\n"
        "  find_package_and_print_version(rocfft REQUIRED)\n"
        "endif()\n"
        "if(UNIX)\n  find_package_and_print_version(rocm_smi REQUIRED)\nendif()\n"
        'if(ROCM_VERSION_DEV VERSION_GREATER_EQUAL "7..2")\n  find_package_and_print_version(rccl REQUIRED)\nendif()\n',
    )
    source = read_source(tmp_path)
    assert not isinstance(source, Missing)
    at = Version("5.7.0")
    assert source.rocm_parts == (
        RocmPart("hip"),
        RocmPart("hipblaslt", at),
        RocmPart("rocfft", None, at),
        RocmPart("rocm_smi"),
        RocmPart("rccl"),
    )
    assert [part.name for part in source.rocm_parts if part.applies(Version("5.6"))] == [
        "hip",
        "rocfft",
        "rocm_smi",
        "rccl",
    ]
