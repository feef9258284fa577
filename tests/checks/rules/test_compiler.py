"""The compilers that are not g++ by default, and the header that wins over the table."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.checks.rules.interface import Scope, Severity
from tenv.core.versions import Version
from tenv.host.interface import Fact, OriginKind
from tenv.host.report import Compiler, FoundBy, Lead
from tenv.host.toolkit_content import compiler_limits, parse_host_config, parse_math_functions
from tests.checks.rules.cases import case, found, gxx, limits, toolkit
from tests.support.each import each
from tests.support.found_by import led

TABLE = "crt/host_config.h in the PyPI wheels"
HEADER = """\
#if (__GRCO_CLANG_COMPILER__ == 1) && ((__clang_major__ < 16) || (__clang_major__ > 20))
#if __GNUC__ > 15
#error -- unsupported GNU version! gcc versions later than 15 are not supported!
#if (__clang_major__ >= 21) || (__clang_major__ < 3) || ((__clang_major__ == 3) &&  (__clang_minor__ < 3))
#if _MSC_VER < 1920 || _MSC_VER >= 1950
"""


def clang(version: str) -> Any:
    return gxx(version, "/usr/bin/clang++", kind="clang++")


def msvc(version: str) -> Any:
    return gxx(version, "C:/VC/bin/cl.exe", kind="msvc")


def test_what_a_header_declares_as_a_newer_glibc_does() -> None:
    of_13_0 = """\
 * - rsqrt(NaN) returns NaN.
extern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ double                 rsqrt(double x);
extern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ float                  rsqrtf(float x);
extern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ double                 sinpi(double x) __NV_SPECIFIER;
__MATH_FUNCTIONS_DECL__ float rsqrt(const float a);
"""
    assert parse_math_functions(of_13_0) == ("sinpi",)
    by_hand = of_13_0.replace("rsqrt(double x)", "rsqrt(double x) noexcept (true)")
    assert parse_math_functions(by_hand) == ("rsqrt", "sinpi")
    assert parse_math_functions("extern __host__ __device__ double cospi(double x) throw();") == ("cospi",)
    assert parse_math_functions("") == ()


def test_the_header_is_read() -> None:
    read = parse_host_config(HEADER, "h")
    assert read
    assert (read.gcc_max, read.clang_max, read.msvc_min, read.msvc_below) == (15, 20, 1920, 1950)
    older = parse_host_config("#if __GNUC__ > 8\n#if (__clang_major__ > 9) || (__clang_major__ < 3)\n", "h")
    assert older
    assert (older.gcc_max, older.clang_max, older.msvc_min) == (8, 9, None)
    assert parse_host_config("#define X 1\n", "h") is None


def test_the_header_is_found_in_both_layouts(tmp_path: Path) -> None:
    assert compiler_limits(tmp_path) is None
    file = tmp_path / "targets" / "x86_64-linux" / "include" / "crt" / "host_config.h"
    file.parent.mkdir(parents=True)
    file.write_text(HEADER)
    read = compiler_limits(tmp_path)
    assert read
    assert read.file == str(file)


@each("version, codes", [("13.3.0", ["TE402"]), ("12.3.0", [])])
def test_the_header_of_a_toolkit_at_hand_wins_over_the_table(version: str, codes: list[str]) -> None:
    own = toolkit(
        "/usr/local/cuda-12.6", "12.6", "/usr/local/cuda", compilers=limits("/usr/local/cuda-12.6", gcc_max=12)
    )
    findings = found("TE402", case("12.6", compilers=(gxx(version),), toolkits=(own,)))
    assert [finding.code for finding in findings] == codes
    assert all(finding.source == "/usr/local/cuda-12.6/include/crt/host_config.h" for finding in findings)
    assert found("TE402", case("12.6", compilers=(gxx(version),))) == []


def test_the_header_of_another_release_says_nothing() -> None:
    other = toolkit(
        "/usr/local/cuda-12.1", "12.1", "/usr/local/cuda", compilers=limits("/usr/local/cuda-12.1", gcc_max=12)
    )
    (finding,) = found("TE402", case("12.6", compilers=(gxx("14.2.0"),), toolkits=(other,)))
    assert finding.source.startswith(TABLE)


@each(
    "cuda, version, codes",
    [("12.6", "18.1.8", []), ("12.6", "19.1.0", ["TE402"]), ("13.0", "20.1.0", []), ("13.0", "21.1.0", ["TE402"])],
)
def test_a_clang_that_nvcc_refuses(cuda: str, version: str, codes: list[str]) -> None:
    findings = found("TE402", case(cuda, compilers=(clang(version),)))
    assert [finding.code for finding in findings] == codes
    for finding in findings:
        newest = int(version.partition(".")[0]) - 1
        assert finding.message == f"is newer than what nvcc of CUDA {cuda} accepts: clang {newest} at most"
        assert f"apt install clang-{newest}" in finding.fix
        assert f"CUDAHOSTCXX=/usr/bin/clang++-{newest}" in finding.fix


def test_a_clang_that_pytorch_refuses() -> None:
    (finding,) = found("TE403", case("12.1", "2.4.1", compilers=(clang("8.0.1"),)))
    assert (finding.severity, finding.subject) == ("error", "clang++ 8.0.1")
    assert finding.message == "is older than PyTorch 2.4.1 requires: clang 9 or newer"
    assert "CC=/usr/bin/clang-" in finding.fix
    assert found("TE403", case("12.1", "2.4.1", compilers=(clang("9.0"),))) == []


@each(
    "cuda, version, code",
    [
        ("13.0", "19.44.35211", None),
        ("13.0", "19.50.1", "TE402"),
        ("13.0", "19.16.27", "TE403"),
        (None, "19.50.1", None),
    ],
)
def test_a_visual_c_plus_plus_that_nvcc_refuses(cuda: str | None, version: str, code: str | None) -> None:
    asked = case(cuda, compilers=(msvc(version),), platform="win-64")
    refused = {rule: found(rule, asked) for rule in ("TE402", "TE403")}
    assert {rule: [finding.code for finding in findings] for rule, findings in refused.items()} == {
        rule: [code] if rule == code else [] for rule in refused
    }
    for finding in (*refused["TE402"], *refused["TE403"]):
        number = 1950 if code == "TE402" else 1916
        assert finding.message == f"is _MSC_VER {number}; nvcc of CUDA 13.0 accepts _MSC_VER 1920 to 1949"
        assert finding.source.startswith(TABLE)


@each(
    "torch, version, severity, said",
    [
        ("2.13.0", "19.28.29914", "error", "PyTorch 2.13.0 is written in C++20, which needs 1929 or newer"),
        ("2.12.1", "19.29.30133", "", ""),
        ("2.9.1", "19.16.27023", "warning", "PyTorch supports 1920 (Visual Studio 2019) and newer (not confirmed for"),
        ("2.9.1", "19.20.27508", "", ""),
        ("2.9.1", "19.10.25017", "error", "PyTorch 2.9.1 is written in C++17, which needs 1911 or newer"),
        ("1.10.2", "19.10.25017", "", ""),
        (None, "19.10.25017", "", ""),
    ],
)
def test_a_visual_c_plus_plus_that_pytorch_refuses(torch: str | None, version: str, severity: str, said: str) -> None:
    findings = found("TE403", case(None, torch, compilers=(msvc(version),), platform="win-64"))
    assert [str(finding.severity) for finding in findings] == ([severity] if severity else [])
    for finding in findings:
        assert said in finding.message
        assert finding.fix.startswith(
            f"install a toolset with _MSC_VER {re.findall(r'1[0-9]{3}', finding.message)[1]} or"
        )


def test_windows_without_visual_c_plus_plus() -> None:
    looked = "PATH, the developer's prompt, vswhere.exe"
    for kind, codes in ((OriginKind.SEARCH_MSVC, ["TE401"]), (OriginKind.SEARCH, [])):
        asked = case(compilers=Fact((), looked, kind), platform="win-64")
        findings = found("TE401", asked)
        assert [finding.code for finding in findings] == codes
        for finding in findings:
            assert finding.message.startswith("Visual C++ was not found")
            assert finding.evidence == f"searched: {looked}"
            assert finding.fix.startswith("winget install Microsoft.VisualStudio.2022.BuildTools")
    assert found("TE401", case(compilers=Fact((msvc("19.44.35207"),), looked, kind), platform="win-64")) == []


def test_several_toolsets_of_visual_c_plus_plus() -> None:
    older = replace(msvc("19.29.30133"), path="C:/VC/29/cl.exe", default=False)
    (finding,) = found("TE404", case(compilers=(msvc("19.44.35207"), older), platform="win-64"))
    assert finding.subject == "msvc"
    assert finding.message == "several are installed; a build uses msvc 19.44.35207 (C:/VC/bin/cl.exe)"
    assert finding.fix == "build in the prompt of another toolset: `vcvarsall x64 -vcvars_ver=14.NN`"
    assert found("TE404", case(compilers=(msvc("19.44.35207"),), platform="win-64")) == []


def test_the_one_that_nvcc_takes_is_told_where_it_is_another() -> None:
    for_nvcc = gxx("12.3.0", "/usr/bin/g++-12", default=False)
    named = type(for_nvcc)("g++", "/usr/bin/g++-12", for_nvcc.version, False, led("CUDAHOSTCXX", "g++-12 on PATH"))
    (finding,) = found("TE404", case(compilers=(clang("18.1.8"), gxx("13.3.0", default=False), named)))
    assert finding.subject == "clang++ and g++"
    assert finding.message == (
        "several are installed; a build uses clang++ 18.1.8 (/usr/bin/clang++), and nvcc g++ 12.3.0 (/usr/bin/g++-12)"
    )


@each(
    "taken, variables, subject",
    [
        ("CXX", (), "g++ 14.2.0"),
        ("CXX", (Lead.CUDAHOSTCXX,), "g++ 13.3.0"),
        ("clang++", (), None),
    ],
)
def test_what_nvcc_takes_is_judged(taken: str, variables: tuple[Lead, ...], subject: str | None) -> None:
    """CXX names g++ 13, and the gcc on PATH is 14, which nvcc 12.6 refuses."""
    named = FoundBy(Lead.CXX, "CXX"), *(FoundBy(kind, kind.name) for kind in variables)
    mine = replace(gxx("13.3.0", "/usr/bin/g++-13"), found_by=named)
    if taken == "clang++":
        mine = clang("17.0.1")
    own = replace(gxx("14.2.0", "/usr/bin/gcc", kind="gcc"), nvcc=True)
    errors = found("TE402", case(cuda="12.6", compilers=(mine, own)))
    assert [one.subject for one in errors] == ([subject] if subject == "g++ 14.2.0" else [])


def test_a_gcc_that_nobody_is_known_to_have_tried_leaves_the_build_open() -> None:
    (finding,) = found("TE406", case("13.4", torch="2.14.1", compilers=(gxx("16.1.0"),)))
    assert finding.unknown is not None
    assert finding.unknown.scope is Scope.BUILD
    assert "may fail with PyTorch 2.14.1: no build with GCC 16 is known" in finding.message
    (older,) = found("TE406", case("13.4", torch="2.8.0", compilers=(gxx("16.1.0"),)))
    assert older.severity is Severity.ERROR


def test_nvcc_takes_the_plain_gcc_of_a_report_that_marks_none() -> None:
    """CXX names the compiler of the C++ files alone."""
    named = Compiler("g++", "/opt/gcc-12/bin/g++-12", Version("12.3.0"), True, (FoundBy(Lead.CXX, "CXX"),))
    plain = gxx("15.1.0", "/usr/bin/g++", default=False)
    assert found("TE402", case("12.4", compilers=(named, plain)))
    assert not found("TE402", case("12.4", compilers=(named,)))
