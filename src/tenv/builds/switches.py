"""The switches of a build: which ones a revision reads, and which one was meant by one that it does not."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tenv.core.toml_reader import nearest

__all__ = ["is_off", "is_on", "known_switches", "meant", "set_switches", "similar", "unread"]

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

_MEANT = {
    "USE_GPU": "USE_CUDA",
    "USE_NVIDIA": "USE_CUDA",
    "USE_CUDNN8": "USE_CUDNN",
    "USE_MKL_DNN": "USE_MKLDNN",
    "USE_ONEDNN": "USE_MKLDNN",
    "USE_DNNL": "USE_MKLDNN",
    "USE_OMP": "USE_OPENMP",
    "USE_FLASH_ATTN": "USE_FLASH_ATTENTION",
    "USE_MEM_EFFICIENT_ATTENTION": "USE_MEM_EFF_ATTENTION",
    "USE_CUSPARSE_LT": "USE_CUSPARSELT",
    "USE_HIP": "USE_ROCM",
    "BUILD_TESTS": "BUILD_TEST",
    "BUILD_TESTING": "BUILD_TEST",
    "USE_STATIC_CUDA": "USE_CUDA_STATIC_LINK",
    "USE_QNNPACK": "USE_PYTORCH_QNNPACK",
}
"""Other words for a switch, and renamed switches; a name that is only similar to one is another part of PyTorch."""

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


def meant(name: str, value: str, known: frozenset[str]) -> str:
    """Return the assignment that was meant by a switch that a revision does not read, or an empty string.

    The pairs ``NO_X``, ``WITH_X``, ``USE_X`` and `_MEANT` decide. A similar spelling does not: ``USE_FFMPEG`` is not
    ``USE_OMP``, and an export of it would change the build.
    """
    aliased = _MEANT.get(name, "")
    if aliased in known:
        return f"{aliased}={value}"
    prefix, _, rest = name.partition("_")
    turned = {"NO": ("USE", "BUILD"), "WITH": ("USE", "BUILD", "NO"), "USE": ("WITH", "NO"), "BUILD": ("WITH", "NO")}
    for other in turned[prefix]:
        if f"{other}_{rest}" in known:
            against = (prefix == "NO") is not (other == "NO")
            text = "1" if is_on(value) is not against else "0"
            if other == "NO" and text == "0":  # these eras ask only whether the variable is set
                return f"{other}_{rest} unset"
            return f"{other}_{rest}={text}"
    return ""


def similar(name: str, known: frozenset[str]) -> str:
    """Return a question with the switches that are spelled similarly, or an empty string."""
    return nearest(name, known)
