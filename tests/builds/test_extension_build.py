"""`tenv build` of what compiles against an installed torch: a `setup.py`, and a CMake project."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tenv.builds.build_job import BuildWay, Products
from tenv.builds.checkout_step import check_folder
from tenv.builds.configure_step import configure_commands
from tenv.builds.extension_checkout import find_extension
from tenv.builds.extension_steps import old_standards, prepare
from tenv.builds.ninja_plan import compile_commands
from tenv.builds.probe_step import requirement_faults
from tenv.checks.rules.interface import Severity
from tenv.facts.torch_packages import TorchPackageTable
from tenv.host.interface import Fact
from tests.builds.conftest import codes, step
from tests.support.each import each
from tests.support.projects import HERE, Ended, Project, call
from tests.support.small_extension import make_cmake_project, make_setup_checkout, make_torch_and_setuptools
from tests.support.small_torch import make_git

FIND = "find_package (Torch REQUIRED)"
SCIKIT = '[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n'
OWN = '[build-system]\nrequires = ["scikit-build-core>=0.10"]\nbuild-backend = "b"\nbackend-path = ["a"]\n'
OTHER = OWN.replace("scikit", "other")
SETUP = '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n'
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the environment's Python is called by its path")


@dataclass
class Bench:
    """A project with a target that has a torch, and a place for checkouts.

    Attributes:
        project: The project.
        checkout: The checkout.
    """

    project: Project
    checkout: Path

    def run(self, *words: str, verb: str = "build") -> Ended:
        return call(verb, "tiny", "--pytorch", str(self.checkout), "--json", *words)

    def build(self, *words: str) -> dict[str, Any]:
        ended = self.run(*words)
        assert ended.status == 0, f"{ended.err}\n{ended.out}"
        data: dict[str, Any] = json.loads(ended.out)["data"]
        return data

    @property
    def log(self) -> str:
        return (self.checkout / ".tenv" / "builds" / "tiny" / "build.log").read_text()

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.checkout / name
        time.sleep(0.02)  # a time stamp later than those of the objects
        file.write_text(file.read_text().replace(old, new))


@pytest.fixture
def bench(project: Project, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A checkout with a `setup.py`, beside a target with torch 2.11."""
    project.edit('native = "*"\n', "")
    project.edit('alpha  = ">=1"', 'torch = "2.11"\nsetuptools = "*"')
    project.edit(project.manifest.read_text().splitlines()[2], f'python = "{HERE}.*"')
    project.manifest.write_text(project.manifest.read_text() + '\n[build]\ncache = "off"\n')
    make_torch_and_setuptools(project.index.folder, "2.11", "2.12")
    project.ok("lock", "tiny")
    for name in ("CC", "CXX", "MAX_JOBS", "TORCH_CUDA_ARCH_LIST"):
        monkeypatch.delenv(name, raising=False)
    return Bench(project, make_setup_checkout(project.folder / "ops"))


@pytest.mark.long
def test_a_setup_py_is_planned_built_in_place_imported_and_one_edit_compiles_one_file(bench: Bench) -> None:
    planned = json.loads(bench.run(verb="plan").out)["data"]
    names = [row["name"] for row in planned["steps"]]
    assert names == ["checkout", "target", "create", "probe", "configure", "estimate", "build"]
    assert planned["extension"] == "small-ops"
    assert not (bench.checkout / ".tenv").exists()
    built = bench.build("--allow", "TE922")
    names = [row["name"] for row in built["steps"]]
    assert names == ["checkout", "target", "create", "probe", "configure", "estimate", "build", "import", "audit"]
    assert step(built, "estimate")["facts"]["tasks"]["C++"] == 2
    assert bench.log.count("compiles ") == 2
    assert step(built, "import")["facts"]["modules"] == {"small_ops": str(bench.checkout / "small_ops" / "__init__.py")}
    assert built["torch"]["version"] == "2.11"
    assert Path(built["report"]).is_file()
    bench.edit("csrc/twice.cpp", "2 * x", "3 * x")
    built = bench.build()
    assert step(built, "estimate")["facts"]["tasks"]["C++"] == 1
    assert [line for line in bench.log.splitlines() if line.startswith("compiles")] == ["compiles csrc/twice.cpp"]
    python = bench.checkout / ".tenv/envs/tiny/bin/python"
    words = [str(python), "-c", "import small_ops; print(small_ops.VALUE)"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "63\n"
    bench.edit("csrc/twice.cpp", "int twice", "int thrice")
    ended = bench.run()
    assert (ended.status, codes(json.loads(ended.out)["data"]["steps"][-1])) == (1, ("TE971",))
    bench.edit("csrc/twice.cpp", "int thrice", "int twice")
    bench.project.edit('torch = "2.11"', 'torch = "2.12"')
    bench.project.ok("lock", "tiny")
    built = bench.build()  # the files of another torch have older times than the objects
    assert built["torch"]["version"] == "2.12"
    assert step(built, "configure")["facts"]["emptied"] == "torch, the toolkit"
    assert bench.log.count("compiles ") == 2


def test_a_cmake_project_is_configured_with_the_torch_and_one_edit_compiles_one_file(bench: Bench) -> None:
    bench.checkout = make_cmake_project(bench.project.folder / "app")
    built = bench.build()
    names = [row["name"] for row in built["steps"]]
    assert names == ["checkout", "target", "create", "probe", "configure", "estimate", "build", "audit"]
    assert built["extension"] == "small-app"
    assert "small torch" in (bench.checkout / ".tenv/builds/tiny/configure.log").read_text()
    assert (bench.checkout / ".tenv/build/tiny/libops.so").is_file()
    libraries = [Path(path).name for path in step(built, "audit")["facts"]["libraries"]]
    assert libraries == ["app", "libops.so"]
    python = bench.checkout / ".tenv/envs/tiny/bin/python"  # CMake would take the first one on PATH
    assert f"-DPython_EXECUTABLE={python}" in built["commands"]["configure"][0]
    bench.edit("twice.cpp", "2 * x", "3 * x")
    bench.build()
    assert (bench.log.count("Building CXX object"), "twice.cpp.o" in bench.log) == (1, True)


@each(
    "files, way",
    [
        ({"CMakeLists.txt": "project(a)\nadd_subdirectory(csrc)", "csrc/CMakeLists.txt": FIND}, BuildWay.LIBTORCH),
        ({"CMakeLists.txt": "include(cmake/deps.cmake)", "cmake/deps.cmake": FIND}, BuildWay.LIBTORCH),
        ({"CMakeLists.txt": "include(deps)", "cmake/deps.cmake": FIND}, BuildWay.LIBTORCH),
        ({"CMakeLists.txt": "include(${CMAKE_CURRENT_LIST_DIR}/a/b.cmake)", "a/b.cmake": FIND}, BuildWay.LIBTORCH),
        ({"CMakeLists.txt": f"include(CMakeLists.txt)\n# {FIND}"}, None),
        ({"CMakeLists.txt": "project(a)", "third_party/CMakeLists.txt": FIND}, None),
        ({"CMakeLists.txt": FIND, "pyproject.toml": SCIKIT}, BuildWay.EXTENSION_SCIKIT),
        ({"CMakeLists.txt": FIND, "pyproject.toml": SCIKIT, "setup.py": "import torch"}, BuildWay.EXTENSION_SCIKIT),
        ({"CMakeLists.txt": FIND, "pyproject.toml": OWN}, BuildWay.EXTENSION_SCIKIT),
        (
            {"CMakeLists.txt": FIND, "pyproject.toml": OTHER, "setup.py": "a"},
            BuildWay.EXTENSION,
        ),
        ({"CMakeLists.txt": FIND, "pyproject.toml": OTHER}, None),
        ({"CMakeLists.txt": FIND, "setup.py": "import subprocess"}, BuildWay.EXTENSION),
        ({"CMakeLists.txt": "project(a)", "pyproject.toml": SCIKIT}, None),
        ({"setup.py": "# import torch\n"}, None),
    ],
)
def test_the_files_that_cmake_reads_and_the_backend_decide(
    files: dict[str, str], way: BuildWay | None, tmp_path: Path
) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    found = find_extension(folder, TorchPackageTable(()))
    assert (found[1].way if found else None) == way, files


def test_what_a_backend_of_cmake_keeps_is_forgotten_with_its_variable(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    job: Any = SimpleNamespace(
        toolchain=SimpleNamespace(site_packages=tmp_path / "python3.12/site-packages"),
        installed=SimpleNamespace(label="2.11"),
        environment=SimpleNamespace(state=lambda: None),
        target=SimpleNamespace(name="tiny", lock_file=tmp_path / "no.lock"),
        found=SimpleNamespace(way=BuildWay.EXTENSION_SCIKIT),
        request=SimpleNamespace(clean=False),
        environ={"CMAKE_ARGS": "-DFAST=1", "CMAKE_BUILD_PARALLEL_LEVEL": "2", "PATH": ""},
        notes=tmp_path / "notes",
        folder=tmp_path / "folder",
    )
    assert prepare(job) == ""
    (job.folder / "CMakeCache.txt").touch()
    job.environ["CMAKE_BUILD_PARALLEL_LEVEL"] = "1"
    assert (prepare(job), (job.folder / "CMakeCache.txt").exists()) == ("", True)
    del job.environ["CMAKE_ARGS"]
    assert (prepare(job), (job.folder / "CMakeCache.txt").exists()) == ("CMAKE_ARGS was -DFAST=1", False)
    package = job.toolchain.site_packages / "torch"
    package.mkdir(parents=True)
    (package / "version.py").write_text("git_version = 'a'\n")  # another build of the same version
    assert prepare(job) == "the files of torch"


def test_the_python_of_a_toolkit_beside_is_that_of_its_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def beside(folder: Path) -> SimpleNamespace:
        return SimpleNamespace(prefix=folder)

    monkeypatch.setattr("tenv.builds.checkout_step.require_beside", beside)
    way = SimpleNamespace(way=BuildWay.LIBTORCH, products=Products.OUTSIDE)
    (tmp_path / "build").mkdir()
    for python, faults in ((tmp_path / "venv/bin/python", 0), (tmp_path / "env/bin/python", 1)):
        cache = {"Python_EXECUTABLE": str(python)}
        job: Any = SimpleNamespace(
            target=SimpleNamespace(name="tiny", manifest=SimpleNamespace(beside=str(tmp_path / "venv"))),
            environment=SimpleNamespace(prefix=tmp_path / "env"),
            request=SimpleNamespace(fresh=False, clean=False, options=[]),
            found=way,
            checkout=tmp_path,
            folder=tmp_path / "build",
            stamp=dict,
            cmake_cache=lambda cache=cache: cache,
        )
        assert len([*check_folder(job)]) == faults, python


@pytest.mark.long
def test_without_ninja_a_changed_flag_or_an_end_in_mid_build_compiles_everything(bench: Bench) -> None:
    bench.edit("setup.py", "cmdclass={", "cmdclass={} and {")
    bench.build("--allow", "TE922")
    assert bench.log.count("compiles ") == 2
    bench.build()
    assert bench.log.count("compiles ") == 0
    bench.edit("setup.py", '"csrc/twice.cpp"]', '"csrc/twice.cpp"], extra_compile_args=["-O0"]')
    built = bench.build()
    assert (bench.log.count("compiles "), step(built, "estimate")["facts"]["tasks"]["C++"]) == (2, 2)
    bench.edit("csrc/twice.cpp", "2 * x", "2 * y")
    assert bench.run().status == 1
    bench.edit("csrc/twice.cpp", "2 * y", "2 * x")
    built = bench.build()
    assert (bench.log.count("compiles "), step(built, "estimate")["facts"]["tasks"]["C++"]) == (2, 2)


@pytest.mark.long
def test_another_compiler_under_the_same_name_and_a_variable_that_is_gone_compile_everything(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = bench.project.folder / "bin/c++"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shutil.which("c++")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv("CXXFLAGS", "-DA")
    bench.build("--allow", "TE922")
    program.write_text(f'#!/bin/sh\n\nexec {shutil.which("c++")} "$@"\n')
    built = bench.build()
    assert step(built, "configure")["facts"]["emptied"] == "the compiler"
    monkeypatch.delenv("CXXFLAGS")
    built = bench.build()
    assert "CXXFLAGS" in step(built, "configure")["facts"]["emptied"]


def test_what_will_not_compile_is_named_before_the_compiler(bench: Bench) -> None:
    bench.edit("setup.py", "import os", "import absent_module")
    steps = json.loads(bench.run().out)["data"]["steps"]
    (finding,) = [row for row in steps[-1]["findings"] if row["severity"] == "error"]
    assert (steps[-1]["name"], finding["code"]) == ("estimate", "TE954")
    assert "imports absent_module, which the target lacks" in finding["message"]
    bench.edit("setup.py", "import absent_module", "import os")
    (bench.checkout / "csrc/twice.cpp").unlink()
    steps = json.loads(bench.run().out)["data"]["steps"]
    assert "its sources lack csrc/twice.cpp" in steps[-1]["findings"][0]["message"]


def test_an_empty_submodule_ends_the_build_with_the_command_that_fetches_it(bench: Bench) -> None:
    (bench.checkout / "csrc/cutlass").mkdir()
    (bench.checkout / ".gitmodules").write_text('[submodule "cutlass"]\n\tpath = csrc/cutlass\n\turl = ../cutlass\n')
    for with_git in (False, True):
        if with_git:
            make_git(bench.checkout)
            words = ["git", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},csrc/cutlass"]
            subprocess.run(words, cwd=bench.checkout, check=True)
        first = json.loads(bench.run(verb="plan").out)["data"]["steps"][0]
        (finding,) = first["findings"]
        assert (finding["code"], finding["subject"]) == ("TE611", "csrc/cutlass")


def test_the_target_is_the_only_one_with_a_torch_and_options_of_pytorch_are_refused(bench: Bench) -> None:
    planned = call("plan", str(bench.checkout), "--json")
    assert json.loads(planned.out)["data"]["target"] == "tiny"
    for words, why in (
        (("--portable",), "--portable is not for small-ops, which is built by setup.py build_ext"),
        (("-D", "A=1"), "-D is not for small-ops"),
        (("--only", "x"), "--only is not for small-ops"),
    ):
        ended = bench.run(*words)
        assert (ended.status, why in " ".join(ended.err.split())) == (2, True), ended.err
    bench.project.edit('torch = "2.11"\n', "")
    for target in ((), ("tiny",)):
        ended = call("plan", *target, "--pytorch", str(bench.checkout))
        assert ended.status == 2
        assert "torch that small-ops could be compiled against" in " ".join(ended.err.split())


@each(
    "files, found",
    [
        ({"pyproject.toml": SCIKIT}, ("scikit-build-core", Severity.ERROR, 'scikit-build-core = "*"')),
        ({"pyproject.toml": OWN}, ("scikit-build-core", Severity.ERROR, 'scikit-build-core = ">=0.10"')),
        (
            {"pyproject.toml": SCIKIT.replace('"]', '", "pybind11>=2; python_version < \'3\'", "ninja"]')},
            ("scikit-build-core", Severity.ERROR, ""),
        ),
        ({"pyproject.toml": OTHER.replace("other", "here")}, ()),
        ({"pyproject.toml": SETUP.replace('"]', '", "psutil"]')}, ("psutil", Severity.WARNING, 'psutil = "*"')),
        ({"pyproject.toml": "[build-system]\nrequires = 1\n"}, ()),
        ({}, ()),
        ({"pyproject.toml": '[project]\nrequires-python = ">=3.13"\n'}, ("python", Severity.ERROR, ">=3.13")),
        ({"setup.py": "setup(\n    python_requires='<3.12',\n)\n"}, ("python", Severity.ERROR, "<3.12")),
        ({"setup.py": "setup(\n    python_requires='>=3.12.3',\n)\n"}, ()),
    ],
)
def test_what_the_build_of_a_package_needs_is_named_before_it_compiles(
    files: dict[str, str], found: tuple[str | Severity, ...], tmp_path: Path
) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    for name in ("setuptools-80.0", "here_build_core-1.0"):
        place = folder / "lib/python3.12/site-packages" / f"{name}.dist-info"
        place.mkdir(parents=True)
        (place / "METADATA").write_text("Metadata-Version: 2.1\nName: {}\nVersion: {}\n".format(*name.split("-")))
    for name, text in files.items():
        (folder / name).write_text(text)
    scikit = "scikit" in files.get("pyproject.toml", "")
    tool = folder / "bin/ninja"
    tool.parent.mkdir()
    tool.write_text("")
    tool.chmod(0o755)
    places = folder / "lib/python3.12/site-packages"
    toolchain: Any = SimpleNamespace(site_packages=places, python=folder / "bin/python")
    job: Any = SimpleNamespace(
        checkout=folder,
        extension=True,
        environ={"PATH": str(tool.parent)},
        found=SimpleNamespace(way=BuildWay.EXTENSION_SCIKIT if scikit else BuildWay.EXTENSION),
        package="ops",
        target=SimpleNamespace(name="tiny"),
        toolchain=toolchain,
    )
    findings = [*requirement_faults(job, toolchain)]
    assert [(one.subject, one.severity) for one in findings] == ([found[:2]] if found else []), files
    assert all(str(found[2]) in one.fix for one in findings)


def test_a_source_with_headers_of_torch_and_an_older_standard_is_named_before_the_compiler(tmp_path: Path) -> None:
    torch: Any = SimpleNamespace(label="2.14.1", least_cxx=Fact(20, "ATen/ATen.h"))
    for name, text in (("a.cpp", "#include <vector>"), ("b.cpp", "# include <torch/extension.h>"), ("c.cu", "")):
        (tmp_path / name).write_text(f"// one\n{text}\n")
    (tmp_path / "c.cu").write_text('#include "ATen/ATen.h"\n')

    def named(*flags: str, **environ: str) -> list[str]:
        commands = {
            tmp_path / name: f"c++ {flag} -c" for name, flag in zip(("a.cpp", "b.cpp", "c.cu"), flags, strict=True)
        }
        return [reason for reason, _ in old_standards(commands, environ, torch)]

    old, new, gnu = "-std=c++17", "-std=c++20", "-std=gnu++14"
    assert named(old, old, old) == [
        "b.cpp includes torch/extension.h and is compiled as C++17, torch 2.14.1 demands C++20"
    ]
    assert named(old, new, gnu) == ["c.cu includes ATen/ATen.h and is compiled as C++14, torch 2.14.1 demands C++20"]
    assert named(old, f"{old} {new}", "") == named(old, "", new) == []
    assert named(old, new, gnu, NVCC_APPEND_FLAGS=new) == []


def test_cmake_gets_the_standard_that_torch_demands_and_the_python_by_each_of_its_names(tmp_path: Path) -> None:
    installed = SimpleNamespace(least_cxx=Fact(20, "ATen/ATen.h"))
    job: Any = SimpleNamespace(
        toolchain=SimpleNamespace(site_packages=tmp_path, python=tmp_path / "python"),
        installed=installed,
        request=SimpleNamespace(passed={"CMAKE_CUDA_STANDARD": "23"}, debug=SimpleNamespace(build_type="Release")),
        found=SimpleNamespace(way=BuildWay.LIBTORCH),
        checkout=tmp_path,
        folder=tmp_path / "build",
    )
    (command,) = configure_commands(job)
    assert [word for word in command if "STANDARD" in word] == ["-DCMAKE_CXX_STANDARD=20", "-DCMAKE_CUDA_STANDARD=23"]
    assert sum(word.endswith(f"_EXECUTABLE={tmp_path / 'python'}") for word in command) == 3
    installed.least_cxx = Fact(17, "ATen/ATen.h")
    assert [word for word in configure_commands(job)[0] if "CXX_STANDARD" in word] == []


def test_the_commands_of_ninja_are_those_after_an_edit_of_the_files_of_cmake(tmp_path: Path) -> None:
    rules = "rule CXX\n  command = c++ -std=c++17 -c $in -o $out\nrule CMAKE\n  command = sh again\n  generator = 1\n"
    (tmp_path / "build.ninja").write_text(f"{rules}build a.cpp.o: CXX a.cpp\nbuild build.ninja: CMAKE list\n")
    (tmp_path / "again").write_text("sed -i s/17/20/ build.ninja\n")
    for name in ("a.cpp", "list"):
        (tmp_path / name).touch()
    old = time.time() - 60
    for name, seconds in (("list", old), ("build.ninja", old + 30)):
        os.utime(tmp_path / name, (seconds, seconds))
    commands = {tmp_path / "a.cpp": "c++ -std=c++17 -c a.cpp -o a.cpp.o"}
    assert compile_commands(tmp_path, os.environ) == commands
    (tmp_path / "list").touch()
    assert "-std=c++20" in compile_commands(tmp_path, os.environ)[tmp_path / "a.cpp"]
    (tmp_path / "build.ninja").write_text("no rule\n")
    assert compile_commands(tmp_path, os.environ) == {}
