"""`tenv check --torch`: whether extensions for an installed torch compile on a machine, and whether they run there."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.check_hosts import report, write
from tests.support.projects import Ended, call
from tests.support.torches import make_base, make_torch, make_venv, torch_files

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("CXXFLAGS", "NVCC_APPEND_FLAGS", "TORCH_CUDA_ARCH_LIST"):
        monkeypatch.delenv(name, raising=False)


def toolkit(version: str, way: str = "CUDA_HOME", kind: str = "cuda-variable") -> dict[str, Any]:
    found = [{"kind": kind, "text": way}]
    return {"path": f"/opt/cuda-{version}", "found_by": found, "version": version, "components": {}, "problems": []}


def check(tmp_path: Path, torch: str, *toolkits: dict[str, Any], **more: Any) -> Ended:
    """Judge a machine with a good driver, an H100 and g++ 11 for a torch."""
    values = {"driver": "580.65.06", "gpu": "NVIDIA H100 PCIe", "capability": "9.0", **more}
    host = write(tmp_path / "host.json", report(**values, toolkits=list(toolkits)))
    return call("check", "--torch", torch, "--host-report", host, "--json")


def found(ended: Ended) -> list[tuple[str, str]]:
    return [(row["severity"], row["code"]) for row in json.loads(ended.out)["findings"]]


def test_a_machine_that_fits(tmp_path: Path) -> None:
    ended = check(tmp_path, "2.9+cu128", toolkit("12.8"))
    assert (ended.status, ended.data["build"], ended.data["run"], found(ended)) == (0, True, True, [])
    assert ended.data["targets"][0] == "cuda128"
    assert [(row["by"], row["version"]) for row in ended.data["toolkits"]] == [("torch", "12.8"), ("CMake", "12.8")]


@pytest.mark.parametrize(
    ("version", "severity", "status"), [("13.0", "error", 1), ("12.4", "warning", 0), ("11.8", "error", 1)]
)
def test_another_major_is_an_error_and_another_minor_a_warning(
    tmp_path: Path, version: str, severity: str, status: int
) -> None:
    ended = check(tmp_path, "2.9+cu128", toolkit(version))
    assert (severity, "TE816") in found(ended)
    assert ended.status == status
    fix = next(row["fix"] for row in json.loads(ended.out)["findings"] if row["code"] == "TE816")
    assert "tenv create cuda128" in fix


def test_the_toolkit_of_an_environment_is_made_beside_it(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "own", make_base(tmp_path / "base"))
    make_torch(site)
    rows = json.loads(check(tmp_path, str(tmp_path / "own"), toolkit("13.0")).out)["findings"]
    assert f"tenv create auto --for {tmp_path}/own" in next(row["fix"] for row in rows if row["code"] == "TE816")


def test_an_installed_toolkit_that_fits_is_named_before_a_target(tmp_path: Path) -> None:
    ended = check(tmp_path, "2.9+cu128", toolkit("13.0"), toolkit("12.8", "/opt/cuda-12.8", "folder"))
    fix = next(row["fix"] for row in json.loads(ended.out)["findings"] if row["code"] == "TE816")
    assert fix.startswith("export CUDA_HOME=/opt/cuda-12.8 ")


def test_no_toolkit_is_an_error_for_a_torch_with_cuda_alone(tmp_path: Path) -> None:
    assert ("error", "TE808") in found(check(tmp_path, "2.9+cu128"))
    cpu = check(tmp_path, "2.9+cpu")
    assert (cpu.status, found(cpu)) == (0, [])


def test_the_standard_that_the_headers_demand(tmp_path: Path) -> None:
    new = check(tmp_path, "2.15", toolkit("13.2"))
    assert new.status == 0
    assert ("note", "TE606") in found(new)
    gcc = {"path": "/usr/bin/g++", "default": True, "found_by": [{"kind": "path", "text": "g++ on PATH"}]}
    old = check(tmp_path, "2.15", toolkit("13.2"), compilers=[{"kind": "g++", "version": "9.4.0", **gcc}])
    assert ("error", "TE403") in found(old)


def test_a_host_compiler_that_nvcc_refuses(tmp_path: Path) -> None:
    gcc = {"path": "/usr/bin/g++", "default": True, "found_by": [{"kind": "path", "text": "g++ on PATH"}]}
    ended = check(tmp_path, "2.9+cu128", toolkit("12.8"), compilers=[{"kind": "g++", "version": "15.2.0", **gcc}])
    assert ("error", "TE402") in found(ended)


def test_gpu_code_glibc_and_driver_decide_about_running(tmp_path: Path) -> None:
    ended = check(tmp_path, "2.13", toolkit("13.0"), gpu="Tesla V100-SXM2-32GB", capability="7.0")
    assert {("error", "TE206"), ("error", "TE201")} <= set(found(ended))
    assert ("error", "TE502") in found(check(tmp_path, "2.9", toolkit("12.8"), libc="2.27"))
    old = {"driver": "535.104.12", "gpu": "NVIDIA GeForce GTX 1660 Ti", "capability": "7.5"}
    ended = check(tmp_path, "2.13", toolkit("13.0"), **old)
    assert (ended.data["build"], ended.data["run"]) == (True, False)
    assert any(code.startswith("TE10") for _, code in found(ended))


def test_a_torch_in_a_venv_brings_its_python_and_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_torch(make_venv(tmp_path / ".venv", make_base(tmp_path / "base", header=False)))
    ended = check(tmp_path, str(tmp_path / ".venv"), toolkit("12.8"))
    assert found(ended) == [("error", "TE613")]
    assert ended.data["torch"]["version"]["value"] == "2.9.1+cu128"
    (tmp_path / "base/include/python3.12").mkdir(parents=True)
    (tmp_path / "base/include/python3.12/Python.h").touch()
    monkeypatch.setenv("CXXFLAGS", "-O2 -D_GLIBCXX_USE_CXX11_ABI=0")
    assert found(check(tmp_path, str(tmp_path / ".venv"), toolkit("12.8"))) == [("error", "TE607")]


def test_a_torch_for_another_accelerator_is_unknown(tmp_path: Path) -> None:
    make_torch(tmp_path / "site", torch_files("2.9.1+rocm6.4", cuda=None, hip="6.4.43482"))
    ended = check(tmp_path, str(tmp_path / "site"))
    assert (ended.status, ended.data["build"], found(ended)) == (1, None, [("warning", "TE816")])


def test_what_excludes_a_torch_is_a_usage_error(tmp_path: Path) -> None:
    for words in (("--pytorch", "2.9"), ("cuda128",), ("--target-from-report",)):
        ended = call("check", "--torch", "2.9", *words)
        assert ended.status == 2
        assert "exclude each other" in ended.err
    for torch in (str(tmp_path / "nowhere"), "1.0", str(tmp_path)):
        assert call("check", "--torch", torch).status == 2


def test_a_target_names_the_torch_of_its_environment(tmp_path: Path) -> None:
    call("init", "mine", "--torch", "2.9")
    assert call("check", "--torch", "mine").status == 2
    make_torch(make_venv(tmp_path / "here" / ".tenv" / "envs" / "mine", make_base(tmp_path / "base")))
    ended = check(tmp_path, "mine", toolkit("12.8"))
    assert ended.data["torch"]["version"]["origin"].startswith(str(tmp_path / "here" / ".tenv" / "envs" / "mine"))


PASTED = """\
PyTorch version: {}
Is debug build: False
CUDA used to build PyTorch: 12.8
OS: Ubuntu 24.04.3 LTS (x86_64)
GCC version: (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0
Libc version: glibc-2.39
Is CUDA available: True
CUDA runtime version: {}
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090
Nvidia driver version: 580.65.06
"""


@pytest.mark.parametrize(("version", "nvcc", "status"), [("2.9.1", "13.0.48", 1), ("2.9.1+cu128", "12.8.93", 0)])
def test_a_pasted_report_knows_its_torch(tmp_path: Path, version: str, nvcc: str, status: int) -> None:
    (tmp_path / "paste.txt").write_text(PASTED.format(version, nvcc))
    ended = call("check", "--torch", "report", "--host-report", str(tmp_path / "paste.txt"), "--json")
    assert ended.data["torch"]["version"]["value"] == "2.9.1+cu128"
    assert (ended.status, [code for code in found(ended) if code[0] == "error"]) == (
        status,
        [("error", "TE816")] if status else [],
    )


def test_a_torch_outside_the_table_is_judged_by_its_cuda(tmp_path: Path) -> None:
    """Old releases, nightlies and builds of one's own: what the table has not is unknown, and nvcc is judged."""
    for torch in ("2.1.2+cu121", "2.16.0.dev20261101+cu132"):
        ended = check(tmp_path, torch, toolkit("11.8"))
        assert ("error", "TE816") in found(ended), torch
        assert ended.data["torch"]["version"]["value"] == torch
    assert found(check(tmp_path, "2.1.2+cu121", toolkit("12.1"))) == []
    paste = PASTED.format("2.4.0a0+07cecf4168.nv24.05", "13.0.48")
    (tmp_path / "paste.txt").write_text(paste)
    words = ("check", "--torch", "report", "--host-report", str(tmp_path / "paste.txt"), "--json")
    ended = call(*words)
    assert (ended.data["torch"]["cuda"]["value"], ("error", "TE816") in found(ended)) == ("12.8", True)
    said = call("check", "--torch", "2.1.2")
    assert said.status == 2
    assert "it names no CUDA" in said.err


def test_a_report_without_a_torch_is_a_usage_error(tmp_path: Path) -> None:
    ended = check(tmp_path, "report")
    assert ended.status == 2
    assert "has no torch" in ended.err
