"""A PyTorch checkout on a disk: where it is, its day, its submodules, and the folder of an earlier build.

Whether a submodule is whole is asked as PyTorch's own check asks it (``check_submodules`` of setup.py,
``cmake/PreBuildSteps.cmake`` from 2.14 on): one of six files must be there, and the CMakeLists.txt of those submodules
of submodules that the check names (asmjit below fbgemm, benchmark or pybind11 below onnx).
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tenv.checks.hipified import Hipified, left_of, read_hipified
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text, text_or_empty
from tenv.core.files import same_file
from tenv.core.names import dist_info, dist_infos

_PROJECT = re.compile(r"^[ \t]*project\(\s*(?:Torch|Caffe2)\b", re.MULTILINE)
EXPECTED = ("CMakeLists.txt", "Makefile", "setup.py", "LICENSE", "LICENSE.md", "LICENSE.txt")
"""One of these must be in each submodule."""

_PATH = re.compile(r"^[ \t]*path\s*=\s*(.+?)\s*$", re.MULTILINE)
_CHECKS = ("setup.py", "cmake/PreBuildSteps.cmake")
_BRINGS = re.compile(r"(Trying to initialize submodules|Initializing git submodules)", re.IGNORECASE)
_UNLISTED = tuple(f"third_party/{name}" for name in ("gloo", "cpuinfo", "onnx", "fbgemm", "cutlass"))
"""The submodules that the check requires without a .gitmodules."""
_ASMJIT = tuple(f"third_party/fbgemm/{folder}/asmjit/CMakeLists.txt" for folder in ("external", "third_party"))
_NESTED = re.compile(r'check_(?:for_)?files?\(\s*os\.path\.join\(\s*third_party_path((?:\s*,\s*"[\w.+-]+")+)')
"""A folder or file that the check of setup.py names by its parts."""
_ENTRY = re.compile(r"^([^#/:=\s][^:=]*):([A-Z]+)=(.*)$", re.MULTILINE)
_VERSION = re.compile(r"^__version__\s*=\s*['\"](\d+\.\d+[\w.+]*)['\"]", re.MULTILINE)
_BUILT = ("build", "torch/lib/build", "torch/lib/tmp_install")
"""The folders of compiled files: from 1.0 on the first, the others before."""
_MOST = 8 << 20
"""Bytes of a CMakeCache.txt; PyTorch's has 0.2 MiB."""
_FOLDERS = ("CUDA_TOOLKIT_ROOT_DIR", "CUDAToolkit_ROOT", "CUDNN_ROOT", "NCCL_ROOT", "MKLROOT", "MAGMA_HOME")
"""Entries of a cache whose folders a build needs; folders of other entries may still be missing."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An entry of a CMakeCache.txt."""

    kind: str
    """CMake's type of it: ``BOOL``, ``FILEPATH``, ``INTERNAL`` …"""
    value: str
    """Its value."""


@dataclass(frozen=True, slots=True)
class BuildCache:
    """The CMakeCache.txt of an earlier build."""

    file: str
    """It, as a path in the checkout."""
    entries: Mapping[str, CacheEntry] = field(default_factory=dict)
    """Its entries by name."""
    gone: tuple[str, ...] = ()
    """The entries that name a file, or a toolkit's folder, that is no longer there."""
    moved: str = ""
    """The folder that it was configured for, where that is not this checkout; else an empty string."""

    def value(self, name: str) -> str:
        """Return the value of an entry; an empty string if there is none."""
        entry = self.entries.get(name)
        return entry.value if entry else ""


@dataclass(frozen=True, slots=True)
class CheckoutState:
    """The files in a checkout beside its sources."""

    broken: tuple[str, ...] = ()
    """The submodules that PyTorch's own check refuses, in the order of ``.gitmodules``."""
    brings: bool = False
    """Whether the build fetches them itself: all are empty, and git can."""
    eigen_missing: bool = False
    """Whether Eigen is fetched by a pin (``third_party/eigen_pin.txt``) and is not there."""
    cache: BuildCache | None = None
    """The cache of an earlier build; None without one."""
    built: str = ""
    """The version that was built here last (``torch/version.py``); empty if nothing of a build is left."""
    hipified: Hipified | None = None
    """The files that the conversion for ROCm has changed; None where the sources are as PyTorch has them."""


def read_state(root: Path) -> CheckoutState:
    """Read the submodules and the earlier build of a checkout."""
    checks = "".join(text_or_empty(root / name) for name in _CHECKS)
    listed = [path for path in _PATH.findall(text_or_empty(root / ".gitmodules")) if path.isprintable()]
    if not listed and "third_party" in checks and ("check_submodules" in checks or "_submodule_folders" in checks):
        listed = list(_UNLISTED)
    broken = [path for path in listed if not any((root / path / name).exists() for name in EXPECTED)]
    if "third_party/fbgemm" in listed and "third_party/fbgemm" not in broken and "asmjit" in checks:
        broken += [_ASMJIT[0].rpartition("/")[0]] if not any((root / file).is_file() for file in _ASMJIT) else []
    broken += [
        folder
        for folder in _nested(checks)
        if not (root / folder / "CMakeLists.txt").is_file() and not any(folder.startswith(f"{one}/") for one in broken)
    ]
    empty = bool(listed) and all(_is_empty(root / path) for path in listed)
    return CheckoutState(
        broken=tuple(broken),
        brings=empty and (root / ".git").exists() and bool(_BRINGS.search(checks)),
        eigen_missing=(root / "third_party/eigen_pin.txt").is_file() and _is_empty(root / "third_party/eigen"),
        cache=_cache(root),
        built=_built(root),
        hipified=left_of(root, read_hipified(root)),
    )


def _nested(checks: str) -> Iterator[str]:
    """Yield the submodules of submodules, without asmjit, that the check of setup.py names."""
    for parts in _NESTED.findall(checks):
        names = re.findall(r'"([^"]+)"', parts)
        folder = "/".join(names[:-1] if names[-1] == "CMakeLists.txt" else names)
        if "/" in folder and not folder.endswith("asmjit"):
            yield f"third_party/{folder}"


def _is_empty(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is None
    except OSError:
        return True


def _built(root: Path) -> str:
    """Return the version that a build wrote into the tree, if its compiled files are there too."""
    match = _VERSION.search(text_or_empty(root / "torch" / "version.py"))
    return match[1] if match and any(not _is_empty(root / folder) for folder in _BUILT) else ""


def _cache(root: Path) -> BuildCache | None:
    file = root / "build" / "CMakeCache.txt"
    try:
        if file.stat().st_size > _MOST:
            return None
    except OSError:
        return None
    entries = {name: CacheEntry(kind, value) for name, kind, value in _ENTRY.findall(text_or_empty(file))}
    home = entries.get("CMAKE_HOME_DIRECTORY")
    moved = home.value if home and not same_file(home.value, root) else ""
    return BuildCache("build/CMakeCache.txt", entries, tuple(_gone(entries)), moved)


def _gone(entries: Mapping[str, CacheEntry]) -> Iterator[str]:
    for name, entry in entries.items():
        file = entry.kind == "FILEPATH" or (entry.kind == "PATH" and name in _FOLDERS)
        if file and os.path.isabs(entry.value) and "-NOTFOUND" not in entry.value and not os.path.lexists(entry.value):  # noqa: PTH117 (a text)
            yield name


_TRUNK = re.compile(r"\d+(\.\d+)*a\d")
_COMMITTER = re.compile(r"^committer [^\n]*> (\d{1,11}) [+-]\d{4}$", re.MULTILINE)
_SECONDS = 5.0
_QUIET = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def commit_day(root: Path, version: str) -> date | None:
    """Return the day, in UTC, of the checked out commit; None if no rule needs it or git does not know it.

    Only the plumbing of git is run, which starts no program that the repository's settings name. An archive without a
    repository of its own has no day, even in the repository of something else.

    Args:
        root: The checkout.
        version: Its version; only one of the trunk (``2.9.0a0``) leaves its day open.
    """
    if not _TRUNK.match(version) or not (root / ".git").exists():
        return None
    program = process.find("git")
    if program is None:
        return None
    words = [program, f"--git-dir={root / '.git'}", "cat-file", "commit", "HEAD"]
    done = process.run(words, environment=_QUIET, timeout=_SECONDS)
    if isinstance(done, process.Missing) or done.status:
        return None
    match = _COMMITTER.search(done.stdout.partition("\n\n")[0])
    try:
        return datetime.fromtimestamp(int(match[1]), UTC).date() if match else None
    except (ValueError, OverflowError, OSError):
        return None


def is_pytorch(path: Path) -> bool:
    """Return whether a folder's CMakeLists.txt is PyTorch's, even if other sources are missing."""
    return bool(_PROJECT.search(text_or_empty(path / "CMakeLists.txt")))


def find_checkout(folder: Path, site_packages: Path | None = None) -> Path | None:
    """Return the nearest PyTorch checkout; None where none is found.

    A checkout of another user is left out: debuggers run scripts that lie in it.

    Args:
        folder: The folder to begin with; its parents and its own folders count.
        site_packages: Where an environment keeps packages: an editable torch names its checkout there.
    """
    around = [folder, *folder.parents]
    installed = list(_editable(site_packages)) if site_packages else []
    below = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    for path in (*around, *installed, *below):
        if is_pytorch(path) and (os.name != "posix" or path.stat().st_uid in (0, os.getuid())):
            return path
    return None


def _editable(site: Path) -> Iterator[Path]:
    """Yield the folders that an editable install of torch names: PEP 610 first, then paths of old setuptools."""
    infos = dist_infos(site) if site.is_dir() else []
    for record in (info / "direct_url.json" for info in infos if dist_info(info)[0] == "torch"):
        try:
            url = urlsplit(str(json.loads(read_text(record))["url"]))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            continue
        if url.scheme == "file":
            yield Path(unquote(url.path))
    for file in (*sorted(site.glob("torch.egg-link")), *sorted(site.glob("*.pth"))):
        lines = text_or_empty(file).splitlines()
        yield from (Path(line) for line in lines if line.startswith("/") and (Path(line) / "torch").is_dir())
