"""A checkout that is compiled against an installed torch: its build files, its name, and the target with the torch.

The names of its build files decide: ``setup.py`` with torch's ``cpp_extension``, scikit-build-core as the backend of
``pyproject.toml``, or a ``CMakeLists.txt`` with ``find_package(Torch)``.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli

from tenv.builds.build_job import BuildJob, BuildWay, Extension, Wayfinder
from tenv.core.errors import TenvError, UsageError
from tenv.core.file_content import text_or_empty
from tenv.core.names import normalize
from tenv.facts.torch_packages import TorchPackageTable
from tenv.host.machine import current_platform
from tenv.targets.manifest import Manifest, request_for_torch, with_features
from tenv.targets.search import AUTO
from tenv.targets.torch_beside import require_beside
from tenv.toolchain.discover import Toolchain, python_program

_SETUP = re.compile(r"torch\.utils\.cpp_extension|^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)
_CMAKE = re.compile(r"^[^#\n]*\bfind_package\s*\(\s*(?:Torch|Caffe2)\b", re.IGNORECASE | re.MULTILINE)
_READS = re.compile(r"^[ \t]*(add_subdirectory|include)\s*\(\s*\"?([^\s\")]+)", re.IGNORECASE | re.MULTILINE)
_HERE = re.compile(r"^\$\{(?:CMAKE_CURRENT_(?:SOURCE|LIST)_DIR|CMAKE_SOURCE_DIR|PROJECT_SOURCE_DIR)\}/")
_MOST = 200
"""The most files of a CMake project that are read; torchvision has 3, PyTorch 150 without its submodules."""
_NAME = re.compile(r"^[ \t]*(?:package_)?name[ \t]*=[ \t]*[\"']([A-Za-z0-9][\w.-]*)[\"']", re.MULTILINE | re.IGNORECASE)
_PATH = re.compile(r"^[ \t]*path[ \t]*=[ \t]*(\S.*)$", re.MULTILINE)
_PROJECT = re.compile(r"^[ \t]*project\(\s*([\w.-]+)", re.MULTILINE | re.IGNORECASE)


def find_extension(folder: Path, table: TorchPackageTable) -> tuple[Extension, Wayfinder] | None:
    """Return the package of a checkout that compiles against an installed torch, and how it is built; None without one.

    Args:
        folder: The checkout.
        table: The packages that are known.
    """
    setup, project = text_or_empty(folder / "setup.py"), _project(folder)
    system = project.get("build-system")
    if _is_scikit(system) and _finds_torch(folder):
        found = Wayfinder(BuildWay.EXTENSION_SCIKIT, "pyproject.toml")
    elif _SETUP.search(setup) or (setup and _finds_torch(folder)):
        found = Wayfinder(BuildWay.EXTENSION, "setup.py")
    elif system is None and _finds_torch(folder):
        found = Wayfinder(BuildWay.LIBTORCH, "CMakeLists.txt")
    else:
        return None
    declared = project.get("project")
    names = [declared["name"]] if isinstance(declared, dict) and isinstance(declared.get("name"), str) else []
    cmake = found.way is BuildWay.LIBTORCH
    names += _PROJECT.findall(text_or_empty(folder / "CMakeLists.txt")) if cmake else _NAME.findall(setup)
    names = [normalize(name) for name in (*names, folder.name)]
    name = next((name for name in names if table.find(name)), names[0])
    return Extension(name, table.find(name)), found


def is_extension(folder: Path) -> bool:
    """Return whether a folder is a checkout that compiles against an installed torch."""
    return find_extension(folder, TorchPackageTable(())) is not None


def _is_scikit(system: object) -> bool:
    """Return whether a ``[build-system]`` names scikit-build-core, or a backend of the project around it."""
    if not isinstance(system, dict):
        return False
    requires = system.get("requires")
    named = isinstance(requires, list) and any(re.match(r"scikit[-_.]build[-_.]core\b", str(one)) for one in requires)
    own = bool(system.get("backend-path")) and named
    return own or str(system.get("build-backend", "")).startswith("scikit_build_core")


def _finds_torch(folder: Path) -> bool:
    """Return whether a CMake project asks for torch, in its own file or in one that it reads."""
    files, left = set[Path](), [folder / "CMakeLists.txt"]
    while left and len(files) < _MOST:
        file = left.pop()
        if file in files or not (text := text_or_empty(file)):
            continue
        files.add(file)
        if _CMAKE.search(text):
            return True
        for word, named in _READS.findall(text):
            places, path = (file.parent, folder), _HERE.sub("", named)
            if word.lower() == "include":
                left += [place / path for place in places]
                left += [place / near / f"{path}.cmake" for place in places for near in (".", "cmake")]
            else:
                left += [place / path / "CMakeLists.txt" for place in places]
    return False


def _project(folder: Path) -> dict[str, Any]:
    try:
        return tomli.loads(text_or_empty(folder / "pyproject.toml"))
    except (ValueError, RecursionError):
        return {}


def declared_submodules(checkout: Path) -> Iterator[str]:
    """Yield the submodules that a checkout names and whose folders are empty, for one that git does not know."""
    for path in map(str.rstrip, _PATH.findall(text_or_empty(checkout / ".gitmodules"))):
        with contextlib.suppress(OSError):
            if not any((checkout / path).iterdir()):
                yield path


def _has_torch(manifest: Manifest) -> bool:
    return bool(manifest.beside) or request_for_torch(with_features(manifest).on(current_platform())) is not None


def extension_target(job: BuildJob) -> str:
    """Return the target that is named, else the only one with a torch.

    Raises:
        UsageError: There is none, or there are several.
    """
    named, found = job.request.target, list[str]()
    if named not in (None, AUTO):
        return str(named)
    for name in job.context.places.names():
        with contextlib.suppress(TenvError):  # a manifest of the user that can't be read
            manifest = job.context.places.find(name).manifest
            if _has_torch(manifest) and current_platform() in manifest.platforms:
                found.append(name)
    if len(found) == 1:
        return found[0]
    assert job.extension is not None  # noqa: S101 (the step before has read the checkout)
    if found:
        raise UsageError(
            f"{job.extension.name} can be compiled against the torch of {', '.join(found)}",
            hint=f"`tenv build {found[0]} --pytorch {job.checkout}` takes one",
        )
    raise UsageError(f"no target has a torch that {job.extension.name} could be compiled against", hint=_HINT)


_HINT = (
    "`tenv init ext --torch` writes a target with one, `tenv init ext --torch cpu` one without CUDA; "
    "`tenv create auto --for .venv` makes one for your own torch"
)


def require_torch(job: BuildJob) -> None:
    """Refuse a target without a torch; raises UsageError."""
    if not _has_torch(job.target.manifest) and job.extension:
        raise UsageError(
            f"`{job.target.name}` has no torch that {job.extension.name} could be compiled against", hint=_HINT
        )


def beside_python(manifest: Manifest, toolchain: Toolchain) -> Toolchain:
    """Return a toolchain with the Python that has the torch: for a toolkit beside an environment, its Python."""
    if not manifest.beside:
        return toolchain
    torch = require_beside(Path(manifest.beside))
    return replace(toolchain, python=python_program(torch.prefix), site_packages=torch.package.parent)
