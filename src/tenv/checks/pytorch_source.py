"""The PyTorch to build, a release or a checkout, and its requirements.

The requirements of a release are facts. The requirements of a checkout are read from its own files.

No code of the checkout is run. Each value is read from the place that enforces it (``cmake_minimum_required``, an
``#error``, a ``FATAL_ERROR``); of several places, the strictest counts. The patterns cover the wording since 1.7. A
value whose place is missing or worded in a new way is a `Missing` with a reason.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from tenv.checks.checkout_state import CheckoutState, commit_day, is_pytorch, read_state
from tenv.core.dataclass import dataclass
from tenv.core.errors import FactsError, UsageError
from tenv.core.file_content import text_or_empty
from tenv.core.process import Missing
from tenv.core.versions import Range, Version
from tenv.facts.pytorch_tried import nightly_day
from tenv.facts.tables import Facts

T = TypeVar("T")

_REVISION = r"v?[0-9]{1,4}(\.[0-9]{1,4}){1,3}([.+-]?[A-Za-z][\w.+-]*|\+[\w.+-]+)?"
"""A release, ``2.9.0a0+git1234`` and ``2.9.0+cu128`` among them."""
_NUMBER = r"(\d+(?:\.\d+)*)"
_RELEASE = r"(?a)\d{1,4}\.\d{1,4}(?!\d)"
_CMAKE = rf"^[ \t]*cmake_minimum_required\(\s*VERSION\s+{_NUMBER}"
_CXX = r"^[ \t]*set\(\s*CMAKE_CXX_STANDARD\s+(\d+)"
_GCC = (
    rf"GCC-{_NUMBER} or newer is required",
    (
        rf"^[ \t]*if\(\s*CMAKE_(?:COMPILER_IS_GNUCXX|CXX_COMPILER_ID\s+STREQUAL\s+\"GNU\")\s+AND\s+"
        rf"CMAKE_CXX_COMPILER_VERSION\s+VERSION_LESS\s+\"?{_NUMBER}\"?\s*\)\s*message\(\s*FATAL_ERROR"
    ),
)
_CLANG = (
    rf"Clang-{_NUMBER} or newer is required",
    (
        rf"^[ \t]*if\(\s*CMAKE_CXX_COMPILER_ID\s+STREQUAL\s+\"Clang\"\s+AND\s+"
        rf"CMAKE_CXX_COMPILER_VERSION\s+VERSION_LESS\s+\"?{_NUMBER}\"?\s*\)\s*message\(\s*FATAL_ERROR"
    ),
)
_GCC_HEADER = rf"We need GCC {_NUMBER} or later"
_CLANG_HEADER = rf"We need Clang {_NUMBER} or later"
_GCC_README = rf"(?i)gcc {_NUMBER} or newer is required"
_CUDA = rf"PyTorch requires CUDA {_NUMBER} (?:and|or) above"
_CUDNN = rf"PyTorch (?:requires|needs) [Cc]uDNN[ -]{_NUMBER} (?:and|or) above"
_SETUP_PYTHON = r"^python_min_version\s*=\s*\(([\d,\s]+)\)"
_SETUP_REQUIRES = r"python_requires\s*=\s*[\"']([<>=!~\d.,\s*]+)[\"']"
_REQUIRED_CMAKE = rf"cmake\s*(?:>=|~=)\s*{_NUMBER}"
_SETUP_VERSION = r"^[ \t]*version\s*=\s*[\"'](\d+\.\d[\w.+]*)[\"']"
_FILE = ".github/scripts/generate_binary_build_matrix.py"
_LIST = r"^{}\s*(?::[^=\n]+)?=\s*\[([^\]]*)\]"
_MINOR = r"[\"'](\d+\.\d+)t?[\"']"


@dataclass(frozen=True, slots=True)
class CiBuilds:
    """The versions in the CI of a revision."""

    cudas: tuple[Version, ...]
    """The CUDA releases."""
    pythons: tuple[Version, ...]
    """The Pythons, as minors (``3.14``)."""
    file: str = _FILE
    """The file of the checkout that lists them."""


@dataclass(frozen=True, slots=True)
class RocmPart:
    """A part of ROCm that LoadHIP.cmake requires."""

    name: str
    """Its CMake package."""
    since: Version | None = None
    """The ROCm from which on it does; None for all."""
    below: Version | None = None
    """The ROCm from which on it no longer does; None for none."""

    def applies(self, rocm: Version) -> bool:
        """Return whether it is required of a release."""
        return (self.since is None or rocm >= self.since) and (self.below is None or rocm < self.below)


def _rocm_parts(text: str) -> Iterator[RocmPart]:
    """Yield the required parts; of conditions, those about ROCm's version count."""
    open_: list[tuple[Version | None, Version | None]] = []
    for line in text.splitlines():
        if match := re.match(r"\s*if\s*\((.*)\)", line):
            asked = re.fullmatch(
                r'\s*ROCM_VERSION_DEV\s+VERSION_GREATER_EQUAL\s+"?([0-9]{1,9}(?:\.[0-9]{1,9})*)"?\s*', match[1]
            )
            open_.append((Version(asked[1]) if asked else None, None))
        elif re.match(r"\s*else\s*\(", line) and open_:
            open_[-1] = (None, open_[-1][0])
        elif re.match(r"\s*endif\s*\(", line) and open_:
            open_.pop()
        elif match := re.match(r"\s*find_package_and_print_version\(\s*(\S+)\s+REQUIRED\b", line):
            since = max((one for one, _ in open_ if one), default=None)
            yield RocmPart(match[1], since, min((one for _, one in open_ if one), default=None))


def read_tested(root: Path) -> CiBuilds | None:
    """Return the versions in the CI of a checkout; None if its files do not list them."""
    plain = re.sub(r"#.*", "", text_or_empty(root / _FILE))
    cudas, pythons = (_listed(plain, name) for name in ("CUDA_ARCHES", "FULL_PYTHON_VERSIONS"))
    return CiBuilds(cudas, pythons) if cudas and pythons else None


def _listed(text: str, name: str) -> tuple[Version, ...]:
    match = re.search(_LIST.format(name), text, re.MULTILINE)
    return tuple(sorted({Version(minor) for minor in re.findall(_MINOR, match[1])})) if match else ()


class AbiChoice(StrEnum):
    """Who chooses the ABI of libstdc++ (``_GLIBCXX_USE_CXX11_ABI``) in a build."""

    ENVIRONMENT = "environment"
    """The environment variable `_GLIBCXX_USE_CXX11_ABI`, which the build passes on; otherwise the compiler."""
    COMPILER = "compiler"
    """Only the compiler and its flags: since 2.14, the build does not pass the variable on."""


@dataclass(frozen=True, slots=True)
class SourceRequirement(Generic[T]):
    """A requirement of a source tree."""

    value: T
    """The required value."""
    origin: str
    """Where it was read: a file of the tree with its line, or a table of facts."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The requirements of a PyTorch revision."""

    root: Path | None
    """The checkout; None if only the version is known."""
    version: SourceRequirement[str]
    """Its version as written (``2.15.0a0``)."""
    python: SourceRequirement[Range] | Missing
    """The Python versions that it supports."""
    cmake_min: SourceRequirement[Version] | Missing
    """The minimum CMake."""
    gcc_min: SourceRequirement[Version] | Missing
    """The minimum GCC."""
    clang_min: SourceRequirement[Version] | Missing
    """The minimum clang."""
    cuda_min: SourceRequirement[Version] | Missing
    """The minimum CUDA toolkit."""
    cudnn_min: SourceRequirement[Version] | Missing
    """The minimum cuDNN."""
    cxx_standard: SourceRequirement[int] | Missing
    """The C++ standard, 17 for C++17."""
    abi: SourceRequirement[AbiChoice]
    """Who chooses the ABI of libstdc++."""
    build_backend: SourceRequirement[str] | Missing
    """Its build backend: ``setuptools``, ``scikit-build-core``, or another one by its own name."""
    state: CheckoutState | None = None
    """The submodules and the earlier build of the checkout; None without a checkout."""
    tested: CiBuilds | None = None
    """The versions in the CI of this revision; None if unknown."""
    day: date | None = None
    """The day of the trunk's commit; None if unknown."""
    rocm_parts: tuple["RocmPart", ...] = ()
    """The CMake packages of ROCm that its LoadHIP.cmake requires; empty without a checkout."""

    @property
    def release(self) -> Version:
        """The release that it is or becomes: the dotted numbers of its version."""
        return _release(self.version.value)

    def to_json(self) -> dict[str, Any]:
        """Return the requirements as JSON values: each ``{"value": …, "origin": …}`` or ``{"missing": reason}``."""
        names = [name for name in self.__slots__ if name not in ("root", "state", "tested", "day", "rocm_parts")]
        values = {name: _to_json(getattr(self, name)) for name in names}
        missing = list(self.state.broken if self.state else ())
        return {"root": str(self.root or ""), **values, "missing_submodules": missing}


def _to_json(asked: SourceRequirement[Any] | Missing) -> dict[str, Any]:
    if isinstance(asked, Missing):
        return {"missing": asked.reason}
    value = asked.value if isinstance(asked.value, int) else str(asked.value)
    return {"value": value, "origin": asked.origin}


def _release(text: str) -> Version:
    match = re.match(_NUMBER, text)
    if match is None:
        message = f"`{text}` does not begin with a version such as 2.15.0"
        raise ValueError(message)
    return Version(match.group())


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a checkout; a missing file reads as empty text."""

    root: Path

    def text(self, name: str) -> str:
        return text_or_empty(self.root / name)

    def find(self, name: str, pattern: str) -> list[SourceRequirement[str]]:
        """Return the matches of a pattern's only group in a file, each with its line."""
        text = self.text(name)
        found = []
        for match in re.finditer(pattern, text, re.MULTILINE):
            line = text.count("\n", 0, match.start(1)) + 1
            found.append(SourceRequirement(match.group(1), f"{name}:{line}"))
        return found

    def table(self, name: str) -> dict[str, Any]:
        import tomli  # late: only a checkout needs it

        try:
            return tomli.loads(self.text(name))
        except (ValueError, RecursionError):  # TOMLDecodeError, or a number that int rejects
            return {}


def read_source(path: Path) -> SourceTree | Missing:
    """Read the requirements of a PyTorch checkout.

    Args:
        path: The folder with its ``version.txt``.

    Returns:
        The requirements, or why the folder is not a checkout of PyTorch.
    """
    files = _Files(path)
    version = files.text("version.txt").strip()
    asked = files.find("setup.py", _SETUP_VERSION) if not version and (path / "torch" / "csrc").is_dir() else []
    if asked:  # before 1.4 there is no version.txt
        return _read(files, asked[0])
    if not version:
        return Missing(f"{path} has no version.txt, so it is not a checkout of PyTorch")
    if not re.match(_RELEASE, version):
        return Missing(f"{path / 'version.txt'} holds no version but `{version.splitlines()[0][:40]}`")
    if not is_pytorch(path):
        return Missing(f"{path} has a version.txt, but its CMakeLists.txt is not PyTorch's")
    return _read(files, SourceRequirement(version, "version.txt"))


def _read(files: _Files, version: SourceRequirement[str]) -> SourceTree:
    backend = _backend(files)
    return SourceTree(
        root=files.root,
        version=version,
        python=_python(files),
        cmake_min=_cmake(files),
        gcc_min=_gcc(files),
        clang_min=_clang(files),
        cuda_min=_highest(files.find("cmake/public/cuda.cmake", _CUDA), "cmake/public/cuda.cmake names no version"),
        cudnn_min=_cudnn(files),
        cxx_standard=_standard(files),
        abi=_abi(files, backend),
        build_backend=backend,
        state=read_state(files.root),
        tested=read_tested(files.root),
        day=commit_day(files.root, version.value),
        rocm_parts=tuple(_rocm_parts(files.text("cmake/public/LoadHIP.cmake"))),
    )


def from_release(version: str, values: Mapping[str, str], origin: str) -> SourceTree:
    """Return the requirements of a revision of which only the version is known.

    Args:
        version: The version as written.
        values: The known values by the names of `SourceTree`'s attributes (from `Release.asked`).
        origin: Where the values were read.

    Raises:
        ValueError: The version does not begin with a number, or a value is invalid.
    """
    _release(version)

    def asked(name: str, parse: Callable[[str], T]) -> SourceRequirement[T] | Missing:
        text = values.get(name, "")
        return SourceRequirement(parse(text), origin) if text else Missing(f"{origin} does not say")

    backend = asked("build_backend", str)
    return SourceTree(
        root=None,
        version=SourceRequirement(version, "the given version"),
        python=asked("python", Range),
        cmake_min=asked("cmake_min", Version),
        gcc_min=asked("gcc_min", Version),
        clang_min=asked("clang_min", Version),
        cuda_min=asked("cuda_min", Version),
        cudnn_min=asked("cudnn_min", Version),
        cxx_standard=asked("cxx_standard", int),
        abi=SourceRequirement(_abi_of(backend), origin),
        build_backend=backend,
    )


def find_source(pytorch: str, facts: Facts) -> SourceTree | None:
    """Return the requirements of a PyTorch revision.

    Args:
        pytorch: A folder with a checkout, or a version; empty for the working folder if it is a checkout.
        facts: The tables, with the requirements of releases.

    Returns:
        The requirements; None if nothing is named and the working folder is not a checkout.

    Raises:
        UsageError: The name is neither a checkout nor a version in the tables; or nothing is named, and the working
            folder is a checkout without a version.
        FactsError: The row of that version is unusable.
    """
    folder = Path(pytorch)
    if os.path.isdir(pytorch or "."):  # noqa: PTH112 (no error for an invalid folder name)
        found = read_source(folder if pytorch else Path.cwd())
        if isinstance(found, SourceTree):
            return found
        if not pytorch and not is_pytorch(Path.cwd()):
            return None
        where = "" if pytorch else "the working folder has PyTorch's CMakeLists.txt, but can't be used as a checkout: "
        hint = "pass a checkout of PyTorch or a version: `--pytorch 2.9`"
        raise UsageError(f"{where}{found.reason}", hint=hint)
    if re.fullmatch(_REVISION, pytorch.strip()):
        return _from_facts(pytorch.strip().removeprefix("v"), facts)
    hint = "pass an existing folder or a version: `--pytorch 2.9`"
    raise UsageError(f"`{pytorch}` is neither a folder nor a version of PyTorch", hint=hint)


def _from_facts(version: str, facts: Facts) -> SourceTree:
    release = facts.pytorch_build.release(version)
    if release is None:
        oldest = facts.pytorch_build.releases[0].version
        raise UsageError(f"what PyTorch {version} asks for is not known", hint=f"the tables start with {oldest}")
    origin = f"PyTorch {release.version}: {release.basis.source}"
    try:
        return from_release(version, release.asked(nightly_day(version)), origin)
    except ValueError as error:  # a row of the user's facts
        raise FactsError(f"{origin}: {error}") from error


def _highest(found: Iterable[SourceRequirement[str]], reason: str) -> SourceRequirement[Version] | Missing:
    versions = [SourceRequirement(Version(asked.value), asked.origin) for asked in found]
    return max(versions, key=lambda asked: asked.value) if versions else Missing(reason)


def _section(table: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = table.get(key)
        table = inner if isinstance(inner, dict) else {}
    return table


def _python(files: _Files) -> SourceRequirement[Range] | Missing:
    declared = _section(files.table("pyproject.toml"), "project").get("requires-python")
    found = [SourceRequirement(declared, "pyproject.toml")] if isinstance(declared, str) else []
    found += files.find("setup.py", _SETUP_REQUIRES)
    for asked in files.find("setup.py", _SETUP_PYTHON):
        numbers = [part.strip() for part in asked.value.split(",") if part.strip()]
        found.append(SourceRequirement(f">={'.'.join(numbers)}", asked.origin))
    for asked in found:
        try:
            return SourceRequirement(Range(asked.value), asked.origin)
        except ValueError:
            continue
    return Missing("neither pyproject.toml nor setup.py names the Python versions")


def _cmake(files: _Files) -> SourceRequirement[Version] | Missing:
    """Return the minimum CMake: the higher one of CMake's own and the build backend's requirement."""
    project = files.table("pyproject.toml")
    found = files.find("CMakeLists.txt", _CMAKE)[:1]
    requires = _section(project, "build-system").get("requires")
    scikit = _section(project, "tool", "scikit-build")
    named = _section(scikit, "cmake").get("version") or scikit.get("cmake.version")
    texts = [item for item in requires if isinstance(item, str)] if isinstance(requires, list) else []
    for text in [*texts, f"cmake{named}" if named else ""]:
        if match := re.match(_REQUIRED_CMAKE, text):
            found.append(SourceRequirement(match[1], "pyproject.toml"))
    return _highest(found, "CMakeLists.txt has no cmake_minimum_required")


def _gcc(files: _Files) -> SourceRequirement[Version] | Missing:
    """Return the oldest GCC that the sources accept; the README's version counts only if no check rejects one."""
    found = [asked for pattern in _GCC for asked in files.find("CMakeLists.txt", pattern)]
    found += files.find("c10/util/C++17.h", _GCC_HEADER)
    return _highest(found or files.find("README.md", _GCC_README), "no file names a version of GCC")


def _clang(files: _Files) -> SourceRequirement[Version] | Missing:
    found = [asked for pattern in _CLANG for asked in files.find("CMakeLists.txt", pattern)]
    found += files.find("c10/util/C++17.h", _CLANG_HEADER)
    return _highest(found, "no file checks the version of clang")


def _cudnn(files: _Files) -> SourceRequirement[Version] | Missing:
    """Return the minimum cuDNN. One check is part of PyTorch's wheels; the other one is only for its own build."""
    names = ("cmake/public/cuda.cmake", "cmake/Dependencies.cmake")
    found = [asked for name in names for asked in files.find(name, _CUDNN)]
    return _highest(found, f"neither {' nor '.join(names)} names a version")


def _standard(files: _Files) -> SourceRequirement[int] | Missing:
    found = files.find("CMakeLists.txt", _CXX)
    return (
        SourceRequirement(int(found[0].value), found[0].origin)
        if found
        else Missing("CMakeLists.txt sets no C++ standard")
    )


def _backend(files: _Files) -> SourceRequirement[str] | Missing:
    name = _section(files.table("pyproject.toml"), "build-system").get("build-backend")
    if isinstance(name, str):
        known = {"setuptools": "setuptools", "scikit_build_core": "scikit-build-core"}
        return SourceRequirement(known.get(name.partition(".")[0], name), "pyproject.toml")
    if "scikit-build" in _section(files.table("pyproject.toml"), "tool"):
        return SourceRequirement("scikit-build-core", "pyproject.toml")
    if files.text("setup.py"):
        return SourceRequirement("setuptools", "setup.py")
    return Missing("pyproject.toml has no build backend, and there is no setup.py")


def _abi(files: _Files, backend: SourceRequirement[str] | Missing) -> SourceRequirement[AbiChoice]:
    if (files.root / "cmake" / "EnvVarForwarding.cmake").is_file():
        passed_on = "_GLIBCXX_USE_CXX11_ABI" in files.text("cmake/EnvVarForwarding.cmake")
        return SourceRequirement(
            AbiChoice.ENVIRONMENT if passed_on else AbiChoice.COMPILER, "cmake/EnvVarForwarding.cmake"
        )
    return SourceRequirement(_abi_of(backend), backend.reason if isinstance(backend, Missing) else backend.origin)


def _abi_of(backend: SourceRequirement[str] | Missing) -> AbiChoice:
    scikit = isinstance(backend, SourceRequirement) and backend.value == "scikit-build-core"
    return AbiChoice.COMPILER if scikit else AbiChoice.ENVIRONMENT
