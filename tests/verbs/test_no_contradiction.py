"""`tenv check-driver` and `tenv check` of 1,000 made machines: no pair of answers that contradict each other."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.check_hosts import report, write
from tests.support.projects import call
from tests.support.rarely import first_fast

pytestmark = pytest.mark.usefixtures("here")

DRIVERS = (
    *("384.145", "390.157", "396.44", "410.104", "418.226.00", "430.40", "440.33.01", "450.80.02", "450.248.02"),
    *("455.32.00", "460.32.03", "465.31", "470.57.02", "470.256.02", "495.46", "510.108.03", "515.105.01"),
    *("520.61.05", "525.60.11", "525.60.13", "530.30.02", "535.104.05", "535.261.03", "545.23.08", "550.54.14"),
    *("555.42.06", "560.35.05", "565.57.01", "570.26", "570.211.01", "575.57.08", "580", "580.65.06", "580.126.20"),
    *("590.48.01", "595.71.05", "610.43.02", "615.10", "700.1", ""),
)
GPUS = (
    *(("GeForce 210", "1.2"), ("GeForce GTX 580", "2.0"), ("Tesla K80", "3.7"), ("NVIDIA GeForce GTX 760", "3.0")),
    *(("Tesla M60", "5.2"), ("NVIDIA GeForce GTX 950M", "5.0"), ("Tesla P100-PCIE-16GB", "6.0")),
    *(("NVIDIA GeForce GTX 1050", "6.1"), ("Tesla V100-SXM2-32GB", "7.0"), ("Tesla T4", "7.5")),
    *(("NVIDIA GeForce RTX 2080 Ti", "7.5"), ("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA A40", "8.6")),
    *(("NVIDIA RTX A6000", "8.6"), ("NVIDIA GeForce RTX 3090", "8.6"), ("NVIDIA L40S", "8.9")),
    *(("NVIDIA GeForce RTX 4090", "8.9"), ("NVIDIA H100 80GB HBM3", "9.0"), ("NVIDIA B200", "10.0")),
    *(("NVIDIA B300 SXM6 AC", "10.3"), ("NVIDIA GeForce RTX 5090", "12.0"), ("NVIDIA GB10", "12.1")),
    *(("Orin (nvgpu)", "8.7"), ("NVIDIA Thor", "11.0"), ("NVIDIA Imaginary 1", "99.0")),
)
LIBRARIES = (
    {"missing": "the report does not say"},
    {"missing": "libcuda is the driver's own"},
    {"value": {"path": "/usr/local/cuda/compat/libcuda.so.580.65.06", "version": "580.65.06"}, "origin": "test"},
    {"value": {"path": "/usr/local/cuda/compat/libcuda.so.530.30.02", "version": "530.30.02"}, "origin": "test"},
    {"value": {"path": "/usr/lib/libcuda.so.550.107.02", "version": "550.107.02"}, "origin": "test"},
)
MODULES = ("", "open", "proprietary")
SYSTEMS: tuple[dict[str, Any], ...] = ({}, {}, {"wsl": True}, {"platform": "win-64"}, {"container": "docker"})


def machines() -> Iterator[dict[str, Any]]:
    """Yield a machine for each driver and GPU, what else decides going round beside them."""
    rounds = zip(itertools.cycle(LIBRARIES), itertools.cycle(MODULES), itertools.cycle(SYSTEMS + SYSTEMS[:2]))
    for number, ((driver, gpu), (library, module, system)) in enumerate(
        zip(itertools.product(DRIVERS, GPUS), rounds, strict=False)
    ):
        made = report(driver, *gpu, f"node{number}", module=module, **system)
        if number % 3 == 0:  # a second kind of GPU, another one in each round
            name, capability = GPUS[(number * 7 + number // len(GPUS) + 1) % len(GPUS)]
            made["gpus"]["value"].append({"name": name, "compute_capability": capability})
        yield {**made, "compat": library}


def answers(command: str, file: str, arch_list: str, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Any]:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", arch_list)
    rows = call(command, "--against", file, "--json").data["machines"]
    assert not [row["problem"] for row in rows if row["problem"]]
    return {(row["machine"], found["target"]): found for row in rows for found in row["targets"]}


@pytest.mark.parametrize(
    ("start", "arch_list", "flags"),
    first_fast([(29, "8.0;9.0+PTX", ""), (0, "", ""), (58, "", "-compress-mode=size")], several=True),
)
def test_no_answer_of_a_sample_contradicts_another(
    start: int, arch_list: str, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", flags)
    agree(list(machines())[start::87], arch_list, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("arch_list", ["", "8.0;9.0+PTX", "7.5;12.0"])
def test_no_answer_of_hundreds_contradicts_another(
    arch_list: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list(machines())
    assert len(made) == 1000
    # A part of them, by chance: each third machine has two GPUs, and other values go round, too.
    made = random.Random(arch_list).sample(made, 125)
    checked, of_driver = agree(made, arch_list, tmp_path, monkeypatch)
    runs = Counter(found["run"] for found in checked.values())
    assert min(runs[True], runs[False], runs[None]) > len(made) // 10
    assert {row["verdict"] for row in of_driver.values()} == {
        *("native", "minor-version", "forward", "impossible", "unknown"),
    }
    split = [found for found in checked.values() if len({gpu["run"] for gpu in found["gpus"]}) > 1]
    assert len(split) > len(made) // 10  # one GPU runs what another does not


def agree(
    made: list[dict[str, Any]], arch_list: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[tuple[str, str], Any], dict[tuple[str, str], Any]]:
    """Return what both commands answer, which must agree about each machine and each of its GPUs."""
    file = write(folder / "fleet.jsonl", "\n".join(map(json.dumps, made)))
    checked = answers("check", file, arch_list, monkeypatch)
    of_driver = answers("check-driver", file, arch_list, monkeypatch)
    assert checked.keys() == of_driver.keys()
    for key, found in checked.items():
        driver = of_driver[key]
        assert (found["build"], found["run"]) == (driver["build"], driver["run"]), (key, found, driver)
        if driver["verdict"] == "impossible":
            assert found["run"] is False, (key, found)
        runs = [gpu["run"] for gpu in found["gpus"]]
        assert found["gpus"] == driver["gpus"], (key, found, driver)
        if len(runs) == 1:
            assert (found["gpus"][0]["build"], runs[0]) == (found["build"], found["run"]), (key, found)
        elif runs:
            assert found["run"] is not True or True in runs, (key, found)
            assert found["run"] is not False or True not in runs, (key, found)
    return checked, of_driver
