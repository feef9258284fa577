import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tenv.host.interface import Missing
from tenv.host.report import Disk, Libstdcxx
from tenv.rules.catalogue import RULES
from tenv.versions import Range, Version

_spec = importlib.util.spec_from_file_location("rule_cases", Path(__file__).with_name("cases.py"))
assert _spec
assert _spec.loader
cases = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = cases
_spec.loader.exec_module(cases)
case, found, gpu, gxx, toolkit, wheel = (
    getattr(cases, name) for name in ("case", "found", "gpu", "gxx", "toolkit", "wheel")
)

PAGES = Path(__file__).parents[2] / "docs" / "rules"
GIB = 1 << 30
NFS = Disk("/nfs/me", 500 * GIB, "nfs4")
A100, GTX, K80 = gpu("NVIDIA A100-SXM4-80GB", "8.0"), gpu("NVIDIA GeForce GTX 1660 Ti", "7.5"), gpu("Tesla K80", "3.7")
HOME, OTHER = toolkit("/usr/local/cuda-12.4", "12.4", "CUDA_HOME"), toolkit("/opt/cuda", "13.0", "nvcc on PATH")
OLD_LIBRARY = Libstdcxx("/usr/lib64/libstdc++.so.6.0.29", Version("3.4.29"), Version("1.3.13"))

# code: severity, what makes the rule speak (its page's example), what is just on the other side of the limit
LIMITS: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]]]] = {
    "TE105": (
        "note",
        {"driver": Version("535.104.05")},
        [{}, {"driver": Version("535.104.05"), "gpus": (A100, GTX)}, {"driver": Version("530.30.02")}, {"cuda": None}],
    ),
    "TE201": ("error", {"gpus": (K80,)}, [{"gpus": (GTX,)}, {"gpus": (K80,), "cuda": "11.8"}, {"gpus": ()}]),
    "TE202": (
        "warning",
        {"cuda": "11.8", "gpus": (gpu("NVIDIA B200", "10.0"),)},
        [{"cuda": "11.8", "gpus": (gpu("NVIDIA H100", "9.0"),)}, {"gpus": (gpu("NVIDIA B200", "10.0"),)}],
    ),
    "TE203": ("note", {"gpus": (A100, GTX)}, [{"gpus": (A100, A100)}, {"gpus": Missing("no")}, {"cuda": None}]),
    "TE304": (
        "warning",
        {"toolkits": (HOME, OTHER)},
        [{"toolkits": (HOME,)}, {"toolkits": (toolkit("/a", "13.0", "CUDA_HOME", "nvcc on PATH"),)}, {"toolkits": ()}],
    ),
    "TE305": (
        "warning",
        {"wheels": (wheel("nvidia-cusparselt-cu13", "0.7.1"), wheel("nvidia-cudnn-cu13", "8.9.7.29"))},
        [{"wheels": (wheel("nvidia-cudnn-cu13", "9.27.0.1"),)}, {"wheels": (wheel("nvidia-cudnn-cu13", "99.1.0"),)}],
    ),
    "TE309": (
        "error",
        {"cuda": None, "toolkits": (OTHER,), "manifest": {"system": {"cuda-toolkit": Range("12.1.*")}}},
        [
            {"cuda": None, "toolkits": (OTHER,), "manifest": {"system": {"cuda-toolkit": Range("*")}}},
            {"cuda": None, "toolkits": Missing("no"), "manifest": {"system": {"cuda-toolkit": Range("12.1.*")}}},
            {"manifest": {"system": {"mpi": Range("*")}}},
        ],
    ),
    "TE401": (
        "error",
        {"compilers": ()},
        [{}, {"compilers": Missing("no")}, {"compilers": (gxx("18.1", "/usr/bin/clang++", kind="clang++"),)}],
    ),
    "TE402": (
        "error",
        {"cuda": "12.6", "compilers": (gxx("14.2.0"), gxx("13.3.0", "/usr/bin/g++-13", default=False))},
        [{"cuda": "12.6"}, {"compilers": (gxx("15.2.0"),)}, {"cuda": None, "compilers": (gxx("16.1.0"),)}],
    ),
    "TE403": (
        "error",
        {"cuda": "12.1", "torch": "2.4.1", "compilers": (gxx("7.5.0"),)},
        [
            {"cuda": "12.1", "torch": "2.4.1", "compilers": (gxx("9.4.0"),)},
            {"cuda": "12.1", "compilers": (gxx("7.5.0"),)},
        ],
    ),
    "TE404": ("note", {"compilers": (gxx("13.3.0"), gxx("12.3.0", "/usr/bin/g++-12", default=False))}, [{}]),
    "TE501": (
        "error",
        {"cuda": "12.6", "libc": Version("2.41")},
        [{"cuda": "12.6", "libc": Version("2.40")}, {"libc": Version("2.41")}, {"libc": Missing("no")}],
    ),
    "TE502": ("error", {"libc": Version("2.27")}, [{"libc": Version("2.28")}, {"libc": Missing("no")}]),
    "TE503": (
        "error",
        {"compilers": (gxx("12.3.0"),), "libstdcxx": OLD_LIBRARY},
        [
            {"compilers": (gxx("11.4.0"),), "libstdcxx": OLD_LIBRARY},
            {"compilers": (gxx("12.2.1", "/opt/rh/gcc-toolset-12/root/usr/bin/g++"),), "libstdcxx": OLD_LIBRARY},
            {"libstdcxx": Missing("no")},
        ],
    ),
    "TE601": ("error", {"cuda": "11.8", "torch": "2.15.0"}, [{"cuda": "13.0", "torch": "2.15.0"}, {"cuda": "11.8"}]),
    "TE602": (
        "error",
        {"torch": "2.12.0", "manifest": {"python": Range("3.9.*")}},
        [{"torch": "2.12.0", "manifest": {"python": Range(">=3.11,<3.13")}}, {"manifest": {"python": Range("3.9.*")}}],
    ),
    "TE603": (
        "error",
        {"torch": "2.12.0", "wheels": (wheel("cmake", "3.16.3"),)},
        [{"torch": "2.12.0", "wheels": (wheel("cmake", "4.4.4"),)}, {"wheels": (wheel("cmake", "3.16.3"),)}],
    ),
    "TE604": ("warning", {"torch": "2.0.1"}, [{"torch": "2.1.0"}, {"torch": "2.15.0"}, {}]),
    "TE701": ("warning", {"memory": 4 * GIB}, [{"memory": 9 * GIB // 2}, {"memory": 4 * GIB, "cuda": None}]),
    "TE702": (
        "error",
        {"wheels": (wheel("nvidia-cublas", "13.1", 3 * GIB),), "disk": Disk("/home/me", 6 * GIB - 1, "ext4")},
        [{"wheels": (wheel("nvidia-cublas", "13.1", 3 * GIB),), "disk": Disk("/home/me", 6 * GIB, "ext4")}],
    ),
    "TE703": ("warning", {"disk": NFS}, [{}, {"disk": Missing("no")}]),
}


@pytest.mark.parametrize("code", LIMITS)
def test_both_sides_of_each_limit(code: str) -> None:
    severity, wrong, right = LIMITS[code]
    findings = found(code, case(**wrong))
    assert findings
    assert {(finding.code, str(finding.severity)) for finding in findings} == {(code, severity)}
    assert [found(code, case(**changes)) for changes in right] == [[] for _ in right]


@pytest.mark.parametrize("code", LIMITS)
def test_the_example_of_each_page_is_what_the_rule_says(code: str) -> None:
    block = re.search(r"```json\n(.*?)```", (PAGES / f"{code}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block
    assert json.loads(block[1]) == found(code, case(**LIMITS[code][1]))[0].to_json()


def test_every_code_is_once_in_the_catalogue_and_tested() -> None:
    codes = [rule.code for rule in RULES]
    assert len(codes) == len(set(codes))
    assert set(codes) == set(LIMITS) | {"TE101", "TE102", "TE103", "TE104", "TE301", "TE302", "TE303"}


def test_nothing_that_is_missing_is_an_error() -> None:
    nothing = {name: Missing("no") for name in cases.host().__slots__ if name not in ("platform", "cuda")}
    assert [f.code for rule in RULES for f in rule.find(case(**nothing))] == ["TE101"]
    assert [f.code for rule in RULES for f in rule.find(case())] == []


def test_a_geforce_is_told_why_forward_compatibility_is_closed() -> None:
    (finding,) = found("TE103", case(driver=Version("535.104.05"), gpus=(GTX,)))
    assert "closed to GeForce" in finding.message


def test_a_gpu_without_a_driver_is_known_by_its_pci_id() -> None:
    (finding,) = found("TE201", case(gpus=(gpu("", None, "10de:102d"),)))
    assert finding.subject == "Tesla K80"
    assert "PCI id 10de:102d" in finding.evidence


def test_a_new_cmake_and_an_old_revision() -> None:
    for torch, severities in (("2.7.1", ["warning"]), ("2.8.0", [])):
        findings = found("TE603", case(torch=torch, wheels=(wheel("cmake", "4.0.0"),)))
        assert [str(finding.severity) for finding in findings] == severities


def test_without_another_compiler_the_package_is_named() -> None:
    (finding,) = found("TE402", case("12.6", compilers=(gxx("14.2.0"),)))
    assert "apt install g++-13" in finding.fix


def test_a_row_that_is_not_confirmed_says_so() -> None:
    (finding,) = found("TE402", case("10.0", compilers=(gxx("8.4.0"),)))
    assert finding.message.endswith("(not confirmed)")


def test_where_only_nvidia_s_guide_excludes_a_g_plus_plus_it_is_a_warning() -> None:
    findings = [found("TE403", case("12.6", compilers=(gxx(version),))) for version in ("5.5.0", "6.1.0")]
    assert [[str(finding.severity) for finding in row] for row in findings] == [["warning"], []]
