import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenv.checks.rules.catalogue import RULES
from tenv.core.versions import CondaRange, Range, Version
from tenv.facts.table_files import LAYOUTS
from tenv.facts.tables import Facts, load_facts
from tenv.host.interface import Fact, Missing
from tenv.host.report import Disk, Libstdcxx
from tenv.targets.manifest import CondaRequest

_spec = importlib.util.spec_from_file_location("rule_cases", Path(__file__).with_name("cases.py"))
assert _spec
assert _spec.loader
cases = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = cases
_spec.loader.exec_module(cases)
case, found, gpu, gxx, toolkit, wheel = (
    getattr(cases, name) for name in ("case", "found", "gpu", "gxx", "toolkit", "wheel")
)
archive, compat, conda, limits = (getattr(cases, name) for name in ("archive", "compat", "conda", "limits"))

PAGES = Path(__file__).parents[3] / "docs" / "rules"
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
        [{"torch": "2.12.0", "wheels": (wheel("cmake", "3.31.10"),)}, {"wheels": (wheel("cmake", "3.16.3"),)}],
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

GXX14 = gxx("14.2.0")
CUDNN8 = conda("cudnn", "8.9.7.29", "cuda-version >=12.0,<13")
CONDA_GXX = conda("gxx_linux-64", "12.4.0", "sysroot_linux-64")
SYSROOT = conda("sysroot_linux-64", "2.17")
SETUPTOOLS = (wheel("setuptools", "80.0"), wheel("ninja", "1.13"))
T4G = gpu("NVIDIA T4G", "7.5")
OLD_COMPAT = "/usr/local/cuda-12.4/compat/libcuda.so.550.54.14"

DEBUG = {"dependencies": {"cuda-gdb": CondaRequest(CondaRange("12.1.*"))}}
SOON = {"driver": Missing("no probe answered"), "offers": Fact(Version("99.9"), "CONDA_OVERRIDE_CUDA")}
LIMITS |= {
    "TE107": (
        "warning",
        {"offers": Missing("CONDA_OVERRIDE_CUDA is `cuda12.4`, which is no version")},
        [
            {"offers": Missing("CONDA_OVERRIDE_CUDA is empty, which means no CUDA")},
            {"offers": Missing("NVML: no libnvidia-ml.so.1")},
            {**SOON, "offers": Fact(Version("12.4"), "CONDA_OVERRIDE_CUDA")},
            {**SOON, "offers": Fact(Version("12.7"), "CONDA_OVERRIDE_CUDA")},
            {"offers": SOON["offers"]},
        ],
    ),
    "TE106": (
        "warning",
        {"compat": compat(OLD_COMPAT, "550.54.14")},
        [{}, {"compat": compat(OLD_COMPAT, "580.65.06")}, {"compat": compat(OLD_COMPAT, "550.54.14"), "cuda": None}],
    ),
    "TE204": (
        "warning",
        {"cuda": "12.6", "torch": "2.14.1", "gpus": (T4G,), "platform": "linux-aarch64"},
        [
            {"cuda": "12.6", "torch": "2.14.1", "gpus": (A100,), "platform": "linux-aarch64"},
            {"cuda": "12.6", "torch": "2.14.1", "gpus": (T4G,)},
            {"cuda": "12.6", "gpus": (T4G,), "platform": "linux-aarch64"},
        ],
    ),
    "TE306": (
        "error",
        {
            "cuda": "12.1",
            "conda": (conda("libcublas", "12.8.4.1"), conda("libcublas-dev", "12.1.0.26", channel="nvidia")),
        },
        [{"conda": (conda("libcublas", "12.1.0.26"), conda("libcublas-dev", "12.1.0.26"))}, {"conda": (SYSROOT,)}],
    ),
    "TE307": (
        "error",
        {"cuda": "13.0", "conda": (conda("magma-cuda121", "2.6.1", channel="pytorch"),)},
        [
            {"cuda": "12.1.1", "conda": (conda("magma-cuda121", "2.6.1"),)},
            {"cuda": None, "conda": (conda("magma-cuda121", "2.6.1"),)},
            {"conda": (conda("magma", "2.9.0"),)},
        ],
    ),
    "TE310": (
        "error",
        {"cuda": "12.8", "conda": (conda("cuda-nvcc_linux-64", "12.8.93"),)},
        [
            {"cuda": "12.8", "conda": (conda("cuda-nvcc_linux-64", "12.8.93"), conda("cuda-nvrtc-dev", "12.8.93"))},
            {"cuda": "11.8", "conda": (conda("cuda-nvcc", "11.8.89", channel="nvidia"),)},
            {"cuda": "13.0"},
        ],
    ),
    "TE308": (
        "warning",
        {
            "toolkits": (
                toolkit(
                    "/usr/local/cuda-12.1",
                    "12.8",
                    "/usr/local/cuda",
                    components=(("cuda_cudart", "12.1.105"), ("cuda_nvcc", "12.8.61")),
                    problems=("version.json says 12.1.1, nvcc says 12.8",),
                ),
            )
        },
        [
            {"toolkits": (toolkit("/a", "12.4", "CUDA_HOME", components=(("cuda_nvcc", "12.4.131"),)),)},
            {"toolkits": (toolkit("/a", "12.4", "/usr/local/cuda-12.4", problems=("there is no bin/nvcc in it",)),)},
            {"toolkits": Missing("no")},
        ],
    ),
    "TE504": (
        "warning",
        {"cuda": "12.1", "conda": (CONDA_GXX,)},
        [{"conda": (CONDA_GXX, SYSROOT)}, {"conda": (SYSROOT,)}, {}],
    ),
    "TE605": (
        "error",
        {
            "cuda": "12.1",
            "torch": "2.1.2",
            "manifest": {"environment": {"USE_CUSPARSELT": "1"}},
            "archives": (
                archive(
                    "cusparselt",
                    "0.6.0.6",
                    "https://developer.download.nvidia.com/compute/cusparselt/redist/libcusparse_lt/linux-x86_64/"
                    "libcusparse_lt-linux-x86_64-0.6.0.6-archive.tar.xz",
                ),
            ),
        },
        [
            {"torch": "2.1.2", "archives": (archive("cusparselt", "0.5.0.1", "https://x/a.tar.xz"),)},
            {"torch": "2.2.2", "archives": (archive("cusparselt", "0.6.0.6", "https://x/a.tar.xz"),)},
            {"archives": (archive("cusparselt", "0.6.0.6", "https://x/a.tar.xz"),)},
        ],
    ),
    "TE606": (
        "error",
        {"cuda": "11.8", "torch": "2.12.1"},
        [{"cuda": "12.0", "torch": "2.12.1"}, {"cuda": "11.8", "torch": "2.11.0"}, {"cuda": None, "torch": "2.12.1"}],
    ),
    "TE607": ("note", {"torch": "2.6.0"}, [{"torch": "2.7.1"}, {}, {"torch": "2.6.0", "platform": "win-64"}]),
    "TE608": (
        "warning",
        {"torch": "2.14.1", "wheels": SETUPTOOLS},
        [{"torch": "2.13.0", "wheels": SETUPTOOLS}, {"torch": "2.14.1"}, {"wheels": SETUPTOOLS}],
    ),
    "TE609": (
        "note",
        {"torch": "99.0"},
        [{}, {"torch": "2.15.0"}, {"torch": "2.15.0a0+git1234"}, {"torch": "2.9.99"}, {"torch": "1.8.0"}],
    ),
    "TE704": (
        "note",
        {"manifest": DEBUG, "ptrace_scope": 1},
        [
            {"manifest": DEBUG, "ptrace_scope": 0},
            {"manifest": DEBUG, "ptrace_scope": Missing("no Yama")},
            {"conda": (conda("cuda-gdb", "12.1.105"),), "ptrace_scope": 3},
            {"ptrace_scope": 3},
        ],
    ),
    "TE705": ("error", {"manifest": {"platforms": ("win-64",)}}, [{}, {"platform": "win-64"}]),
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


@pytest.mark.parametrize(
    ("torch", "platform", "packages", "said"),
    [
        ("2.6.0", "linux-64", {}, "submodules of PyTorch 2.6.0 ask for: its configuration fails"),
        ("2.6.0", "win-64", {"wheels": (wheel("six", "1.17.0"),)}, "submodules of PyTorch 2.6.0 ask for"),
        ("2.7.1", "linux-64", {}, "which NNPACK's download of six asks for"),
        ("2.15.0", "linux-64", {}, "which NNPACK's download of six asks for"),
        ("2.7.1", "linux-64", {"wheels": (wheel("six", "1.17.0"),)}, ""),
        ("2.7.1", "linux-64", {"conda": (conda("six", "1.17.0"),)}, ""),
        ("2.7.1", "linux-aarch64", {}, ""),
        ("2.7.1", "win-64", {}, ""),
    ],
)
def test_a_new_cmake(torch: str, platform: str, packages: dict[str, Any], said: str) -> None:
    wheels = (wheel("cmake", "4.0.0"), *packages.get("wheels", ()))
    findings = found("TE603", case(torch=torch, platform=platform, **{**packages, "wheels": wheels}))
    assert [str(finding.severity) for finding in findings] == (["warning"] if said else [])
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


STANDS_ON_A_ROW = {
    **{code: LIMITS[code][1] for code in ("TE105", "TE201", "TE202", "TE305", "TE402", "TE403", "TE501", "TE503")},
    **{code: LIMITS[code][1] for code in ("TE601", "TE602", "TE603")},
    "TE101": {"driver": Missing("no probe answered")},
    "TE102": {"driver": Version("580")},
    "TE103": {"driver": Version("515.76"), "cuda": "12.1"},
}


@pytest.mark.parametrize("code", STANDS_ON_A_ROW)
def test_what_stands_on_a_row_that_is_not_confirmed_says_so(code: str, doubtful: Facts) -> None:
    asked = case(**STANDS_ON_A_ROW[code])
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
    lonely = {"driver": Missing("no probe answered"), "gpus": (gpu("", None, "10de:2182"),)}
    (finding,) = found("TE101", case("12.1", **lonely))
    assert "for the GeForce GTX 1660 Ti of this machine" in finding.message
    assert finding.fix == (
        "install NVIDIA driver 525.60.13 or newer (better 530.30.02 or newer, which knows all of CUDA 12.1), "
        "and restart the machine"
    )


def test_the_architectures_to_build_for_are_those_of_the_machine() -> None:
    (finding,) = found("TE102", case("11.8", driver=Version("515.76"), gpus=(A100, GTX)))
    assert finding.fix == 'build with TORCH_CUDA_ARCH_LIST="7.5;8.0", or install driver 520.61.05 or newer'


@pytest.mark.parametrize(
    ("compilers", "fix"),
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
