"""The verdicts for each GPU of a host: those that nvcc compiles for and those that it does not."""

from pathlib import Path
from typing import Any

import pytest

from tenv.checks.judge import about_gpus, per_gpu, settled
from tenv.checks.rules.catalogue import DRIVER_RULES
from tenv.checks.rules.gpu import listed_archs
from tenv.checks.rules.interface import Scope, decide
from tenv.core.versions import Version
from tenv.host.report import Gpu, ModuleKind
from tests.checks.rules.cases import case, found, gpu
from tests.support.check_hosts import make_project, report, write
from tests.support.each import each
from tests.support.projects import call

V100, T4, A100 = gpu("Tesla V100", "7.0"), gpu("Tesla T4", "7.5"), gpu("NVIDIA A100-SXM4-80GB", "8.0")
A6000, RTX4090, RTX5090 = gpu("RTX A6000", "8.6"), gpu("RTX 4090", "8.9"), gpu("RTX 5090", "12.0")
K80, ODD = gpu("Tesla K80", "3.7"), gpu("Some GPU", None)


@each(
    "cuda, gpus, archs, told",
    [
        ("13.0", (A100,), "", [(1, True, True)]),
        ("13.0", (A100, A100), "", [(2, True, True)]),
        ("13.0", (V100, A100), "", [(1, False, False), (1, True, True)]),
        ("13.0", (K80, V100), "", [(1, False, False), (1, False, False)]),
        ("12.1", (RTX5090, RTX4090, RTX4090), "", [(1, False, False), (2, True, True)]),
        ("12.1", (RTX5090, RTX4090), "8.9", [(1, True, False), (1, True, True)]),
        ("12.1", (RTX5090, RTX4090), "8.9+PTX", [(1, True, True), (1, True, True)]),
        ("11.7", (RTX4090,), "", [(1, False, True)]),
        ("12.1", (RTX5090,), "12.0", [(1, False, False)]),
        ("11.7", (RTX4090, A6000), "", [(1, True, True), (1, True, True)]),  # code for 8.6 runs on 8.9
        ("11.7", (RTX4090, T4), "", [(1, False, False), (1, True, True)]),
        ("12.1", (ODD, A100), "", [(1, None, None), (1, True, True)]),
        ("13.0", (), "", []),
    ],
)
def test_each_gpu_is_judged(
    cuda: str, gpus: tuple[Gpu, ...], archs: str, told: list[tuple[int, bool | None, bool | None]]
) -> None:
    asked = case(cuda, gpus=gpus, arch_list=archs)
    every = [(rule.scope, finding) for rule in DRIVER_RULES for finding in rule(asked)]
    verdicts = per_gpu(about_gpus(asked), every, [])
    assert [(one.count, one.build, one.run) for one in verdicts] == told
    if len(told) == 1:
        assert told[0][1:] == (decide(Scope.BUILD, every), decide(Scope.RUN, every))


@each(
    "cuda, gpus, archs, listed",
    [
        ("13.0", (V100, A100, T4), "", "7.5 8.0"),
        ("13.0", (A100, T4), "", ""),
        ("13.0", (V100, K80), "", ""),
        ("13.0", (V100, A100), "8.0", ""),
        ("13.0", (V100, A100), "Auto", "8.0"),
        ("11.7", (RTX4090, A6000), "", "8.6"),
        ("12.1", (ODD, RTX5090, A100), "", "8.0"),
        (None, (V100, A100), "", ""),
    ],
)
def test_activation_lists_the_gpus_that_nvcc_compiles_for(
    cuda: str | None, gpus: tuple[Gpu, ...], archs: str, listed: str
) -> None:
    assert " ".join(map(str, listed_archs(case(cuda, gpus=gpus, arch_list=archs)))) == listed


def test_a_gpu_between_two_architectures_is_warned_of() -> None:
    (finding,) = found("TE205", case("11.7", gpus=(RTX4090, A6000)))
    assert str(finding.severity) == "warning"
    assert "; activation lists TORCH_CUDA_ARCH_LIST=8.6, whose code runs there" in finding.message
    (finding,) = found("TE201", case("13.0", gpus=(V100, A100)))
    assert finding.message.endswith("it supports NVIDIA A100-SXM4-80GB, and activation lists TORCH_CUDA_ARCH_LIST=8.0")


def test_two_warnings_that_leave_no_gpu_are_errors() -> None:
    # The driver has dropped the one, and the kernel module refuses the other.
    gpus = (gpu("Tesla K80", "3.7"), gpu("NVIDIA GeForce RTX 5090", "12.0"))
    asked = case("13.0", driver=Version("580.65.06"), gpus=gpus, module=ModuleKind.PROPRIETARY, arch_list="3.7;12.0")
    every = [(rule.scope, finding) for rule in DRIVER_RULES for finding in rule(asked)]
    kinds = about_gpus(asked)
    assert [one.run for one in per_gpu(kinds, every, [])] == [False, False]
    assert decide(Scope.RUN, settled(every, kinds)) is False


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The report of a host with two A100 and a V100."""
    folder = make_project(tmp_path / "project")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    made = report("580.65.06", "NVIDIA A100-SXM4-80GB", "8.0")
    a100, v100 = made["gpus"]["value"][0], {"name": "Tesla V100-SXM2-32GB", "compute_capability": "7.0"}
    made["gpus"]["value"] = [a100, a100, v100]
    return write(tmp_path / "host.json", made)


def rows(data: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in data["gpus"]]


A100S = ("NVIDIA A100-SXM4-80GB", "8.0", 2, True, True)


def test_json_text_and_table_give_them(mixed: str) -> None:
    (row,) = call("check-driver", "cuda130", "--host-report", mixed, "--json").data["targets"]
    checked = call("check", "cuda130", "--host-report", mixed, "--json").data
    assert rows(checked) == rows(row) == [A100S, ("Tesla V100-SXM2-32GB", "7.0", 1, False, False)]
    assert (checked["build"], checked["run"]) == (True, True)
    for command in ("check", "check-driver"):
        text = call(command, "cuda130", "--host-report", mixed).out
        assert "NVIDIA A100-SXM4-80GB  8.0         2      yes    yes" in text
        assert "Tesla V100-SXM2-32GB   7.0         1      no     no" in text
        assert "build+run (2 of 3 GPUs)" in call(command, "--against", mixed).out
    fleet = call("check", "cuda130", "--against", mixed, "--json").data["machines"]
    assert rows(fleet[0]["targets"][0]) == rows(checked)


def test_what_is_wrong_with_the_host_is_wrong_for_each_gpu(mixed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = call("check", "cuda130", "--host-report", mixed, "--assume-driver", "470.57.02", "--json").data
    assert [row["run"] for row in data["gpus"]] == [False, False]
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    data = call("check", "cuda130", "--host-report", mixed, "--json").data
    assert [(row["build"], row["run"]) for row in data["gpus"]] == [(True, True), (True, False)]
