"""The two tools of the driver: what they say, and the ways in which they fail."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenv.core.versions import Version
from tenv.host.interface import Missing, ReasonKind
from tenv.host.nvidia import SMI_FIELDS, Answer, ask_smi, cuda_version, parse_nvml, parse_smi, pci_address, pci_id
from tenv.host.report import FabricState, Gpu
from tests.host.builders import HOSTS, places, program, text
from tests.support.each import each

A100 = Gpu("NVIDIA A100-SXM4-80GB", Version("8.0"), 80 << 30, "10de:20b2", "0000:07:00.0")


def answer(**changes: Any) -> str:
    """What the child prints, hand-made."""
    gpu = {
        "name": {"value": "NVIDIA A100-SXM4-80GB"},
        "capability": {"value": [8, 0]},
        "memory": {"value": 80 << 30},
        "device": {"value": 0x20B210DE},
        "address": {"value": "00000000:07:00.0"},
        "mig": {"value": 0},
    }
    data = {
        "driver": {"value": "535.183.01"},
        "cuda": {"value": 12020},
        "count": {"value": 1},
        "gpus": [{"value": gpu}],
    }
    return json.dumps(data | changes)


def test_nvml() -> None:
    assert parse_nvml(answer()) == Answer(Version("535.183.01"), Version("12.2"), (A100,))


def test_nvml_that_knows_only_some_of_it() -> None:
    silent = {name: {"error": "Not Supported"} for name in ("name", "capability", "memory", "device", "address", "mig")}
    found = parse_nvml(
        answer(cuda={"error": "Function Not Found"}, driver={"value": "ERR!"}, gpus=[{"value": silent}, {"error": "x"}])
    )
    assert found == Answer(
        Missing("no driver version in `ERR!`", ReasonKind.UNREADABLE),
        Missing("Function Not Found", ReasonKind.FAILED),
        (Gpu(""),),
        ("GPU 1: x",),
    )


def test_nvml_that_can_not_count() -> None:
    found = parse_nvml(answer(count={"error": "Unknown Error"}, gpus=[]))
    assert isinstance(found, Answer)
    assert found.gpus == Missing("Unknown Error", ReasonKind.FAILED)


@each("printed", ["", "{}", "[]", "null", '{"gpus": {}}', answer(gpus=[{"value": {}}]), answer()[:-9], "[" * 20_000])
def test_nvml_garbage(printed: str) -> None:
    assert isinstance(parse_nvml(printed), Missing)


def test_smi() -> None:
    found = parse_smi(text("query-server.csv"))
    assert found.driver == Version("535.183.01")
    other = Gpu("NVIDIA A100-SXM4-80GB", Version("8.0"), 80 << 30, "10de:20b2", "0000:0f:00.0", mig=True)
    assert found.gpus == (A100, other)


def test_smi_of_a_gpu_that_has_failed() -> None:
    found = parse_smi(text("query-errors.csv"))
    assert str(found.driver) == "550.54.15"
    assert found.gpus == (Gpu("", pci_address="0000:01:00.0"),)


def test_smi_of_a_gpu_that_is_lost() -> None:
    found = parse_smi(text("query-lost.csv"))
    assert isinstance(found.gpus, tuple)
    assert [gpu.name for gpu in found.gpus] == ["NVIDIA GeForce RTX 3090"]
    assert found.lost == ("Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error",)


@each("name", ["smi-mismatch", "smi-no-devices", "smi-no-driver", "smi-wsl-error"])
def test_smi_that_prints_an_error_on_stdout(name: str) -> None:
    found = parse_smi(text(f"{name}.txt"))
    assert isinstance(found.driver, Missing)
    assert isinstance(found.gpus, Missing)


@given(st.text())
def test_smi_never_raises(printed: str) -> None:
    assert isinstance(parse_smi(printed), Answer)


@given(st.lists(st.text(max_size=8), min_size=len(SMI_FIELDS), max_size=len(SMI_FIELDS)))
def test_smi_never_raises_on_cells(cells: list[str]) -> None:
    assert isinstance(parse_smi(", ".join(cells)), Answer)


def test_an_old_smi_is_asked_again_without_what_it_does_not_know(tmp_path: Path) -> None:
    refuse = "echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2"
    program(tmp_path / "bin/nvidia-smi", f"case $1 in *compute_cap*) {refuse};; esac\ncat '{HOSTS}/query-old.csv'")
    found = ask_smi(places(tmp_path))
    assert isinstance(found, Answer)
    assert found.gpus == (Gpu("GeForce GTX 1660 Ti", None, 5944 << 20, "10de:2182", "0000:01:00.0"),)


@each("number, version", [(12040, "12.4"), (13000, "13.0"), (11080, "11.8"), (0, None), (-1, None), (10**6, None)])
def test_cuda_numbers(number: int, version: str | None) -> None:
    found = cuda_version(number)
    assert (None if isinstance(found, Missing) else str(found)) == version


def test_pci_words() -> None:
    assert pci_address("00000000:3B:00.0") == "0000:3b:00.0"
    assert pci_address("[N/A]") == ""
    assert pci_id(0x218210DE) == "10de:2182"
    assert pci_id(0x12341002) == ""


@each(
    "told, state",
    [
        ({"value": 0}, None),
        ({"value": 1}, FabricState.NOT_STARTED),
        ({"value": 2}, FabricState.IN_PROGRESS),
        ({"value": 3}, FabricState.COMPLETED),
        ({"error": "Function Not Found"}, None),
    ],
)
def test_the_state_of_nvswitch(told: dict[str, Any], state: FabricState | None) -> None:
    data = json.loads(answer())
    data["gpus"][0]["value"]["fabric"] = told
    found = parse_nvml(json.dumps(data))
    assert isinstance(found, Answer)
    assert isinstance(found.gpus, tuple)
    assert [gpu.fabric for gpu in found.gpus] == [state]
