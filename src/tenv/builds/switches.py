"""The switches of a build: those that a revision reads, and the one that was meant by one that it does not read."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tenv.core.toml_reader import nearest
from tenv.facts.pytorch_switches import SwitchTable

_SWITCH = re.compile(r"(?:USE|BUILD|WITH|NO)_[A-Z0-9][A-Z0-9_]*")
_ANYWHERE = re.compile(rf"(?<![A-Za-z0-9_]){_SWITCH.pattern}(?![A-Za-z0-9_])")
_FOREIGN = frozenset(
    (
        *("NO_COLOR", "NO_PROXY", "NO_AT_BRIDGE", "NO_UPDATE_NOTIFIER", "WITH_PROXY"),
        *("BUILD_ID", "BUILD_NUMBER", "BUILD_URL", "BUILD_TAG", "BUILD_DISPLAY_NAME", "BUILD_REASON", "BUILD_CAUSE"),
        *("BUILD_SOURCEBRANCH", "BUILD_SOURCEVERSION", "BUILD_BUILDID", "BUILD_BUILDNUMBER", "BUILD_REPOSITORY_NAME"),
    )
)
"""Variables of terminals, proxies and CI servers (Jenkins, Azure Pipelines) that only look like switches."""

DECIDING = frozenset(
    (
        *("DEBUG", "REL_WITH_DEB_INFO", "PYTORCH_BUILD_VERSION", "PYTORCH_BUILD_NUMBER"),
        *("CC", "CXX", "CUDACXX", "CUDAHOSTCXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "CUDAFLAGS", "LDFLAGS"),
        *("CUDA_HOME", "CUDA_PATH", "CUDA_BIN_PATH", "CUDA_HOST_COMPILER", "CUDA_NVCC_EXECUTABLE"),
        *("CUDA_SEPARABLE_COMPILATION", "TORCH_CUDA_ARCH_LIST", "TORCH_XPU_ARCH_LIST", "PYTORCH_ROCM_ARCH"),
        *("CUDNN_ROOT", "CUDNN_ROOT_DIR", "CUDNN_INCLUDE_DIR", "CUDNN_LIB_DIR", "CUDNN_LIBRARY"),
        *("NCCL_ROOT", "NCCL_ROOT_DIR", "NCCL_INCLUDE_DIR", "NCCL_LIB_DIR", "ACL_ROOT_DIR", "MIOPEN_PATH"),
        *("CUSPARSELT_ROOT", "CUSPARSELT_ROOT_DIR", "CUSPARSELT_INCLUDE_PATH", "CUSPARSELT_LIBRARY_PATH"),
        *("BLAS", "MKLROOT", "MAGMA_HOME", "INTEL_MKL_DIR", "INTEL_OMP_DIR", "MKL_THREADING", "OPENSSL_ROOT_DIR"),
        *("MKLDNN_THREADING", "MKLDNN_CPU_RUNTIME", "ATEN_THREADING", "ATEN_AVX512_256", "WERROR", "UBSAN_FLAGS"),
        *("EXPERIMENTAL_SINGLE_THREAD_POOL", "INSTALL_TEST", "MSVC_Z7_OVERRIDE", "CAFFE2_USE_MSVC_STATIC_RUNTIME"),
        *("Numa_INCLUDE_DIR", "Numa_LIBRARIES", "ONNX_ML", "ONNX_NAMESPACE", "STATIC_DISPATCH_BACKEND"),
        *("SELECTED_OP_LIST", "TRACING_BASED", "_GLIBCXX_USE_CXX11_ABI", "GLIBCXX_USE_CXX11_ABI"),
    )
)
"""The variables that decide a configuration of PyTorch, beside those that begin like a switch or with ``CMAKE_``.

setup.py reads them, hands them to CMake, or CMake's files do (setup.py, tools/setup_helpers/cmake.py,
cmake/EnvVarForwarding.cmake and cmake/Modules of github.com/pytorch/pytorch, 0.4 to the trunk of 2026-07; cmake.org for
those of compilers). Left out are those that change no object, such as MAX_JOBS, and the search paths of a shell.
"""

_ON = frozenset(("1", "on", "yes", "true", "y", "t"))
_OFF = frozenset(("0", "off", "no", "false", "n", "f", ""))
_FILES = ("setup.py", "CMakeLists.txt", "pyproject.toml", "version.txt")
_FOLDERS = ("cmake", "tools", "c10", "aten", "caffe2", "torch", "functorch", ".ci")
_SCRIPTED = ("cmake", "tools", ".ci")
_SUFFIXES = (".cmake", ".py", ".sh", ".bat", ".in", ".toml")
_MOST_BYTES = 1 << 20
_HOT_PATCH = re.compile(r"[\"']NO_[\"']\s*\+|[\"']WITH_[\"']\s*\+|[\"'](?:NO|WITH)_\{")


def is_on(value: str) -> bool:
    """Return whether CMake and PyTorch take a text for yes."""
    return value.strip().lower() in _ON


def is_off(value: str) -> bool:
    """Return whether CMake and PyTorch take a text for no."""
    text = value.strip().lower()
    return text in _OFF or text.endswith("-notfound")


def set_switches(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that look like a switch of PyTorch."""
    return {name: value for name, value in environ.items() if _SWITCH.fullmatch(name) and name not in _FOREIGN}


@cache
def known_switches(checkout: Path) -> frozenset[str]:
    """Return every switch that a file of a checkout's build names.

    The files are read by a build: CMake's, setup.py, those below ``tools``, and the top ``CMakeLists.txt``
    of each project in ``third_party``, to which CMake passes its variables.
    """
    texts = [_text(path) for path in _build_files(checkout)]
    names = {name for text in texts for name in _ANYWHERE.findall(text)}
    if any(_HOT_PATCH.search(text) for text in texts):  # tools/setup_helpers/env.py of 0.4 to 1.13 makes them of USE_
        plain = {name.removeprefix("USE_").removeprefix("BUILD_") for name in names if name[:2] in ("US", "BU")}
        names |= {f"{prefix}{name}" for prefix in ("NO_", "WITH_") for name in plain}
    return frozenset(names)


def _build_files(checkout: Path) -> Iterator[Path]:
    yield from (checkout / name for name in _FILES)
    yield from checkout.glob("third_party/*/CMakeLists.txt")
    for folder in _FOLDERS:
        for parent, folders, files in os.walk(checkout / folder):
            folders[:] = [name for name in folders if name not in ("__pycache__", "build", "tmp_install")]
            scripts = _SUFFIXES if folder in _SCRIPTED else (".sh",)  # torch/lib/build_libs.sh of 0.x
            yield from (Path(parent, name) for name in files if name == "CMakeLists.txt" or name.endswith(scripts))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def unread(names: Iterable[str], known: frozenset[str]) -> list[str]:
    """Return the switches that a revision does not read, sorted."""
    return sorted(name for name in names if name not in known)


def meant(name: str, value: str, known: frozenset[str], table: SwitchTable) -> str:
    """Return the assignment that was meant by a switch that a revision does not read; empty without a row of the table.

    A similar spelling is none: ``USE_FFMPEG`` is not ``USE_OMP``, and an export of it would change the build.
    """
    found = table.instead(name, known)
    if found is None:
        return ""
    other, against = found
    text = ("0" if is_on(value) else "1") if against else value
    if other.startswith("NO_") and is_off(text):  # these eras ask only whether the variable is set
        return f"{other} unset"
    return f"{other}={text}"


def similar(name: str, known: frozenset[str]) -> str:
    """Return a question with the switches that are spelled similarly, or an empty string."""
    return nearest(name, known)
