"""What single rules say, beside the limits that each of them is held to (`test_rule_family`)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenv.checks.rules.catalogue import RULES
from tenv.core.versions import Version
from tenv.facts.table_files import LAYOUTS
from tenv.facts.tables import Facts, load_facts
from tenv.host.interface import Missing
from tests.checks.rules.cases import case, conda, found, gpu, gxx, host, limits_of, wheel
from tests.support.each import each

A100, GTX = gpu("NVIDIA A100-SXM4-80GB", "8.0"), gpu("NVIDIA GeForce GTX 1660 Ti", "7.5")


def test_nothing_that_is_missing_is_an_error() -> None:
    nothing: dict[str, Any] = {name: Missing("no") for name in host().__slots__ if name not in ("platform", "cuda")}
    assert [f.code for rule in RULES for f in rule(case(**nothing))] == ["TE101"]
    assert [f.code for rule in RULES for f in rule(case())] == []


def test_a_geforce_is_told_why_forward_compatibility_is_closed() -> None:
    (finding,) = found("TE103", case(driver=Version("535.104.05"), gpus=(GTX,)))
    assert "GeForce GPUs do not support" in finding.message


def test_a_gpu_without_a_driver_is_known_by_its_pci_id() -> None:
    (finding,) = found("TE201", case(gpus=(gpu("", None, "10de:102d"),)))
    assert finding.subject == "Tesla K80"
    assert "PCI id 10de:102d" in finding.evidence


@each(
    "torch, platform, packages, severity, said",
    [
        ("2.6.0", "linux-64", {}, "error", "fails with PyTorch 2.6.0: CMake 4 has dropped the policies before 3.5"),
        ("2.6.0", "win-64", {"wheels": (wheel("six", "1.17.0"),)}, "error", "fails with PyTorch 2.6.0"),
        ("2.6.0", "linux-64", {"manifest": {"environment": {"CMAKE_POLICY_VERSION_MINIMUM": "3.5"}}}, "", ""),
        ("2.7.1", "linux-64", {}, "warning", "which NNPACK's download of six requires"),
        ("2.15.0", "linux-64", {}, "warning", "which NNPACK's download of six requires"),
        ("2.7.1", "linux-64", {"wheels": (wheel("six", "1.17.0"),)}, "", ""),
        ("2.7.1", "linux-64", {"conda": (conda("six", "1.17.0"),)}, "", ""),
        ("2.7.1", "linux-aarch64", {}, "", ""),
        ("2.7.1", "win-64", {}, "", ""),
    ],
)
def test_a_new_cmake(torch: str, platform: str, packages: dict[str, Any], severity: str, said: str) -> None:
    wheels = (wheel("cmake", "4.0.0"), *packages.get("wheels", ()))
    findings = found("TE603", case(torch=torch, platform=platform, **{**packages, "wheels": wheels}))
    assert [str(finding.severity) for finding in findings] == ([severity] if said else [])
    assert all(said in finding.message and "POLICY_VERSION_MINIMUM" in finding.fix for finding in findings)


def test_without_another_compiler_the_package_is_named() -> None:
    (finding,) = found("TE402", case("12.6", compilers=(gxx("14.2.0"),)))
    assert "apt install g++-13" in finding.fix


def test_a_row_that_is_not_confirmed_says_so() -> None:
    (finding,) = found("TE402", case("10.0", compilers=(gxx("8.4.0"),)))
    assert finding.message.endswith("(not confirmed)")


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """The tables with no row confirmed."""
    folder = tmp_path_factory.mktemp("doubtful")
    for name in LAYOUTS:
        file = Path(__file__).parents[3] / "src" / "tenv" / "facts" / "data" / f"{name}.toml"
        text = file.read_text(encoding="utf-8").replace("confirmed = true", "confirmed = false")
        (folder / file.name).write_text(text, encoding="utf-8")
    return load_facts((folder,))


STANDS_ON_A_ROW = (
    *("TE101", "TE102", "TE103", "TE105", "TE201", "TE202", "TE305", "TE402", "TE403", "TE501", "TE503"),
    *("TE601", "TE602", "TE603"),
)


@each("code", STANDS_ON_A_ROW)
def test_what_stands_on_a_row_that_is_not_confirmed_says_so(code: str, doubtful: Facts) -> None:
    asked = case(**limits_of(code).speaks)
    (sure, *_), (unsure, *_) = found(code, asked), found(code, replace(asked, facts=doubtful))
    assert "not confirmed" not in sure.message
    assert "not confirmed" in unsure.message
    assert unsure.source == sure.source


def test_what_is_inferred_of_an_old_toolkit_says_so() -> None:
    for cuda, said in (("11.6", True), ("11.7", False)):
        (finding,) = found("TE501", case(cuda, libc=Version("2.41")))
        assert ("(not confirmed: inferred from the headers of 11.7" in finding.message) is said


def test_the_fix_for_glibc_is_a_cuda_that_works_with_it() -> None:
    (finding,) = found("TE501", case("12.6", libc=Version("2.42")))
    assert finding.fix.startswith("choose a target with a CUDA newer than 13.1, ")


def test_a_gpu_without_a_driver_is_told_which_one_to_install() -> None:
    lonely: dict[str, Any] = {"driver": Missing("no probe answered"), "gpus": (gpu("", None, "10de:2182"),)}
    (finding,) = found("TE101", case("12.1", **lonely))
    assert "for the GeForce GTX 1660 Ti of this host" in finding.message
    assert finding.fix == (
        "install NVIDIA driver 525.60.13 or newer (better 530.30.02 or newer, which supports all of CUDA 12.1), "
        "and reboot"
    )


def test_the_architectures_to_build_for_are_those_of_the_machine() -> None:
    (finding,) = found("TE102", case("11.8", driver=Version("515.76"), gpus=(A100, GTX)))
    assert finding.fix == 'build with TORCH_CUDA_ARCH_LIST="7.5;8.0", or install driver 520.61.05 or newer'


@each(
    "compilers, fix",
    [
        ((gxx("7.5.0"),), "install GCC 9.4.0 to 12, such as g++-9 ("),
        (
            (gxx("7.5.0"), gxx("10.2.1", "/usr/bin/g++-10", default=False)),
            "export CXX=/usr/bin/g++-10 CC=/usr/bin/gcc-10",
        ),
        ((gxx("7.5.0"), gxx("13.1.0", "/usr/bin/g++-13", default=False)), "install GCC 9.4.0 to 12, such as g++-9 ("),
    ],
)
def test_a_g_plus_plus_in_place_of_an_old_one_suits_nvcc_too(compilers: tuple[Any, ...], fix: str) -> None:
    (finding,) = found("TE403", case("12.1", torch="2.4.1", compilers=compilers))
    assert finding.fix.startswith(fix)


def test_a_g_plus_plus_in_place_of_a_new_one_suits_pytorch_too() -> None:
    old = gxx("8.4.0", "/usr/bin/g++-8", default=False)
    (finding,) = found("TE402", case("12.1", torch="2.4.1", compilers=(gxx("13.2.0"), old)))
    assert finding.fix.startswith("install GCC 9.4.0 to 12, such as g++-12 (")
    (finding,) = found("TE402", case("12.1", compilers=(gxx("13.2.0"), old)))
    assert finding.fix == "export CUDAHOSTCXX=/usr/bin/g++-8 NVCC_CCBIN=/usr/bin/g++-8"


def test_where_only_nvidia_s_guide_excludes_a_g_plus_plus_it_is_a_warning() -> None:
    findings = [found("TE403", case("12.6", compilers=(gxx(version),))) for version in ("5.5.0", "6.1.0")]
    assert [[str(finding.severity) for finding in row] for row in findings] == [["warning"], []]
