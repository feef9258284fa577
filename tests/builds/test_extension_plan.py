"""Why a package can't be compiled against a torch, and the switch that raises its C++ standard."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenv.builds.extension_plan import Asked, is_record, refusals, with_standard
from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tenv.host.installed_torch import InstalledTorch
from tenv.host.interface import Fact
from tenv.host.torch_files import TorchPlace

FACTS = load_facts()
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


@pytest.mark.parametrize(
    ("found", "asked", "package", "why", "hint"),
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
        ({"error": "ModuleNotFoundError: No module named 'psutil.x'"}, ASKED, "", "imports psutil", '`psutil = "*"`'),
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


@pytest.mark.parametrize(
    ("found", "asked"),
    [
        (record(), ASKED),
        (record(nvcc=("-std=c++17", "-std=c++20")), ASKED),  # the last one counts
        (record(nvcc=("-std=c++17",)), replace(ASKED, cxx=20)),
        ({}, ASKED),
    ],
)
def test_a_build_that_can_end_well_is_not_refused(found: dict[str, Any], asked: Asked) -> None:
    assert [*refusals(found, asked, FACTS.torch_packages.find("gsplat"), TORCH, FACTS.cuda_gpu_arch)] == []


def test_only_the_output_of_the_recorder_is_a_record() -> None:
    sound: tuple[dict[str, Any], ...] = (record(), {"extensions": []}, {"error": "it does not call setup"})
    for good in sound:
        assert is_record(good), good
    row = record()["extensions"][0]
    wrong = [{**row, "sources": "a.cu"}, {**row, "flags": {"nvcc": None}}, {**row, "missing": [1]}, [], "a"]
    for bad in (5, [], {}, {"error": 1}, {"extensions": None}, *({"extensions": [one]} for one in wrong)):
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
