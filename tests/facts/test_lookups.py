"""What the tables answer."""

import pytest

from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import GpuClass, sm_of
from tenv.facts.forward_compat import ForwardVerdict
from tenv.facts.gpu_names import find_by_name
from tenv.facts.interface import Basis
from tenv.facts.tables import Facts, load_facts
from tests.support.each import each


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


@each(
    "cuda, driver, verdict, package",
    [
        ("12.8.1", "535.261.03", ForwardVerdict.COMPATIBLE, "cuda-compat-12-8"),
        ("12.8", "570", ForwardVerdict.NATIVE, "cuda-compat-12-8"),
        ("12.8", "580.65.06", ForwardVerdict.EXCLUDED, "cuda-compat-12-8"),
        ("13.4", "535.261.03", ForwardVerdict.COMPATIBLE, "cuda-compat-13-4"),
        ("12.4", "550.54.14", ForwardVerdict.NATIVE, "cuda-compat-12-4"),  # only in the older edition
        ("12.9", "575.51", ForwardVerdict.NATIVE, "cuda-compat-12-9"),
    ],
)
def test_forward(facts: Facts, cuda: str, driver: str, verdict: ForwardVerdict, package: str) -> None:
    row = facts.cuda_driver.forward.find(Version(cuda), Version(driver))
    assert row is not None
    assert (row.verdict, row.package) == (verdict, package)
    assert row.basis.confirmed


@pytest.mark.parametrize(("cuda", "driver"), [("11.8", "440.33"), ("12.8", "460.32.03"), ("13.4", "525.60.13")])
def test_no_forward(facts: Facts, cuda: str, driver: str) -> None:
    assert facts.cuda_driver.forward.find(Version(cuda), Version(driver)) is None


def test_archs(facts: Facts) -> None:
    row = facts.cuda_gpu_arch.archs(Version("13.0.2"))
    assert row is not None
    assert (row.min, row.max) == (75, 121)
    assert row.supports(Version("7.5"))
    assert not row.supports(Version("7.0"))
    assert facts.cuda_gpu_arch.archs(Version("12.7")) is None
    assert sm_of(Version("12.0")) == 120


def test_the_toolkits_of_an_architecture(facts: Facts) -> None:
    found = facts.cuda_gpu_arch.range(Version("7.0"))
    assert found is not None
    assert [row.major_minor for row in found] == ["9.0", "12.9"]
    assert facts.cuda_gpu_arch.range(Version("99.0")) is None
    assert facts.cuda_gpu_arch.family(Version("99.0")) is None


@each(
    "name, capability, gpu_class",
    [
        ("NVIDIA GeForce GTX 1660 Ti", "7.5", GpuClass.GEFORCE),
        ("gtx 1660 ti", "7.5", GpuClass.GEFORCE),
        ("GTX1660Ti", "7.5", GpuClass.GEFORCE),
        ("NVIDIA Corporation GeForce GTX 1650 with Max-Q Design", "7.5", GpuClass.GEFORCE),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "8.6", GpuClass.GEFORCE),
        ("NVIDIA GeForce RTX 3050 A Laptop GPU", "8.9", GpuClass.GEFORCE),
        ("NVIDIA A100-SXM4-40GB", "8.0", GpuClass.DATA_CENTRE),
        ("Tesla V100-SXM2-16GB", "7.0", GpuClass.DATA_CENTRE),
        ("NVIDIA T4", "7.5", GpuClass.DATA_CENTRE),
        ("NVIDIA L40S", "8.9", GpuClass.DATA_CENTRE),
        ("NVIDIA H100 80GB HBM3", "9.0", GpuClass.DATA_CENTRE),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", GpuClass.PROFESSIONAL),
        ("Quadro RTX 6000", "7.5", GpuClass.PROFESSIONAL),
        ("NVIDIA TITAN V", "7.0", GpuClass.GEFORCE),
        ("Jetson AGX Orin", "8.7", GpuClass.JETSON),
        ("NVIDIA GB10", "12.1", GpuClass.OTHER),
    ],
)
def test_gpu(facts: Facts, name: str, capability: str, gpu_class: GpuClass) -> None:
    gpu = find_by_name(name, facts)
    assert gpu is not None
    assert (gpu.capability, gpu.kind) == (Version(capability), gpu_class)


@each("name", ["", "NVIDIA", "RTX 4000", "GeForce GT 730", "GeForce GTX 86...", "NVIDIA GeForce ...", "Radeon VII"])
def test_no_gpu(facts: Facts, name: str) -> None:
    assert find_by_name(name, facts) is None


@each("pci_id", ["10de:2182", "10DE:2182", "0x10de 0x2182", "0x10de:0x2182", " 10de:2182\n"])
def test_pci(facts: Facts, pci_id: str) -> None:
    device = facts.gpu_pci.device(pci_id)
    assert device is not None
    assert (device.name, device.capability, device.kind) == ("GeForce GTX 1660 Ti", Version("7.5"), "GeForce")


@each("pci_id", ["", "2182", "1002:2182", "10de:ffff", "10de:21822"])
def test_no_pci(facts: Facts, pci_id: str) -> None:
    assert facts.gpu_pci.device(pci_id) is None


def test_host_compilers(facts: Facts) -> None:
    row = facts.cuda_host_compiler.limits(Version("12.1.1"))
    assert row is not None
    assert (row.gcc_min, row.gcc_max, str(row.clang_max), row.msvc_min, row.msvc_below) == (6, 12, "15", 1910, 1940)
    assert facts.cuda_host_compiler.limits(Version("14.0")) is None


@each(
    "cuda, glibc, fails",
    [
        ("12.9.1", "2.41", True),
        ("12.9.1", "2.40", False),
        ("11.8", "2.43", True),
        ("13.0", "2.41", False),
        ("13.1.1", "2.42", True),
        ("13.2", "2.44", False),
    ],
)
def test_glibc_conflict(facts: Facts, cuda: str, glibc: str, fails: bool) -> None:
    assert (facts.cuda_host_compiler.glibc_conflict(Version(cuda), Version(glibc)) is not None) is fails


@each(
    "cuda, glibc, platform, gcc, fails",
    [
        ("12.4", "2.38", "linux-aarch64", "13.2", True),
        ("12.4", "2.38", "linux-aarch64", None, True),
        ("12.4", "2.38", "linux-aarch64", "8.5", False),
        ("12.4", "2.37", "linux-aarch64", "13.2", False),
        ("12.5", "2.39", "linux-aarch64", "13.2", False),
        ("12.4", "2.39", "linux-64", "13.2", False),
    ],
)
def test_vector_functions_of_aarch64(
    facts: Facts, cuda: str, glibc: str, platform: str, gcc: str | None, fails: bool
) -> None:
    found = facts.cuda_host_compiler.glibc_conflict(
        Version(cuda), Version(glibc), platform, Version(gcc) if gcc else None
    )
    assert (found is not None) is fails


@each(
    "cuda, gcc, glibc, fails",
    [
        ("11.5", "11.3.0", None, True),
        ("11.4", "11.4.0", None, True),
        ("11.6", "11.4.0", None, True),
        ("11.7", "11.4.0", None, False),
        ("11.5", "11.2.0", None, False),
        ("11.5", "11.2.0", "2.35", True),
        ("11.5", "11.2.0", "2.17", False),
        ("11.5", "10.5.0", "2.35", False),
        ("9.1", "6.4.0", None, True),
        ("9.2", "6.4.0", None, False),
        ("9.1", "5.5.0", None, False),
        ("11.3", "10.3.0", None, True),
        ("11.3", "10.2.0", None, False),
        ("11.3", "10.4.0", None, False),
    ],
)
def test_gcc_that_passes_and_fails(facts: Facts, cuda: str, gcc: str, glibc: str | None, fails: bool) -> None:
    found = facts.cuda_host_compiler.broken_by(Version(cuda), Version(gcc), Version(glibc) if glibc else None)
    assert (found is not None) is fails


@each(
    "cuda, gcc, glibc, surely",
    [
        ("11.2", "10.3.1", "2.32", True),  # Fedora 33
        ("11.2", "10.3.0", "2.31", True),  # Ubuntu 20.04
        ("11.2", "10.3.0", "2.35", False),  # Ubuntu 22.04 has a later snapshot
        ("11.2", "10.3.0", None, False),  # EasyBuild's is patched
        ("11.5", "11.4.0", None, True),
    ],
)
def test_a_gcc_of_a_distribution_that_is_known_to_be_unfixed(
    facts: Facts, cuda: str, gcc: str, glibc: str | None, surely: bool
) -> None:
    own = Version(glibc) if glibc else None
    found = facts.cuda_host_compiler.broken_by(Version(cuda), Version(gcc), own)
    assert found
    assert found.surely(own) is surely


def test_what_was_inferred_about_glibc_is_not_confirmed(facts: Facts) -> None:
    rows = {cuda: facts.cuda_host_compiler.glibc_conflict(Version(cuda), Version("2.41")) for cuda in ("11.6", "11.7")}
    assert {cuda: row and row.basis.confirmed for cuda, row in rows.items()} == {"11.6": False, "11.7": True}


def test_the_newest_toolkit_that_a_glibc_breaks(facts: Facts) -> None:
    table = facts.cuda_host_compiler
    assert [str(table.newest_conflict(Version(glibc)) or "") for glibc in ("2.40", "2.41", "2.42")] == [
        *("", "12.9", "13.1")
    ]


def test_only_the_functions_of_a_glibc_are_named(facts: Facts) -> None:
    conflict = facts.cuda_host_compiler.glibc_conflict(Version("12.6"), Version("2.42"))
    assert conflict is not None
    assert conflict.declared(Version("2.41")) == ("sinpi", "sinpif", "cospi", "cospif")
    assert conflict.declared(Version("2.42"))[-2:] == ("rsqrt", "rsqrtf")


@each(
    "gcc, glibcxx, cxxabi",
    [
        ("4.8.5", "3.4.19", "1.3.7"),
        ("11.4.0", "3.4.29", "1.3.13"),
        ("13.1.0", "3.4.31", "1.3.14"),
        ("13", "3.4.32", "1.3.14"),  # the newest release of that major version
        ("14.2.1", "3.4.33", "1.3.15"),
    ],
)
def test_for_gcc(facts: Facts, gcc: str, glibcxx: str, cxxabi: str) -> None:
    row = facts.libstdcxx.for_gcc(Version(gcc))
    assert row is not None
    assert (row.glibcxx, row.cxxabi, row.basis.confirmed) == (Version(glibcxx), Version(cxxabi), True)


def test_a_gcc_outside_the_table(facts: Facts) -> None:
    assert facts.libstdcxx.for_gcc(Version("4.4.7")) is None
    row = facts.libstdcxx.for_gcc(Version("18.1"))
    assert row is not None
    assert row.basis.doubt == "not confirmed: the table ends with GCC 17"


@each(
    "version, row, confirmed",
    [
        ("2.6.0", "2.6.0", True),
        ("2.3.0", "2.3.1", True),
        ("1.10.1", "1.10.2", True),
        ("2.15.0a0+git1234abc", "2.15.0", True),
        ("2.17.0a0", "2.15.0", False),
        ("1.9.0", "1.8.1", False),
    ],
)
def test_release(facts: Facts, version: str, row: str, confirmed: bool) -> None:
    found = facts.pytorch_build.release(version)
    assert found is not None
    assert (str(found.version), found.basis.confirmed) == (row, confirmed)


def test_no_release(facts: Facts) -> None:
    assert facts.pytorch_build.release("0.0.9") is None
    assert facts.pytorch_build.release("main") is None
    assert facts.pytorch_build.cusparselt_notes("main") == ()
    assert facts.pytorch_build.wheel_archs("main", Version("13.0"), "x86_64") is None


def test_what_a_release_asks_for(facts: Facts) -> None:
    row = facts.pytorch_build.release("2.8.0")
    assert row is not None
    assert row.asked() == {
        "python": ">=3.9.0",
        "cmake_min": "3.27",
        "gcc_min": "9.4.0",
        "clang_min": "9",
        "cuda_min": "11.0",
        "cudnn_min": "8.5",
        "cxx_standard": "17",
        "build_backend": "setuptools",
    }
    assert [str(cuda) for cuda in row.cuda_stable] == ["12.6", "12.8"]
    assert [str(cuda) for cuda in row.cuda_experimental] == ["12.9"]
    assert (row.wheel_abi, row.has_find_cusparselt, row.scikit_build) == (1, True, False)
    newest = facts.pytorch_build.release("2.14.1")
    assert newest is not None
    assert newest.asked()["build_backend"] == "scikit-build-core"


def test_the_abi_of_the_wheels(facts: Facts) -> None:
    abi = {str(row.version): row.wheel_abi for row in facts.pytorch_build.releases}
    assert (abi["2.6.0"], abi["2.7.1"], abi["2.15.0"], abi["0.3.1"]) == (0, 1, 1, None)


def test_cusparselt_of_a_release(facts: Facts) -> None:
    notes = facts.pytorch_build.cusparselt_notes("2.1.2")
    assert [str(note.torch) for note in notes] == ["2.1", "2.1.2"]
    assert all(note.basis.note for note in notes)
    assert facts.pytorch_build.cusparselt_notes("2.9.1") == ()


def test_the_architectures_of_the_wheels(facts: Facts) -> None:
    found = facts.pytorch_build.wheel_archs("2.13.0", Version("13.0"), "x86_64")
    assert found is not None
    assert found[0] == ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0+PTX")
    arm = facts.pytorch_build.wheel_archs("2.13.0", Version("12.6"), "aarch64")
    assert arm is not None
    assert arm[0] == ("8.0", "9.0")
    assert facts.pytorch_build.wheel_archs("2.13.0", Version("12.8"), "x86_64") is None
    assert facts.pytorch_build.wheel_archs("2.9.1", Version("12.6"), "x86_64") is None


def test_variable(facts: Facts) -> None:
    variable = facts.pytorch_build.variable("MAX_JOBS")
    assert variable is not None
    assert variable.read_in.startswith("setup.py era")
    assert facts.pytorch_build.variable("NOPE") is None


def test_cusparselt(facts: Facts) -> None:
    table = facts.cusparselt
    ci = table.for_cuda(Version("12.4"))
    assert ci is not None
    assert str(ci.version) == "0.6.2.3"
    assert table.for_cuda(Version("13.0")) is None


def test_cudnn(facts: Facts) -> None:
    assert len(facts.cudnn.versions("linux-ppc64le")) < len(facts.cudnn.versions())


def test_magma(facts: Facts) -> None:
    package = facts.magma.conda_for(Version("11.5.2"))
    assert package is not None
    assert (package.name, str(package.version)) == ("magma-cuda115", "2.6.1")
    assert facts.magma.conda_for(Version("12.8")) is None
    assert facts.magma.has_tarball(Version("13.0.2"))
    assert facts.magma.has_tarball(Version("12.8"))
    assert not facts.magma.has_tarball(Version("12.5"))


def test_doubt() -> None:
    assert Basis("s", confirmed=True, note="n").doubt == ""
    assert Basis("s", confirmed=False, note="").doubt == "not confirmed"
    assert Basis("s", confirmed=True, note="n").doubted("why").doubt == "not confirmed: why"


@each(
    "torch, minors",
    [
        ("2.6.0", {"torchvision": "0.21", "torchaudio": "2.6", "triton": "3.2"}),
        ("2.9.0a0+git12ab", {"torchvision": "0.24", "torchaudio": "2.9", "triton": "3.5"}),
        ("1.10.2", {"torchvision": "0.11", "torchaudio": "0.10"}),
        ("2.14.1", {"triton": "3.8"}),
        ("2.11.0", {"torchvision": "0.26", "triton": "3.6"}),
        ("2.99.0a0", {}),
        ("new", {}),
    ],
)
def test_what_goes_with_a_torch(facts: Facts, torch: str, minors: dict[str, str]) -> None:
    row = facts.pytorch_build.companions_of(torch)
    assert (row.minors() if row else {}) == minors


@each(
    "name, capability",
    [
        ("RTX 5090 FOO", None),
        ("NVIDIA GeForce RTX 5090 FOO", None),
        ("NVIDIA A100 X200", None),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "12.0"),
        ("NVIDIA A100-PG509-200", "8.0"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("GB202 [GeForce RTX 5090]", "12.0"),
        ("NVIDIA Rubin", "10.7"),
        ("NVIDIA VR200 NVL72", "10.7"),
        ("NVIDIA RTX Spark", "12.1"),
        ("NVIDIA RTX Spark N1X (6144-core Blackwell RTX GPU)", "12.1"),
        ("N1X", "12.1"),
        ("NVIDIA DGX Spark", "12.1"),
        ("NVIDIA B30A", "10.3"),
    ],
)
def test_names_of_2026_and_names_that_only_begin_like_one(facts: Facts, name: str, capability: str | None) -> None:
    found = find_by_name(name, facts)
    assert (str(found.capability) if found else None) == capability


def test_every_capability_of_a_generation_is_in_every_table(facts: Facts) -> None:
    """A GPU that one table knows is none that another passes over in silence."""
    archs, drivers = facts.cuda_gpu_arch, facts.gpu_driver
    of_families = {one for family in archs.families for one in family.capabilities}
    compiled = {Version(f"{sm // 10}.{sm % 10}") for row in archs.toolkits for sm in row.sm}
    driven = {one for row in drivers.generations for one in row.capabilities}
    driven |= {one for row in drivers.jetson for one in row.capabilities}
    named = {gpu.capability for gpu in archs.gpus} | {device.capability for device in facts.gpu_pci.devices}
    old, of_thor, of_tegra = Version("3.0"), Version("10.1"), Version("3.2")  # 10.1 is 11.0 before CUDA 13
    assert compiled - {Version("2.0"), Version("2.1")} <= of_families
    assert of_families - {of_thor, of_tegra} <= driven
    assert {one for one in named if one >= old} - of_families == set()


def test_the_c_plus_plus_standard_is_three_facts(facts: Facts) -> None:
    """The default of an extension, PyTorch's own sources, and the demand of its headers."""

    def of(release: str) -> tuple[int, int | None, int]:
        built = facts.pytorch_build.release(release)
        wheel = facts.torch_wheels.wheel(Version(release), "linux-64")
        assert built is not None
        assert wheel is not None
        return wheel.default_cxx, built.cxx_standard, wheel.least_cxx

    assert of("2.11.0") == (17, 17, 17)
    assert of("2.12.1") == (20, 17, 17)
    assert of("2.13.0") == (20, 20, 17)
    assert of("2.14.1") == of("2.15.0") == (20, 20, 20)
