"""Why a package can't be compiled against a torch, and the switch that raises its C++ standard."""

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tenv.builds.build_job import BuildWay
from tenv.builds.extension_plan import (
    Asked,
    compilers,
    in_order,
    no_gpu_code,
    package_variables,
    plan_words,
    refusals,
    units_compiled_before,
    waits_for,
    with_archs,
    with_standard,
    without_cuda,
)
from tenv.builds.extension_record import is_record, recorded, sharing, with_ninja, with_parts
from tenv.builds.extension_steps import extension_tasks
from tenv.core.versions import Version
from tenv.core.wheel_platforms import marker_values
from tenv.facts.tables import load_facts
from tenv.host.installed_torch import InstalledTorch, TorchKind
from tenv.host.interface import Fact
from tenv.host.torch_files import TorchPlace
from tenv.locks.lock import LockedTree
from tenv.sources.wheels.tree_builds import differences
from tests.support.each import each

FACTS = load_facts()
VALUES = marker_values("linux-64", "3.12")
TORCH = InstalledTorch(
    "torch",
    TorchPlace.VENV,
    "",
    version=Fact("2.14.1+cu130", "version.py"),
    cuda=Fact(Version("13.0"), "version.py"),
    least_cxx=Fact(20, "ATen.h"),
)
ASKED = Asked("gsplat", 0, "9.0")


def record(*, nvcc: tuple[str, ...] = (), missing: tuple[str, ...] = ()) -> dict[str, Any]:
    row = {"name": "it._C", "sources": ["a.cu"], "missing": [*missing], "flags": {"cxx": ["-O3"], "nvcc": [*nvcc]}}
    return {"extensions": [row]}


@each(
    "found, asked, package, why, hint",
    [
        (
            record(nvcc=("-std=c++17",)),
            ASKED,
            "gsplat",
            "names C++17 for it._C, torch 2.14.1+cu130 demands C++20",
            "cxx = 20",
        ),
        (record(missing=("csrc/a.cpp", "b.cu")), ASKED, "", "lack csrc/a.cpp and 1 more", "git = "),
        (record(), ASKED, "dcnv4", "wants a GPU where it is built", "a machine with one"),
        ({"error": "NotImplementedError: Cuda is not available"}, ASKED, "", "wants a GPU", "a machine with one"),
        ({"error": "Exception: CPU version is not implemented"}, ASKED, "", "wants a GPU", "a machine with one"),
        ({"error": "ModuleNotFoundError: No module named 'psutil.x'"}, ASKED, "", "imports psutil", '`psutil = "*"`'),
        ({"error": "ModuleNotFoundError: No module named 'distutils'"}, ASKED, "", "distutils", '`setuptools = "*"`'),
        ({"error": "ModuleNotFoundError: No module named 'pkg_resources'"}, ASKED, "", "pkg_", '`setuptools = "<82"`'),
        ({"error": "ModuleNotFoundError: No module named 'yaml'"}, ASKED, "", "yaml", '`pyyaml = "*"`'),
        (
            record() | {"absent": ["setuptools_scm"]},
            ASKED,
            "",
            "setup_requires, which the target lacks",
            "`setuptools-scm =",
        ),
        (
            record(nvcc=("-gencode=arch=compute_70,code=sm_70", "-gencode", "arch=compute_90,code=[sm_90,compute_90]")),
            ASKED,
            "",
            "names sm_70, sm_90 for it._C, and nvcc of CUDA 13.0 does not compile for 7.0",
            '`archs = "9.0"` at gsplat',
        ),
        (record(nvcc=("-arch", "sm_60")), ASKED, "", "does not compile for 6.0", "archs ="),
        (
            record(nvcc=("-gencode", "arch=compute_80,code=sm_80")),
            ASKED,
            "",
            "names sm_80 for it._C, which has no code for the sm_90 that is asked for",
            "`archs =",
        ),
        (
            record() | {"archs": "7.0+PTX"},
            ASKED,
            "",
            "sets TORCH_CUDA_ARCH_LIST to 7.0+PTX, and nvcc of CUDA 13.0 does not compile for 7.0",
            "`archs =",
        ),
        (record() | {"archs": "8.0"}, ASKED, "", "to 8.0, which has no code for the sm_90", "`archs ="),
        (record() | {"ninja": False}, replace(ASKED, forced=True), "", "`archs` has no effect", ""),
        (
            record() | {"gone": ["a.cu includes THC/THC.h"]},
            ASKED,
            "",
            "a.cu includes THC/THC.h, which torch 2.14.1+cu130 does not have",
            "git = ",
        ),
        (record(), replace(ASKED, archs="5.0;9.0"), "", "CUDA 13.0 does not compile for sm_50", "TORCH_CUDA_ARCH_LIST"),
    ],
)
def test_a_build_that_can_not_end_well_is_refused_with_an_edit(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], asked: Asked, package: str, why: str, hint: str
) -> None:
    monkeypatch.setattr("tenv.builds.extension_plan.sees_gpu", lambda: False)
    facts = FACTS.torch_packages.find(package)
    reason, edit = next(refusals(found, asked, facts, TORCH, FACTS.cuda_gpu_arch))
    assert why in reason
    assert hint in edit


@each(
    "found, asked",
    [
        (record(), ASKED),
        (record(nvcc=("-std=c++17", "-std=c++20")), ASKED),  # the last one counts
        (record(nvcc=("-std=c++17",)), replace(ASKED, cxx=20)),
        (record(nvcc=("-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_80,code=compute_80")), ASKED),
        (record(nvcc=("-arch=sm_80",)), ASKED),  # with its PTX
        (record(nvcc=("-arch=native", "-Xptxas=-v")), ASKED),
        (record() | {"archs": "8.0+PTX"}, ASKED),
        (record(nvcc=("-arch=sm_60",)) | {"archs": "7.0+PTX"}, replace(ASKED, forced=True)),
        ({}, ASKED),
    ],
)
def test_a_build_that_can_end_well_is_not_refused(found: dict[str, Any], asked: Asked) -> None:
    assert [*refusals(found, asked, FACTS.torch_packages.find("gsplat"), TORCH, FACTS.cuda_gpu_arch)] == []


def test_the_hint_names_the_variables_that_a_setup_py_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.builds.extension_plan.sees_gpu", lambda: False)
    switched = "home = os.environ.get('CUDA_HOME')\nON = os.getenv('FORCE_CUDA_EXTENSION', '0') == '1'\n"
    assert '`FORCE_CUDA_EXTENSION = "1"` in [activation.env]' in no_gpu_code("it", switched)[1]
    reason, hint = no_gpu_code("it", "if torch.cuda.is_available() and CUDA_HOME is not None:\n    pass\n")
    assert "wants a GPU where it is built" in reason
    assert "a machine with one" in hint
    assert "FORCE_CUDA" in no_gpu_code("it", "")[1]


def test_the_jobs_of_a_plan_are_those_of_one_extension() -> None:
    rows = [{**record()["extensions"][0], "name": name, "sources": [f"{name}.cu"]} for name in "abc"]
    assert plan_words({"extensions": rows}, "9.0", 4) == "3 units for 9.0, 1 at a time"
    rows[0]["sources"] = ["a.cu", "b.cu"]
    assert plan_words({"extensions": rows}, "9.0", 4) == "4 units for 9.0, 2 at a time"


def test_gpu_code_is_asked_for_beside_a_torch_that_has_cuda() -> None:
    given = {"MAX_JOBS": "1"}
    assert "FORCE_CUDA" not in package_variables(None, "9.0", given, (1, 1), gpu=False)
    assert package_variables(None, "9.0", given, (1, 1), gpu=True)["FORCE_CUDA"] == "1"
    own = {**given, "NVCC_APPEND_FLAGS": "-lineinfo"}  # two compiles give the same object
    assert package_variables(None, "9.0", own, (1, 1), gpu=True)["NVCC_APPEND_FLAGS"] == "-lineinfo -objtemp"
    assert "NVCC_APPEND_FLAGS" not in package_variables(None, "9.0", given, (1, 1), gpu=False)
    assert package_variables(None, "9.0", {**given, "FORCE_CUDA": "0"}, (1, 1), gpu=True)["FORCE_CUDA"] == "0"


def test_a_switch_for_gpu_code_needs_a_torch_with_cuda_and_leaves_a_value_of_the_user() -> None:
    scatter, flash, sphere = map(FACTS.torch_packages.find, ("torch-scatter", "flash-attn", "torch-harmonics"))
    assert "FORCE_CUDA_EXTENSION" not in package_variables(sphere, "", {}, (1, 1), gpu=False)
    assert package_variables(sphere, "", {}, (1, 1), gpu=True)["FORCE_CUDA_EXTENSION"] == "1"
    assert "FORCE_CUDA" not in package_variables(scatter, "", {}, (1, 1), gpu=False)
    assert package_variables(scatter, "", {}, (1, 1), gpu=True)["FORCE_CUDA"] == "1"
    assert package_variables(scatter, "", {"FORCE_CUDA": "0"}, (1, 1), gpu=True)["FORCE_CUDA"] == "0"
    for gpu in (False, True):  # what forbids a download is no choice
        given = {"FLASH_ATTENTION_FORCE_BUILD": "FALSE"}
        assert package_variables(flash, "", given, (1, 1), gpu=gpu)["FLASH_ATTENTION_FORCE_BUILD"] == "TRUE"


@pytest.mark.skipif(sys.platform == "win32", reason="a link names the compiler")
def test_the_words_for_nvcc_are_those_of_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    for name in ("ccache", "nvcc"):
        (folder / name).write_text("")
        (folder / name).chmod(0o755)
    found = package_variables(None, "", {"PATH": str(folder)}, (1, 1), gpu=True)
    assert shlex.split(found["PYTORCH_NVCC"]) == [str(folder / "ccache"), str(folder / "nvcc")]


def test_a_compiler_under_the_same_name_is_another_one(tmp_path: Path) -> None:
    program = tmp_path / "c++"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environ = {"PATH": str(tmp_path), "CC": "", "CXX": f"{program} -m64"}
    first = compilers(environ)
    assert [row[0] for row in first] == ["c++", environ["CXX"]]
    program.write_text("#!/bin/sh\nexec other\n")
    assert compilers(environ) != first


@pytest.mark.skipif(sys.platform == "win32", reason="the script is of a shell")
def test_named_architectures_take_the_place_of_those_in_the_options_of_nvcc(tmp_path: Path) -> None:
    assert with_archs({"PYTORCH_NVCC": "nvcc"}, "", tmp_path) == {}
    script = with_archs({"PYTORCH_NVCC": "echo ccache nvcc"}, "8.0;9.0a+PTX", tmp_path / "programs")["PYTORCH_NVCC"]
    given = ["-gencode", "arch=compute_70,code=sm_70", "-gencode=arch=compute_80,code=sm_80", "-arch=sm_60", "-O3"]
    given += ['-D A="b c"', "-c", "a.cu", "-o", "a b.o", "-arch", "sm_50"]
    done = subprocess.run([script, *given], capture_output=True, text=True, check=True).stdout.strip()
    codes = "code=sm_80 -gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_90a,code=compute_90a"
    assert done == f'ccache nvcc -O3 -D A="b c" -c a.cu -o a b.o -gencode=arch=compute_80,{codes}'


def test_only_the_output_of_the_recorder_is_a_record() -> None:
    sound: tuple[dict[str, Any], ...] = (record(), {"extensions": []}, {"error": "it does not call setup"})
    for good in sound:
        assert is_record(good), good
    row = record()["extensions"][0]
    wrong = [{**row, "sources": "a.cu"}, {**row, "flags": {"nvcc": None}}, {**row, "missing": [1]}, [], "a"]
    for bad in (
        5,
        [],
        {},
        {"error": 1},
        {"extensions": [], "requires": "a"},
        {"extensions": None},
        *({"extensions": [one]} for one in wrong),
    ):
        assert not is_record(bad), bad


@pytest.mark.skipif(sys.platform == "win32", reason="the scripts are of a shell")
def test_the_named_standard_is_the_last_option_of_each_compiler(tmp_path: Path) -> None:
    assert with_standard({}, 0, tmp_path) == {}
    environ = {"CC": "echo gcc", "CXX": "echo g++", "NVCC_APPEND_FLAGS": "-lineinfo"}
    found = with_standard(environ, 20, tmp_path / "programs")
    assert found["NVCC_APPEND_FLAGS"] == "-lineinfo -std=c++20"

    def said(name: str, *words: str) -> str:
        return subprocess.run([found[name], *words], capture_output=True, text=True, check=True).stdout.strip()

    assert said("CXX", "-std=c++17", "-c", "a b.cpp", "-o", "a.o") == "g++ -std=c++17 -c a b.cpp -o a.o -std=c++20"
    assert said("CC", "-c", "a.cc", "-o", "a.o").endswith("-std=c++20")
    assert said("CC", "-c", "a.c", "-o", "a.o") == "gcc -c a.c -o a.o"


def test_the_plan_counts_the_units_that_an_ended_build_left(tmp_path: Path) -> None:
    rows = [{**record()["extensions"][0], "sources": ["a.cu", "b.cu", "c.cpp"]}]
    assert units_compiled_before({"extensions": rows}, tmp_path) == 0
    (folder := tmp_path / "build" / "temp.linux-x86_64-cpython-312" / "csrc").mkdir(parents=True)
    (folder / "a.o").touch()
    (folder / "a.o.d").touch()
    before = units_compiled_before({"extensions": rows}, tmp_path)
    words = plan_words({"extensions": rows}, "9.0", 2, before=before)
    assert words == "3 units, 2 of them for 9.0, 1 compiled before, 2 at a time"
    assert units_compiled_before({"extensions": rows, "ninja": False}, tmp_path) == 0


def test_the_plan_counts_the_units_and_names_their_architectures() -> None:
    def words(sources: list[str], **more: Any) -> str:
        row = {"name": "it", "sources": sources, "missing": [], "flags": more.pop("flags", {})}
        return plan_words({"extensions": [row], **more}, "9.0", 4)

    assert words(["a.cu"]) == "1 unit for 9.0"
    assert words(["a.cu", "b.cpp", "c.h"]) == "2 units, 1 of them for 9.0, 2 at a time"
    assert words(["a.cpp", "b.cpp"], ninja=False) == "2 units, none for a GPU, 1 at a time"
    assert words(["a.cu", "b.cu"], ninja=True) == "2 units for 9.0, 2 at a time"
    own = {"nvcc": ["-gencode", "arch=compute_80,code=sm_80"]}
    assert words([*"abcdef"], flags=own) == ""
    assert words(["a.cu"] * 5, flags=own) == "5 units for the GPUs that its setup.py names, 4 at a time"


_HELPER = """\
from setuptools import Extension as CppExtension
from setuptools.command.build_ext import build_ext

def is_ninja_available():
    return {there}

class BuildExtension(build_ext):
    def __init__(self, *words, use_ninja=True, **more):
        super().__init__(*words, **more)
        self.use_ninja = use_ninja and is_ninja_available()

    def build_extensions(self):
        print("by ninja" if self.use_ninja else "one after another")
"""
_IDLE = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

class Plain(BuildExtension):
    def __init__(self, *words, **more):
        super().__init__(*words, use_ninja=False, **more)

setup(name="it", cmdclass={"build_ext": Plain}, ext_modules=[CppExtension("it._C", ["a.cpp", "b.cpp"])])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="setup.py runs in the sandbox of Linux")
def test_ninja_compiles_though_the_setup_py_turns_it_off(tmp_path: Path) -> None:
    helper = tmp_path / "torch" / "utils" / "cpp_extension.py"
    helper.parent.mkdir(parents=True)
    (tmp_path / "setup.py").write_text(_IDLE)
    scatter = FACTS.torch_packages.find("torch-scatter")
    assert scatter is not None

    def ran(facts: Any = None, *, there: bool = True) -> tuple[str, str]:
        helper.write_text(_HELPER.replace("{there}", str(there)))
        environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        record = recorded(Path(sys.executable), environ, tmp_path, facts)
        environ |= with_ninja(record, tmp_path / "work")
        words = [sys.executable, "setup.py", "-q", "build_ext"]
        done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
        return plan_words(record, "", 4).rpartition(", ")[2], done.stdout.strip()

    assert ran() == ran(scatter) == ("2 at a time", "by ninja")
    assert ran(replace(scatter, ninja=False)) == ("1 at a time", "one after another")
    assert ran(there=False) == ("1 at a time", "one after another")


def test_a_package_waits_for_the_packages_that_its_setup_py_imports() -> None:
    requires = {"c": ["b>=1"], "b": ["torch", "a; python_version < '4'"], "a": ["c-not"], "e": ["f"], "f": []}
    found = in_order(requires)
    assert sorted(found) == sorted(requires)
    assert [name for name in found if name in "abc"] == ["a", "b", "c"]
    assert found.index("f") < found.index("e")
    assert in_order({"a": ["b"], "b": ["a"]}) == ["a", "b"]
    lacks = {"error": "ModuleNotFoundError: No module named 'torch_scatter.x'"}
    assert waits_for(lacks, [], ["torch-scatter"])
    assert waits_for(lacks, ["other"], ["other"])
    assert waits_for({"absent": ["Other"]}, [], ["other"])
    assert not waits_for(lacks, [], ["other"])
    assert not waits_for(record(), ["other"], ["other"])
    assert not waits_for({"error": "ValueError: torch_scatter"}, ["torch-scatter"], ["torch-scatter"])


@pytest.mark.skipif(sys.platform == "win32", reason="the compiler is cc")
def test_a_source_of_two_extensions_has_an_object_for_each(tmp_path: Path) -> None:
    for name in ("a", "b", "common", "own"):
        (tmp_path / f"{name}.c").write_text(f"int {name};\n")
    (tmp_path / "setup.py").write_text(
        "from setuptools import Extension, setup\n"
        "rows = {'it._a': ['a.c', 'common.c'], 'it._b': ['./common.c', 'b.c'], 'it._own': ['own.c']}\n"
        "setup(name='it', ext_modules=[Extension(name, files) for name, files in rows.items()])\n"
    )
    rows = {"it._a": ["a.c", "common.c"], "it._b": ["./common.c", "b.c"], "it._own": ["own.c"]}
    found = {"extensions": [{"name": name, "sources": sources} for name, sources in rows.items()]}
    assert sharing(found) == {"it._a", "it._b"}
    words = [sys.executable, "setup.py", "build_ext", "--build-temp", "temp", "--build-lib", "lib"]
    environ = {**os.environ, **with_parts(found, {}, tmp_path / "apart")}
    subprocess.run(words, cwd=tmp_path, env=environ, check=True, capture_output=True)
    made = sorted(str(file.relative_to(tmp_path / "temp")) for file in (tmp_path / "temp").rglob("*.o"))
    assert made == ["it._a/a.o", "it._a/common.o", "it._b/b.o", "it._b/common.o", "own.o"]
    job: Any = SimpleNamespace(
        found=SimpleNamespace(way=BuildWay.EXTENSION),
        folder=tmp_path / "temp",
        checkout=tmp_path,
        record={**found, "ninja": True},
    )
    assert extension_tasks(job) == ()
    (tmp_path / "temp/it._b/common.o").unlink()
    assert [task.output for task in extension_tasks(job) or ()] == ["./common.c.o"]


@pytest.mark.skipif(sys.platform != "linux", reason="setup.py runs in the sandbox of Linux")
def test_a_program_that_a_setup_py_starts_is_quoted(tmp_path: Path) -> None:
    command = "subprocess.check_call([sys.executable, '-m', 'no_such_module', 'install', 'it'])"
    (tmp_path / "setup.py").write_text(f"import subprocess, sys\n{command}\n")
    found = recorded(Path(sys.executable), {"PATH": os.environ["PATH"]}, tmp_path)
    assert found["error"].endswith(": No module named no_such_module)")
    first, *_ = refusals(found, ASKED, None, TORCH, FACTS.cuda_gpu_arch)
    assert first[1] == '`no-such-module = "*"` in the manifest brings it'


def test_a_source_for_the_headers_of_an_older_torch_is_named(tmp_path: Path) -> None:
    headers = tmp_path / "torch" / "include" / "ATen"
    headers.mkdir(parents=True)
    (headers / "Dispatch.h").write_text("")
    (tmp_path / "a.cu").write_text(
        "/* #include <THC/THCApply.h>\n*/\n#include <ATen/Dispatch.h>\n#ifdef OLD\n# if 1\n#endif\n"
        '#include <THC/THC.h>\n#endif\n#include <cuda.h>\n// #include "TH/TH.h"\n#include <THC/THCAtomics.cuh>\n'
    )
    kernel = 'void f() {\n  AT_DISPATCH_FLOATING_TYPES(\n    x.type(), "f", [&] {});\n}\n'
    (tmp_path / "b.cu").write_text(f"#if OLD\n{kernel}#else\n#endif\n// AT_DISPATCH_ALL_TYPES(x.type(), 1)\n")
    (tmp_path / "c.cu").write_text(kernel)
    call = "from setuptools import Extension, setup\nfiles = ['a.cu', 'b.cu', 'c.cu']\n"
    call += "setup(ext_modules=[Extension('it', files, include_dirs={}, extra_compile_args={})])\n"
    environ = {"PATH": os.environ["PATH"]}
    both = ["a.cu includes THC/THCAtomics.cuh", "c.cu dispatches on the tensor's type()"]
    older = tmp_path / "older" / "THC"
    older.mkdir(parents=True)
    (older / "THCAtomics.cuh").write_text("")
    own, flags = [str(headers.parent)], [f"-I{older.parent}"]
    for folders, more, gone in ((own, [], both), ([], [], []), (own, flags, both[1:])):
        (tmp_path / "setup.py").write_text(call.format(folders, more))
        assert recorded(Path(sys.executable), environ, tmp_path)["gone"] == gone


@pytest.mark.skipif(sys.platform != "linux", reason="setup.py runs in the sandbox of Linux")
def test_other_requirements_than_the_row_has_are_known_before_the_compile(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"]}
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(install_requires=['a>=1', 'torch'])\n")
    requires = recorded(Path(sys.executable), environ, tmp_path)["requires"]
    row = LockedTree("it", "1.0", ("3.12",), ("torch",), isolated=False)
    ((fault, hint),) = differences(row, requires, "ext", {}, in_manifest=True)
    assert (fault, hint) == (
        "it requires a>=1, which its row in the lock lacks",
        '`requires = ["a>=1", "torch"]` at it in the manifest names them',
    )
    ((_, hint),) = differences(row, requires, "ext", {}, in_manifest=False)
    assert "`tenv update ext it`" in hint
    ((fault, _),) = differences(row, [], "ext", {}, in_manifest=True)
    assert fault == "it does not require torch, as its row in the lock says"
    ((fault, _),) = differences(row, ["torch>=2.4"], "ext", {}, in_manifest=True)
    assert fault.startswith("it requires torch>=2.4, which its row in the lock lacks, and does not require torch, as")
    assert not [*differences(row, ["Torch", "tomli; python_version < '3'"], "ext", VALUES, in_manifest=True)]
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'it'\n")  # whose requirements are others
    assert recorded(Path(sys.executable), environ, tmp_path)["requires"] is None


def test_cuda_that_a_torch_for_cpus_lacks_is_named_with_the_nvcc_that_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {"error": "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root."}
    torch = replace(TORCH, kind=Fact(TorchKind.CPU, "test"))
    monkeypatch.setenv("PATH", str(tmp_path))
    (reason,) = refusals(found, ASKED, None, torch, FACTS.cuda_gpu_arch)
    assert reason[1] == "the torch of the target has no CUDA: `tenv init NAME --torch` makes a target with one"
    (tmp_path / "nvcc").touch(0o755)
    (reason,) = refusals(found, ASKED, None, torch, FACTS.cuda_gpu_arch)
    assert reason[1].endswith(f"; without {tmp_path}/nvcc on PATH it may build for CPUs")
    (reason,) = refusals(found, ASKED, None, TORCH, FACTS.cuda_gpu_arch)
    assert reason[1] == ""
    for words in (
        "TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'",
        "TypeError: expected str, bytes or os.PathLike object, not NoneType",
    ):
        (reason,) = refusals({"error": words}, ASKED, None, torch, FACTS.cuda_gpu_arch)
        assert "`tenv init NAME --torch` makes a target with one" in reason[1]
    said = "nvcc is not found. CMake looks at CMAKE_CUDA_COMPILER, CUDACXX and PATH for nvcc"
    assert "`tenv init NAME --torch` makes a target with one" in without_cuda(said, torch)
    assert without_cuda(said, TORCH) == without_cuda("a name is not declared", torch) == ""
    for words, name in (
        ("RuntimeError: TMS_CUDA_MAJOR env var must be set for CUDA builds", "TMS_CUDA_MAJOR"),
        ("KeyError: 'ROOTSYS'", "ROOTSYS"),
        ("ValueError: the environment lacks MKL_ROOT", "MKL_ROOT"),
    ):
        (reason,) = refusals({"error": words}, ASKED, None, torch, FACTS.cuda_gpu_arch)
        assert reason[1] == f'`{name} = "…"` in [activation.env] of the manifest sets it'
    (reason,) = refusals(
        {"error": "TypeError: 'NoneType' object is not callable"}, ASKED, None, torch, FACTS.cuda_gpu_arch
    )
    assert reason[1] == ""
