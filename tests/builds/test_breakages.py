"""Breakages made on purpose: the steps before are whole, and the step and the code that stop the build are these."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tenv.builds.probe_step import _reason
from tests.builds.conftest import Workshop
from tests.support.projects import call

Break = Callable[[Workshop, pytest.MonkeyPatch], tuple[str, ...] | None]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, path
    path.write_text(text.replace(old, new, 1))


def program(workshop: Workshop, name: str, text: str) -> Path:
    """Write a script and return it."""
    path = workshop.project.folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def wrapped_compiler(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, when: str, then: str) -> None:
    """Put a C++ compiler in place that goes wrong for one source."""
    real = shutil.which("g++")
    script = program(workshop, "g++", f'case "$*" in *{when}*) {then};; esac\nexec {real} "$@"')
    monkeypatch.setenv("CXX", str(script))


def submodule_emptied(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    (workshop.checkout / "third_party/fmt/CMakeLists.txt").unlink()


def submodule_gone(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    shutil.rmtree(workshop.checkout / "third_party")


def setup_gone(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    (workshop.checkout / "setup.py").unlink()


def folder_of_another_checkout(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    folder = workshop.checkout / "build"
    folder.mkdir()
    (folder / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere/pytorch\n")


def folder_of_another_python(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    folder = workshop.checkout / "build"
    folder.mkdir()
    cache = f"CMAKE_HOME_DIRECTORY:INTERNAL={workshop.checkout}\nPython_EXECUTABLE:FILEPATH=/opt/python/bin/python3\n"
    (folder / "CMakeCache.txt").write_text(cache)


def folder_of_a_tool_that_is_gone(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    folder = workshop.checkout / "build"
    folder.mkdir()
    cache = f"CMAKE_HOME_DIRECTORY:INTERNAL={workshop.checkout}\nCMAKE_MAKE_PROGRAM:FILEPATH=/tmp/gone/bin/ninja\n"
    (folder / "CMakeCache.txt").write_text(cache)


def products_of_another_target(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    notes = workshop.checkout / ".tenv" / "builds"
    notes.mkdir(parents=True)
    (workshop.checkout / "build").mkdir()
    (notes / "build.configured.json").write_text(json.dumps({"target": "cuda130", "switches": {}}))


def python_refused(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "pyproject.toml", ">=3.10", ">=3.99")


def compiler_too_old(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "CMakeLists.txt", "set(CMAKE_CXX_STANDARD 17)", "# GCC-99.0 or newer is required")


def libc_too_old(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.project.manifest, '"2.17"', '"99.0"')


def cmake_of_the_machine_too_old(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "CMakeLists.txt", "VERSION 3.13...4.0", "VERSION 99.0")


def compiler_broken(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(program(workshop, "broken-g++", "echo 'cannot execute cc1plus' >&2; exit 1")))


def cmake_gone(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = workshop.project.folder / "without"
    folder.mkdir()
    for entry in Path(os.environ["PATH"]).iterdir():
        if entry.name != "cmake":
            (folder / entry.name).symlink_to(entry)
    monkeypatch.setenv("PATH", str(folder))


def linker_broken(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("g++")
    script = f'exec {real} "$@" -Wl,--no-such-option'
    monkeypatch.setenv("CXX", str(program(workshop, "badlink-g++", script)))


def cmake_refuses(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "CMakeLists.txt", "add_subdirectory(c10)", 'message(FATAL_ERROR "no way")')


def submodule_that_nobody_lists(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    (workshop.checkout / ".gitmodules").unlink()
    shutil.rmtree(workshop.checkout / "third_party")


def python_not_found(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    said = "Could NOT find Python3 (missing: Python3_INCLUDE_DIRS Development)"
    edit(
        workshop.checkout / "CMakeLists.txt",
        "execute_process(COMMAND",  # asks the Python
        f'message(FATAL_ERROR "{said}")\nexecute_process(COMMAND',
    )


def cmake_killed(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("cmake")
    program(workshop, "cmake", f'case "$*" in *CMAKE_INSTALL_PREFIX*) kill -9 $$;; esac\nexec {real} "$@"')
    monkeypatch.setenv("PATH", f"{workshop.project.folder / 'bin'}:{os.environ['PATH']}")


def cuda_turned_off(_: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_CUDA", "1")


def distributed_turned_off(_: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_DISTRIBUTED", "ON")


def mkl_turned_off(_: Workshop, __: pytest.MonkeyPatch) -> tuple[str, ...]:
    return ("-D", "USE_MKL=ON")


def disk_full(_: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.disk_usage
    free = {"build": 1 << 20}  # the disk of the build folder alone
    monkeypatch.setattr(shutil, "disk_usage", lambda path: real(path)._replace(free=free.get(Path(path).name, 1 << 40)))


def disk_too_small_for_debug(_: Workshop, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Three C++ files: 4.5 MB of a Release build, 36 MB with debug information."""
    real = shutil.disk_usage
    monkeypatch.setattr(shutil, "disk_usage", lambda path: real(path)._replace(free=12_000_000))
    return ("--debug",)


def build_file_truncated(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    assert call("plan", "tiny", "--pytorch", str(workshop.checkout), "--configure").status == 0
    file = workshop.checkout / "build" / "build.ninja"
    text = file.read_text()
    file.write_text(text[: text.rindex("\nbuild ") + 8])


def header_removed(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    (workshop.checkout / "c10/core/Scalar.h").unlink()


def first_library_wrong(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "c10/core/Scalar.cpp", "return a + b;", "return a + b")


def compiler_killed(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "g++: fatal error: Killed signal terminated program cc1plus"
    wrapped_compiler(workshop, monkeypatch, "Scalar.cpp", f"echo '{said}' >&2; exit 1")


def compiler_crashed(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "during GIMPLE pass: vect\\nBinaryOps.cpp:12: internal compiler error: Segmentation fault"
    wrapped_compiler(workshop, monkeypatch, "BinaryOps.cpp", f"printf '{said}\\n' >&2; exit 1")


def module_wrong(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "caffe2/Module.cpp", "return out;", "return;")


def library_not_found(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "caffe2/CMakeLists.txt", "PRIVATE c10", "PRIVATE cusparseLt_nowhere c10")


def no_space(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "ccX.s: Fatal error: Module.cpp.o: No space left on device"
    wrapped_compiler(workshop, monkeypatch, "Module.cpp", f"echo '{said}' >&2; exit 1")


def python_header_missing(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Module.cpp:1:10: fatal error: Python.h: No such file or directory"
    wrapped_compiler(workshop, monkeypatch, "Module.cpp", f"echo '{said}' >&2; exit 1")


def backend_missing(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    (workshop.checkout / "backend.py").unlink()


def module_that_is_not_there(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(
        workshop.checkout / "torch/__init__.py",
        "from torch import _C",
        "import nowhere_to_be_found\nfrom torch import _C",
    )


def symbol_undefined(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "caffe2/CMakeLists.txt", "${PROJECT_SOURCE_DIR}/aten/src/ATen/native/BinaryOps.cpp ", "")


def wrong_product(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    edit(workshop.checkout / "aten/src/ATen/native/BinaryOps.cpp", "(n * n, 0.0)", "(n * n, 1.0)")


def another_torch(workshop: Workshop, _: pytest.MonkeyPatch) -> None:
    other = workshop.project.folder / "other"
    shutil.copytree(workshop.checkout / "torch", other / "torch")
    (other / "torch" / "_C.py").write_text("def product(a, b, n): return [2.0] * (n * n)\n")
    assert call("create", "tiny", "--prefix", str(workshop.prefix)).status == 0
    (site,) = workshop.prefix.glob("lib/python3*/site-packages")
    (site / "aaa.pth").write_text(f"{other}\n")


QUICK: dict[Break, tuple[str, set[str]]] = {
    submodule_emptied: ("checkout", {"TE611"}),
    submodule_gone: ("checkout", {"TE611"}),
    setup_gone: ("checkout", {"TE905"}),
    folder_of_another_checkout: ("checkout", {"TE612"}),
    folder_of_another_python: ("checkout", {"TE612"}),
    folder_of_a_tool_that_is_gone: ("checkout", {"TE612"}),
    products_of_another_target: ("checkout", {"TE904"}),
    python_refused: ("target", {"TE602"}),
    compiler_too_old: ("target", {"TE403"}),
    libc_too_old: ("target", {"TE502"}),
}

SLOW: dict[Break, tuple[str, set[str]]] = {
    compiler_broken: ("probe", {"TE922"}),
    cmake_gone: ("probe", {"TE922"}),
    linker_broken: ("probe", {"TE922"}),
    cmake_refuses: ("configure", {"TE932"}),
    submodule_that_nobody_lists: ("configure", {"TE801"}),
    python_not_found: ("configure", {"TE807"}),
    cmake_of_the_machine_too_old: ("configure", {"TE603"}),
    cmake_killed: ("configure", {"TE932"}),
    cuda_turned_off: ("summary", {"TE941"}),
    distributed_turned_off: ("summary", {"TE941"}),
    mkl_turned_off: ("summary", {"TE941"}),
    disk_full: ("estimate", {"TE951"}),
    disk_too_small_for_debug: ("estimate", {"TE951"}),
    build_file_truncated: ("estimate", {"TE953"}),
    header_removed: ("canary", {"TE801"}),
    first_library_wrong: ("canary", {"TE961"}),
    compiler_killed: ("canary", {"TE701"}),
    compiler_crashed: ("canary", {"TE814"}),
    module_wrong: ("build", {"TE961"}),
    library_not_found: ("build", {"TE817"}),
    no_space: ("build", {"TE702"}),
    python_header_missing: ("build", {"TE807"}),
    backend_missing: ("build", {"TE962"}),
    module_that_is_not_there: ("import", {"TE971"}),
    symbol_undefined: ("import", {"TE806"}),
    wrong_product: ("import", {"TE973"}),
    another_torch: ("import", {"TE972"}),
}


def check(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, broken: Break, expected: tuple[str, set[str]]) -> None:
    words = broken(workshop, monkeypatch) or ()
    step, codes = workshop.fails(*words)
    assert (step, set(codes)) == expected


@pytest.mark.parametrize("broken", QUICK, ids=lambda broken: broken.__name__)
def test_what_is_broken_is_named(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, broken: Break) -> None:
    check(workshop, monkeypatch, broken, QUICK[broken])


def test_a_build_folder_that_was_removed_is_of_no_target(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    products_of_another_target(workshop, monkeypatch)
    (workshop.checkout / "build").rmdir()
    python_refused(workshop, monkeypatch)
    assert workshop.fails() == ("target", ("TE602",))


@pytest.mark.long
@pytest.mark.parametrize("broken", SLOW, ids=lambda broken: broken.__name__)
def test_what_breaks_later_is_named(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, broken: Break) -> None:
    check(workshop, monkeypatch, broken, SLOW[broken])


@pytest.mark.parametrize(
    ("broken", "status", "code"),
    [
        (lambda w: w.prefix.mkdir(parents=True) or (w.prefix / "mine.txt").write_text("x"), 8, "foreign-folder"),
        (lambda w: w.project.lock.write_text("not: [a lock"), 7, "lock-corrupt"),
        (lambda w: edit(w.project.manifest, "alpha", "alhpa"), 5, "no-solution"),
    ],
    ids=["foreign folder", "corrupt lock", "no solution"],
)
def test_a_failure_of_create_has_its_own_status(
    workshop: Workshop, broken: Callable[[Workshop], object], status: int, code: str
) -> None:
    broken(workshop)
    ended = workshop.run()
    found = json.loads(ended.out)
    assert (ended.status, found["error"]["code"]) == (status, code), ended.err
    assert [row["name"] for row in found["data"]["steps"]] == ["checkout", "target", "create"]
    assert [row["ok"] for row in found["data"]["steps"]] == [True, True, False]


@pytest.mark.long
def test_what_is_allowed_does_not_end_the_build(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_CUDA", "1")
    data = workshop.build("--allow", "USE_CUDA", "--only", "c10")
    assert [row["ok"] for row in data["steps"]] == [True] * 9


@pytest.mark.long
def test_a_signal_that_ends_the_import_is_named(workshop: Workshop) -> None:
    killed = "import os\nprint('warning: no such package', flush=True)\nos.kill(os.getpid(), 9)\nfrom torch import _C"
    edit(workshop.checkout / "torch/__init__.py", "from torch import _C", killed)
    (finding,) = json.loads(workshop.run().out)["data"]["steps"][-1]["findings"]
    assert finding["code"] == "TE971"
    assert finding["message"] == "does not import: Python ended by signal 9 (Killed)"


def test_a_probe_of_cmake_shows_its_message() -> None:
    lines = ["-- found", "CMake Error at Find.cmake:230 (message):", "  Could NOT find CUDAToolkit (found", "  11.7)"]
    assert (
        _reason([*lines, "Call Stack (most recent call first):", "failed"]) == "Could NOT find CUDAToolkit (found 11.7)"
    )
    assert _reason(["x.c:1: error: no", "failed with status 1"]) == "x.c:1: error: no"
    assert _reason(["$ probe", "failed with status 2"]) == "failed with status 2"
