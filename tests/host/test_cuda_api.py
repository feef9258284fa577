from pathlib import Path

import pytest

from tenv.core.versions import Version
from tenv.host.cuda_api import parse
from tenv.host.cuda_api import probe as probe_with
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places
from tests.host.builders import library, needs_compiler, nvml, places, reason
from tests.support.each import each


def probe(places: Places) -> Fact[Version] | Missing:
    return probe_with(Nvidia(places))


def libcuda(root: Path, body: str) -> Path:
    source = f"#include <stdlib.h>\n#include <unistd.h>\nint cuDriverGetVersion(int *version) {{ {body} }}\n"
    return library(root / "usr/lib64/libcuda.so.1", source)


@each(
    "said, expected",
    [
        ("12.4", Fact(Version("12.4"), "CONDA_OVERRIDE_CUDA", OriginKind.OVERRIDE)),
        ("12", Fact(Version("12"), "CONDA_OVERRIDE_CUDA", OriginKind.OVERRIDE)),
        ("", Missing("CONDA_OVERRIDE_CUDA is empty, which means no CUDA", ReasonKind.NO_CUDA)),
        ("new", Missing("CONDA_OVERRIDE_CUDA is `new`, which is not a version", ReasonKind.NO_VERSION)),
        ("9" * 5000, Missing(f"CONDA_OVERRIDE_CUDA is `{'9' * 5000}`, which is not a version", ReasonKind.NO_VERSION)),
    ],
)
def test_the_override_wins(tmp_path: Path, said: str, expected: object) -> None:
    assert probe(places(tmp_path, CONDA_OVERRIDE_CUDA=said)) == expected


def test_nothing_there(tmp_path: Path) -> None:
    assert reason(probe(places(tmp_path))).endswith("; libcuda: the loader finds no libcuda.so.1")


@needs_compiler
def test_nvml_knows(tmp_path: Path) -> None:
    assert probe(places(tmp_path, library=nvml(tmp_path, cuda=12040))) == Fact(Version("12.4"), "NVML", OriginKind.NVML)


@needs_compiler
def test_nvml_that_does_not_know_leaves_it_to_libcuda(tmp_path: Path) -> None:
    path = libcuda(tmp_path, "*version = 12080; return 0;")
    found = probe(places(tmp_path, library=nvml(tmp_path, cuda_status=12)))
    assert found == Fact(Version("12.8"), f"cuDriverGetVersion of {path}", OriginKind.LIBCUDA)


@needs_compiler
def test_no_gpu_is_hidden_from_libcuda(tmp_path: Path) -> None:
    libcuda(tmp_path, '*version = getenv("CUDA_VISIBLE_DEVICES")[0] ? 0 : 13000; return 0;')
    found = probe(places(tmp_path, CUDA_VISIBLE_DEVICES="7"))
    assert isinstance(found, Fact)


@needs_compiler
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("abort();", "libcuda.so.1 crashed (signal 6)"),
        ("*(volatile int *)8 = 1; return 0;", "libcuda.so.1 crashed (signal 11)"),
        ("_exit(4);", "libcuda: exit status 4"),
        ("return 803;", "libcuda: cuDriverGetVersion fails with CUDA error 803"),
        ("*version = 7; return 0;", "libcuda: 7 is not a CUDA version"),
    ],
)
def test_libcuda_that_fails(tmp_path: Path, body: str, said: str) -> None:
    libcuda(tmp_path, body)
    assert reason(probe(places(tmp_path))).endswith(said)


@needs_compiler
def test_libcuda_that_hangs(tmp_path: Path) -> None:
    libcuda(tmp_path, "for (;;) pause();")
    assert reason(probe(places(tmp_path, timeout=0.2))).endswith("gave no answer within 0.2 s")


@needs_compiler
def test_libcuda_without_the_function(tmp_path: Path) -> None:
    library(tmp_path / "usr/lib64/libcuda.so.1", "int nothing;")
    assert "undefined symbol: cuDriverGetVersion" in reason(probe(places(tmp_path)))


@each("printed", ["", "x", "12.4", "1e4", "9" * 5000])
def test_parse_garbage(printed: str) -> None:
    assert isinstance(parse(printed), Missing)
