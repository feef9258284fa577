"""What a target takes from the machine: found where people put it, refused with a reason, and named when it lacks."""

import json
from pathlib import Path

import pytest

from tenv.core.errors import HostError, ManifestError
from tenv.core.versions import Range
from tenv.sources.system.interface import Tool
from tenv.sources.system.shared_libraries import parse_version
from tenv.sources.system.take import KINDS, take
from tenv.targets.manifest import DEBUG_PYTHON, Manifest
from tenv.targets.manifest_file import read_manifest
from tenv.targets.manifest_keys import SYSTEM_TOOLS
from tests.host.builders import places, program, put
from tests.support.each import each
from tests.support.machine_trees import add_library, make_debian, make_gcc, make_mpi, make_toolkit

CUDNN = {"CUDNN_MAJOR": 9, "CUDNN_MINOR": 1, "CUDNN_PATCHLEVEL": 0}


def asks(**system: str) -> Manifest:
    wanted = {name.replace("_", "-"): Range(text) for name, text in system.items()}
    return Manifest("t", "manifests/t.toml", platforms=("linux-64",), system=wanted)


def taken(
    root: Path,
    *,
    most: int | None = None,
    kept: dict[str, str] | None = None,
    variables: dict[str, str] | None = None,
    **system: str,
) -> dict[str, Tool]:
    tools = take(asks(**system), places(root, variables=variables), kept or {}, lambda _: most)
    return {tool.name: tool for tool in tools}


def error(root: Path, *, most: int | None = None, variables: dict[str, str] | None = None, **system: str) -> HostError:
    with pytest.raises(HostError) as raised:
        take(asks(**system), places(root, variables=variables), {}, lambda _: most)
    return raised.value


def names(tool: Tool, root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in tool.files}


# The CUDA toolkit.


def test_takes_the_toolkit_with_all_that_decides_what_it_builds(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda-99.1")
    tool = taken(tmp_path, cuda_toolkit="99.1.*")["cuda-toolkit"]
    assert (tool.path, tool.version, tool.accepted) == (root, "99.1.1", "99.1.*")
    assert tool.roles == {"home": str(root), "nvcc": str(root / "bin/nvcc")}
    assert names(tool, root) == {
        *("bin/nvcc", "bin/nvcc.profile", "bin/ptxas", "bin/fatbinary", "bin/cudafe++", "bin/nvlink", "nvvm/bin/cicc"),
        *("include/cuda.h", "include/cuda_runtime_api.h", "include/crt/host_config.h", "version.json"),
        *("lib64/libcudart.so.99.1.105", "lib64/libcudart_static.a", "lib64/libcudadevrt.a"),
        "nvvm/libdevice/libdevice.10.bc",
    }
    assert tool.large == (root / "lib64/libcublas.so.99.1.3.1",)
    assert {path.name for path in tool.watched} == {
        *("nvcc", "cicc", "ptxas", "version.json", "cuda_runtime_api.h", "host_config.h"),
    }


def test_debian_s_layout_has_its_home_in_usr(tmp_path: Path) -> None:
    usr = make_debian(tmp_path)
    tool = taken(tmp_path, cuda_toolkit="*", variables={"PATH": str(usr / "bin")})["cuda-toolkit"]
    assert tool.path == usr / "lib/nvidia-cuda-toolkit"
    assert tool.roles == {"home": str(usr), "nvcc": str(usr / "bin/nvcc")}
    assert names(tool, usr) == {
        *("lib/nvidia-cuda-toolkit/bin/nvcc", "lib/nvidia-cuda-toolkit/bin/nvcc.profile", "bin/nvcc", "bin/ptxas"),
        *("lib/nvidia-cuda-toolkit/bin/cicc", "lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc"),
        *("include/cuda_runtime_api.h", "lib/x86_64-linux-gnu/libcudart.so.99.1.89"),
        *("include/cuda.h", "include/crt/host_config.h"),
        *("lib/x86_64-linux-gnu/libcudart_static.a", "lib/x86_64-linux-gnu/libcudadevrt.a"),
    }


def test_a_toolkit_without_nvcc(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda-99.1")
    (root / "bin/nvcc").unlink()
    said = error(tmp_path, cuda_toolkit="99.1.*")
    assert said.message.splitlines()[:2] == [
        "t resolves cuda-toolkit 99.1.* from the system, which has no match",
        f"  {root}: it has no bin/nvcc",
    ]
    assert said.message.splitlines()[2].startswith("  searched: CUDA_HOME, CUDA_PATH and the variables of")
    assert said.hint.startswith("apt install cuda-toolkit-99-1 (NVIDIA's repository")


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    put(tmp_path / "usr/local/keep")
    (tmp_path / "usr/local/cuda").symlink_to("cuda-12.1")
    gone = tmp_path / "usr/local/cuda-12.1"
    assert f"\n  {gone}: /usr/local/cuda names {gone}, which does not exist\n" in (
        error(tmp_path, cuda_toolkit="*").message
    )


def test_a_description_that_disagrees_with_nvcc_is_told_and_does_not_count(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda", described="98.3.1")
    tool = taken(tmp_path, cuda_toolkit="99.1.*")["cuda-toolkit"]
    assert (tool.version, tool.notes[0]) == ("99.1", f"{root}: version.json has 98.3.1, nvcc has 99.1")


def test_two_descriptions_are_told_and_nvcc_decides(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda", described="98.3.1")
    put(root / "version.txt", "CUDA Version 99.1.1\n")
    tool = taken(tmp_path, cuda_toolkit="99.1.*")["cuda-toolkit"]
    assert (
        tool.notes[0]
        == f"{root}: it has several descriptions that differ: version.json has 98.3.1, version.txt has 99.1.1"
    )


def test_headers_of_another_release_keep_a_toolkit_out(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda", headers="98.3")
    said = error(tmp_path, cuda_toolkit="99.1.*").message
    assert f"  {root}: the headers are from 98.3, nvcc is from 99.1\n" in said


def test_an_nvcc_that_is_a_script_is_told(tmp_path: Path) -> None:
    """As every nvcc of these tests is; what it calls beside it is watched too."""
    root = make_toolkit(tmp_path / "usr/local/cuda")
    (root / "bin/nvcc").rename(root / "bin/nvcc.real")
    program(root / "bin/nvcc", f'exec ccache {root}/bin/nvcc.real "$@"')
    program(tmp_path / "bin/ccache", 'exec "$@"')
    put(root / "bin/nvcc", f'#!/bin/sh\nexec {tmp_path}/bin/ccache {root}/bin/nvcc.real "$@"\n')
    tool = taken(tmp_path, cuda_toolkit="99.1.*")["cuda-toolkit"]
    assert {"bin/nvcc", "bin/nvcc.real"} <= names(tool, root)
    assert tool.notes == (
        f"{root}/bin/nvcc is a script: tenv watches it and the programs beside it, no others that it calls",
    )


def test_the_toolkit_of_another_environment_is_none_of_the_machine(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "env/cuda")
    put(tmp_path / "env/tenv-meta/state.json")
    said = error(tmp_path, cuda_toolkit="*", variables={"CUDA_HOME": str(root)}).message
    assert f"  {root}: is part of the environment {tmp_path}/env\n" in said


def test_the_toolkit_that_was_taken_before_stays(tmp_path: Path) -> None:
    for release in ("98.1", "99.1"):
        make_toolkit(tmp_path / f"usr/local/cuda-{release}", release)
    kept = {"cuda-toolkit": str(tmp_path / "usr/local/cuda-98.1")}
    assert taken(tmp_path, cuda_toolkit="*")["cuda-toolkit"].version == "99.1.1"
    assert taken(tmp_path, cuda_toolkit="*", kept=kept)["cuda-toolkit"].version == "98.1.1"


def test_the_ptxas_that_debian_s_nvcc_finds_must_be_its_own(tmp_path: Path) -> None:
    usr = make_debian(tmp_path)
    other = program(tmp_path / "usr/local/bin/ptxas", "echo another")
    path = f"{tmp_path}/usr/local/bin:{usr}/bin"
    tool = taken(tmp_path, cuda_toolkit="*", variables={"PATH": path})["cuda-toolkit"]
    assert tool.notes == (
        f"{tool.path}: its nvcc calls the first ptxas on PATH, which belongs to another toolkit: {other}",
        f"{tool.path}/bin/nvcc is a script: tenv watches it and the programs beside it, no others that it calls",
    )


def test_a_toolkit_of_windows(tmp_path: Path) -> None:
    """By its files alone: no program of Windows runs here."""
    root = make_toolkit(tmp_path / "ProgramFiles/NVIDIA GPU Computing Toolkit/CUDA/v99.1")
    (root / "bin/nvcc").rename(root / "bin/nvcc.exe")
    (root / "lib64/libcudart.so.99.1.105").unlink()
    put(root / "lib/x64/cudart.lib")
    tool = taken(tmp_path, cuda_toolkit="*", variables={"ProgramFiles": str(tmp_path / "ProgramFiles")})["cuda-toolkit"]
    assert tool.roles == {"home": str(root), "nvcc": str(root / "bin/nvcc.exe")}


# GCC.


def test_takes_a_gcc_with_what_it_calls(tmp_path: Path) -> None:
    gxx = make_gcc(tmp_path)
    tool = taken(tmp_path, gcc=">=11,<13")["gcc"]
    assert (tool.path, tool.version) == (gxx, "12.2.0")
    assert tool.roles == {"gcc": str(tmp_path / "bin/gcc"), "g++": str(gxx)}
    assert names(tool, tmp_path) == {"bin/gcc", "bin/g++", *(f"lib/12.2.0/{n}" for n in ("cc1", "cc1plus", "collect2"))}


@each("folder", ["opt/rh/gcc-toolset-12/root/usr", "opt/gcc-12", "usr"])
def test_a_gcc_need_not_be_on_path(tmp_path: Path, folder: str) -> None:
    gxx = make_gcc(tmp_path / folder)
    assert taken(tmp_path, gcc="12.*")["gcc"].path == gxx


def test_a_gcc_of_an_environment_module(tmp_path: Path) -> None:
    gxx = make_gcc(tmp_path / "apps/gcc")
    assert taken(tmp_path, gcc="12.*", variables={"EBROOTGCC": str(tmp_path / "apps/gcc")})["gcc"].path == gxx


def test_a_gcc_must_suit_the_toolkit(tmp_path: Path) -> None:
    make_toolkit(tmp_path / "usr/local/cuda")
    gxx = make_gcc(tmp_path, "12.2.0")
    said = error(tmp_path, most=11, cuda_toolkit="*", gcc=">=9.4")
    assert f"  {gxx}: 12.2.0 is newer than the selected nvcc accepts (GCC 11 at most)\n" in said.message
    assert said.hint == "apt install gcc-11 g++-11 (Debian, Ubuntu) or dnf install gcc-toolset-11"
    make_gcc(tmp_path, "11.3.0", "-11")
    assert taken(tmp_path, most=11, cuda_toolkit="*", gcc=">=9.4")["gcc"].version == "11.3.0"


def test_a_gcc_without_its_cpp_compiler(tmp_path: Path) -> None:
    gxx = make_gcc(tmp_path, whole=False)
    said = error(tmp_path, gcc="*").message
    assert f"  {gxx}: it has no cc1plus, so it can't compile C++ (a package of it is missing)\n" in said


# Libraries, MPI, MSVC.


def test_takes_a_library_of_the_machine(tmp_path: Path) -> None:
    root = add_library(tmp_path / "opt/cudnn-9", "cudnn_version.h", CUDNN, "lib/libcudnn.so.9.1.0")
    tool = taken(tmp_path, cudnn=">=9")["cudnn"]
    assert (tool.path, tool.version, tool.found_by) == (root, "9.1.0", "/opt/cudnn-9")
    assert tool.large == (root / "lib/libcudnn.so.9.1.0",)


def test_a_library_beside_the_toolkit(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda-99.1")
    add_library(root, "cudnn_version.h", CUDNN, "lib64/libcudnn.so.9")
    assert taken(tmp_path, cuda_toolkit="*", cudnn="9.*")["cudnn"].found_by == "the CUDA toolkit"


def test_each_library_that_falls_out_has_its_reason(tmp_path: Path) -> None:
    old = add_library(tmp_path / "opt/cudnn-8", "cudnn_version.h", CUDNN | {"CUDNN_MAJOR": 8}, "lib/libcudnn.so.8")
    bare = tmp_path / "opt/cudnn-bare"
    put(bare / "include/cudnn_version.h", "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 2\n#define CUDNN_PATCHLEVEL 0\n")
    odd = put(tmp_path / "opt/cudnn-odd/include/cudnn.h", "/* moved */\n")
    said = error(tmp_path, cudnn=">=9", variables={"CUDNN_ROOT": str(tmp_path / "gone")}).message
    assert said.splitlines()[1:5] == [
        f"  {tmp_path}/gone (CUDNN_ROOT): does not exist",
        f"  {odd}: does not define CUDNN_MAJOR",
        f"  {bare}: has cudnn_version.h of 9.2.0, but no libcudnn.so to link",
        f"  {old}: 8.1.0 is not >=9",
    ]


def test_takes_mkl(tmp_path: Path) -> None:
    macros = {"__INTEL_MKL__": 2024, "__INTEL_MKL_MINOR__": 2, "__INTEL_MKL_UPDATE__": 1}
    root = add_library(tmp_path / "opt/intel/oneapi/mkl/2024.2", "mkl_version.h", macros, "lib/libmkl_core.a")
    assert (taken(tmp_path, mkl="2024.*")["mkl"].path, taken(tmp_path, mkl="*")["mkl"].version) == (root, "2024.2.1")


@each(
    "text, version",
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/\n", "4.1.4"),
        ("HYDRA build details:\n    Version:                                 4.0.2\n", "4.0.2"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307\n", "2021.9"),
        ("mpirun: error\n", None),
    ],
)
def test_parse_version_of_mpi(text: str, version: str | None) -> None:
    found = parse_version(text)
    assert (str(found) if found else None) == version


def test_takes_an_mpi(tmp_path: Path) -> None:
    root = make_mpi(tmp_path / "opt/openmpi-4")
    tool = taken(tmp_path, mpi=">=4")["mpi"]
    assert (tool.path, tool.version, names(tool, root)) == (root, "4.1.4", {"bin/mpicc", "bin/mpirun", "include/mpi.h"})


def test_an_mpi_that_does_not_tell_its_version(tmp_path: Path) -> None:
    root = make_mpi(tmp_path / "opt/openmpi-4", "oh")
    said = error(tmp_path, mpi="*")
    assert said.message.startswith("t resolves mpi from the system, which has no match\n")
    assert f"  {root}: `{root}/bin/mpirun --version` prints no version\n" in said.message
    assert said.hint == "apt install libopenmpi-dev openmpi-bin (Debian, Ubuntu) or dnf install openmpi-devel"


def test_takes_the_newest_toolset_of_visual_studio(tmp_path: Path) -> None:
    studio = tmp_path / "Studio"
    for version in ("14.29.30133", "14.44.35207", "14.50.1"):
        put(studio / "VC/Tools/MSVC" / version / "bin/Hostx64/x64/cl.exe", version)
    (studio / "VC/Tools/MSVC/14.50.1/bin/Hostx64/x64/cl.exe").unlink()
    put(studio / "VC/Tools/MSVC/14.²/bin/Hostx64/x64/cl.exe", "")
    program(
        tmp_path / "x86/Microsoft Visual Studio/Installer/vswhere.exe",
        f"echo '{json.dumps([{'installationPath': str(studio)}])}'",
    )
    variables = {"ProgramFiles(x86)": str(tmp_path / "x86")}
    tool = taken(tmp_path, msvc=">=14.29", variables=variables)["msvc"]
    assert (tool.version, tool.found_by) == ("14.44.35207", "vswhere")
    said = error(tmp_path, msvc="14.16.*", variables=variables).message
    assert f"  {studio}/VC/Tools/MSVC/14.29.30133: 14.29.30133 is not 14.16.*\n" in said
    assert f"  {studio}/VC/Tools/MSVC/14.50.1: has no bin/Hostx64/x64/cl.exe\n" in said
    assert f"  {studio}/VC/Tools/MSVC/14.²: its name is not a toolset version (14.NN)\n" in said


def test_the_developer_s_prompt_decides(tmp_path: Path) -> None:
    for version in ("14.29.30133", "14.44.35207"):
        put(tmp_path / version / "bin/Hostx64/x64/cl.exe", version)
    variables = {"VCToolsInstallDir": str(tmp_path / "14.29.30133")}
    assert taken(tmp_path, msvc="*", variables=variables)["msvc"].version == "14.29.30133"


# Several at once.


def test_all_that_lacks_is_said_at_once(tmp_path: Path) -> None:
    said = error(tmp_path, cuda_toolkit="*", gcc="12.*", mpi="*")
    heads = [line for line in said.message.splitlines() if not line.startswith(" ")]
    assert heads == [
        "t resolves cuda-toolkit from the system, which has no match",
        "t resolves gcc 12.* from the system, which has no match",
        "t resolves mpi from the system, which has no match",
    ]
    assert said.hint.count("apt install") == 3


def test_the_reader_of_manifests_knows_the_same_tools() -> None:
    assert {*SYSTEM_TOOLS, DEBUG_PYTHON} == set(KINDS)


# What debugs CPython.


def make_python(program_file: Path, version: str = "3.11.2", *, debug: int = 1, threads: int = 0) -> Path:
    """Make a Python that answers as a debug build does, with its header beside."""
    include = program_file.parent.parent / "include" / program_file.name
    program(program_file, f"echo '{version} {debug} {threads}'; echo {program_file}; echo {include}")
    put(include / "Python.h", "#pragma once\n")
    return program_file


def make_gdb(program_file: Path, version: str = "13.1", *, python: bool = True) -> Path:
    script = f'case "$*" in --version) echo "GNU gdb (Debian {version}-3) {version}" ;; '
    program(program_file, script + ("*print*) echo 42 ;; esac" if python else "*) exit 1 ;; esac"))
    return program_file


def test_takes_the_newest_debug_python_and_its_helper_for_gdb(tmp_path: Path) -> None:
    make_python(tmp_path / "usr/bin/python3", debug=0)
    make_python(tmp_path / "usr/bin/python3.12-dbg", "3.12.3")
    newest = make_python(tmp_path / "usr/bin/python3.13d", "3.13.1")
    put(tmp_path / "usr/share/gdb/auto-load/usr/bin/python3.13d-gdb.py", "")
    tool = taken(tmp_path, python_debug=">=3.11")["python-debug"]
    assert (tool.path, tool.version, tool.notes) == (newest, "3.13.1", ())
    assert {path.name for path in tool.files} == {"python3.13d", "Python.h", "python3.13d-gdb.py"}
    kept = taken(tmp_path, python_debug=">=3.11", kept={"python-debug": str(tmp_path / "usr/bin/python3.12-dbg")})
    assert kept["python-debug"].version == "3.12.3"
    assert "no python-gdb.py" in kept["python-debug"].notes[0]


def test_says_why_a_debug_python_will_not_do_and_what_to_install(tmp_path: Path) -> None:
    make_python(tmp_path / "usr/bin/python3.10-dbg", "3.10.4")
    make_python(tmp_path / "usr/bin/python3.13d", "3.13.1", threads=1)
    (make_python(tmp_path / "usr/bin/python3.12d", "3.12.1").parent.parent / "include/python3.12d/Python.h").unlink()
    said = error(tmp_path, python_debug=">=3.11", gdb=">=12")
    assert "python3.10-dbg: 3.10.4 is not >=3.11" in said.message
    assert "python3.13d: is free-threaded" in said.message
    assert "python3.12d/Python.h is missing" in said.message
    assert "apt install python3-dbg (Debian, Ubuntu)" in said.hint
    assert "apt install gdb" in said.hint


def test_a_gdb_that_is_old_or_without_python_is_refused(tmp_path: Path) -> None:
    old = make_gdb(tmp_path / "usr/bin/gdb", "9.2")
    assert "9.2 is not >=12" in error(tmp_path, gdb=">=12").message
    make_gdb(old, "15.0.50.20240403", python=False)
    assert "was built without Python" in error(tmp_path, gdb=">=12").message
    make_gdb(old, "15.0.50.20240403")
    assert taken(tmp_path, gdb=">=12")["gdb"].version == "15.0.50.20240403"


@each("text", ['python = ">=3.11"', 'python = { version = ">=3.11" }'])
def test_only_a_debug_python_is_taken_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.toml"
    path.write_text(f'platforms = ["linux-64"]\n[system]\n{text}\n')
    with pytest.raises(ManifestError) as raised:
        read_manifest("t", path, lambda _: path)
    assert "only a debug build of Python" in raised.value.message
    path.write_text('platforms = ["linux-64"]\n[system]\npython = { version = ">=3.11", debug = true }\n')
    assert str(read_manifest("t", path, lambda _: path).system["python-debug"]) == ">=3.11"
