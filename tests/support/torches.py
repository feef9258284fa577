"""Installed torches in miniature: the few files that a reader looks at, as the real ones have them."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.elf import dynamic, with_symbols, write_elf

__all__ = [
    "ERROR_NEW",
    "ERROR_OLD",
    "make_base",
    "make_libraries",
    "make_torch",
    "make_torch_wheel",
    "make_venv",
    "torch_files",
]

ERROR_NEW = "_ZN3c105ErrorC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES6_PKv"
ERROR_OLD = "_ZN3c105ErrorC2ESsSsPKv"
_BOUNDS = """\
MINIMUM_GCC_VERSION = (5, 0, 0)
CUDA_GCC_VERSIONS: VersionMap = {
    '12.1': (MINIMUM_GCC_VERSION, (13, 0)),
    '12.8': ((6, 0, 0), (15, 0)),
    '13.0': ((6, 0, 0), (16, 0)),
}
MINIMUM_CLANG_VERSION = (3, 3, 0)
CUDA_CLANG_VERSIONS: VersionMap = {
    '12.8': ((7, 0), (19, 0)),
}
"""


def torch_files(
    version: str = "2.9.1+cu128",
    *,
    cuda: str | None = "12.8",
    hip: str | None = None,
    xpu: str | None = None,
    typed: bool = True,
    code: Sequence[str] = ("70", "90", "120"),
    least: str = "201703L",
    default: int = 17,
    requires: Sequence[str] = (),
    tag: str = "cp312-cp312-manylinux_2_28_x86_64",
) -> dict[str, str]:
    """Return the texts of a torch by their names in its wheel."""
    kind = ": Optional[str]" if typed else ""
    values = "".join(f"{name}{kind} = {value!r}\n" for name, value in (("cuda", cuda), ("hip", hip), ("xpu", xpu)))
    flags = ";".join(f"-gencode;arch=compute_{one},code=sm_{one}" for one in code)
    info = f"torch-{version.partition('+')[0]}.dist-info"
    lines = "".join(f"Requires-Dist: {one}\n" for one in requires)
    found = {
        "torch/__init__.py": "raise SystemExit('a reader imported torch')\n",
        "torch/version.py": f"__version__ = {version!r}\ndebug = False\n{values}",
        "torch/utils/cpp_extension.py": (
            f"{_BOUNDS}    r'''  ``-std=c++20``  '''\n"
            f"        cflags = common_cflags + ['-fPIC', '-std=c++{default}'] + extra_cflags\n"
        ),
        "torch/include/ATen/ATen.h": (
            f"#if !defined(_MSC_VER) && __cplusplus < {least}\n#error C++ of a later year is required to use ATen.\n"
        ),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nTag: {tag}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {info[6:-10]}\n{lines}\ntorch\n",
    }
    if cuda:
        found["torch/include/ATen/cuda/CUDAConfig.h"] = f'#pragma once\n#define NVCC_FLAGS_EXTRA "{flags}"\n'
    return found


def make_torch(
    site: Path,
    texts: Mapping[str, str] | None = None,
    *,
    abi: str = ERROR_NEW,
    compiler: str = "GCC: (GNU) 13.3.1 20240611 (Red Hat 13.3.1-2)",
    exported: Sequence[str] = (),
) -> Path:
    """Write a torch below a ``site-packages``; return its folder."""
    for name, text in (torch_files() if texts is None else texts).items():
        file = site / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    sections = with_symbols(dynamic(["libc.so.6"]), (), (abi, *exported))
    (site / "torch/lib").mkdir(parents=True, exist_ok=True)
    write_elf(
        site / "torch/lib/libc10.so",
        {**sections, ".comment": f"GCC: (Debian 8.3.0) 8.3.0\0{compiler}\0".encode()},
    )
    return site / "torch"


_LIBRARIES = {
    "cublas": ("cublas_v2.h", "libcublas.so.13"),
    "cufft": ("cufft.h", "libcufft.so.12"),
    "cusolver": ("cusolverDn.h", "libcusolver.so.12"),
    "cusparse": ("cusparse.h", "libcusparse.so.12"),
    "nvjitlink": ("nvJitLink.h", "libnvJitLink.so.13"),
    "nvrtc": ("nvrtc.h", "libnvrtc.so.13"),
}


def make_libraries(site: Path, *, split: bool = False) -> None:
    """Write the libraries that NVIDIA's wheels put beside a torch, without cuRAND, which torch 2.15 does not require.

    Args:
        site: The ``site-packages``.
        split: Whether each has a folder of its own, as in the wheels of CUDA 12.
    """
    for name, files in {**_LIBRARIES, "cudnn": ("cudnn.h", "libcudnn.so.9")}.items():
        part = site / "nvidia" / (name if split or name == "cudnn" else "cu13")
        for folder, file in zip(("include", "lib"), files, strict=True):
            (part / folder).mkdir(parents=True, exist_ok=True)
            (part / folder / file).write_text(f"/* {name} of torch */\n")
        info = site / f"nvidia_{name}-1.0.dist-info"
        info.mkdir()
        (info / "RECORD").write_text(f"nvidia/{part.name}/include/{files[0]},,\n")


def make_torch_wheel(folder: Path, name: str, texts: Mapping[str, str] | None = None) -> Path:
    """Write a wheel of a torch; return it."""
    root = folder / f"unpacked-{name}"
    make_torch(root, texts)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file():
                archive.write(file, str(file.relative_to(root)))
    return folder / name


def make_base(prefix: Path, minor: str = "3.12", *, header: bool = True) -> Path:
    """Write the Python behind environments; return its prefix."""
    program = prefix / f"bin/python{minor}"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\nexit 99\n")
    program.chmod(0o755)
    (prefix / f"lib/python{minor}/site-packages").mkdir(parents=True, exist_ok=True)
    if header:
        (prefix / f"include/python{minor}").mkdir(parents=True, exist_ok=True)
        (prefix / f"include/python{minor}/Python.h").write_text("")
    return prefix


def make_venv(prefix: Path, base: Path, minor: str = "3.12", *, settings: str = "", system: bool = False) -> Path:
    """Write a virtual environment of a Python as ``python -m venv`` does; return its ``site-packages``."""
    site = prefix / f"lib/python{minor}/site-packages"
    site.mkdir(parents=True, exist_ok=True)
    (prefix / "bin").mkdir(exist_ok=True)
    (prefix / "bin/python").symlink_to(base / f"bin/python{minor}")
    shared = str(system).lower()
    text = settings or f"home = {base}/bin\ninclude-system-site-packages = {shared}\nversion = {minor}.4\n"
    (prefix / "pyvenv.cfg").write_text(text)
    return site
