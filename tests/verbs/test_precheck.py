"""What `tenv create` asks the rules before it does anything."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tenv.sources.wheels.sdist_builds import built_folder
from tests.support.check_hosts import report, write
from tests.support.fakes import make_wheel
from tests.support.found_by import led_json
from tests.support.projects import Project, call
from tests.support.torch_extension import Extension, House

TWO = [
    {"path": "/usr/local/cuda-12.4", "found_by": led_json("CUDA_HOME"), "version": "12.4"},
    {"path": "/opt/cuda", "found_by": led_json("nvcc on PATH"), "version": "13.0"},
]


@pytest.fixture
def cuda(locked: Project) -> Project:
    """The project, its target one with CUDA 13.0; its lock is that of the target without."""
    locked.edit('glibc = "2.17"', 'glibc = "2.17"\ncuda = "13.0"')
    locked.edit('python      = "', 'pytorch     = ">=2.9"\npython      = "')
    return locked


@pytest.fixture(autouse=True)
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write the report of a machine and return the words that name it."""

    def host(driver: str = "580.65.06", gpu: str = "NVIDIA H100", **more: Any) -> tuple[str, str]:
        return "--host-report", write(tmp_path / "host.json", report(driver, gpu, "9.0", **more))

    return host


def test_an_error_about_building_stops_it_before_anything_is_done(cuda: Project, on: Any) -> None:
    text = cuda.lock.read_bytes()
    ended = call("create", "tiny", *on(compilers=[]))
    assert ended.status == 4
    lines = ended.err.splitlines()
    assert lines[1].startswith("error[TE401]: C++ compiler: neither g++ nor clang++ was found")
    assert lines[2:5] == [
        "  evidence: searched: test",
        "  source: nvcc calls a host compiler for each file (CUDA Compiler Driver NVCC, section 2.1)",
        "  fix: apt install g++",
    ]
    assert lines[6:] == [
        "error[unfit-host]: PyTorch can't be built with `tiny` on this machine (TE401)",
        "hint: `tenv explain TE401` has the details; `tenv create tiny --no-check` creates the environment anyway",
    ]
    assert not cuda.prefix.exists()
    assert cuda.lock.read_bytes() == text


@pytest.mark.long
def test_a_machine_without_a_compiler_takes_wheels_that_another_one_compiled(
    project: Project, extension: Extension, on: Any
) -> None:
    project.edit('glibc = "2.17"', 'glibc = "2.17"\ncuda = "13.0"')
    project.edit("platforms", 'pytorch = ">=2.9"\nplatforms')
    make_wheel(project.index.folder, "torch", "2.9.1+cu130")
    project.edit('torch = "2.1"', 'torch = "==2.9.1+cu130"')
    project.manifest.write_text(f'{project.manifest.read_text()}\n[activation.env]\nTORCH_CUDA_ARCH_LIST = "9.0"\n')
    house = House(project)
    house.lock()
    house.create()
    without = on(compilers=[])
    words = ("create", "tiny", "--locked", *without)
    assert call(*words, "--prefix", str(project.folder / "before")).status == 4
    house.lock()
    shutil.rmtree(built_folder())
    said = project.ok(*words).err
    assert "warning[TE401]" in said
    assert "vision 1.0: taken from" in said
    house.folder.rename(house.folder.with_name("away"))
    shutil.rmtree(built_folder())
    ended = call(*words, "--prefix", str(project.folder / "after"))
    assert ended.status == 4
    assert "has no wheel of it: it is compiled here" in " ".join(ended.err.split())
    assert "error[unfit-host]: PyTorch can't be built with `tiny` on this machine (TE401)" in ended.err
    assert extension.builds == ["2.9.1+cu130"]


def test_the_findings_are_in_the_envelope_of_the_error(cuda: Project, on: Any) -> None:
    found = json.loads(call("create", "tiny", "--json", *on(compilers=[])).out)
    assert (found["ok"], found["error"]["code"]) == (False, "unfit-host")
    assert [(row["code"], row["severity"]) for row in found["findings"]] == [("TE401", "error")]


def test_no_check_overrides_and_asks_nothing(locked: Project, on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.checks.before_create.look_around", pytest.fail)
    assert locked.ok("create", "tiny", "--no-check", "--json").data["state"] == "ready"


def test_warnings_are_shown_and_do_not_stop_it(cuda: Project, on: Any) -> None:
    ended = cuda.ok("create", "tiny", "--json", *on(toolkits=TWO))
    assert [(row["code"], row["severity"]) for row in json.loads(ended.out)["findings"]] == [("TE304", "warning")]
    assert "\nwarning[TE304]: CUDA_HOME and PATH: name different CUDA toolkits" in ended.err
    again = cuda.ok("create", "tiny")
    assert "nothing to do" in again.err
    assert "TE304" not in again.err


def test_what_can_be_built_but_not_run_here_is_a_warning(cuda: Project, on: Any) -> None:
    ended = cuda.ok("create", "tiny", *on("535.104.12", "GTX 1660 Ti"))
    assert "warning[TE103]: CUDA 13.0: the driver is too old: running needs" in ended.err


def test_no_driver_at_all_is_not_worth_a_word(cuda: Project, on: Any) -> None:
    assert "TE1" not in cuda.ok("create", "tiny", *on("", "")).err


def test_the_pytorch_is_asked_about_too(cuda: Project, on: Any) -> None:
    ended = call("create", "tiny", "--pytorch", "2.8", *on())
    assert ended.status == 4
    assert "error[TE610]: CUDA 13.0: fails with PyTorch 2.8: " in ended.err
    cuda.edit('pytorch     = ">=2.9"', 'pytorch     = ">=2.10"')
    ended = cuda.ok("create", "tiny", "--pytorch", "2.9", *on())
    assert "warning[TE604]: PyTorch 2.9: is not a revision that `tiny` supports: >=2.10" in ended.err
    assert call("create", "tiny", "--pytorch", "nothing").status == 2


def test_what_is_wrong_with_a_checkout_is_a_warning(cuda: Project, on: Any, tmp_path: Path) -> None:
    tree = tmp_path / "pytorch"
    tree.mkdir()
    (tree / "version.txt").write_text("2.9.0\n")
    (tree / "CMakeLists.txt").write_text("project(Torch CXX C)\n")
    (tree / ".gitmodules").write_text('[submodule "fmt"]\n    path = third_party/fmt\n')
    words = ("tiny", "--pytorch", str(tree), *on())
    assert "error[TE611]" in call("check", *words, "--build-only").out
    assert call("check", *words, "--build-only").status == 1
    assert f"warning[TE611]: {tree}: lacks third_party/fmt" in cuda.ok("create", *words).err


def test_with_nothing_to_do_nothing_is_asked(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.checks.before_create.look_around", pytest.fail)
    assert "nothing to do" in created.ok("create", "tiny").err
