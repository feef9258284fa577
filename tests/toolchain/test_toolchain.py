"""The toolkit folder: NVIDIA's wheels look like an installed CUDA toolkit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.core.versions import Version
from tenv.toolchain.cuda_folder import assemble, assemble_beside
from tenv.toolchain.discover import Toolchain, discover
from tests.support.each import each
from tests.support.fakes import make_nvidia, make_wheel, unpack

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such folder: links need a privilege")

SITE = "lib/python3.12/site-packages"


def make_toolkit(prefix: Path) -> Toolchain:
    """Make the toolkit's folder of all that lies in site-packages/nvidia."""
    parts = sorted(prefix.glob("lib/python3*/site-packages/nvidia/*"))
    return assemble(prefix, "linux-64", parts)


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A prefix with NVIDIA's wheels in it."""
    made = tmp_path / "env"
    for wheel in make_nvidia(tmp_path / "wheels"):
        unpack(wheel, made / SITE)
    for name in ("python", "cmake", "ninja"):
        (made / "bin").mkdir(exist_ok=True)
        (made / "bin" / name).write_text("")
    return made


@pytest.fixture
def root(prefix: Path) -> Path:
    """The toolkit folder of that prefix."""
    make_toolkit(prefix)
    return prefix / "cuda"


def test_finds_what_the_prefix_holds(prefix: Path) -> None:
    root = prefix / "cuda"
    assert make_toolkit(prefix) == Toolchain(
        prefix=prefix,
        python=prefix / "bin" / "python",
        site_packages=prefix / SITE,
        cuda=root,
        cuda_version=Version("13.0.0"),
        nvcc=root / "bin" / "nvcc",
        cudnn=root,
        cmake=prefix / "bin" / "cmake",
        ninja=prefix / "bin" / "ninja",
    )
    assert discover(prefix) == make_toolkit(prefix)


@each(
    "name",
    [
        "bin/nvcc",
        "bin/nvcc.profile",
        "include/cuda.h",
        "include/cuda_runtime_api.h",
        "include/cudnn.h",
        "include/nvtx3/nvToolsExt.h",
        "include/nvtx3/own.h",
        "lib/libcudart.so.13",
        "lib/libcudart_static.a",
        "lib/libcudnn_ops.so.9",
        "lib64/libcudart.so",
        "nvvm/bin/cicc",
        "version.json",
    ],
)
def test_everything_is_where_an_installer_puts_it(root: Path, name: str) -> None:
    assert (root / name).is_file()


def test_nvcc_can_be_run(root: Path) -> None:
    done = subprocess.run([root / "bin" / "nvcc", "--version"], capture_output=True, text=True, check=True)
    assert "release 13.0" in done.stdout


def test_libraries_have_the_names_that_linkers_look_for(root: Path) -> None:
    names = {path.name: path.readlink() for path in (root / "lib").iterdir() if path.is_symlink()}
    assert {name: str(names[name]) for name in ("libcudart.so", "libcudnn.so", "libcudnn_ops.so")} == {
        "libcudart.so": "libcudart.so.13",
        "libcudnn.so": "libcudnn.so.9",
        "libcudnn_ops.so": "libcudnn_ops.so.9",
    }
    assert "libcudart_static.so" not in names


def test_the_highest_number_is_linked_to(prefix: Path, tmp_path: Path) -> None:
    names = [f"nvidia/x/lib/libx.so.{number}" for number in ("2", "10", "9.1")]
    unpack(make_wheel(tmp_path / "wheels", "nvidia_x", "1", files=dict.fromkeys(names, "")), prefix / SITE)
    make_toolkit(prefix)
    assert str((prefix / "cuda" / "lib" / "libx.so").readlink()) == "libx.so.10"


def test_pythons_own_files_are_not_taken(root: Path) -> None:
    names = {path.name for path in root.rglob("*")}
    assert not names & {"__init__.py", "__pycache__"}


def test_the_driver_has_a_stub(root: Path) -> None:
    stub = (root / "lib" / "stubs" / "libcuda.so").read_bytes()
    assert stub[:4] == b"\x7fELF"
    for name in (b"cuInit", b"cuMemAlloc", b"cuMemAlloc_v2", b"libcuda.so.1"):
        assert b"\0" + name + b"\0" in stub


def test_the_versions_are_told_as_nvidias_installers_tell_them(root: Path) -> None:
    assert json.loads((root / "version.json").read_text()) == {
        "cuda": {"name": "CUDA SDK", "version": "13.0.0"},
        "cuda_cudart": {"name": "CUDA RUNTIME", "version": "13.0.48"},
        "cuda_nvcc": {"name": "CUDA NVCC", "version": "13.0.48"},
    }


def test_the_prefix_can_be_moved(prefix: Path, root: Path) -> None:
    links = [path for path in root.rglob("*") if path.is_symlink()]
    assert links
    assert not [path for path in links if os.path.isabs(path.readlink())]  # noqa: PTH117 (a link's own text)
    moved = prefix.rename(prefix.with_name("moved"))
    assert not [path for path in (moved / "cuda").rglob("*") if not path.exists()]


def look(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): str(path.readlink()) if path.is_symlink() else path.read_bytes().hex()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_is_the_same_when_made_again(prefix: Path, root: Path) -> None:
    before = look(root)
    make_toolkit(prefix)
    assert look(root) == before


def test_what_is_no_longer_there_goes(prefix: Path, root: Path) -> None:
    (prefix / SITE / "nvidia" / "cudnn" / "include" / "cudnn.h").unlink()
    (root / "by-hand").write_text("")
    toolchain = make_toolkit(prefix)
    assert toolchain.cudnn is None
    assert not (root / "by-hand").exists()
    assert not (root / "include" / "cudnn.h").is_symlink()


@pytest.mark.parametrize("kind", ["file", "link", "dead link"])
def test_whatever_stands_in_its_place_makes_way(prefix: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").write_text("")
    if kind == "file":
        (prefix / "cuda").write_text("")
    else:
        (prefix / "cuda").symlink_to(tmp_path / ("other" if kind == "link" else "nowhere"))
    assert make_toolkit(prefix).nvcc
    assert (tmp_path / "other" / "mine").is_file()


def test_no_toolkit_is_made_without_a_runtime(tmp_path: Path) -> None:
    (tmp_path / SITE).mkdir(parents=True)
    unpack(make_wheel(tmp_path / "wheels", "nvidia_x", "1", files={"nvidia/x/lib/libx.so.1": ""}), tmp_path / SITE)
    toolchain = make_toolkit(tmp_path)
    assert (toolchain.cuda, toolchain.nvcc, toolchain.cuda_version) == (None, None, None)
    assert not (tmp_path / "cuda").exists()


def test_the_metapackage_says_the_release_or_else_the_compiler_does(prefix: Path) -> None:
    (prefix / SITE / "cuda_toolkit-13.0.0.0.dist-info").rename(prefix / "aside")
    assert make_toolkit(prefix).cuda_version == Version("13.0.48")


@pytest.mark.parametrize("library", ["libmkl_core.a", "libmkl_core.so"])
def test_finds_mkl(tmp_path: Path, library: str) -> None:
    for name in ("include/mkl.h", f"lib/{library}"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert discover(tmp_path).mkl == tmp_path
    (tmp_path / "lib" / library).unlink()
    assert discover(tmp_path).mkl is None


def test_an_empty_prefix_holds_nothing(tmp_path: Path) -> None:
    found = discover(tmp_path)
    nothing = {name for name in Toolchain.__slots__ if not getattr(found, name)}
    assert nothing == {*Toolchain.__slots__} - {"prefix", "python", "site_packages"}


def test_beside_the_machine_s_toolkit_only_what_it_does_not_bring_is_linked(prefix: Path) -> None:
    make_toolkit(prefix)
    parts = sorted(prefix.glob("lib/python3*/site-packages/nvidia/*"))
    made = assemble_beside(prefix, parts)
    root = prefix / "cuda"
    assert (made.cuda, made.nvcc, made.cudnn, made.nccl) == (None, None, root, None)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.suffix in (".h", ".9", ".so")) == [
        "include/cudnn.h",
        "lib/libcudnn.so",
        "lib/libcudnn.so.9",
        "lib/libcudnn_ops.so",
        "lib/libcudnn_ops.so.9",
    ]
    assert not (root / "version.json").exists()


def test_beside_the_machine_s_toolkit_there_may_be_nothing(prefix: Path) -> None:
    make_toolkit(prefix)
    assert assemble_beside(prefix, ()).cudnn is None
    assert not (prefix / "cuda").exists()
