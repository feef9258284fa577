"""scripts/whats_new.py: the tables that are older than the newest releases, and the files of a checkout that differ."""

from pathlib import Path

import pytest

from scripts.whats_new import TRACKED, report
from tenv.checks.pytorch_source import find_source
from tenv.core.versions import Version
from tenv.facts.tables import Facts, load_facts

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


def test_an_older_table_is_named_and_a_newer_one_is_not(facts: Facts) -> None:
    own = {tracked.package: tracked.newest(facts) for tracked in TRACKED if tracked.table != "cuda_redist"}
    text, news = report(facts, {"torch": own["torch"], "triton": own["triton"]})
    assert not news
    assert "pytorch_build             2.15.0    current" in text
    text, news = report(facts, {**own, "nvidia-cuda-nvcc": Version("14.0.12")})
    assert news
    behind = {line.split()[0] for line in text.splitlines() if "OLDER than 14.0.12" in line}
    assert behind == {"cuda_driver", "cuda_gpu_arch", "cuda_host_compiler", "cuda_redist"}


def test_a_toolkit_without_a_driver_is_listed(facts: Facts) -> None:
    assert "the driver of CUDA 13.5.0 is not known" in report(facts, {})[0]


def checkout(folder: Path, cuda: str, standard: str, triton: str) -> Path:
    for name, text in (
        ("version.txt", "2.13.0a0\n"),
        ("CMakeLists.txt", f"project(Torch CXX C)\nset(CMAKE_CXX_STANDARD {standard})\n"),
        ("cmake/public/cuda.cmake", f"PyTorch requires CUDA {cuda} and above\n"),
        (".ci/docker/triton_version.txt", f"{triton}\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_files_of_a_checkout_that_differ_from_its_row(facts: Facts, tmp_path: Path) -> None:
    pair = facts.pytorch_build.companions_of("2.13.0")
    assert pair is not None
    triton = pair.triton.removeprefix("~=")
    same = find_source(str(checkout(tmp_path / "same", "12.1", "20", triton)), facts)
    assert "  as the table" in report(facts, {}, same)[0]
    other = find_source(str(checkout(tmp_path / "other", "12.8", "23", "99.1.0")), facts)
    text, news = report(facts, {}, other)
    assert news
    assert "cuda_min: 12.8 in cmake/public/cuda.cmake:1, 12.1 in the row of 2.13.0" in text
    assert "cxx_standard: 23 in CMakeLists.txt:2, 20 in the row of 2.13.0" in text
    assert "triton: 99.1.0 in .ci/docker/triton_version.txt" in text


def test_the_page_names_every_table_that_follows_a_release() -> None:
    page = (ROOT / "docs" / "maintaining.md").read_text(encoding="utf-8")
    assert [tracked.table for tracked in TRACKED if f"`{tracked.table.split()[0]}`" not in page] == []
