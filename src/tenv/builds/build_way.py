"""How a PyTorch revision is configured, compiled and installed: the ways of its eras.

The files that tell them apart were read in trees from 0.1.1 to a trunk of 2026 (``tests/trees``): setup.py has taken
``--cmake-only`` since 1.2, ``cmake/EnvVarForwarding.cmake`` reads the environment without setup.py since 2.13, and
scikit-build-core is the backend since 2.14.
"""

from enum import StrEnum
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text

__all__ = ["BuildWay", "Products", "Wayfinder", "find_way"]


class BuildWay(StrEnum):
    """How a revision is built."""

    SCIKIT = "scikit-build-core"
    """CMake reads the environment; scikit-build-core makes the package, from any build folder."""
    CMAKE = "cmake"
    """CMake reads the environment; setup.py makes the package, from ``build`` alone."""
    CMAKE_ONLY = "setup.py --cmake-only"
    """setup.py hands the environment to CMake, and stops there when asked to."""
    BUILD_DEPS = "setup.py build_deps"
    """setup.py configures, compiles and installs the libraries in one go, with one CMake project (1.0, 1.1)."""
    LIBRARIES = "setup.py"
    """setup.py builds one library after the other, each a CMake project of its own (0.1 to 0.4)."""


class Products(StrEnum):
    """Where a way leaves what it builds."""

    OUTSIDE = "outside"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Wayfinder:
    """What decides how a revision is built.

    Attributes:
        way: How it is built.
        evidence: The file that says so.
    """

    way: BuildWay
    evidence: str

    @property
    def products(self) -> Products:
        """Whether the products of two targets would lie in one place, below ``torch/`` of the checkout."""
        return Products.OUTSIDE if self.way is BuildWay.SCIKIT else Products.SOURCE

    @property
    def configures(self) -> bool:
        """Whether there is a step that configures and does no more."""
        return self.way not in (BuildWay.BUILD_DEPS, BuildWay.LIBRARIES)


def find_way(checkout: Path, backend: str) -> Wayfinder:
    """Return how the revision of a checkout is built.

    Args:
        checkout: Its folder.
        backend: Its build backend, as `tenv.checks.pytorch_source` names it.
    """
    forwarding = "cmake/EnvVarForwarding.cmake"
    if (checkout / forwarding).is_file():
        if backend == "scikit-build-core":
            return Wayfinder(BuildWay.SCIKIT, "pyproject.toml")
        return Wayfinder(BuildWay.CMAKE, forwarding)
    if backend == "scikit-build-core":
        return Wayfinder(BuildWay.SCIKIT, "pyproject.toml")
    try:
        setup = read_text(checkout / "setup.py", errors="replace")
    except OSError:
        setup = ""
    if "--cmake-only" in setup:
        return Wayfinder(BuildWay.CMAKE_ONLY, "setup.py")
    if (checkout / "CMakeLists.txt").is_file() and "build_pytorch_libs" in setup:
        return Wayfinder(BuildWay.BUILD_DEPS, "setup.py")
    return Wayfinder(BuildWay.LIBRARIES, "setup.py")
