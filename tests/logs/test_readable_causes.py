"""Names in causes are those that people read, and of two rows of one line the one that names the cause is taken."""

import pytest

from tenv.checks.build_log.diagnose import diagnose
from tenv.checks.build_log.log_lines import readable
from tenv.facts.tables import load_facts


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN3c105ErrorC2ENS_14SourceLocationE", "c10::Error"),
        ("_ZNK5Eigen5ArrayEv", "Eigen::Array"),
        ("_Z28silu_and_mul_per_block_quantRN2at6TensorE", "silu_and_mul_per_block_quant"),
        ("_ZL4sqrtIiEN15__hip_enable_ifE", "sqrt"),
        ("_ZTIN5clang15PluginASTActionE", "clang::PluginASTAction"),
        ("_ZSt4cout", "_ZSt4cout"),
        ("hipSetDevice", "hipSetDevice"),
        ("_Z", "_Z"),
    ],
)
def test_a_mangled_symbol_is_read_by_its_names(symbol: str, name: str) -> None:
    assert readable(symbol) == name


def test_a_cause_has_the_symbol_as_people_write_it() -> None:
    log = ["FAILED: a.so", "ld.lld: error: undefined symbol: _ZN4reel5spool4windEv", "ninja: build stopped."]
    cause = diagnose(log, load_facts().build_failures).cause
    assert cause is not None
    assert cause.title.startswith("reel::spool::wind ")


def test_a_row_that_is_not_weak_is_taken_before_a_weak_one_of_the_same_line() -> None:
    table = load_facts().build_failures
    line = '/opt/rocm/include/thrust/detail/config/cpp_dialect.h:131:13: error: "Thrust requires at least C++17."'
    rows = {row.name: row for row in table.failures}
    assert any(pattern.search(line) for pattern in rows["rocm-header-error"].patterns)
    assert rows["rocm-header-error"].weak
    cause = diagnose([line], table).cause
    assert cause is not None
    assert cause.failure.name == "cxx-standard-of-extension"


def test_a_sentence_of_cmake_ends_where_the_build_goes_on() -> None:
    log = [
        "CMake Error at torch_hip_generated_reel.hip.o.cmake:200 (message):",
        "  Error generating file",
        "  /build/CMakeFiles/torch_hip.dir/./torch_hip_generated_reel.hip.o",
        "[301/6000] Building CXX object caffe2/y.cpp.o",
        "ninja: build stopped: subcommand failed.",
    ]
    cause = diagnose(log, load_facts().build_failures).cause
    assert cause is not None
    assert cause.title == "hipcc failed on torch_hip_generated_reel.hip.o"
