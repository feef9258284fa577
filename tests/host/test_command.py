"""``tenv host``, for users and for programs."""

import io
import json
from pathlib import Path

import pytest

from tenv.host.report_json import from_json, standard_input, to_json
from tests.support.each import each
from tests.support.found_by import led_json
from tests.support.projects import Ended, call

# Hand-made: a workstation whose second GPU is known by its PCI id alone.
WORKSTATION = {
    "schema": 2,
    "tenv": "0.1.0",
    "hostname": {"value": "node7", "origin": "uname"},
    "driver": {"value": "550.54.15", "origin": "NVML"},
    "cuda": {"value": "12.4", "origin": "NVML"},
    "gpus": {
        "value": [
            {"name": "NVIDIA L4", "compute_capability": "8.9", "memory": 24 << 30, "mig": True},
            {"name": "", "pci_id": "10de:2182", "pci_address": "0000:01:00.0"},
        ],
        "origin": "NVML",
    },
    "toolkits": {
        "value": [
            {
                "path": "/opt/cuda",
                "found_by": led_json("CUDA_HOME"),
                "version": "12.4",
                "components": {"cuda_nvcc": "12.4.131"},
            },
            {
                "path": "/usr/local/cuda-12.1",
                "found_by": led_json("/usr/local/cuda"),
                "problems": [{"kind": "gone", "text": "which is not there"}],
            },
        ],
        "origin": "the usual places",
    },
    "libc": {"missing": "the C library is musl"},
    "wsl": {"value": False, "origin": "uname"},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "node7.json"
    path.write_text(json.dumps(WORKSTATION))
    return path


def host(*words: str) -> Ended:
    ended = call("host", *words)
    assert ended.status == 0, ended.err
    return ended


def test_json_is_what_the_option_reads(tmp_path: Path) -> None:
    whole, bare = tmp_path / "whole.json", tmp_path / "bare.json"
    whole.write_text(host("--json").out)
    data = json.loads(whole.read_text())["data"]
    bare.write_text(json.dumps(data))
    for path in (whole, bare):
        assert host("--json", "--host-report", str(path)).data == data
    assert to_json(from_json(data)) == data


def test_a_report_from_standard_input(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(file.read_text()))
    assert host("--host-report", "-", "--json").data["hostname"]["value"] == "node7"


def test_standard_input_without_an_end_is_given_up() -> None:
    for stream in (io.StringIO("0123456789x"), io.TextIOWrapper(io.BytesIO(b"0123456789x"))):
        with pytest.raises(OSError, match="is too large"):
            standard_input(stream, 10)
        stream.seek(0)
        assert standard_input(stream, 11) == "0123456789x"


def test_the_list(file: Path) -> None:
    lines = host("--host-report", str(file)).out.splitlines()
    for line in (
        "host         node7  (uname)",
        "platform     missing  (the report does not say)",
        "driver       550.54.15  (NVML)",
        "gpus         NVIDIA L4, compute capability 8.9, 24.0 GiB, split into instances (MIG)",
        "             GeForce GTX 1660 Ti, compute capability 7.5, 10de:2182, at 0000:01:00.0",
        "             (NVML, names by PCI id)",
        "toolkits     12.4  /opt/cuda, by CUDA_HOME",
        "               cuda_nvcc 12.4.131",
        "             unknown  /usr/local/cuda-12.1, by /usr/local/cuda",
        "               problem: which is not there",
        "glibc        missing  (the C library is musl)",
        "wsl          no  (uname)",
    ):
        assert line in lines


def test_this_machine_in_words() -> None:
    out = host().out
    labels = {line.split(" ")[0] for line in out.splitlines()} - {""}
    assert {"host", "driver", "gpus", "compilers", "libstdc++", "cores", "disk", "container"} <= labels


def test_hosts_that_are_not_this_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--host-report", str(file), "--assume-driver", "535.104.12", "--assume-gpu", "gtx 1660 ti", "--json")
    data = host(*words).data
    assert data["driver"] == {"value": "535.104.12", "origin": "assumed", "kind": "assumed"}
    assert data["cuda"] == {"missing": "driver 535.104.12 is assumed, so it was not asked", "kind": "assumed"}
    (gpu,) = data["gpus"]["value"]
    assert (gpu["name"], gpu["compute_capability"]) == ("GeForce GTX 1660 Ti", "7.5")
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "12.2")
    assert host(*words).data["cuda"] == {"value": "12.2", "origin": "CONDA_OVERRIDE_CUDA", "kind": "override"}


def test_the_override_may_deny_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    said = "CONDA_OVERRIDE_CUDA is empty, which means no CUDA"
    assert host("--json").data["cuda"] == {"missing": said, "kind": "no-cuda"}


@each(
    "words, code, said",
    [
        (("--assume-driver", "new"), "usage", "`new` is not a dotted version"),
        (("--assume-gpu", "Voodoo 2"), "usage", "unknown GPU: `Voodoo 2`"),
        (("--assume-driver", "58\u0660.1"), "usage", r"`58\u0660.1` is not a dotted version"),
        (("--assume-driver", ""), "usage", "Invalid value for '--assume-driver': the value is empty"),
        (("--assume-gpu", ""), "usage", "Invalid value for '--assume-gpu': the value is empty"),
        (("--host-report", ""), "usage", "Invalid value for '--host-report': the value is empty"),
        (("--host-report", "nowhere.json"), "host-report", "nowhere.json: can't be read: No such file or directory"),
    ],
)
def test_errors(words: tuple[str, ...], code: str, said: str) -> None:
    ended = call("host", *words)
    assert (ended.status, ended.out) == (2, "")
    assert f"error[{code}]: {said}" in ended.err
    assert "hint: " in ended.err


@each("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b'{"schema": 3, "tenv": "9.9"}'])
def test_reports_that_can_not_be_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    ended = call("host", "--host-report", str(path))
    assert ended.status == 2
    assert f"error[host-report]: {path}: " in ended.err
