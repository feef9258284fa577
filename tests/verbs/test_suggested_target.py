"""The suggestion for an unknown CUDA counts on the driver of the host that is judged, not on this one's."""

import io
import json
from pathlib import Path

import pytest

from tests.support.each import each
from tests.support.projects import call

REPORT = {
    "schema": 2,
    "tenv": "0.1.0",
    "platform": {"value": "linux-64", "origin": "uname", "kind": "system"},
    "driver": {"value": "515.76", "origin": "NVML", "kind": "nvml"},
}
OLD = "nearest to CUDA 12.2 that driver 515.76 {whose} runs: `cuda118`"


@each("verb", ["check", "check-driver", "create"])
def test_an_assumed_driver(verb: str) -> None:
    old = call(verb, "cuda122", "--assume-driver", "515.76")
    assert (old.status, OLD.format(whose="(assumed)") in old.err) == (2, True), old.err
    new = call(verb, "cuda122", "--assume-driver", "535.104.12")
    assert "nearest to CUDA 12.2: `cuda121`" in new.err
    assert "which driver 535.104.12 (assumed) runs" in new.err


@pytest.mark.parametrize("verb", ["check", "check-driver", "create"])
def test_a_reported_driver(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "host.json"
    file.write_text(json.dumps(REPORT))
    said = OLD.format(whose="of the reported host")
    assert said in call(verb, "cuda122", "--host-report", str(file)).err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert said in call(verb, "cuda122", "--host-report", "-").err
    both = call(verb, "cuda122", "--host-report", str(file), "--assume-driver", "535.104.12")
    assert "which driver 535.104.12 (assumed) runs" in both.err
