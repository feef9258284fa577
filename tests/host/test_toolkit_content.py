"""What of a toolkit a build finds: where CMake looks, and nowhere else."""

from pathlib import Path

from tenv.host.toolkit_content import HEADERS, LIBRARIES, PROGRAMS, absent
from tenv.host.toolkits import probe
from tests.host.builders import places, program, put
from tests.support.each import each
from tests.support.machine_trees import make_debian, make_toolkit


def test_a_whole_toolkit(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda")
    (found,) = probe(places(tmp_path)).value
    assert (found.path, found.absent) == (str(root), ())


def test_debians_layout(tmp_path: Path) -> None:
    make_debian(tmp_path)
    (found,) = probe(places(tmp_path)).value
    assert found.absent == ()


@each("name", LIBRARIES)
def test_each_library(tmp_path: Path, name: str) -> None:
    root = make_toolkit(tmp_path / "cuda")
    for file in root.glob(f"lib64/**/lib{name}.*"):
        file.unlink()
    assert absent(root, root, places(tmp_path)) == (f"lib{name}",)
    put(tmp_path / "usr/lib/x86_64-linux-gnu" / f"lib{name}.so")
    assert absent(root, root, places(tmp_path)) == (), "CMake looks in the system's folders, too"


@each("name", HEADERS)
def test_each_header(tmp_path: Path, name: str) -> None:
    root = make_toolkit(tmp_path / "cuda")
    (root / "include" / name).unlink()
    assert absent(root, root, places(tmp_path)) == (name,)
    put(root / "targets/x86_64-linux/include" / name)
    assert absent(root, root, places(tmp_path)) == ()


@each("name", PROGRAMS)
def test_each_program(tmp_path: Path, name: str) -> None:
    root = make_toolkit(tmp_path / "cuda")
    for pattern in PROGRAMS[name]:
        for file in root.glob(pattern):
            file.unlink()
    assert absent(root, root, places(tmp_path)) == (name,)


def test_a_ptxas_on_path_is_taken(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "cuda")
    (root / "bin/ptxas").unlink()
    program(tmp_path / "bin/ptxas", "echo")
    assert absent(root, root, places(tmp_path)) == ()


def test_a_link_that_leads_nowhere_is_no_library(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "cuda")
    (root / "lib64/libcufft.so").unlink()
    (root / "lib64/libcufft.so").symlink_to("libcufft.so.11")
    assert absent(root, root, places(tmp_path)) == ("libcufft",)


def test_a_numbered_library_alone_is_not_found(tmp_path: Path) -> None:
    """As where only the package with the library is installed, and not its development files."""
    root = make_toolkit(tmp_path / "cuda")
    (root / "lib64/libcufft.so").rename(root / "lib64/libcufft.so.11")
    assert absent(root, root, places(tmp_path)) == ("libcufft",)


def test_without_nvcc_nothing_is_said(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda")
    (root / "bin/nvcc").unlink()
    (found,) = probe(places(tmp_path)).value
    assert found.absent is None
