"""`tenv create auto`: the best target of a machine, with its reasons."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.check_hosts import report, write
from tests.support.found_by import led_json
from tests.support.projects import Ended, Project, call

pytestmark = pytest.mark.long

RANGES = {"cuda118": ("11.8", ""), "cuda124": ("12.4", ""), "cuda130": ("13.0", ">=2.9"), "cuda132": ("13.2", ">=2.12")}
H100, GTX = "NVIDIA H100", "NVIDIA GeForce GTX 1660 Ti"


@pytest.fixture
def targets(locked: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with targets for four releases of CUDA and one without, all locked with the same small wheels.

    There are no others: the built-in ones are hidden.
    """
    monkeypatch.setattr("tenv.targets.search._built_in", lambda: locked.folder / "none")
    text, lock = locked.manifest.read_text(), locked.lock.read_text()
    for name, (cuda, pytorch) in {**RANGES, "cpu": ("", "")}.items():
        made = text.replace('glibc = "2.17"', f'glibc = "2.17"\ncuda = "{cuda}"') if cuda else text
        made = made.replace("platforms ", f'pytorch = "{pytorch}"\nplatforms ') if pytorch else made
        locked.manifest.with_name(f"{name}.toml").write_text(made)
        requirement = f"\n    cuda: '{cuda}'\n    glibc" if cuda else "\n    glibc"
        made = lock.replace("target: tiny", f"target: {name}").replace("tiny:", f"{name}:")
        locked.lock.with_name(f"{name}.lock").write_text(made.replace("\n    glibc", requirement))
    locked.manifest.unlink()
    locked.lock.unlink()
    return locked


@pytest.fixture
def auto(targets: Project, tmp_path: Path) -> Any:
    """Run `create auto` for a machine."""

    def run(driver: str = "", gpu: str = "", *words: str, capability: str = "9.0", **more: Any) -> Ended:
        file = write(tmp_path / "host.json", report(driver, gpu, capability, **more))
        return call("create", "auto", "--host-report", file, *words)

    return run


def said(ended: Ended) -> list[str]:
    return [line for line in ended.err.splitlines() if line.startswith("auto: ")]


@pytest.mark.parametrize(
    ("driver", "pytorch", "taken", "how", "fallen"),
    [
        ("595.58.03", "", "cuda132", "natively", []),
        ("580.65.06", "", "cuda132", "by minor-version compatibility", []),
        ("580.65.06", "2.11", "cuda130", "natively", ["cuda132"]),
        ("580.65.06", "2.8", "cuda124", "natively", ["cuda132", "cuda130"]),
        ("550.54.14", "", "cuda124", "natively", ["cuda132", "cuda130"]),
        ("525.60.13", "", "cuda124", "by minor-version compatibility", ["cuda132", "cuda130"]),
        ("525.60.12", "", "cuda118", "natively", ["cuda132", "cuda130", "cuda124"]),
        ("450.80.02", "", "cuda118", "by minor-version compatibility", ["cuda132", "cuda130", "cuda124"]),
    ],
)
def test_the_newest_cuda_that_runs_is_taken(
    driver: str, pytorch: str, taken: str, how: str, fallen: list[str], auto: Any, targets: Project
) -> None:
    words = ("--pytorch", pytorch) if pytorch else ()
    ended = auto(driver, GTX, *words, "--json", capability="7.5")
    data = json.loads(ended.out)["data"]
    assert (ended.status, data["target"], data["auto"]["target"]) == (0, taken, taken)
    assert data["prefix"] == str(targets.prefix.with_name(taken))
    lines = said(ended)
    cuda = RANGES[taken][0]
    revision = f", for PyTorch {pytorch}" if pytorch else ""
    assert lines[0] == f"auto: {taken}, since CUDA {cuda} runs {how} on driver {driver}{revision}"
    parts = [part for line in lines[1:] for part in line.removeprefix("auto: ").partition(", since ")[0].split(", ")]
    assert [part.removeprefix("not ").removeprefix("nor ") for part in parts if part != "for the same reason"] == fallen


def test_a_reason_with_other_numbers_is_given_once(auto: Any) -> None:
    lines = said(auto("525.60.12", GTX, capability="7.5"))
    heads = ["auto: cuda118", "auto: not cuda132", "auto: nor cuda130", "auto: not cuda124"]
    assert [line.partition(",")[0] for line in lines] == heads
    assert lines[2] == "auto: nor cuda130, for the same reason"


def test_each_reason_is_one_line(auto: Any) -> None:
    lines = said(auto("550.54.14", GTX, "--pytorch", "2.11", capability="7.5"))
    assert lines == [
        "auto: cuda124, since CUDA 12.4 runs natively on driver 550.54.14, for PyTorch 2.11",
        "auto: not cuda132, since it is for PyTorch >=2.12, and the revision is 2.11",
        "auto: not cuda130, since CUDA 13.0: the driver is too old: running needs NVIDIA driver 580 or newer; "
        "cuda-compat-13-0 does not help: GeForce GPUs do not support forward compatibility "
        "(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) (TE103)",
    ]


def test_the_ranking_is_data(auto: Any) -> None:
    ranking = auto("580.65.06", H100, "--pytorch", "2.11", "--json").data["auto"]["ranking"]
    assert [row["target"] for row in ranking][:4] == ["cuda132", "cuda130", "cuda124", "cuda118"]
    assert ranking[0] == {
        "target": "cuda132",
        "cuda": "13.2",
        "verdict": "minor-version",
        "suits": False,
        "reason": "it is for PyTorch >=2.12, and the revision is 2.11",
    }
    cpu = next(row for row in ranking if row["target"] == "cpu")
    assert cpu["reason"] == "it has no CUDA, so it leaves NVIDIA H100 unused"


def test_without_a_gpu_it_is_the_target_without_cuda_and_it_says_so(auto: Any) -> None:
    ended = auto()
    assert ended.status == 0
    assert said(ended) == ["auto: cpu, since the host has no NVIDIA GPU (test), and the target needs none"]
    reasons = {row["target"]: row["reason"] for row in auto("", "", "--json").data["auto"]["ranking"]}
    assert reasons["cuda130"] == "it has CUDA 13.0, and the host has no NVIDIA GPU (test)"


@pytest.mark.parametrize(
    ("driver", "fix"), [("418.39", "install NVIDIA driver 580 or newer"), ("", "NVIDIA driver 580 or newer")]
)
def test_a_gpu_never_falls_back_in_silence(driver: str, fix: str, auto: Any, targets: Project) -> None:
    ended = auto(driver, GTX, capability="7.5")
    assert ended.status == 4
    assert f"error[no-target]: no target with CUDA suits this host ({GTX}):\n  cuda132: CUDA 13.2: " in ended.err
    hint = ended.err.partition("\nhint: ")[2]
    assert hint.startswith("for `cuda132`: ")
    assert fix in hint
    assert "`tenv create cpu` uses no CUDA and leaves the GPU unused" in hint
    assert not targets.prefix.parent.exists()
    found = json.loads(auto(driver, GTX, "--json", capability="7.5").out)
    assert found["error"]["code"] == "no-target"
    assert found["data"]["auto"]["target"] is None
    assert not any(row["suits"] for row in found["data"]["auto"]["ranking"] if row["cuda"])


def test_what_can_not_be_built_here_falls_out(auto: Any) -> None:
    gcc14 = {
        "kind": "g++",
        "path": "/usr/bin/g++",
        "version": "14.2.0",
        "default": True,
        "found_by": led_json("g++ on PATH"),
    }
    machine = {"compilers": [gcc14], "libstdcxx": {"path": "/usr/lib/x", "glibcxx": "3.4.33", "cxxabi": "1.3.15"}}
    lines = said(auto("580.65.06", H100, "--pytorch", "2.9", **machine))
    assert lines[0].startswith("auto: cuda130, ")
    reasons = json.loads(auto("550.54.14", H100, "--json", **machine).out)["data"]["auto"]["ranking"]
    assert "(TE402)" in next(row["reason"] for row in reasons if row["target"] == "cuda124")


def test_what_has_no_lock_falls_out(auto: Any, targets: Project) -> None:
    targets.lock.with_name("cuda132.lock").unlink()
    lines = said(auto("580.65.06", H100))
    assert lines[0].startswith("auto: cuda130, ")
    assert lines[1].startswith("auto: not cuda132, since there is no lock for `cuda132`")


def test_a_checkout_in_the_working_folder_counts(auto: Any, targets: Project) -> None:
    (targets.folder / "version.txt").write_text("2.11.0a0\n")
    (targets.folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.27)\nproject(Torch CXX C)\n")
    assert said(auto("580.65.06", H100))[0] == (
        "auto: cuda130, since CUDA 13.0 runs natively on driver 580.65.06, for PyTorch 2.11.0a0"
    )


def test_an_override_counts_as_a_driver(auto: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "12.4")
    assert said(auto("", "", "--quiet")) == []
    ended = auto()
    assert said(ended)[0] == "auto: cuda124, since CUDA 12.4 runs natively on driver 550.54.14"
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    assert said(auto("580.65.06", H100))[0] == (
        "auto: cpu, since CONDA_OVERRIDE_CUDA is empty, which means no CUDA, and the target needs none"
    )


@pytest.mark.parametrize("text", ["cuda12.4", "99.9"])
def test_an_override_of_no_use_chooses_nothing(text: str, auto: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", text)
    ended = auto()
    assert (ended.status, said(ended)) == (2, [])
    assert f"(CONDA_OVERRIDE_CUDA is {f'`{text}`' if text.startswith('c') else text}" in ended.err
    assert "hint: export CONDA_OVERRIDE_CUDA=12.4 (" in ended.err
    ended = auto("580.65.06", H100)
    assert said(ended)[0].startswith("auto: cuda132, since ")
    assert ("warning[TE107]" in ended.err) is text.startswith("c")


def test_a_gpu_that_is_left_unused_is_told(auto: Any) -> None:
    gpus = [
        {"name": H100, "compute_capability": "9.0", "memory": None},
        {"name": "Tesla V100", "compute_capability": "7.0", "memory": None},
    ]
    assert said(auto("580.65.06", gpus=gpus))[0] == (
        "auto: cuda132, since CUDA 13.2 runs by minor-version compatibility on driver 580.65.06; it has no code "
        "for Tesla V100 (TE201)"
    )
    assert said(auto("580.65.06", gpus=gpus[1:]))[0].startswith("auto: cuda124, since CUDA 12.4 runs natively")
    assert auto("595.58.03", gpus=gpus[1:]).status == 4  # branch 590 has dropped the V100


def test_a_gpu_that_is_newer_than_the_toolkit_is_told(auto: Any) -> None:
    gpus = [
        {"name": H100, "compute_capability": "9.0", "memory": None},
        {"name": "NVIDIA GeForce RTX 5090", "compute_capability": "12.0", "memory": None},
    ]
    assert said(auto("570.86.10", gpus=gpus))[0] == (
        "auto: cuda124, since CUDA 12.4 runs natively on driver 570.86.10; it has no code for "
        "NVIDIA GeForce RTX 5090 (TE202)"
    )
    assert auto("570.86.10", gpus=gpus[1:]).status == 4


def test_on_a_platform_of_no_target_no_other_machine_is_advised(auto: Any) -> None:
    ended = auto(platform="osx-arm64")
    assert (ended.status, "hint: `tenv targets` lists the targets" in ended.err) == (4, True)
    ended = auto(compilers=[])
    assert (ended.status, "selects a target for a host with a GPU, built here" in ended.err) == (4, True)


def test_forward_compatibility_is_not_taken_for_granted(auto: Any, targets: Project) -> None:
    for name in ("cuda118", "cuda124"):
        targets.manifest.with_name(f"{name}.toml").unlink()
    ended = auto("535.104.05", "NVIDIA A100-SXM4-80GB", capability="8.0")
    assert ended.status == 4
    assert "cuda130: CUDA 13.0 runs only by forward compatibility on driver 535.104.05" in ended.err
    assert "install cuda-compat-13-" in ended.err


@pytest.mark.parametrize("words", [("lock", "auto"), ("check-driver", "auto"), ("update", "auto")])
def test_only_create_takes_it(words: tuple[str, ...], targets: Project) -> None:
    err = targets.fails(2, "usage", *words)
    assert "`auto` is not a target; only `tenv create` and `tenv check` take it" in err


def test_a_target_of_that_name_is_refused(targets: Project) -> None:
    shutil.copy(targets.manifest.with_name("cpu.toml"), targets.manifest.with_name("auto.toml"))
    for words in (("create", "auto"), ("lock", "auto")):
        err = targets.fails(3, "manifest", *words)
        assert "manifests/auto.toml: a target can't have the name `auto`" in err
    assert "auto: manifests/auto.toml: a target can't have the name `auto`" in targets.ok("targets").err


def system_target(targets: Project, name: str = "here") -> None:
    """Add a target that takes whatever toolkit the machine has."""
    manifest = targets.manifest.with_name("cpu.toml").read_text()
    targets.manifest.with_name(f"{name}.toml").write_text(f'{manifest}\n[system]\ncuda-toolkit = "*"\n')
    lock = targets.lock.with_name("cpu.lock").read_text()
    targets.lock.with_name(f"{name}.lock").write_text(
        lock.replace("target: cpu", f"target: {name}").replace("cpu:", f"{name}:")
    )


def toolkit_of(version: str) -> dict[str, Any]:
    return {"toolkits": [{"path": "/usr/local/cuda", "found_by": led_json("/usr/local/cuda"), "version": version}]}


def test_a_target_with_the_machine_s_toolkit_is_one_with_cuda(auto: Any, targets: Project) -> None:
    system_target(targets)
    ended = auto("", "", "--json", **toolkit_of("13.0"))
    assert said(ended) == ["auto: cpu, since the host has no NVIDIA GPU (test), and the target needs none"]
    reasons = {row["target"]: row["reason"] for row in ended.data["auto"]["ranking"]}
    assert reasons["here"] == "it has CUDA 13.0 of the host, and the host has no NVIDIA GPU (test)"


def test_a_target_with_the_machine_s_toolkit_is_the_last_that_is_taken(auto: Any, targets: Project) -> None:
    system_target(targets)
    assert said(auto("595.58.03", H100, **toolkit_of("13.5")))[0].startswith("auto: cuda132, ")
    for name in RANGES:
        targets.lock.with_name(f"{name}.lock").unlink()
    lines = said(auto("595.58.03", H100, **toolkit_of("13.0")))
    assert lines[0] == "auto: here, since CUDA 13.0 of the host runs natively on driver 595.58.03"
    ended = auto("595.58.03", H100, toolkits=[])
    assert ended.status == 4
    assert "\n  here: cuda-toolkit: the target resolves cuda-toolkit from the host, which has none" in ended.err


def test_of_two_targets_without_cuda_it_is_the_one_for_newer_revisions(auto: Any, targets: Project) -> None:
    for name, pytorch in {"a-1.10": ">=1.10,<1.11", "b": ">=2.8,<2.16"}.items():
        text = targets.manifest.with_name("cpu.toml").read_text()
        targets.manifest.with_name(f"{name}.toml").write_text(
            text.replace("platforms ", f'pytorch = "{pytorch}"\nplatforms ')
        )
        lock = targets.lock.with_name("cpu.lock").read_text()
        targets.lock.with_name(f"{name}.lock").write_text(
            lock.replace("target: cpu", f"target: {name}").replace("cpu:", f"{name}:")
        )
    targets.manifest.with_name("cpu.toml").unlink()
    assert said(auto())[0].startswith("auto: b, ")


def test_a_machine_without_a_gpu_may_choose_for_another_one(auto: Any, targets: Project) -> None:
    targets.manifest.with_name("cpu.toml").unlink()
    ended = auto()
    assert ended.status == 4
    assert (
        "hint: `--assume-driver VERSION` or `--host-report FILE` selects a target for a host with a GPU, built here"
        in ended.err
    )


def test_a_manifest_that_can_not_be_read_is_told(auto: Any, targets: Project) -> None:
    targets.manifest.with_name("best.toml").write_text("platforms = [")
    lines = said(auto("580.65.06", "NVIDIA H100", "--pytorch", "2.11"))
    assert lines[0] == (
        "auto: not best, since its manifest can't be read: "
        "manifests/best.toml: not TOML: Invalid value (at end of document)"
    )
    assert lines[1].startswith("auto: cuda130, since ")


def test_off_the_network_what_the_cache_lacks_falls_out(auto: Any, targets: Project) -> None:
    targets.ok("create", "cuda130")
    shutil.rmtree(targets.prefix.with_name("cuda130"))
    for name in ("cuda132", "cuda124"):  # a file that was never fetched
        lock = targets.lock.with_name(f"{name}.lock")
        lock.write_text(
            re.sub(r"(file: native-[^\n]*\n\s*sha256: )[0-9a-f]{64}", rf"\g<1>{'7' * 64}", lock.read_text())
        )
    ended = auto("595.58.03", H100, "--offline", "--json")
    assert ended.data["target"] == "cuda130"
    assert [row["target"] for row in ended.data["auto"]["ranking"] if row["suits"]][:1] == ["cuda130"]
    lines = said(ended)
    assert lines[0].startswith("auto: cuda132, ")
    assert lines[-2].startswith("auto: cuda130, since CUDA 13.0 runs ")
    assert lines[-1].startswith("auto: not cuda132, since `--offline`: ")
    assert len({*lines}) == len(lines)  # nothing is said twice when a target falls out
    assert max(map(len, lines)) < 300
    assert not targets.prefix.with_name("cuda132").exists()


def test_off_the_network_a_cache_that_serves_no_target_is_an_error(auto: Any, targets: Project) -> None:
    ended = auto("595.58.03", H100, "--offline")
    assert ended.status == 6
    assert "auto: not cuda118, since" not in ended.err
    assert re.search(r"auto: not cuda13\d, since `--offline`: ", ended.err)
