"""Which short programs fit a toolchain, and how they are run."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.toolchain.discover import Toolchain
from tenv.toolchain.smoke_tests import Outcome, Probe, plan, run, toolkit_probe


@pytest.fixture
def bare(tmp_path: Path) -> Toolchain:
    """A prefix with a Python and nothing else."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\n")
    return Toolchain(tmp_path, python, tmp_path / "site-packages")


CXX: Mapping[str, str] = {"CXX": "ccache my-g++ -m64", "PATH": ""}


def planned(toolchain: Toolchain, environ: Mapping[str, str] = CXX, gpu: bool = False) -> dict[str, Probe]:
    return {probe.name: probe for probe in plan(toolchain, environ, ("yaml",), gpu)}


def test_what_every_toolchain_is_asked(bare: Toolchain) -> None:
    found = planned(bare)
    assert list(found) == ["python", "c++", "python-extension", "openmp"]
    assert found["python"].commands == ((str(bare.python), "imports.py", "yaml"),)
    assert found["c++"].commands[0][:3] == ("ccache", "my-g++", "-m64")


def test_a_prefix_without_a_python_is_not_asked_for_one(bare: Toolchain) -> None:
    bare.python.unlink()
    assert list(planned(bare)) == ["c++", "openmp"]


def test_the_compiler_is_looked_for_on_the_path(bare: Toolchain, tmp_path: Path) -> None:
    compiler = tmp_path / "bin" / "clang++"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    found = planned(bare, {"PATH": str(compiler.parent)})
    assert found["c++"].commands[0][0] == str(compiler)
    assert planned(bare, {"PATH": ""})["c++"].lacks


def test_nvcc_s_program_is_run_only_where_a_gpu_is(bare: Toolchain) -> None:
    toolchain = replace(bare, nvcc=Path("/t/bin/nvcc"))
    assert planned(toolchain)["nvcc"].commands == (("/t/bin/nvcc", "-o", "probe", "probe.cu"),)
    assert planned(toolchain, gpu=True)["nvcc"].commands[1:] == (("./probe",),)


def test_cmake_is_asked_for_the_parts_of_a_toolkit(bare: Toolchain) -> None:
    toolchain = replace(bare, nvcc=Path("/t/bin/nvcc"), cmake=Path("/t/cmake"))
    (probe,) = (one for one in plan(toolchain, CXX, (), gpu=False, parts=("cublas", "cuFile")) if one.name == "toolkit")
    assert probe.commands == (("/t/cmake", "-S", ".", "-B", "build"),)
    assert "foreach(part IN ITEMS cublas cuFile)" in probe.files["CMakeLists.txt"]
    assert toolkit_probe(toolchain, ()) is None
    assert toolkit_probe(replace(toolchain, cmake=None), ("cublas",)) is None
    assert toolkit_probe(replace(toolchain, nvcc=None), ("cublas",)) is None


def test_cmake_builds_with_the_environment_s_ninja_where_it_has_one(bare: Toolchain) -> None:
    toolchain = replace(bare, cmake=Path("/t/cmake"))
    assert planned(toolchain)["cmake"].commands[0] == ("/t/cmake", "-S", ".", "-B", "build")
    both = planned(replace(toolchain, ninja=Path("/t/ninja")))["cmake-ninja"]
    assert both.commands[0][5:] == ("-G", "Ninja", "-DCMAKE_MAKE_PROGRAM=/t/ninja")


def test_mkl_is_linked_in_the_form_that_it_has(bare: Toolchain) -> None:
    toolchain = replace(bare, mkl=bare.prefix)
    shared = planned(toolchain)["mkl"].commands[0]
    assert "-lmkl_core" in shared
    assert f"-Wl,-rpath,{bare.prefix}/lib" in shared
    (bare.prefix / "lib").mkdir()
    (bare.prefix / "lib" / "libmkl_core.a").write_text("")
    assert f"{bare.prefix}/lib/libmkl_core.a" in planned(toolchain)["mkl"].commands[0]


def test_a_probe_runs_in_a_folder_of_its_own(tmp_path: Path) -> None:
    probe = Probe("p", {"a.sh": "#!/bin/sh\ncat b\n", "b": "hello\n"}, (("chmod", "+x", "a.sh"), ("sh", "./a.sh")))
    outcome = run(probe, os.environ)
    assert (outcome.name, outcome.ok) == ("p", True)
    assert outcome.log == "$ chmod +x a.sh\n$ sh ./a.sh\nhello"
    assert outcome.seconds > 0


def test_it_ends_with_the_first_command_that_fails() -> None:
    outcome = run(Probe("p", {}, (("sh", "-c", "echo no >&2; exit 3"), ("echo", "never"))), os.environ)
    assert (outcome.ok, outcome.log) == (False, "$ sh -c 'echo no >&2; exit 3'\nno\nfailed with status 3")


def test_a_command_that_hangs_is_ended() -> None:
    outcome = run(Probe("p", {}, (("sleep", "60"),), seconds=0.2), os.environ)
    assert (outcome.ok, outcome.log) == (False, "$ sleep 60\nsleep gave no answer within 0.2 s")
    assert (outcome.late, outcome.seconds < 30) == (True, True)


def test_the_imports_of_many_modules_have_the_time_of_each(bare: Toolchain) -> None:
    few, many = (next(plan(bare, CXX, [f"m{n}" for n in range(count)], gpu=False)) for count in (1, 137))
    assert (few.name, many.name) == ("python", "python")
    assert many.seconds > 10 * few.seconds > 1800


def test_a_program_that_is_not_there_is_told() -> None:
    outcome = run(Probe("p", {}, (("/nowhere/cc",),)), os.environ)
    assert (outcome.ok, outcome.log) == (
        False,
        "$ /nowhere/cc\n/nowhere/cc can't be started: No such file or directory",
    )


def test_what_lacks_something_fails_without_being_run() -> None:
    outcome = run(Probe("p", lacks="no compiler"), os.environ)
    assert (outcome.ok, outcome.log) == (False, "no compiler")


def test_an_import_that_lacks_what_nobody_requires_is_a_note(tmp_path: Path) -> None:
    files = {
        "inline.py": "import nowhere.part\n",
        "wrapped.py": "try:\n    import nowhere\nexcept ImportError as e:\n    raise ImportError('wanted') from e\n",
        "asked.py": "import needed_by_asked\n",
        "part.py": "import gone\n",
        "typo.py": "import json.nothing\n",
        "wrong.py": "1 / 0\n",
    }
    for name, text in {**files, "gone_file.py": ""}.items():
        (tmp_path / name).write_text(text)
    requires = {
        "asked": "needed-by.asked>=1; python_version > '3'",
        "inline": "nowhere; extra=='all'",
        "wrapped": "[odd]",
    }
    for name in (*(file.removesuffix(".py") for file in files), "owner"):
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        lines = [f"Requires-Dist: {requires[name]}"] if name in requires else []
        (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", f"Name: {name}", "Version: 1", *lines, ""]))
        (info / "RECORD").write_text("gone/__init__.py,,\n" if name == "owner" else f"{name}.py,,\n")
    toolchain = Toolchain(tmp_path, Path(sys.executable), tmp_path)
    names = [file.removesuffix(".py") for file in files]

    def tried(*modules: str) -> Outcome:
        (probe, *_) = plan(toolchain, {"PATH": ""}, modules, gpu=False)
        return run(probe, {"PYTHONPATH": str(tmp_path)})

    fine = tried("inline", "wrapped")
    assert fine.ok
    assert [note.partition(",")[0] for note in fine.notes] == [
        "inline is not tried: it imports nowhere",
        "wrapped is not tried: it imports nowhere",
    ]
    bad = tried(*names)
    assert not bad.ok
    assert [line.partition(":")[0] for line in bad.log.splitlines() if "Error" in line] == names[2:]
