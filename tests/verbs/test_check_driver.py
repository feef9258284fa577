"""`tenv check-driver`: a driver against targets and toolkits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing
from tenv.host.report import Gpu, HostReport
from tenv.host.report_json import from_json
from tests.support.check_hosts import CUDAS, report, write
from tests.support.each import each
from tests.support.found_by import led_json
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("here")


def ask(file: str, *words: str) -> dict[str, Any]:
    data: dict[str, Any] = call("check-driver", *words, "--host-report", file, "--json").data
    return data


@each(
    "host, target, verdict, status",
    [
        (report("535.104.12"), "cuda121", "native", 0),
        (report("535.104.12"), "cuda130", "impossible", 1),
        (report("515.76", "NVIDIA GeForce GTX 1660 Ti"), "cuda117", "native", 0),
        (report("515.76", "NVIDIA GeForce GTX 1660 Ti"), "cuda118", "minor-version", 0),
        (report("515.76", "NVIDIA GeForce GTX 1660 Ti"), "cuda121", "impossible", 1),
        (report("535.104.12", "NVIDIA A100-SXM4-80GB", "8.0"), "cuda130", "forward", 1),
        (report("535.104.12", "NVIDIA GeForce RTX 4090", "8.9"), "cuda130", "impossible", 1),
        (report("525.60.13"), "cuda121", "minor-version", 0),
        (report(), "cuda121", "unknown", 1),
        (report(), "cpu", "native", 0),
        (report("528.33", platform="win-64"), "cuda121", "minor-version", 0),
        (report("527.41", platform="win-64"), "cuda118", "native", 0),
        (report("526.98", wsl=True), "cuda121", "impossible", 1),
    ],
)
def test_the_hosts_of_reports(host: dict[str, Any], target: str, verdict: str, status: int, tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", host)
    ended = call("check-driver", target, "--host-report", file, "--json")
    (row,) = ended.data["targets"]
    assert (row["target"], row["verdict"], row["build"], ended.status) == (target, verdict, True, status)
    assert row["run"] is (None if verdict in ("unknown", "forward") else status == 0)
    assert ended.data["toolkits"] == []
    assert call("check-driver", target, "--host-report", file, "--build-only").status == 0


def test_without_a_target_every_target_and_every_toolkit_is_listed(tmp_path: Path) -> None:
    data = ask(write(tmp_path / "host.json", report("535.104.12")))
    assert set(data) == {"driver", "targets", "toolkits"}
    assert {*CUDAS, "cpu"} <= {row["target"] for row in data["targets"]}
    toolkits = {row["cuda"]: row for row in data["toolkits"]}
    minors = [Version(cuda).major_minor for cuda in toolkits]
    assert len(minors) == len(set(minors)) > 20
    assert minors == sorted(minors, key=Version, reverse=True)
    assert set(toolkits["12.2.2"]) == {"cuda", "verdict", "minimum_driver", "native_driver", "run"}
    verdicts = {Version(cuda).major_minor: row["verdict"] for cuda, row in toolkits.items()}
    assert [verdicts[minor] for minor in ("13.0", "12.4", "12.2", "11.8")] == [
        *("impossible", "minor-version", "native", "native")
    ]


def test_the_tables_are_for_people(tmp_path: Path) -> None:
    ended = call("check-driver", "--host-report", write(tmp_path / "host.json", report("535.104.12")))
    assert ended.status == 0
    assert ended.out.startswith("driver: 535.104.12 (test)\nTARGET")
    assert "\n\nCUDA TOOLKIT  MINIMUM DRIVER  RUN  DRIVER\n" in ended.out
    assert "TE102" not in ended.out


def test_a_target_is_told_with_its_finding(tmp_path: Path) -> None:
    ended = call("check-driver", "cuda130", "--host-report", write(tmp_path / "host.json", report("535.104.12")))
    assert "\nerror[TE103]: CUDA 13.0: " in ended.out
    assert "\n  fix: install NVIDIA driver 580 or newer" in ended.out


def test_an_assumed_driver(tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", report())
    assert ask(file, "cuda130", "--assume-driver", "580.65.06")["driver"] == {"value": "580.65.06", "origin": "assumed"}


def test_own_facts_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = write(
        tmp_path / "facts" / "cuda_driver.toml",
        '[[toolkit]]\ntoolkit = "14.0.0"\nmajor_minor = "14.0"\nbundled_linux = "700.10"\nsource = "us"\n',
    )
    monkeypatch.setenv("TENV_FACTS", rows)
    toolkits = ask(write(tmp_path / "host.json", report("700.20")))["toolkits"]
    assert (toolkits[0]["cuda"], toolkits[0]["verdict"]) == ("14.0.0", "native")


def collected(monkeypatch: pytest.MonkeyPatch, **values: Fact[Any] | Missing) -> list[HostReport]:
    """Put values into the report of this machine, and return the reports that are collected."""
    made: list[HostReport] = []

    def collect(*_: object) -> HostReport:
        made.append(replace(from_json(report("535.104.12")), **values))
        return made[-1]

    monkeypatch.setattr("tenv.host.collect.collect", collect)
    return made


def test_without_options_this_machine_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = collected(monkeypatch)
    assert call("check-driver", "cuda121").status == 0
    assert call("check-driver").status == 0
    assert len(made) == 2


def test_a_gpu_on_the_bus_without_a_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    collected(monkeypatch, driver=Missing("no probe answered"), gpus=Fact((Gpu("", pci_id="10de:2182"),), "the bus"))
    said = call("check-driver", "cuda121").out
    assert "no NVIDIA driver was detected for the GeForce GTX 1660 Ti of this host" in said
    assert "fix: install NVIDIA driver 525.60.13 or newer" in said


@pytest.mark.parametrize(
    ("cuda", "driver", "verdict"),
    [
        ("12.4", "", "native"),
        ("12.0", "", "minor-version"),
        ("11.8", "", "impossible"),
        ("12.4", "515.76", "impossible"),
    ],
)
def test_an_override_stands_in_for_a_driver_that_is_not_read(
    cuda: str, driver: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", cuda)
    (row,) = ask(write(tmp_path / "host.json", report(driver)), "cuda121")["targets"]
    assert row["verdict"] == verdict


def test_an_override_counts_for_this_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "12.4")
    monkeypatch.setattr("tenv.host.driver.probe", lambda _: Missing("no probe answered"))
    assert call("check-driver", "cuda121", "--json").data["targets"][0]["verdict"] == "native"


def test_an_override_that_nobody_knows_is_no_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, codes in (("99.9", ["TE107", "TE101"]), ("", ["TE101"]), ("soon", ["TE107", "TE101"])):
        monkeypatch.setenv("CONDA_OVERRIDE_CUDA", text)
        file = write(tmp_path / "host.json", report())
        found = json.loads(call("check-driver", "cuda121", "--host-report", file, "--json").out)
        (row,) = found["data"]["targets"]
        assert (row["verdict"], row["run"]) == ("unknown", None)
        assert [finding["code"] for finding in found["findings"]] == codes


def test_an_override_that_is_left_aside_is_told_without_a_target_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "cuda12.4")
    ended = call("check-driver", "--host-report", write(tmp_path / "host.json", report("535.104.12")))
    assert "warning[TE107]: CONDA_OVERRIDE_CUDA: is not a CUDA version" in ended.out
    assert "native" in ended.out
    assert ended.status == 0


def test_set_to_nothing_it_hides_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    file = write(tmp_path / "host.json", report("535.104.12"))
    data = ask(file, "cuda121")
    assert data["driver"] == {"missing": "CONDA_OVERRIDE_CUDA is empty, which means no CUDA"}
    assert (data["targets"][0]["verdict"], call("check", "cuda121", "--host-report", file).status) == ("unknown", 1)
    assert ask(file, "cuda121", "--assume-driver", "535.104.12")["targets"][0]["verdict"] == "native"


def test_gpus_are_looked_for_where_they_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    collected(monkeypatch, gpus=from_json(report("535.104.12", "NVIDIA A100-SXM4-80GB", "8.0")).gpus)
    assert call("check-driver", "cuda130", "--json").data["targets"][0]["verdict"] == "forward"


def test_a_fleet_and_a_host_are_not_asked_about_at_once(tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", report())
    for command in ("check-driver", "check"):
        ended = call(command, "cuda130", "--against", file, "--host-report", file)
        assert (ended.status, "error[usage]" in ended.err) == (2, True)


def test_the_envelope_of_a_fleet(tmp_path: Path) -> None:
    ended = call("check-driver", "cuda121", "--against", write(tmp_path / "m" / "a.json", report("515.76")), "--json")
    (machine,) = json.loads(ended.out)["data"]["machines"]
    assert {"machine", "driver", "targets"} <= set(machine)
    (row,) = machine["targets"]
    assert set(row) == {"target", "cuda", "verdict", "minimum_driver", "native_driver", "build", "run", "gpus"}
    assert (ended.status, row["verdict"]) == (1, "impossible")


def test_the_machine_s_toolkit_decides_and_without_one_nothing_is_known(here: Path, tmp_path: Path) -> None:
    (here / "manifests" / "own.toml").write_text('platforms = ["linux-64"]\n[system]\ncuda-toolkit = "*"\n')
    cuda = {"path": "/opt/cuda", "found_by": led_json("CUDA_HOME"), "version": "12.1"}
    file = write(tmp_path / "with.json", report("535.104.12", toolkits=[cuda]))
    (row,) = ask(file, "own")["targets"]
    assert (row["cuda"], row["verdict"], row["run"]) == ("12.1", "native", True)
    file = write(tmp_path / "without.json", report("535.104.12"))
    ended = call("check-driver", "own", "--host-report", file, "--json")
    (row,) = ended.data["targets"]
    assert (row["cuda"], row["verdict"], row["run"], ended.status) == ("", "unknown", None, 1)
    assert [finding["code"] for finding in json.loads(ended.out)["findings"]] == ["TE309"]
    checked = call("check", "own", "--host-report", file, "--json")
    assert (checked.data["build"], checked.data["run"]) == (False, None)
    assert [finding["code"] for finding in json.loads(checked.out)["findings"]] == ["TE309"]


def test_of_another_platform_nothing_else_is_said(here: Path, tmp_path: Path) -> None:
    text = 'platforms = ["win-64"]\n[requirements]\ncuda = "10.2"\n[system]\ncuda-toolkit = "10.2.*"\n'
    (here / "manifests" / "other.toml").write_text(text)
    ended = call("check", "other", "--host-report", write(tmp_path / "host.json", report("535.104.12")), "--json")
    assert (ended.data["build"], ended.data["run"]) == (False, False)
    assert [finding["code"] for finding in json.loads(ended.out)["findings"]] == ["TE705"]


@pytest.mark.parametrize(
    ("manifest", "build", "run", "codes"),
    [
        ('platforms = ["linux-64"]\n', True, True, []),
        ('platforms = ["win-64"]\n', False, False, ["TE705"]),
        ('platforms = ["win-64"]\n[requirements]\ncuda = "10.2"\n', False, False, ["TE705"]),
        ('platforms = ["linux-64"]\n[system]\ncuda-toolkit = "12.1.*"\n', True, True, []),
        ('platforms = ["linux-64"]\n[system]\ncuda-toolkit = "12.4.*"\n', False, None, ["TE309"]),
        (
            'platforms = ["linux-64"]\n[requirements]\ncuda = "12.1"\n[system]\ncuda-toolkit = "12.4.*"\n',
            *(False, True, ["TE309"]),
        ),
    ],
)
def test_build_is_no_where_the_manifest_forbids_it(
    manifest: str, build: bool, run: bool, codes: list[str], here: Path, tmp_path: Path
) -> None:
    (here / "manifests" / "own.toml").write_text(manifest)
    cuda = {"path": "/opt/cuda", "found_by": led_json("CUDA_HOME"), "version": "12.1"}
    file = write(tmp_path / "host.json", report("535.104.12", toolkits=[cuda]))
    ended = call("check-driver", "own", "--host-report", file, "--json")
    (row,) = ended.data["targets"]
    assert (row["build"], row["run"], ended.status) == (build, run, 0 if run else 1)
    assert [finding["code"] for finding in json.loads(ended.out)["findings"]] == codes
    assert call("check-driver", "own", "--host-report", file, "--build-only").status == (0 if build else 1)
    told = call("check-driver", "own", "--host-report", file).out.splitlines()[2].split()
    assert told[-3:-1] == [{True: "yes", False: "no", None: "unknown"}[answer] for answer in (build, run)]
    assert call("check", "own", "--host-report", file, "--json").data["build"] is build


def test_the_list_names_the_errors_besides_the_minimum_driver(here: Path, tmp_path: Path) -> None:
    (here / "manifests" / "old.toml").write_text('platforms = ["linux-64"]\n[requirements]\ncuda = "11.7"\n')
    (here / "manifests" / "other.toml").write_text('platforms = ["win-64"]\n')
    words = ("check-driver", "--assume-driver", "580.159.04", "--assume-gpu")
    told = call(*words, "H200").out.partition("Errors besides CUDA's minimum driver")[2]
    rows = dict(line.strip().split(": ", 1) for line in told.splitlines()[1:])
    targets, toolkits = rows["TE202"].split("; toolkits ")
    assert "old" in targets.split(", ")
    assert "11.7.1" in toolkits.split(", ")
    assert "11.8.0" not in toolkits
    assert "other" in rows["TE705"].split(", ")
    old = call(*words, "GTX 1080").out.partition("Errors besides")[2]
    assert "11.7.1" not in old
    assert "toolkits 13.5.0" in old


def test_a_toolkit_that_nobody_looked_for_is_unknown(here: Path, tmp_path: Path) -> None:
    (here / "manifests" / "own.toml").write_text('platforms = ["linux-64"]\n[system]\ncuda-toolkit = "12.4.*"\n')
    file = write(tmp_path / "host.json", report("535.104.12", toolkits=""))
    ended = call("check-driver", "own", "--host-report", file, "--json", "--build-only")
    assert (ended.data["targets"][0]["build"], ended.status) == (None, 1)
    assert [finding["severity"] for finding in json.loads(ended.out)["findings"]] == ["warning"]


def test_the_toolkit_of_this_machine_counts(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'platforms = ["linux-64"]\n[requirements]\ncuda = "12.1"\n[system]\ncuda-toolkit = "12.1.*"\n'
    (here / "manifests" / "own.toml").write_text(text)
    collected(monkeypatch, toolkits=Fact((), "nowhere"))
    (row,) = call("check-driver", "own", "--json").data["targets"]
    assert (row["build"], row["run"]) == (False, True)


def test_a_fleet_tells_where_nothing_is_built(here: Path, tmp_path: Path) -> None:
    (here / "manifests" / "other.toml").write_text('platforms = ["win-64"]\n')
    file = write(tmp_path / "m" / "a.json", report("535.104.12"))
    ended = call("check-driver", "other", "--against", file)
    assert (ended.status, ended.out.splitlines()[1].split()[-2:]) == (1, ["no", "native"])
    assert call("check-driver", "--against", file).status == 0


OLD_LIBC = report("580.65.06", "NVIDIA H200", "9.0", libc="2.27")


def test_a_libc_that_is_too_old_counts(here: Path, tmp_path: Path) -> None:
    text = 'platforms = ["linux-64"]\n[requirements]\ncuda = "13.0"\nglibc = "2.28"\n'
    (here / "manifests" / "new.toml").write_text(text)
    file = write(tmp_path / "host.json", OLD_LIBC)
    ended = call("check-driver", "new", "--host-report", file, "--json")
    (row,) = ended.data["targets"]
    assert (row["build"], row["run"], row["verdict"], ended.status) == (False, False, "native", 1)
    assert [finding["code"] for finding in json.loads(ended.out)["findings"]] == ["TE502"]
    assert call("check-driver", "new", "--host-report", file, "--build-only").status == 1
    table = call("check-driver", "--host-report", file).out
    assert "new" in table.partition("\n  TE502: ")[2].partition("\n")[0].split(", ")
    file = write(tmp_path / "host.json", {**OLD_LIBC, "libc": {"value": "2.28", "origin": "test"}})
    assert call("check-driver", "new", "--host-report", file).status == 0


def test_findings_that_leave_the_answers_are_for_check(here: Path, tmp_path: Path) -> None:
    disk = {"path": "/home", "free": 500 << 30, "file_system": "nfs4"}
    file = write(tmp_path / "host.json", report("515.76", disk=disk))
    driver, whole = (
        [finding["code"] for finding in json.loads(call(*words, "--host-report", file, "--json").out)["findings"]]
        for words in (("check-driver", "cuda118"), ("check", "cuda118"))
    )
    assert (driver, whole) == (["TE102"], ["TE102", "TE703"])
