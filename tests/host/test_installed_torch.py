"""A torch is read from files alone, wherever it lies; what its files do not hold is missing with a reason."""

import json
import os
import time
from pathlib import Path

from tenv.core.versions import Version
from tenv.host.installed_torch import InstalledTorch, TorchKind, read_torch, torch_from_label
from tenv.host.interface import Fact, Missing
from tenv.host.torch_files import TorchPlace
from tests.support.each import each
from tests.support.torches import ERROR_OLD, make_base, make_torch, make_torch_wheel, make_venv, torch_files


def read(path: Path) -> InstalledTorch:
    found = read_torch(path)
    assert isinstance(found, InstalledTorch), found
    return found


def value(answer: object) -> object:
    assert isinstance(answer, Fact), answer
    return answer.value


def test_each_value_has_its_file(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "venv", make_base(tmp_path / "base"))
    make_torch(site, torch_files(requires=['nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"', "sympy"]))
    found = read(tmp_path / "venv")
    assert (found.label, str(found.release), value(found.kind)) == ("2.9.1+cu128", "2.9.1", TorchKind.CUDA)
    assert (str(value(found.cuda)), value(found.python), str(value(found.glibc))) == ("12.8", "cp312", "2.28")
    assert value(found.gpu_code) == ("sm_70", "sm_90", "sm_120")
    assert (value(found.cxx11_abi), value(found.compiler)) == (True, "GCC 13.3.1")
    assert (value(found.least_cxx), value(found.default_cxx)) == (17, 17)
    assert value(found.requires) == ('nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"',)
    rows = {(row.compiler, row.cuda): (str(row.least), str(row.below)) for row in found.bounds.value}  # type: ignore[union-attr]
    assert rows["gcc", "12.1"] == ("5.0.0", "13.0")
    assert rows["clang", "12.8"] == ("7.0", "19.0")
    assert isinstance(found.base, Fact)
    assert found.base.value.header == str(tmp_path / "base/include/python3.12/Python.h")
    for name in ("version", "gpu_code", "cxx11_abi", "least_cxx", "default_cxx", "requires"):
        assert getattr(found, name).origin.startswith(str(site)), name
    json.dumps(found.to_json())


@each(
    "files, kind, version",
    [
        (torch_files("2.15.0+cpu", cuda=None), TorchKind.CPU, "2.15.0+cpu"),
        (torch_files("2.9.1+rocm6.4", cuda=None, hip="6.4.43482"), TorchKind.ROCM, "2.9.1+rocm6.4"),
        (torch_files("2.9.1+xpu", cuda=None, xpu="20250201"), TorchKind.XPU, "2.9.1+xpu"),
        (torch_files("1.13.1+cu117", cuda="11.7", typed=False), TorchKind.CUDA, "1.13.1+cu117"),
        (torch_files("2.10.0a0+gitb5e6ba4"), TorchKind.CUDA, "2.10.0a0+gitb5e6ba4"),
    ],
)
def test_kinds_are_told_apart(tmp_path: Path, files: dict[str, str], kind: TorchKind, version: str) -> None:
    make_torch(tmp_path, files)
    found = read(tmp_path / "torch")
    assert (value(found.kind), found.label) == (kind, version)
    assert isinstance(found.gpu_code, Fact) is (kind is TorchKind.CUDA)


RECORDED = (
    ("2.3.0.dev20240308+rocm6.0", TorchKind.ROCM, "hip", "6.0.32830-d62f6a171", ""),
    ("2.8.0a0+gitfc14c65", TorchKind.ROCM, "hip", "6.4.50101-9a6572ae7", "xpu"),
    ("2.13.0+rocm10.0.0", TorchKind.ROCM, "hip", "7.15.26333", "rocm xpu"),
    ("2.13.0a0+git27a4844", TorchKind.XPU, "xpu", "20250303", "hip rocm"),
    ("2.12.1+cu130", TorchKind.CUDA, "cuda", "13.0", "hip rocm xpu"),
    ("2.13.0+cpu", TorchKind.CPU, "", "", "hip rocm xpu"),
)
"""Version files that public repositories hold: a nightly, AMD's own builds for Windows, builds of one's own.

Each is a version, its kind, the value that is set, and the names that are None in it.
"""


@each("version, kind, name, value_of_it, empty", RECORDED)
def test_recorded_version_files(
    tmp_path: Path, version: str, kind: TorchKind, name: str, value_of_it: str, empty: str
) -> None:
    lines = ["from typing import Optional", "", f"__version__ = {version!r}", "debug = False"]
    lines += [f"cuda: Optional[str] = {value_of_it if name == 'cuda' else None!r}", "git_version = '27a4844d7fb2'"]
    lines += [f"{one}: Optional[str] = None" for one in empty.split()]
    lines += [f"{name}: Optional[str] = {value_of_it!r}"] if name not in ("", "cuda") else []
    lines = [line.replace("= 13.0", "= '13.0'") for line in lines]
    texts = {**torch_files(version, cuda=None), "torch/version.py": "\n".join([*lines, ""])}
    make_torch(tmp_path, texts)
    found = read(tmp_path)
    assert (value(found.kind), found.label) == (kind, version)
    values = {"hip": found.hip, "xpu": found.xpu, "cuda": found.cuda}
    assert {one: str(answer.value) for one, answer in values.items() if isinstance(answer, Fact)} == (
        {name: value_of_it} if name else {}
    )


def test_the_library_decides_the_abi_and_not_the_version(tmp_path: Path) -> None:
    for number, (version, symbol, new) in enumerate((("2.6.0+cu124", ERROR_OLD, False), ("2.6.0+cu126", "", True))):
        make_torch(tmp_path / str(number), torch_files(version), **({"abi": symbol} if symbol else {}))
        assert value(read(tmp_path / str(number)).cxx11_abi) is new


def test_the_least_standard_is_what_the_headers_demand(tmp_path: Path) -> None:
    make_torch(tmp_path, torch_files("2.14.0+cu130", cuda="13.0", least="202002L", default=20))
    found = read(tmp_path)
    assert (value(found.least_cxx), value(found.default_cxx)) == (20, 20)


def test_every_way_to_a_torch(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base")
    site = make_venv(tmp_path / "project/.venv", base)
    package = make_torch(site)
    wheel = make_torch_wheel(tmp_path, "torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl")
    for path in (
        *(tmp_path / "project/.venv", tmp_path / "project", tmp_path / "project/.venv/bin/python", site, package),
    ):
        found = read(path)
        assert (found.place, found.where, found.prefix) == (
            str(package),
            TorchPlace.VENV,
            str(tmp_path / "project/.venv"),
        )
        assert isinstance(found.base, Fact)
    assert read(wheel).label == "2.9.1+cu128"
    assert isinstance(read(wheel).base, Missing)


def test_uv_and_poetry_name_the_base_in_words_of_their_own(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base")
    for name, settings in (
        ("uv", f"home = {base}/bin\nimplementation = CPython\nuv = 0.13.9\nversion_info = 3.12.4\n"),
        ("poetry", f"home = {base}/bin\nversion_info = 3.12.4.final.0\nbase-prefix = {base}\n"),
    ):
        make_torch(make_venv(tmp_path / name, base, settings=settings))
        found = read(tmp_path / name).base
        assert isinstance(found, Fact)
        assert (found.value.prefix, found.value.version) == (str(base), "3.12")


def test_a_venv_may_read_the_packages_of_its_base(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base")
    make_torch(base / "lib/python3.12/site-packages")
    make_venv(tmp_path / "alone", base)
    make_venv(tmp_path / "shared", base, system=True)
    alone = read_torch(tmp_path / "alone")
    assert isinstance(alone, Missing)
    assert "has no torch" in alone.reason
    assert read(tmp_path / "shared").place == str(base / "lib/python3.12/site-packages/torch")


def test_conda_keeps_headers_and_libraries_below_the_prefix(tmp_path: Path) -> None:
    prefix = make_base(tmp_path / "env")
    site = prefix / "lib/python3.12/site-packages"
    make_torch(site)
    (site / "torch/include").rename(prefix / "include/split")
    (site / "torch/lib").rename(prefix / "lib/split")
    for kind, name in (("include", "include"), ("lib", "lib")):
        for path in (prefix / kind / "split").iterdir():
            path.rename(prefix / name / path.name)
    (prefix / "conda-meta").mkdir()
    record = {"name": "libtorch", "files": ["include/ATen/ATen.h", "lib/libc10.so"]}
    (prefix / "conda-meta/libtorch-2.9.1-cuda128_h0.json").write_text(json.dumps(record))
    found = read(prefix)
    assert found.where is TorchPlace.CONDA
    assert (value(found.cxx11_abi), value(found.least_cxx)) == (True, 17)
    assert value(found.gpu_code) == ("sm_70", "sm_90", "sm_120")


def test_an_editable_torch_is_found_through_its_link(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "venv", make_base(tmp_path / "base"))
    make_torch(tmp_path / "pytorch")
    (site / "__editable__.torch-2.9.1.pth").write_text(f"{tmp_path}/pytorch\n")
    assert read(tmp_path / "venv").place == str(tmp_path / "pytorch/torch")


@each("elsewhere", [False, True])
def test_an_editable_torch_of_scikit_build_core_lies_in_two_folders(tmp_path: Path, elsewhere: bool) -> None:
    """Its finder maps Python files to the checkout; ``version.py``, ``_C``, headers and libraries are installed."""
    site = make_venv(tmp_path / "venv", make_base(tmp_path / "base"))
    installed = tmp_path / "install" if elsewhere else site
    make_torch(installed, torch_files("2.15.0a0+git27a4844", cuda="13.2"))
    checkout = tmp_path / "pytorch/torch"
    for name in ("__init__.py", "utils/cpp_extension.py"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / "torch" / name).rename(checkout / name)
    (checkout / "version.py").write_text("__version__ = '2.1.0'\n")  # left behind by an older build
    (installed / "torch/_C.cpython-312-x86_64-linux-gnu.so").write_bytes(b"")
    sources = {"torch": f"{checkout}/__init__.py", "torch.utils.cpp_extension": f"{checkout}/utils/cpp_extension.py"}
    libraries = {"torch.version": f"{installed}/torch/version.py" if elsewhere else "torch/version.py"}
    (site / "_editable_skbc_torch.py").write_text(f"install({sources!r}, {libraries!r}, {{}}, [], None, False)\n")
    (site / "_editable_skbc_torch.pth").write_text("import _editable_skbc_torch\n")
    for path in (tmp_path / "venv", site):
        found = read(path)
        assert (found.label, found.place) == ("2.15.0a0+git27a4844", str(installed / "torch"))
        assert (value(found.default_cxx), value(found.least_cxx), value(found.python)) == (17, 17, "cp312")
        assert value(found.cxx11_abi) is True


def test_hostile_files_end_as_missing_values(tmp_path: Path) -> None:
    package = make_torch(tmp_path)
    (package / "version.py").write_text("__version__ = __import__('os').system('touch /tmp/x')\ncuda = '" + "9" * 10**5)
    (package / "lib/libc10.so").write_bytes(b"\x7fELF" + b"\xff" * 500)
    (package / "include/ATen/ATen.h").unlink()
    os.mkfifo(package / "include/ATen/ATen.h")
    (package / "utils/cpp_extension.py").write_bytes(b"CUDA_GCC_VERSIONS = {" + b"(" * 100_000)
    found = read(package)
    for name in ("version", "cuda", "cxx11_abi", "compiler", "least_cxx", "default_cxx", "bounds"):
        assert isinstance(getattr(found, name), Missing), name
        assert getattr(found, name).reason, name


def test_files_of_blanks_and_loops_take_no_time(tmp_path: Path) -> None:
    """Some of them took a pattern hours, and some lead in a circle. The limit is of processor time."""
    site = make_venv(tmp_path / "venv", make_base(tmp_path / "base"))
    package = make_torch(site)
    info = next(site.glob("torch-*.dist-info"))
    (package / "utils/cpp_extension.py").write_bytes(b"\n" * 4_000_000)
    (package / "version.py").write_bytes(b"cuda" + b"\n" * 120_000 + b"hip =" + b" " * 120_000)
    (package / "include/ATen/cuda/CUDAConfig.h").write_bytes(b'#define NVCC_FLAGS_EXTRA "' + b"code=sm_9" * 25_000)
    (package / "include/ATen/ATen.h").write_bytes(b"__cplusplus < 202002L " * 11_000)
    (info / "METADATA").write_bytes((b"Requires-Dist: nvidia-" + b" " * 380 + b"x\r\n") * 10_000)
    (info / "WHEEL").write_bytes(b"Tag:" + b"\n" * 200_000)
    (tmp_path / "venv/pyvenv.cfg").write_bytes(b"home =" + b"\n" * 60_000 + b"x=" + b" " * 4000)
    (site / "loop").symlink_to("loop")
    (site / "self.pth").symlink_to("self.pth")
    (site / "up.pth").write_text(f"{tmp_path / 'venv/lib'}\n" * 200)
    began = time.process_time()
    found = read(tmp_path / "venv")
    assert time.process_time() - began < 5
    for name in ("version", "cuda", "hip", "default_cxx", "bounds", "gpu_code", "least_cxx"):
        assert isinstance(getattr(found, name), Missing), name
    (tmp_path / "venv/pyvenv.cfg").write_bytes(b"home = /usr\0/bin\nversion = 3.12\n")
    (site / "nul.pth").write_bytes(b"/usr\0\n")
    assert isinstance(read(tmp_path / "venv").base, Missing)
    package.rename(site / "elsewhere")
    package.symlink_to("torch")
    assert isinstance(read_torch(tmp_path / "venv"), Missing)
    assert isinstance(read_torch(package), Missing)


def test_paths_that_lead_to_no_torch_have_a_reason(tmp_path: Path) -> None:
    (tmp_path / "bad.whl").write_bytes(b"PK\x03\x04")
    (tmp_path / "notes.txt").write_text("")
    for name in ("bad.whl", "notes.txt", "nowhere", "."):
        assert isinstance(read_torch(tmp_path / name), Missing), name


def test_versions_as_users_write_them() -> None:
    assert torch_from_label("2.9+cu128") == (Version("2.9"), "12.8")
    assert torch_from_label("torch==2.15.0") == (Version("2.15.0"), "")
    assert torch_from_label("2.9.1+cpu") == (Version("2.9.1"), "cpu")
    assert torch_from_label(".venv") is None
