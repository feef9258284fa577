"""The packages of a lock that do not belong together, wherever they come from."""

from dataclasses import replace
from typing import Any

from tenv.checks.rules.toolkit import check_lock, numbered_with_toolkit
from tenv.core.versions import CondaRange, Range, Version
from tenv.host.interface import Missing
from tenv.host.report import Libstdcxx
from tenv.targets.manifest import CondaRequest
from tests.checks.rules.cases import archive, case, compat, conda, found, gxx, wheel
from tests.support.each import each
from tests.support.found_by import led

CUDNN_URL = "https://developer.download.nvidia.com/compute/cudnn/redist/cudnn/linux-x86_64/cudnn-linux-x86_64-"


@each(
    "name, numbered",
    [
        ("cuda-nvcc", True),
        ("cuda-nvcc_linux-64", True),
        ("cuda-nvcc-dev_linux-aarch64", True),
        ("cuda-nvcc-impl", True),
        ("cuda-cudart-static_win-64", True),
        ("cuda-crt-tools", True),
        ("cuda-version", True),
        ("cuda-toolkit", True),
        ("cudatoolkit", True),
        ("libnvjitlink-dev", True),
        ("libnvptxcompiler-dev_linux-64", True),
        ("libcublas", False),
        ("libcusparse-dev", False),
        ("cuda-python", False),
        ("cuda-bindings", False),
        ("cuda-pathfinder", False),
        ("cuda-cccl-impl", False),
        ("nsight-compute", False),
    ],
)
def test_which_conda_packages_are_numbered_with_the_toolkit(name: str, numbered: bool) -> None:
    assert numbered_with_toolkit(name) is numbered


def test_an_nvcc_of_another_release_inside_a_conda_toolkit_is_an_error() -> None:
    """That is what cuda-toolkit 12.1.0 of the nvidia channel brings, which asks for `cuda-compiler >=12.1.0`."""
    packages = (
        conda("cuda-toolkit", "12.1.0", "cuda-compiler >=12.1.0", channel="nvidia"),
        conda("cuda-nvcc", "12.8.61", channel="nvidia"),
        conda("cuda-cudart", "12.1.105", channel="nvidia"),
        conda("libcublas", "12.1.0.26", channel="nvidia"),
    )
    asked = case("12.1.1", conda=packages)
    (finding,) = found("TE301", asked)
    assert (finding.severity, finding.subject) == ("error", "cuda-nvcc 12.8.61 on linux-64")
    assert finding.message == "is from CUDA 12.8 in a CUDA 12.1.1 toolkit"
    assert finding.evidence == "https://conda.anaconda.org/nvidia/linux-64/cuda-nvcc-12.8.61-h0_0.conda"
    assert finding.fix.startswith('add "conda-forge" above "nvidia" in `channels`, and cuda-version = "12.1.*"')
    assert asked.lock
    assert [row.code for row in check_lock(asked.lock)] == ["TE301"]


@each(
    "channel, cuda, fix",
    [
        ("conda-forge", "12.1", 'pin it in [dependencies]: cuda-nvcc = "12.1.*"'),
        ("nvidia", "12.1", 'put "conda-forge" above "nvidia" in `channels`, and cuda-version = "12.1.*" in'),
        ("nvidia", "11.8", 'put "nvidia/label/cuda-11.8.0" instead of "nvidia" in `channels`'),
        ("nvidia/label/cuda-12.8.0", "12.1", 'pin it in [dependencies]: cuda-nvcc = "12.1.*"'),
    ],
)
def test_the_fix_of_a_mixed_toolkit_goes_by_its_channel(channel: str, cuda: str, fix: str) -> None:
    asked = case(cuda, conda=(conda("cuda-nvcc", "12.8.61", channel=channel),)).lock
    assert asked
    (finding,) = check_lock(replace(asked, channels=("https://conda.anaconda.org/conda-forge",)))
    assert finding.fix.startswith(fix)


@each(
    "library, header, severities",
    [("12.1.0.26", "12.1.0.26", []), ("12.6.3.3", "12.6.0.22", ["warning"]), ("12.8.4.1", "12.1.0.26", ["error"])],
)
def test_headers_and_libraries(library: str, header: str, severities: list[str]) -> None:
    for half in ("libcublas-dev", "libcublas-static"):
        findings = found("TE306", case("12.6", conda=(conda("libcublas", library), conda(half, header))))
        assert [str(finding.severity) for finding in findings] == severities


@each(
    "depends, cuda, severities",
    [
        ("cuda-version >=12,<13.0a0", "12.1", []),
        ("cuda-version >=12.6,<13", "12.4", ["error"]),
        ("cuda-version >=12.6,<13", "12.6", []),
        ("cudatoolkit >=11.2,<12", "12.1", ["error"]),
        ("cudatoolkit 11.8|11.8.*", "12.1", []),  # a notation that says nothing here
    ],
)
def test_a_conda_library_says_its_cuda_itself(depends: str, cuda: str, severities: list[str]) -> None:
    for name in ("cusparselt", "cudnn", "libcudnn"):
        findings = found("TE305", case(cuda, conda=(conda(name, "99.6.3.2", depends),)))
        assert [str(finding.severity) for finding in findings] == severities
        assert all("in [dependencies]" in finding.fix for finding in findings)


@each("variant, codes", [("_cuda12", ["TE305"]), ("_cuda13", []), ("", [])])
def test_an_archive_says_its_cuda_by_its_name(variant: str, codes: list[str]) -> None:
    row = archive("cudnn", "99.1.0", f"{CUDNN_URL}99.1.0{variant}-archive.tar.xz")
    findings = found("TE305", case("13.0", archives=(row,)))
    assert [finding.code for finding in findings] == codes
    assert all(finding.message == "is built for CUDA 12.*, but the target has CUDA 13.0" for finding in findings)


@each(
    "version, torch, severities",
    [
        ("7.6.5.32", "2.3.1", ["error"]),
        ("8.9.7.29", "2.3.1", []),
        ("9.1.0.70", "2.3.1", ["warning"]),
        ("9.1.0.70", "2.4.1", []),
        ("9.1.0.70", None, []),
    ],
)
def test_a_cudnn_of_another_time(version: str, torch: str | None, severities: list[str]) -> None:
    for lock in ({"conda": (conda("cudnn", version),)}, {"wheels": (wheel("nvidia-cudnn-cu12", version),)}):
        findings = found("TE605", case("12.1", torch, **lock))
        assert [str(finding.severity) for finding in findings] == severities


@each(
    "torch, environment, severities",
    [
        ("2.1.2", {}, ["note"]),  # off by default
        ("2.1.2", {"USE_CUSPARSELT": "0"}, ["note"]),
        ("2.1.2", {"USE_CUSPARSELT": "ON"}, ["error"]),
        ("2.2.2", {}, []),
    ],
)
def test_a_cusparselt_that_is_not_used_stops_nothing(
    torch: str, environment: dict[str, str], severities: list[str]
) -> None:
    row = archive("cusparselt", "0.5.2.1", "https://x/a.tar.xz")
    findings = found("TE605", case("12.1", torch, archives=(row,), manifest={"environment": environment}))
    assert [str(finding.severity) for finding in findings] == severities
    assert all(("unless USE_CUSPARSELT=1" in finding.message) == (severities == ["note"]) for finding in findings)


@each(
    "cuda, severity, fix",
    [
        ("12.1", None, ""),
        ("12.6", "warning", "replace it with magma-cuda126 = "),
        ("11.8", "error", 'replace it with magma-cuda118 = "2.6.1" of the channel pytorch'),
        ("12.2", "warning", "there is no known magma-cuda122"),
    ],
)
def test_magma(cuda: str, severity: str | None, fix: str) -> None:
    url = "https://ossci-linux.s3.us-east-1.amazonaws.com/magma-cuda121-2.6.1-1.tar.bz2"
    for lock in (
        {"conda": (conda("magma-cuda121", "2.6.1"),)},
        {"archives": (archive("magma", "2.6.1", url),)},
        {"manifest": {"dependencies": {"magma-cuda121": None}}},
    ):
        findings: list[Any] = found("TE307", case(cuda, **lock))
        assert [str(finding.severity) for finding in findings] == ([severity] if severity else [])
        assert all(fix in finding.fix for finding in findings)


def test_a_compiler_of_the_system_beside_one_of_conda_s() -> None:
    own = (conda("gxx_linux-64", "12.4.0"), conda("sysroot_linux-64", "2.17"))
    named = gxx("12.3.0", "/usr/bin/g++-12", default=False)
    named = type(named)("g++", named.path, named.version, False, led("CUDAHOSTCXX", "g++-12 on PATH"))
    (finding,) = found("TE504", case("12.1", conda=own, compilers=(named,)))
    assert finding.subject == "CUDAHOSTCXX"
    assert finding.fix == "unset CUDAHOSTCXX , then activate the environment, which sets its own compilers"
    inside = type(named)("g++", "/e/bin/x86_64-conda-linux-gnu-g++", named.version, True, led("CXX"))
    assert found("TE504", case("12.1", conda=own, compilers=(inside, gxx("12.3.0")))) == []


@each("scope, severity", [(0, None), (1, "note"), (2, "warning"), (3, "warning")])
def test_ptrace_scope(scope: int, severity: str | None) -> None:
    findings = found(
        "TE704", case(manifest={"dependencies": {"gdb": CondaRequest(CondaRange("*"))}}, ptrace_scope=scope)
    )
    assert [str(finding.severity) for finding in findings] == ([severity] if severity else [])


def test_a_libcuda_that_another_driver_left() -> None:
    path = "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14"
    (finding,) = found("TE106", case(compat=compat(path, "550.54.14")))
    assert finding.fix == f"remove the leftover library of the other driver ({path}), then run `ldconfig`"
    (finding,) = found("TE106", case(compat=compat("/usr/local/cuda/compat/libcuda.so.1", "580.65.06"), wsl=True))
    assert "hides the one in /usr/lib/wsl/lib" in finding.message


def conda_case(torch: str | None, *packages: Any, cuda: str | None = "12.1", **changes: Any) -> Any:
    """Return the case of a target of conda packages, with a compiler of its own."""
    wanted = {
        "python": None,
        "dependencies": {
            "gxx_linux-64": CondaRequest(CondaRange("*")),
            "python": CondaRequest(CondaRange("3.8.*")),
        },
    }
    return case(cuda, torch, conda=packages, manifest=wanted, **changes)


def test_a_compiler_that_the_target_brings_is_judged_in_place_of_the_machine_s() -> None:
    asked = conda_case(None, conda("gxx_linux-64", "13.4.0"), compilers=(gxx("12.2.0"),))
    (finding,) = found("TE402", asked)
    assert (finding.severity, finding.subject) == ("error", "g++ 13.4.0")
    assert finding.evidence == "gxx_linux-64-13.4.0-h0_0.conda (the lock of `t`)"
    assert finding.fix == 'set gxx_linux-64 = ">=6,<13" in [dependencies] and lock again'
    assert found("TE402", conda_case(None, conda("gxx_linux-64", "12.4.0"), compilers=(gxx("15.1.0"),))) == []


def test_a_compiler_that_the_target_brings_may_be_too_old_for_pytorch() -> None:
    (finding,) = found("TE403", conda_case("2.4.1", conda("gxx_impl_linux-64", "7.5.0")))
    assert (finding.severity, finding.subject) == ("error", "g++ 7.5.0")
    assert finding.fix == 'set gxx_linux-64 = ">=9.4.0,<13" in [dependencies] and lock again'


def test_a_compiler_that_the_target_brings_is_held_against_the_libstdcxx_that_it_brings() -> None:
    own, old = conda("gxx_linux-64", "14.4.0"), Libstdcxx("/usr/lib/x", Version("3.4.28"), Version("1.3.12"))
    assert found("TE503", conda_case(None, own, libstdcxx=old)) == []
    assert found("TE503", conda_case(None, own, conda("libstdcxx", "16.1.0"), libstdcxx=old)) == []
    (finding,) = found("TE503", conda_case(None, own, conda("libstdcxx-ng", "12.2.0")))
    assert finding.subject == "libstdc++ of the environment (libstdcxx-ng 12.2.0)"


def test_nothing_is_said_of_several_compilers_where_the_target_brings_its_own() -> None:
    two = (gxx("12.2.0"), gxx("11.3.0", "/usr/bin/g++-11", default=False))
    assert found("TE404", conda_case(None, conda("gxx_linux-64", "12.4.0"), compilers=two)) == []
    assert len(found("TE404", case(compilers=two))) == 1


@each(
    "version, torch, severities",
    [("3.26.4", "2.12.0", ["error"]), ("3.27.0", "2.12.0", []), ("4.0.1", "2.6.0", ["error"]), ("4.0.1", None, [])],
)
def test_a_cmake_of_conda_s(version: str, torch: str | None, severities: list[str]) -> None:
    findings = found("TE603", conda_case(torch, conda("cmake", version)))
    assert [finding.severity for finding in findings] == severities
    assert all("[dependencies]" in finding.fix for finding in findings)
    assert all(f"cmake-{version}-h0_0.conda" in finding.evidence for finding in findings)


def test_a_python_of_conda_s() -> None:
    (finding,) = found("TE602", conda_case("2.12.0", conda("python", "3.9.20")))
    assert (finding.severity, finding.subject) == ("error", "Python 3.9")
    assert finding.evidence == "https://conda.anaconda.org/conda-forge/linux-64/python-3.9.20-h0_0.conda"
    assert finding.fix == 'set python = ">=3.10" in [dependencies] and lock again, or use another revision'
    assert found("TE602", conda_case("2.12.0", conda("python", "3.10.1"))) == []


def test_a_python_that_is_not_locked_is_that_of_the_manifest() -> None:
    (finding,) = found("TE602", conda_case("2.12.0"))
    assert finding.evidence == "[dependencies] of manifests/t.toml: 3.8.*"


def test_a_library_and_its_headers_are_told_once() -> None:
    packages = (conda("cudnn", "9.10.2.21"), conda("libcudnn", "9.10.2.21"))
    (finding,) = found("TE605", conda_case("2.3.0", *packages))
    assert finding.subject == "libcudnn 9.10.2.21"


def test_an_old_compiler_is_not_looked_for_where_the_distribution_has_none() -> None:
    """Debian 12 has no g++-8, so `apt install g++-8` alone would be no way out."""
    (finding,) = found("TE402", case("10.2", compilers=(gxx("12.2.0"),), libc=Version("2.36")))
    assert "Debian 12 and later have no GCC that old" in finding.fix
    (finding,) = found("TE402", case("10.2", compilers=(gxx("9.4.0"),), libc=Version("2.31")))
    assert "Debian 12" not in finding.fix


def test_a_toolkit_that_nobody_could_look_for_is_a_warning() -> None:
    (finding,) = found("TE309", case(None, toolkits=Missing("no"), manifest={"system": {"cuda-toolkit": Range("*")}}))
    assert (finding.severity, finding.evidence) == ("warning", "no")
    assert finding.message == "the target resolves cuda-toolkit from the host, but detection failed"


def test_the_packages_of_another_release_are_one_finding_with_a_list() -> None:
    parts = tuple(conda(name, "12.8.61", channel="nvidia") for name in ("cuda-nvcc", "cuda-cccl", "cuda-gdb"))
    (finding,) = found("TE301", case("12.1", conda=parts))
    assert finding.subject == "3 packages on linux-64"
    assert "cuda-nvcc 12.8.61, cuda-cccl 12.8.61, cuda-gdb 12.8.61" in finding.message
    assert finding.evidence.endswith("cuda-nvcc-12.8.61-h0_0.conda, and 2 more")
    assert finding.fix.startswith('add "conda-forge" above "nvidia" in `channels`')
    (pinned,) = found("TE301", case("12.1", conda=tuple(conda(n, "12.8.61") for n in ("cuda-nvcc", "cuda-cccl"))))
    assert pinned.fix == 'pin it in [dependencies]: cuda-nvcc = "12.1.*"; cuda-cccl = "12.1.*"'


def test_one_cause_is_one_finding_with_a_list() -> None:
    empty = [replace(wheel(name, "0.0.0a0", size), file=name) for name, size in (("nvidia-a", 1200), ("nvidia-b", 900))]
    (finding,) = found("TE302", case(platform="win-64", wheels=tuple(empty)))
    assert (finding.subject, finding.evidence) == ("nvidia-a, nvidia-b on win-64", "nvidia-a; nvidia-b")
    assert finding.message == "version 0.0.0a0 is an empty placeholder"
    (finding,) = found("TE303", case(wheels=(wheel("nvidia-x-cu12", "9"), wheel("nvidia-y-cu12", "2"))))
    assert finding.subject == "nvidia-x-cu12, nvidia-y-cu12 on linux-64"
    assert finding.fix == "use the package that ends in -cu13"
    names = ("nvidia-dsl-libs-cu12==1", "nvidia-dsl-libs-cu13==1; extra == 'cu13'")
    both = replace(wheel("nvidia-dsl", "1"), requires=names), wheel("nvidia-dsl-libs-cu12", "1")
    (finding,) = found("TE303", case(wheels=both))
    assert finding.fix == "request nvidia-dsl[cu13], which brings nvidia-dsl-libs-cu13"
    assert not found("TE303", case(wheels=(*both, wheel("nvidia-dsl-libs-cu13", "1"))))
    mixed = wheel("nvidia-cudnn-cu12", "9"), wheel("nvidia-cudnn-cu13", "9")  # the same files of two majors
    assert len(found("TE303", case(wheels=mixed))) == 1
    halves = (conda("libx", "2.0"), conda("libx-dev", "1.0"), conda("libx-static", "1.0"), conda("liby-dev", "1.0"))
    (finding,) = found("TE306", case("12.6", conda=(*halves, conda("liby", "1.0"))))
    assert finding.subject == "libx-dev 1.0, libx-static 1.0 on linux-64"
    assert finding.fix.count("set both to one version") == 2


def test_a_triton_of_another_revision_is_a_note_where_a_feature_brings_it() -> None:
    locked = replace(wheel("triton", "3.2.0"), features=("test",))
    (finding,) = found("TE605", case("12.1", "2.4.0", wheels=(locked,)))
    assert (finding.severity.value, finding.subject) == ("note", "triton 3.2.0")
    assert "whose wheels require triton 3.0.0: torch.compile may fail, with the feature test alone" in finding.message
    assert finding.fix == ("`tenv init t-torch2.4 --extends t --pytorch 2.4.0 && tenv create t-torch2.4 --with test`")
    assert found("TE605", case("12.1", "2.6.0", wheels=(locked,))) == []
    (own,) = found("TE605", case("13.0", "2.14.1", wheels=(wheel("triton", "3.9.0"),)))
    assert (own.severity.value, "require triton ~=3.8.0" in own.message) == ("warning", True)
