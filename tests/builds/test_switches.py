"""The switch that a revision reads in place of another one: by its meaning, never by its spelling."""

from pathlib import Path

import pytest

from tenv.builds.build_job import BuildRequest, DebugKind
from tenv.builds.switches import meant, similar
from tenv.core.errors import UsageError
from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tests.support.each import each

NOW = frozenset(
    ("USE_CUDA", "USE_OMP", "USE_OPENMP", "BUILD_SUFFIX", "BUILD_TEST", "USE_PYTORCH_QNNPACK", "USE_FBGEMM")
)
THEN = frozenset(("NO_CUDA", "NO_DISTRIBUTED", "WITH_NUMPY"))


@each(
    "name, value, known, right",
    [
        ("USE_FFMPEG", "0", NOW, ""),
        ("BUILD_CAFFE2", "1", NOW, ""),
        ("USE_FBGEM", "0", NOW, ""),
        ("USE_XFBGEMM", "1", NOW, ""),
        ("USE_QNNPACK", "0", NOW, ""),
        ("USE_GPU", "1", NOW, "USE_CUDA=1"),
        ("NO_CUDA", "1", NOW, "USE_CUDA=0"),
        ("WITH_CUDA", "1", NOW, "USE_CUDA=1"),
        ("WITH_CUDA", "1", THEN, "NO_CUDA unset"),
        ("WITH_CUDA", "0", THEN, "NO_CUDA=1"),
        ("USE_NUMPY", "1", THEN, "WITH_NUMPY=1"),
    ],
)
def test_only_another_word_for_the_same_part_is_meant(name: str, value: str, known: frozenset[str], right: str) -> None:
    assert meant(name, value, known, load_facts().pytorch_switches) == right


@each(
    "name, release, words",
    [
        ("USE_FFMPEG", "2.9", "PyTorch up to 2.3 read it (the video reader of Caffe2)"),
        ("USE_CUSPARSELT", "1.12.1", "PyTorch from 2.1 on reads it"),
        ("USE_GPU", "2.9", "no release is known to read it"),
        ("USE_FFMPEG", "1.12.1", ""),
    ],
)
def test_the_table_has_the_fate_of_a_switch(name: str, release: str, words: str) -> None:
    row = load_facts().pytorch_switches.find(name)
    assert row
    assert row.fate(Version(release)) == words


def test_a_similar_name_is_a_question() -> None:
    assert similar("USE_FBGEM", NOW) == "did you mean `USE_FBGEMM`?"
    assert similar("USE_SOMETHING_ELSE_ALTOGETHER", frozenset(("NO_CUDA",))) == ""


@each(
    "environ, defines, option, kind",
    [
        ({"DEBUG": "1"}, {}, DebugKind.NONE, DebugKind.DEBUG),
        ({"DEBUG": "0", "REL_WITH_DEB_INFO": "ON"}, {}, DebugKind.NONE, DebugKind.REL_WITH_DEB_INFO),
        ({"DEBUG": "1", "REL_WITH_DEB_INFO": "1"}, {}, DebugKind.NONE, DebugKind.DEBUG),
        ({"CMAKE_BUILD_TYPE": "debug", "REL_WITH_DEB_INFO": "1"}, {}, DebugKind.NONE, DebugKind.DEBUG),
        ({"CMAKE_BUILD_TYPE": "Release", "DEBUG": "1"}, {}, DebugKind.NONE, DebugKind.NONE),
        ({"CMAKE_BUILD_TYPE": "Release"}, {}, DebugKind.DEBUG, DebugKind.DEBUG),
        ({"DEBUG": "1"}, {"CMAKE_BUILD_TYPE": "RelWithDebInfo"}, DebugKind.NONE, DebugKind.REL_WITH_DEB_INFO),
        ({"DEBUG": "1"}, {"CMAKE_BUILD_TYPE": "Release"}, DebugKind.NONE, DebugKind.NONE),
    ],
)
def test_variables_decide_the_kind_of_a_build_as_options_do(
    environ: dict[str, str], defines: dict[str, str], option: DebugKind, kind: DebugKind
) -> None:
    request = BuildRequest(Path(), debug=option, defines=defines).with_variables(environ)
    assert request.debug is kind
    assert request.passed == {}
    assert request.with_variables(environ) == request  # the steps of a build settle their target more than once


def test_a_kind_that_pytorch_does_not_build_and_two_kinds_are_refused() -> None:
    with pytest.raises(UsageError, match="CMAKE_BUILD_TYPE=Fast: expected one of Release, Debug, RelWithDebInfo"):
        BuildRequest(Path()).with_variables({"CMAKE_BUILD_TYPE": "Fast"})
    request = BuildRequest(Path(), debug=DebugKind.DEBUG, defines={"CMAKE_BUILD_TYPE": "Release"})
    with pytest.raises(UsageError, match="--debug and -D CMAKE_BUILD_TYPE=Release exclude each other"):
        request.with_variables({})


def test_the_files_with_debug_information_come_from_the_variable_too() -> None:
    request = BuildRequest(Path()).with_variables({"USE_CUSTOM_DEBINFO": "a.cpp;b.cpp"})
    assert request.debug_files == ("a.cpp", "b.cpp")
