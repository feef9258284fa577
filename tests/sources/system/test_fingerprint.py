"""The fingerprint of a tool: what changes it, what does not, and how a change is reported."""

import os
import shutil
from pathlib import Path

import pytest

from tenv.core.errors import EnvironmentBrokenError
from tenv.sources.system.fingerprint import (
    Fingerprint,
    describe,
    differences,
    read_fingerprints,
    take_fingerprint,
    write_fingerprints,
)
from tenv.sources.system.interface import Tool
from tenv.sources.system.taken import fit
from tenv.toolchain.discover import Toolchain
from tests.support.each import each
from tests.support.fakes import change_byte
from tests.support.machine_trees import make_toolkit

NAMES = ("bin/nvcc", "nvvm/bin/cicc", "version.json")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_toolkit(tmp_path / "cuda")


@pytest.fixture
def taken(root: Path) -> Fingerprint:
    files = tuple(root / name for name in NAMES)
    large = (root / "lib64/libcublas.so.99.1.3.1",)
    roles = {"home": str(root), "nvcc": str(root / "bin/nvcc")}
    return take_fingerprint(
        Tool("cuda-toolkit", root, "99.1.1", "*", "CUDA_HOME", roles, (), files, large, (root / "bin/nvcc",))
    )


def keep_time(path: Path) -> None:
    """Change a byte of a file and put its time back."""
    info = path.stat()
    change_byte(path)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def test_nothing_has_changed(taken: Fingerprint) -> None:
    assert differences([taken]) == []
    assert differences([taken], deep=True) == []


def test_a_byte_of_nvcc(root: Path, taken: Fingerprint) -> None:
    change_byte(root / "bin/nvcc")
    (drift,) = differences([taken])
    assert (drift.name, drift.file, drift.gone, drift.hidden) == (
        "cuda-toolkit",
        str(root / "bin/nvcc"),
        False,
        False,
    )
    assert describe([drift]) == [f"cuda-toolkit 99.1.1 of the system ({root}): bin/nvcc has changed"]


@pytest.mark.parametrize("deep", [False, True])
def test_a_byte_whose_time_was_put_back(root: Path, taken: Fingerprint, deep: bool) -> None:
    keep_time(root / "bin/nvcc")
    (drift,) = differences([taken], deep=deep)
    assert (drift.file, drift.hidden) == (str(root / "bin/nvcc"), True)


def test_the_same_bytes_written_again_are_no_change(root: Path, taken: Fingerprint) -> None:
    shutil.copyfile(root / "bin/nvcc", root / "copy")
    (root / "bin/nvcc").unlink()
    (root / "copy").rename(root / "bin/nvcc")
    os.utime(root / "bin/nvcc", (1, 1))
    assert differences([taken]) == []


def test_a_large_library_is_known_by_its_size_and_time(root: Path, taken: Fingerprint) -> None:
    library = root / "lib64/libcublas.so.99.1.3.1"
    assert next(mark.sha256 for mark in taken.marks if mark.path == str(library)) == ""
    os.utime(library, (1, 1))
    assert [drift.file for drift in differences([taken], deep=True)] == [str(library)]


def test_many_files_are_told_in_short(root: Path, taken: Fingerprint) -> None:
    for name in NAMES[1:]:
        change_byte(root / name)
    (root / "bin/nvcc").unlink()
    (root / "lib64/libcublas.so.99.1.3.1").unlink()
    assert describe(differences([taken])) == [
        f"cuda-toolkit 99.1.1 of the system ({root}): bin/nvcc is missing, nvvm/bin/cicc has changed, "
        "version.json has changed and 1 more"
    ]


def test_a_tool_that_is_not_there_any_more(root: Path, taken: Fingerprint) -> None:
    shutil.rmtree(root)
    found = differences([taken])
    assert len(found) == 4
    assert describe(found) == [f"cuda-toolkit 99.1.1 of the system ({root}) is missing"]


def test_what_is_written_is_what_is_read(tmp_path: Path, taken: Fingerprint) -> None:
    write_fingerprints(tmp_path, [taken])
    assert read_fingerprints(tmp_path) == (taken,)
    write_fingerprints(tmp_path, [])
    assert read_fingerprints(tmp_path) == ()
    assert not (tmp_path / "system.json").exists()


@each("text", ["", "{", "[]", "[" * 200_000, '{"schema": 2, "tools": []}', '{"schema": 1, "tools": [{}]}', "\xff"])
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "system.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(EnvironmentBrokenError, match=r"system\.json: can't be read") as raised:
        read_fingerprints(tmp_path)
    assert raised.value.hint == "`tenv create` repairs the environment"


def test_the_machine_s_tools_take_their_places_in_the_toolchain(root: Path, taken: Fingerprint) -> None:
    bare = Toolchain(Path("/env"), Path("/env/bin/python"), Path("/env/lib/python3.11/site-packages"))
    gcc = Fingerprint("gcc", "/usr/bin/g++", "12.2.0", "*", "", {"gcc": "/usr/bin/gcc", "g++": "/usr/bin/g++"}, (), ())
    cudnn = Fingerprint("cudnn", "/opt/cudnn", "9.1.0", "*", "", {"home": "/opt/cudnn"}, (), ())
    made = fit(bare, [taken, gcc, cudnn])
    assert (made.cuda, made.nvcc, str(made.cuda_version)) == (root, root / "bin/nvcc", "99.1.1")
    assert (str(made.cc), str(made.cxx), str(made.cudnn)) == ("/usr/bin/gcc", "/usr/bin/g++", "/opt/cudnn")
    assert made.system == ("cuda-toolkit", "gcc", "cudnn")
