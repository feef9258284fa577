"""What the CI of a PyTorch checkout builds with: it tells what the trunk of a day was tried with.

The generator of its build matrix lists the CUDA releases and the Pythons of the nightly wheels; the file has been there
since 1.8 (``CUDA_ARCHES`` and ``FULL_PYTHON_VERSIONS``). Nothing of it is run.
"""

import re
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.core.versions import Version

__all__ = ["CiBuilds", "read_tested"]

_FILE = ".github/scripts/generate_binary_build_matrix.py"
_LIST = r"^{}\s*(?::[^=\n]+)?=\s*\[([^\]]*)\]"
_MINOR = re.compile(r"[\"'](\d+\.\d+)t?[\"']")


@dataclass(frozen=True, slots=True)
class CiBuilds:
    """What a revision's CI builds with.

    Attributes:
        cudas: The CUDA releases.
        pythons: The Pythons, as minors (``3.14``).
        file: The file of the checkout that says so.
    """

    cudas: tuple[Version, ...]
    pythons: tuple[Version, ...]
    file: str = _FILE


def read_tested(root: Path) -> CiBuilds | None:
    """Return what a checkout's CI builds with; None if its files do not tell."""
    try:
        text = read_text(root / _FILE, errors="replace")
    except OSError:
        return None
    plain = re.sub(r"#.*", "", text)
    cudas, pythons = (_listed(plain, name) for name in ("CUDA_ARCHES", "FULL_PYTHON_VERSIONS"))
    return CiBuilds(cudas, pythons) if cudas and pythons else None


def _listed(text: str, name: str) -> tuple[Version, ...]:
    match = re.search(_LIST.format(name), text, re.MULTILINE)
    return tuple(sorted({Version(minor) for minor in _MINOR.findall(match[1])})) if match else ()
