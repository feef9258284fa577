from pathlib import Path

from tenv.host.compilers import parse_kind, parse_version, probe
from tenv.host.report import Compiler, Lead
from tests.host.builders import places, program, text
from tests.support.each import each

Row = tuple[str, str, str, bool, str]


def compiler(root: Path, name: str, version: str) -> Path:
    """A fake compiler that counts how often it is started."""
    return program(root / "bin" / name, f"echo $0 >> {root}/log\necho {version}")


def link(root: Path, name: str, to: str) -> None:
    (root / "bin" / name).symlink_to(to)


def rows(found: tuple[Compiler, ...]) -> set[Row]:
    return {(one.kind, Path(one.path).name, str(one.version), one.default, one.ways) for one in found}


def test_the_recorded_texts() -> None:
    assert parse_kind(text("gcc-version.txt"), "C") == "gcc"
    assert parse_kind(text("clang-version.txt"), "C++") == "clang++"
    assert parse_kind("tcc version 0.9.27", "C") is None


@each("garbage", ["", "gcc", "12.2.0-dirty", "1\n2"])
def test_versions_that_are_none(garbage: str) -> None:
    assert parse_version(garbage) is None


def test_all_versions_on_path(tmp_path: Path) -> None:
    """As on a Debian with two releases of GCC and a clang."""
    for name in ("x86_64-linux-gnu-gcc-12", "x86_64-linux-gnu-gcc-9", "x86_64-linux-gnu-g++-12"):
        compiler(tmp_path, name, f"{name.rpartition('-')[2]}.2.0")
    compiler(tmp_path, "../lib/llvm/clang", "15.0.7")
    for name, to in (
        ("gcc-12", "x86_64-linux-gnu-gcc-12"),
        ("gcc", "gcc-12"),
        ("cc", "gcc"),
        ("gcc-9", "x86_64-linux-gnu-gcc-9"),
        ("g++", "x86_64-linux-gnu-g++-12"),
        ("clang-15", "../lib/llvm/clang"),
        ("clang++-15", "../lib/llvm/clang++"),
        ("../lib/llvm/clang++", "clang"),
    ):
        link(tmp_path, name, to)
    found = probe(places(tmp_path)).value
    assert rows(found) == {
        ("gcc", "x86_64-linux-gnu-gcc-12", "12.2.0", True, "cc, gcc, gcc-12 on PATH"),
        ("gcc", "x86_64-linux-gnu-gcc-9", "9.2.0", False, "gcc-9 on PATH"),
        ("g++", "x86_64-linux-gnu-g++-12", "12.2.0", True, "g++ on PATH"),
        ("clang", "clang", "15.0.7", False, "clang-15 on PATH"),
        ("clang++", "clang++", "15.0.7", False, "clang++-15 on PATH"),
    }
    assert [one.default for one in found] == [True, True, False, False, False]
    assert [one.kind for one in found if one.nvcc] == ["gcc"]
    started = (tmp_path / "log").read_text().splitlines()
    assert (len(started), len(set(started))) == (5, 4)  # the g++ twice: for its version, and for what it links


@each(
    "variables, taken, leads",
    [
        ({}, "gcc", (Lead.PATH,)),
        ({"CXX": "g++-13", "CC": "gcc-13"}, "gcc", (Lead.PATH,)),
        ({"NVCC_CCBIN": "g++-13"}, "g++-13", (Lead.NVCC, Lead.PATH)),
        ({"NVCC_CCBIN": "BIN"}, "gcc", (Lead.NVCC, Lead.PATH)),
        ({"NVCC_CCBIN": "gcc", "NVCC_PREPEND_FLAGS": "-O2 -ccbin g++-13"}, "g++-13", (Lead.NVCC, Lead.PATH)),
        ({"NVCC_PREPEND_FLAGS": "-ccbin=gcc-13", "NVCC_APPEND_FLAGS": "--compiler-bindir=g++-13"}, "g++-13", None),
        ({"NVCC_PREPEND_FLAGS": "-Xptxas -v -ccbin"}, "gcc", (Lead.PATH,)),
        ({"NVCC_PREPEND_FLAGS": "an ' open quote"}, "gcc", (Lead.PATH,)),
    ],
)
def test_what_nvcc_takes(tmp_path: Path, variables: dict[str, str], taken: str, leads: tuple[Lead, ...] | None) -> None:
    for name, version in (("gcc", "14.2.0"), ("g++", "14.2.0"), ("gcc-13", "13.3.0"), ("g++-13", "13.3.0")):
        compiler(tmp_path, name, version)
    environ = {name: value.replace("BIN", str(tmp_path / "bin")) for name, value in variables.items()}
    (found,) = (one for one in probe(places(tmp_path, variables=environ)).value if one.nvcc)
    assert Path(found.path).name == taken
    assert leads is None or tuple(way.kind for way in found.found_by) == leads


def test_the_variables_decide(tmp_path: Path) -> None:
    for name, version in (("gcc", "13.1.0"), ("g++", "13.1.0"), ("g++-11", "11.4.0"), ("conda-linux-gnu-cc", "12.4.0")):
        compiler(tmp_path, name, version)
    (tmp_path / "bin/conda-linux-gnu-cc").rename(tmp_path / "bin/x86_64-conda-linux-gnu-gcc")
    environ = {"CC": "ccache x86_64-conda-linux-gnu-gcc", "CXX": str(tmp_path / "bin/g++-11"), "CUDAHOSTCXX": "g++-11"}
    found = probe(places(tmp_path, variables=environ)).value
    leads = {(one.ways, tuple(way.kind for way in one.found_by)) for one in found if one.default}
    assert leads == {
        ("CC", (Lead.CC,)),
        ("CXX; CUDAHOSTCXX; g++-11 on PATH", (Lead.CXX, Lead.CUDAHOSTCXX, Lead.PATH)),
    }
    assert rows(found) == {
        ("gcc", "x86_64-conda-linux-gnu-gcc", "12.4.0", True, "CC"),
        ("g++", "g++-11", "11.4.0", True, "CXX; CUDAHOSTCXX; g++-11 on PATH"),
        ("gcc", "gcc", "13.1.0", False, "gcc on PATH"),
        ("g++", "g++", "13.1.0", False, "g++ on PATH"),
    }


def test_a_variable_that_names_nothing(tmp_path: Path) -> None:
    found = probe(places(tmp_path, CXX="g++-99", CC='"'))
    assert found.value == ()
    assert found.origin.endswith('; CC names ", which does not exist; CXX names g++-99, which does not exist')


def test_gcc_that_is_ccache(tmp_path: Path) -> None:
    program(tmp_path / "bin/ccache", 'case $0 in */gcc) echo 12.2.0;; *) echo "ccache: no" >&2; exit 1;; esac')
    link(tmp_path, "gcc", "ccache")
    assert rows(probe(places(tmp_path)).value) == {("gcc", "gcc", "12.2.0", True, "gcc on PATH")}


def test_cc_is_asked_what_it_is(tmp_path: Path) -> None:
    version = "clang version 17.0.6"
    program(tmp_path / "bin/cc", f'[ "$1" = --version ] && echo "{version}" || echo 17.0.6')
    assert rows(probe(places(tmp_path)).value) == {("clang", "cc", "17.0.6", True, "cc on PATH")}


def test_a_compiler_that_fails_is_left_out_and_told(tmp_path: Path) -> None:
    compiler(tmp_path, "gcc", "12.2.0")
    program(tmp_path / "bin/gcc-9", "echo 'error while loading shared libraries: libmpc.so.3' >&2; exit 127")
    program(tmp_path / "bin/gcc-8", "exec sleep infinity")
    program(tmp_path / "bin/cc", '[ "$1" = --version ] && echo "tcc version 0.9" || echo 0.9')
    found = probe(places(tmp_path, timeout=1.0))
    assert rows(found.value) == {("gcc", "gcc", "12.2.0", False, "gcc on PATH")}
    for said in (
        "bin/gcc-9 is skipped: exit status 127, `error while loading shared libraries: libmpc.so.3`",
        "bin/gcc-8 gave no answer within 1 s",
        "bin/cc is skipped: neither GCC nor clang",
    ):
        assert said in found.origin


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    link(tmp_path, "gcc", "g++")
    link(tmp_path, "g++", "gcc")
    assert probe(places(tmp_path)).value == ()
