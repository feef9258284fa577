"""The exit statuses of `tenv check` and `tenv check-driver`: several GPUs, open answers, and building alone."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.check_hosts import report, write
from tests.support.each import each
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("here")

DRIVER = "580.65.06"


def gpu(name: str, capability: str) -> dict[str, Any]:
    return {"name": name, "compute_capability": capability, "memory": 16 << 30}


HOPPER, VOLTA, PASCAL = gpu("NVIDIA H100 80GB HBM3", "9.0"), gpu("Tesla V100", "7.0"), gpu("Tesla P100", "6.0")
GEFORCE = gpu("NVIDIA GeForce RTX 4090", "8.9")

ROWS = [
    # the machine, build and run
    ("one GPU", report(DRIVER, gpus=[HOPPER]), True, True),
    ("two GPUs", report(DRIVER, gpus=[HOPPER, GEFORCE]), True, True),
    ("one of two out of range", report(DRIVER, gpus=[VOLTA, HOPPER]), True, True),
    ("two out of range", report(DRIVER, gpus=[VOLTA, PASCAL]), False, False),
    ("no driver, one of two out of range", report("", gpus=[HOPPER, VOLTA]), True, None),
    ("an old driver", report("535.104.12", gpus=[GEFORCE, HOPPER]), True, False),
    ("an unreported loader", report("535.104.12", gpus=[HOPPER, HOPPER]), True, None),
    ("no compiler", report(DRIVER, gpus=[HOPPER, HOPPER], compilers=[]), False, True),
    ("neither compiler nor driver", report("", gpus=[HOPPER], compilers=[]), False, None),
]


@each("host, build, run", [row[1:] for row in ROWS])
def test_the_status_follows_the_verdicts(host: dict[str, Any], build: bool, run: bool | None, tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", host)

    def status(*words: str) -> int:
        ended = call(*words, "--host-report", file, "--json")
        data = ended.data["targets"][0] if "targets" in ended.data else ended.data
        assert (data["build"], data["run"]) == (build, run)
        return ended.status

    assert status("check", "cuda130") == (0 if build and run else 1)
    assert status("check", "cuda130", "--build-only") == (0 if build else 1)
    assert status("check-driver", "cuda130") == (0 if run else 1)
    assert status("check-driver", "cuda130", "--build-only") == (0 if build else 1)
    assert call("check", "cuda130", "--against", file).status == (0 if build and run else 1)
    assert call("check-driver", "cuda130", "--against", file).status == (0 if run else 1)


def test_the_status_of_a_list_is_0_whatever_it_holds(tmp_path: Path) -> None:
    hosts = {name: host for name, host, *_ in ROWS}
    file = write(tmp_path / "host.json", hosts["neither compiler nor driver"])
    assert call("check-driver", "--host-report", file).status == 0


def test_one_gpu_in_range_is_enough_and_the_other_has_verdicts_of_its_own(tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", report(DRIVER, gpus=[VOLTA, HOPPER]))
    for command in ("check", "check-driver"):
        data = call(command, "cuda130", "--host-report", file, "--json").data
        rows = data["gpus"] if command == "check" else data["targets"][0]["gpus"]
        assert {row["name"]: (row["build"], row["run"]) for row in rows} == {
            "Tesla V100": (False, False),
            "NVIDIA H100 80GB HBM3": (True, True),
        }


def test_an_open_answer_names_the_option_that_leaves_it_out(tmp_path: Path) -> None:
    open_ = call("check", "cuda130", "--host-report", write(tmp_path / "open.json", report("", gpus=[HOPPER]))).out
    assert "run:   unknown  (`--build-only` judges building alone)" in open_.splitlines()
    old = report("535.104.12", gpus=[GEFORCE])
    assert "--build-only" not in call("check", "cuda130", "--host-report", write(tmp_path / "old.json", old)).out
