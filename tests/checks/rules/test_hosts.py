"""What single rules say of machines and revisions that stand at the edge of the tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.checks.pytorch_source import SourceTree, read_source
from tenv.checks.rules.catalogue import RULES
from tenv.checks.rules.interface import Scope, Severity, Unknown
from tenv.core.versions import Range, Version
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import Disk, FabricState, Gpu, ModuleKind
from tests.checks.rules.cases import archive, case, compat, conda, found, gpu, gxx, override, toolkit, wheel
from tests.support.each import each

GIB = 1 << 30
A100, GTX, K80 = gpu("NVIDIA A100-SXM4-80GB", "8.0"), gpu("NVIDIA GeForce GTX 1660 Ti", "7.5"), gpu("Tesla K80", "3.7")
SOON: dict[str, Any] = {"driver": Missing("no probe"), "offers": override("99.9")}


def test_a_revision_is_judged_by_the_row_before_it(tmp_path: Path) -> None:
    (finding,) = found("TE609", case(torch="1.9.0"))
    assert "judged by the row of 1.8.1, the last one before it" in finding.message
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.27)\nproject(Torch CXX C)\n")
    for version, told in (("2.16.0a0+git12", "by the row of 2.15.0, the last one before it"), ("0.0.1", "by nothing")):
        (tmp_path / "version.txt").write_text(version)
        source = read_source(tmp_path)
        assert isinstance(source, SourceTree)
        (finding,) = found("TE609", replace(case(), source=source))
        assert finding.message == (
            "has no row in the table of releases: what its files do not state (the cuDNN, GPUs and ABI of its "
            f"wheels, cuSPARSELt) is judged {told}"
        )
        assert finding.evidence == f"{version} (version.txt)"


@each("state", [FabricState.NOT_STARTED, FabricState.IN_PROGRESS])
def test_a_gpu_that_nvswitch_does_not_know_yet_leaves_running_open(state: FabricState) -> None:
    h200 = gpu("NVIDIA H200", "9.0")
    (finding,) = found("TE115", case(gpus=(replace(h200, fabric=state), replace(h200, fabric=FabricState.COMPLETED))))
    assert (finding.severity, finding.unknown) == (Severity.WARNING, Unknown(Scope.RUN, "fabric"))
    assert finding.subject == "1 NVIDIA H200"
    assert f"NVIDIA H200: fabric {state}" in finding.evidence


def test_a_cuda_of_which_no_driver_is_known_stands_for_none() -> None:
    for said in ("99.9", "6.5"):
        (finding,) = found("TE107", case(**(SOON | {"offers": override(said)})))
        assert finding.message.startswith("matches no known driver: the table of drivers goes from CUDA 7.0")
        assert finding.evidence == f"CONDA_OVERRIDE_CUDA is {said}"


def test_no_cuda_means_no_driver() -> None:
    asked = case("12.1", offers=override(""))
    (finding,) = found("TE101", asked)
    assert finding.evidence == "CONDA_OVERRIDE_CUDA is empty, which means no CUDA"


def test_a_cuda_between_two_toolkits_stands_for_the_driver_of_the_older_one() -> None:
    (finding,) = found("TE102", case("12.8", **(SOON | {"offers": override("12.7")})))
    assert finding.evidence == (
        "driver 560.28.03 (the first that offers CUDA 12.6, and CONDA_OVERRIDE_CUDA reports 12.7)"
    )


V100 = gpu("Tesla V100", "7.0")


def test_a_gpu_that_the_toolkit_has_dropped_beside_one_that_it_serves() -> None:
    (finding,) = found("TE201", case(gpus=(V100, A100, K80)))
    assert (finding.subject, str(finding.severity)) == ("Tesla V100, Tesla K80", "warning")
    assert (
        "so nothing that it builds runs there; it supports NVIDIA A100-SXM4-80GB, and activation lists"
        in finding.message
    )
    assert finding.fix == (
        "choose a target with CUDA 12.9 or older, or hide it from programs (CUDA_VISIBLE_DEVICES lists the GPUs "
        "that they may use)"
    )
    assert [str(one.severity) for one in found("TE201", case(gpus=(V100, K80)))] == ["error"]


def test_nothing_is_built_for_a_gpu_that_nvcc_does_not_know() -> None:
    (mixed,) = found("TE203", case(gpus=(V100, A100, GTX)))
    assert mixed.fix == 'build for all that nvcc of CUDA 13.0 supports: TORCH_CUDA_ARCH_LIST="7.5;8.0"'
    assert found("TE203", case(gpus=(V100, K80))) == []
    old = Version("580.10")
    (limited,) = found("TE102", case("13.1", driver=old, gpus=(A100,)))
    assert limited.fix == 'build with TORCH_CUDA_ARCH_LIST="8.0", or install driver 590.44.01 or newer'
    (limited,) = found("TE102", case("13.1", driver=old, gpus=(V100, A100)))
    assert limited.fix == 'build with TORCH_CUDA_ARCH_LIST="8.0"'  # driver 590 has dropped the V100
    (limited,) = found("TE102", case("13.1", driver=old, gpus=(V100,)))
    assert limited.fix == "list the compute capability of the GPU in TORCH_CUDA_ARCH_LIST"


@each("driver", [Version("470.57.02"), Missing("no probe answered")])
def test_no_driver_is_advised_where_the_toolkit_has_dropped_the_gpus(driver: Any) -> None:
    code = "TE101" if isinstance(driver, Missing) else "TE103"
    (finding,) = found(code, case("12.1", driver=driver, gpus=(K80,)))
    assert finding.fix == "choose a target with CUDA 11.8 or older: no driver runs CUDA 12.1 on the Tesla K80 (TE201)"
    for gpus in ((K80, GTX), (K80, gpu("", None))):
        (finding,) = found(code, case("12.1", driver=driver, gpus=gpus))
        assert finding.fix == (
            "choose a target with an older CUDA: the drivers that run CUDA 12.1 no longer support the Tesla K80 (TE108)"
        )
    (finding,) = found(code, case("12.1", driver=driver, gpus=(GTX,)))
    assert finding.fix.startswith("install NVIDIA driver 525.60.13 or newer")


def test_conda_packages_and_archives_take_room_too() -> None:
    package = replace(conda("cuda-nvcc", "12.6"), size=2 * GIB)
    blob = replace(archive("cudnn", "9.1", "https://x/a.tar.xz"), size=GIB)
    wheels = (wheel("nvidia-cublas", "13.1", GIB), replace(wheel("numpy", "2.0", 9 * GIB), python=()))
    for free, codes in ((8 * GIB - 1, ["TE702"]), (8 * GIB, [])):
        asked = case(conda=(package,), archives=(blob,), wheels=wheels, disk=Disk("/home/me", free, "ext4"))
        assert [finding.code for finding in found("TE702", asked)] == codes
    asked = case(conda=(package,), disk=Disk("/home/me", 4 * GIB - 1, "ext4"))
    assert "take about 4.0 GiB unpacked" in found("TE702", asked)[0].message


def test_only_what_the_environment_lacks_takes_room() -> None:
    package = replace(conda("cuda-nvcc", "12.6"), size=2 * GIB, sha256="a" * 64)
    blob = replace(archive("cudnn", "9.1", "https://x/a.tar.xz"), size=GIB, sha256="b" * 64)
    asked = case(conda=(package,), archives=(blob,), disk=Disk("/home/me", GIB, "ext4"))
    assert "the packages of `t` take about 6.0 GiB unpacked" in found("TE702", asked)[0].message
    small = replace(asked, there=frozenset([package.sha256]))
    assert "the missing packages of `t` take about 2.0 GiB unpacked" in found("TE702", small)[0].message
    assert not found("TE702", replace(asked, there=frozenset([package.sha256, blob.sha256])))


@each("jobs, said", [("14", True), ("13", False), ("", False), ("all", False)])
def test_the_manifest_s_own_max_jobs(jobs: str, said: bool) -> None:
    findings = found("TE701", case(manifest={"environment": {"MAX_JOBS": jobs}}, memory=60 * GIB))
    assert [finding.subject for finding in findings] == ([f"MAX_JOBS={jobs}"] if said else [])
    for finding in findings:
        assert "may take 63.0 GiB" in finding.message
        assert finding.evidence.startswith("[activation.env] of manifests/t.toml; ")
    assert found("TE701", case(None, manifest={"environment": {"MAX_JOBS": jobs}}, memory=60 * GIB)) == []


def test_the_driver_of_a_jetson_comes_with_its_system() -> None:
    reason = "nvidia-smi: not found; /etc/nv_tegra_release: Jetson Linux 36.4, whose driver has no version of its own"
    board: dict[str, Any] = {"driver": Missing(reason, ReasonKind.JETSON), "platform": "linux-aarch64"}
    (finding,) = found("TE101", case("12.6", gpus=(gpu("Orin", "8.7"),), **board))
    assert finding.message.endswith("running needs JetPack 6.1 or newer")
    assert finding.fix == "install JetPack 6.1 or newer, which brings the driver of a Jetson"
    (finding,) = found("TE101", case("13.0", gpus=(gpu("Orin", "8.7"),), **board))
    assert finding.fix == (
        "choose a target with an older CUDA: no JetPack that tenv knows offers CUDA 13.0 on the Orin"
    )
    (finding,) = found("TE105", case("13.0", gpus=(gpu("Orin", "8.7"),), l4t=Version("36.4"), **board))
    assert "data-centre" not in finding.message
    assert "580" not in finding.message


COMPAT = compat("/usr/local/cuda-13.0/compat/libcuda.so.580.65.06", "580.65.06")


def test_a_cuda_compat_that_is_in_place_need_not_be_installed() -> None:
    asked: dict[str, Any] = {"driver": Version("535.104.05"), "gpus": (A100,)}
    (finding,) = found("TE105", case(compat=COMPAT, **asked))
    assert finding.fix == "nothing: a suitable cuda-compat is already loaded first"
    assert finding.evidence.endswith(f"; cuda-compat of driver 580.65.06: {COMPAT.path}")
    for path, version in ((COMPAT.path, "550.54.14"), ("/usr/lib/libcuda.so.580.65.06", "580.65.06")):
        (finding,) = found("TE105", case(compat=compat(path, version), **asked))
        assert finding.fix.startswith("install cuda-compat-13-0 (apt or dnf, from developer.download.nvidia.com/")
        assert str(finding.severity) == "error"


@each(
    "why, assumed, severity",
    [
        (ReasonKind.DRIVERS_OWN, False, "error"),
        (ReasonKind.DRIVERS_OWN, True, "warning"),
        (ReasonKind.NONE, False, "error"),
        (ReasonKind.UNREPORTED, False, "warning"),
    ],
)
def test_forward_compatibility_asks_what_comes_first(why: ReasonKind, assumed: bool, severity: str) -> None:
    driver = Fact(Version("535.104.05"), "assumed", OriginKind.ASSUMED) if assumed else Version("535.104.05")
    (finding,) = found("TE105", case(driver=driver, compat=Missing("told", why)))
    assert str(finding.severity) == severity
    assert (finding.unknown is not None) is (severity == "warning")


@each("kind, fix", [("docker", "--gpus all"), ("apptainer", "--nv"), ("podman", "nvidia.com/gpu=all"), ("lxc", "--nv")])
def test_a_container_without_the_driver_is_started_with_it(kind: str, fix: str) -> None:
    (finding,) = found("TE101", case(driver=Missing("no probe answered"), gpus=(), container=kind))
    assert fix in finding.fix
    assert "install" not in finding.fix


def test_a_cuda_compat_in_the_way_of_a_geforce() -> None:
    older = Version("535.104.05")
    (finding,) = found("TE106", case("12.1", driver=older, gpus=(A100, GTX), compat=COMPAT))
    assert "GeForce GPUs (NVIDIA GeForce GTX 1660 Ti) do not support forward compatibility" in finding.message
    assert finding.fix.startswith("remove /usr/local/cuda-13.0/compat from LD_LIBRARY_PATH")
    for gpu_, driver in ((A100, older), (GTX, COMPAT.version)):
        assert found("TE106", case("12.1", driver=driver, gpus=(gpu_,), compat=COMPAT)) == []


@each(
    "driver, library, fits",
    [("550.90.07", "550.107.02", False), ("550.90.07", "550.90.07", True), ("550", "550.90.07", True)],
)
def test_a_library_of_another_patch_is_a_mismatch(driver: str, library: str, fits: bool) -> None:
    own = compat(f"/usr/lib/x86_64-linux-gnu/libcuda.so.{library}", library)
    told = found("TE106", case("12.1", driver=Version(driver), gpus=(A100,), compat=own))
    assert [str(one.severity) for one in told] == ([] if fits else ["error"])


@each(
    "driver, library, gpus, module, said",
    [
        ("470.182.03", "520.61.05", (K80,), "", "no longer supports the Tesla K80"),
        ("470.182.03", "520.61.05", (A100,), "", ""),
        ("580.105.08", "590.44.01", (gpu("Tesla P100-PCIE-16GB", "6.0"),), "", "no longer supports the Tesla P100"),
        ("455.32.00", "460.73.01", (gpu("Tesla T4", "7.5"),), "", "is not for driver branch 455"),
        ("450.80.02", "460.73.01", (gpu("Tesla T4", "7.5"),), "", ""),
        ("396.26", "410.48", (gpu("Tesla P4", "6.1"),), "", "is not for driver branch 396"),
        ("384.111", "410.48", (gpu("Tesla P4", "6.1"),), "", ""),
        ("396.26", "418.39", (gpu("Tesla P4", "6.1"),), "", ""),
        ("535.161.08", "575.57.08", (A100,), "open", "is not for driver branch 535 with the open kernel module"),
        ("535.161.08", "575.57.08", (A100,), "proprietary", ""),
        ("535.161.08", "570.86.10", (A100,), "open", ""),
    ],
)
def test_a_cuda_compat_first_works_on_its_branches_and_gpus(
    driver: str, library: str, gpus: tuple[Gpu, ...], module: str, said: str
) -> None:
    of_package = compat(f"/usr/local/cuda/compat/libcuda.so.{library}", library)
    kind = ModuleKind.read(module) if module else Missing("not told")
    told = found("TE106", case("12.1", driver=Version(driver), gpus=gpus, compat=of_package, module=kind))
    assert [said in one.message for one in told] == ([True] if said else [])


def test_a_gcc_that_the_nvcc_taken_refuses_is_told_once() -> None:
    cuda = toolkit("/usr/local/cuda-12.1", "12.1.1", "/usr/local/cuda")
    system = {"system": {"cuda-toolkit": Range("*"), "gcc": Range(">=9.4")}}
    compilers = (gxx("14.2.0"), gxx("14.2.0", "/usr/bin/gcc", kind="gcc"))
    asked = case(None, "2.4.1", manifest=system, toolkits=(cuda,), compilers=compilers)
    findings = [finding for rule in RULES for finding in rule(asked) if str(finding.severity) == "error"]
    assert [finding.code for finding in findings] == ["TE309"]
    assert findings[0].fix.startswith(
        "install a GCC >=9.4 (GCC 12 at most, for the selected nvcc), or set CC and CXX to an installed one"
    )
