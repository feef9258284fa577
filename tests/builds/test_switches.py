"""The switch that a revision reads in place of another one: by its meaning, never by its spelling."""

import pytest

from tenv.builds.switches import meant, similar
from tenv.core.versions import Version
from tenv.facts.tables import load_facts

NOW = frozenset(
    ("USE_CUDA", "USE_OMP", "USE_OPENMP", "BUILD_SUFFIX", "BUILD_TEST", "USE_PYTORCH_QNNPACK", "USE_FBGEMM")
)
THEN = frozenset(("NO_CUDA", "NO_DISTRIBUTED", "WITH_NUMPY"))


@pytest.mark.parametrize(
    ("name", "value", "known", "right"),
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


@pytest.mark.parametrize(
    ("name", "release", "words"),
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
