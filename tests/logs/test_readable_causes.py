"""Names in causes are those that people read, and of two rows of one line the one that names the cause is taken."""

import pytest

from tenv.checks.build_log.diagnose import diagnose
from tenv.checks.build_log.log_lines import LogLine, clean, readable
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


def test_a_cause_tells_what_the_compiler_adds_of_another_file() -> None:
    log = [
        "/src/wind.hip:9:3: error: call to 'reel' is ambiguous",
        "    9 |   reel(x);",
        "/src/wind.hip:2:6: note: candidate function not viable: no known conversion from 'int' to 'spool'",
        "/opt/rocm/include/spool.h:4:6: note: candidate function not viable: requires 2 arguments, but 1 was provided",
        "/src/wind.hip:12:3: error: no matching function for call to 'wind'",
        "1 error generated when compiling for gfx90a.",
    ]
    cause = diagnose(log, load_facts().build_failures).cause
    assert cause is not None
    assert cause.note.startswith("/opt/rocm/include/spool.h:4: candidate function not viable: requires 2 arguments")
    assert f"The compiler adds: {cause.note}." in cause.finding().message


def test_a_cause_has_a_note_of_its_own_file_where_there_is_no_other_and_none_of_the_next_error() -> None:
    error = "/src/wind.hip:9:3: error: redefinition of 'reel'"
    own = "/src/wind.hip:2:6: note: previous definition is here"
    after = ["/src/wind.hip:20:3: error: redefinition of 'spool'", "/opt/a.h:1:2: note: previous definition is here"]
    table = load_facts().build_failures
    notes = [cause.note for log in ([error, own, *after], [error, *after]) if (cause := diagnose(log, table).cause)]
    assert notes == ["/src/wind.hip:2: previous definition is here", ""]


def test_errors_before_the_mark_of_ninja_count_where_none_follow() -> None:
    error = 'CMake Error at CMakeLists.txt:3 (message):\n  reels of "spool" are not wound'
    log = [*error.splitlines(), "", "FAILED: reel/configure.stamp", "ninja: build stopped: subcommand failed."]
    found = diagnose(log, load_facts().build_failures)
    assert found.cause is not None
    assert found.cause.line.number == 1
    assert diagnose([*log[:4], "a.cpp:1:2: error: expected ';'", log[4]], load_facts().build_failures).error == LogLine(
        5, "a.cpp:1:2: error: expected ';'"
    )


def test_an_error_that_is_folded_behind_its_place_is_one_line_and_the_others_keep_their_numbers() -> None:
    log = [
        "/src/wind.hip:9:3:",
        "    error: no reel",
        "/src/wind.hip:12:3: error:",
        "   no spool",
        "",
        "/src/a.hip:1:2:",
    ]
    assert [(line.number, line.text) for line in clean(log)] == [
        (1, "/src/wind.hip:9:3: error: no reel"),
        (2, ""),
        (3, "/src/wind.hip:12:3: error: no spool"),
        (4, ""),
        (5, ""),
        (6, "/src/a.hip:1:2:"),
    ]
