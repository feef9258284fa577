"""Pasted reports where a host is asked for, and the target that one asks for."""

import io
import json
from pathlib import Path

import pytest

from tests.support.check_hosts import report, write
from tests.support.each import each
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("here")

TEXT = """\
torch sees nothing here, any idea?

PyTorch version: {pytorch}
CUDA used to build PyTorch: {cuda}
OS: Ubuntu 22.04.2 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Libc version: glibc-2.35
Is CUDA available: True
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-40GB
Nvidia driver version: {driver}
"""
HEADER = "| NVIDIA-SMI 535.104.05     Driver Version: 535.104.05   CUDA Version: 12.2     |\n"


def pasted(driver: str = "550.54.15", cuda: str = "12.1", pytorch: str = "2.4.0") -> str:
    return TEXT.format(driver=driver, cuda=cuda, pytorch=pytorch)


def paste(folder: Path, text: str, name: str = "issue.txt") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_host_shows_each_value_with_its_line(tmp_path: Path) -> None:
    file = paste(tmp_path, pasted() + HEADER)
    ended = call("host", "--host-report", file)
    assert "driver       535.104.05  (line 11, nvidia-smi)\n" in ended.out
    assert "glibc        2.35  (line 7, collect_env)\n" in ended.out
    assert "toolkits     missing  (not in the text: the version of nvcc)\n" in ended.out
    assert ended.err == "note: driver: 535.104.05, line 11, nvidia-smi counts, not 550.54.15, line 10, collect_env\n"
    data = call("host", "--host-report", file, "--json").data
    assert data["driver"] == {"value": "535.104.05", "origin": "line 11, nvidia-smi", "kind": "pasted"}
    assert data["pasted"]["pytorch_cuda"]["value"] == "12.1"
    assert data["pasted"]["layouts"] == ["nvidia-smi", "collect_env"]


def test_what_host_writes_of_a_text_is_read_back_with_the_text(tmp_path: Path) -> None:
    first = call("host", "--host-report", paste(tmp_path, pasted()), "--json")
    file = write(tmp_path / "again.json", first.out)
    again = call("host", "--host-report", file, "--json")
    assert again.data == first.data
    assert call("check-driver", "--target-from-report", "--host-report", file, "--json").data["targets"][0][
        "target"
    ] == ("cuda121")


def test_a_report_whose_pasted_part_was_edited_is_no_bug(tmp_path: Path) -> None:
    parts: tuple[object, ...] = (
        {"contradictions": [1]},
        {"contradictions": "x", "pytorch_cuda": 1},
        {"pytorch_cuda": {"value": "x"}},
        [],
    )
    for part in parts:
        file = write(tmp_path / "a.json", {**report("550.54.15"), "pasted": part})
        assert call("host", "--host-report", file).status == 0
        assert call("check", "--target-from-report", "--host-report", file).status == 2


@pytest.mark.parametrize("words", [("check", "cuda121"), ("check-driver", "cuda121"), ("host",)])
def test_standard_input_takes_a_text(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for raw in (pasted().encode(), pasted().replace("\n", "\r\n").encode("utf-16")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
        ended = call(*words, "--host-report", "-", "--json")
        assert (ended.status, "550.54.15" in ended.out or words[0] == "check") == (0, True)


@pytest.mark.parametrize(
    ("driver", "cuda", "status"), [("550.54.15", "cuda121", 0), ("515.76", "cuda121", 1), ("515.76", "cuda117", 0)]
)
def test_check_and_check_driver_judge_the_machine_of_a_text(
    driver: str, cuda: str, status: int, tmp_path: Path
) -> None:
    file = paste(tmp_path, pasted(driver))
    assert call("check-driver", cuda, "--host-report", file).status == status
    assert call("check", cuda, "--host-report", file).status == status


def test_a_fleet_may_hold_texts(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    write(folder / "a.json", report("580.65.06", name="node"))
    paste(folder, pasted("515.76"), "b.txt")
    paste(folder, "buy milk", "notes.txt")
    data = call("check-driver", "cuda121", "--against", str(folder), "--json").data
    rows = [(row["machine"], row["driver"].get("value"), row["targets"][0]["run"]) for row in data["machines"]]
    assert rows == [("node", "580.65.06", True), ("b.txt", "515.76", None)]  # whether cuda-compat is first is not told
    alone = call("check", "cuda121", "--against", str(folder / "b.txt"), "--json").data["machines"]
    assert [row["driver"]["value"] for row in alone] == ["515.76"]
    refused = call("check", "cuda121", "--against", str(folder / "notes.txt"), "--json").data["machines"]
    assert [row["problem"] for row in refused] == [
        "is neither JSON nor a pasted report: it names no driver, GPU, CUDA or compiler"
    ]


FROM_REPORT = [
    (
        "550.54.15",
        "12.1",
        "cuda121",
        "it has CUDA 12.1, which the report's PyTorch was built with (line 4, collect_env)",
    ),
    ("515.76", "12.1", "cuda121", "it has CUDA 12.1, which the report's PyTorch was built with (line 4, collect_env)"),
    ("550.54.15", "12.4", "cuda121", "CUDA 12.1 is the nearest that driver 550.54.15 runs"),
    ("580.65.06", "12.9", "cuda130", "CUDA 13.0 is the nearest that driver 580.65.06 runs"),
    ("550.54.15", "12.9", "cuda121", "CUDA 12.1 is the nearest that driver 550.54.15 runs"),
    ("515.76", "12.4", "cuda118", "CUDA 11.8 is the nearest that driver 515.76 runs"),
    ("390.12", "12.0", "cuda121", "CUDA 12.1 is the nearest, although driver 390.12 runs none of them"),
    ("Could not collect", "12.0", "cuda121", "CUDA 12.1 is the nearest, although the report names no driver"),
]


@pytest.mark.parametrize(("driver", "cuda", "taken", "why"), FROM_REPORT)
def test_the_target_is_that_of_the_cuda_of_the_reports_pytorch(
    driver: str, cuda: str, taken: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenv.targets.search._built_in", lambda: tmp_path / "none")
    file = paste(tmp_path, pasted(driver, cuda))
    for command in ("check", "check-driver"):
        ended = call(command, "--target-from-report", "--host-report", file)
        assert ended.err.startswith(f"target: {taken}, since ")
        assert why in ended.err
        data = call(command, "--target-from-report", "--host-report", file, "--json").data
        assert (data["target_from_report"]["target"], data["target_from_report"]["cuda"]) == (taken, cuda)


def test_of_targets_with_one_cuda_the_one_for_the_reports_pytorch_is_taken(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenv.targets.search._built_in", lambda: tmp_path / "none")
    manifest = here / "manifests" / "cuda118.toml"
    for name, pytorch in (("new118", ">=2.5"), ("old118", "<2.5")):
        manifest.with_name(f"{name}.toml").write_text(f'pytorch = "{pytorch}"\n{manifest.read_text()}')
    manifest.unlink()
    file = paste(tmp_path, pasted(cuda="11.8"))
    assert call("check", "--target-from-report", "--host-report", file).err.startswith("target: old118, since `")
    file = paste(tmp_path, pasted(cuda="11.8", pytorch="2.6.0"))
    assert call("check", "--target-from-report", "--host-report", file).err.startswith("target: new118, since `")


def test_a_pytorch_without_cuda_takes_a_target_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.targets.search._built_in", lambda: tmp_path / "none")
    file = paste(tmp_path, pasted(cuda="Could not collect", pytorch="2.4.0+cpu"))
    assert call("check", "--target-from-report", "--host-report", file).err.startswith(
        "target: cpu, since it has no CUDA"
    )


def test_the_local_version_of_pytorch_names_its_cuda(tmp_path: Path) -> None:
    file = paste(tmp_path, pasted(cuda="N/A", pytorch="2.4.0+cu118"))
    data = call("check", "--target-from-report", "--host-report", file, "--json").data
    assert (data["target_from_report"]["target"], data["target_from_report"]["cuda"]) == ("cuda118", "11.8")


REFUSED = [
    (("check", "--target-from-report"), 2, "`--target-from-report` needs a report"),
    (("check", "cuda121", "--target-from-report"), 2, "exclude each other"),
    (("check", "--against", ".", "--target-from-report"), 2, "exclude each other"),
    (("check-driver", "--against", ".", "--target-from-report"), 2, "exclude each other"),
    (("create",), 2, "no TARGET is given"),
    (("create", "auto", "--target-from-report"), 2, "exclude each other"),
]


@each("words, status, said", REFUSED)
def test_what_does_not_fit_together_is_refused(words: tuple[str, ...], status: int, said: str) -> None:
    ended = call(*words)
    assert (ended.status, said in ended.err) == (status, True)


def test_a_report_that_does_not_name_the_cuda_says_why(tmp_path: Path) -> None:
    file = paste(tmp_path, pasted(cuda="Could not collect"))
    ended = call("check", "--target-from-report", "--host-report", file, "--json")
    error = json.loads(ended.out)["error"]
    assert (ended.status, error["code"]) == (2, "host-report")
    assert error["message"].endswith(
        "the CUDA that its PyTorch was built with: `Could not collect`, line 4, collect_env"
    )


def test_create_takes_the_target_of_the_report(tmp_path: Path) -> None:
    file = paste(tmp_path, pasted("390.12"))
    ended = call("create", "--target-from-report", "--host-report", file, "--frozen", "--offline")
    assert ended.err.splitlines()[0].startswith("target: cuda121, since ")
    assert ended.status == 7  # this project has no lock


SMI_QUERY = """\
==============NVSMI LOG==============

Driver Version                                         : 580.126.09
CUDA Version                                           : 13.0

Attached GPUs                                          : 1
GPU 00000000:19:00.0
    Product Name                                       : NVIDIA H200
    Fabric
        State                                          : In Progress
        Status                                         : N/A
        Health
            Summary                                    : N/A
"""


def test_the_state_of_nvswitch_is_read_and_judged(tmp_path: Path) -> None:
    """Reduced from github.com/huggingface/huggingface_hub/issues/4128: programs on such GPUs end with error 802."""
    (tmp_path / "smi.txt").write_text(SMI_QUERY)
    for said, state, run in (("In Progress", "in-progress", None), ("Completed", "completed", True)):
        (tmp_path / "smi.txt").write_text(SMI_QUERY.replace("In Progress", said))
        host = call("host", "--host-report", str(tmp_path / "smi.txt"), "--json").data
        assert [gpu["fabric"] for gpu in host["gpus"]["value"]] == [state]
        checked = call("check-driver", "cuda130", "--host-report", str(tmp_path / "smi.txt"), "--json")
        assert checked.data["targets"][0]["run"] is run
        assert ("TE115" in checked.out) == (run is None)
