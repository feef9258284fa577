"""The packages that compile against an installed torch: their variables, and the reasons that their builds fail."""

from typing import Annotated, Final

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows

UNIT_GIB: Final = 3
"""The memory of a unit whose package names none, in GiB: cudafe++ takes 2.2 GiB for ``torch/extension.h`` of 2.14."""


@dataclass(frozen=True, slots=True)
class TorchPackage:
    """One package."""

    name: str
    """Its normalized name."""
    force: Annotated[tuple[str, ...], Column(default=())]
    """The variables, as ``NAME=VALUE``, with which it compiles its GPU code here and downloads nothing."""
    arch: OptionalText
    """The variable with its GPU architectures; empty for ``TORCH_CUDA_ARCH_LIST``."""
    own_archs: Annotated[bool, Column(default=False)]
    """Whether its setup.py names its architectures itself, so that no variable decides."""
    jobs: OptionalText
    """The variable with the number of its jobs; empty for ``MAX_JOBS``."""
    ninja: Annotated[bool, Column(default=True)]
    """Whether ninja compiles it; else one file follows another where its setup.py turns ninja off."""
    threads: Annotated[bool, Column(default=False)]
    """Whether it starts nvcc with the threads of ``NVCC_THREADS``."""
    gpu: Annotated[bool, Column(default=False)]
    """Whether its setup.py wants a GPU where it is built."""
    downloads: Annotated[bool, Column(default=False)]
    """Whether its setup.py downloads a prebuilt wheel unless `force` is set."""
    cxx: Annotated[int, Column(default=0)]
    """The C++ standard that it pins; 0 for none."""
    gib: Annotated[int, Column(default=UNIT_GIB)]
    """The memory of its largest unit for one architecture, in GiB."""
    needs: Annotated[tuple[str, ...], Column(default=())]
    """The packages that its setup.py imports beside torch."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class TorchPackageTable:
    """Every row of the table."""

    rows: Annotated[tuple[TorchPackage, ...], Rows("package")]
    """One row per package."""

    def find(self, name: str) -> TorchPackage | None:
        """Return the row of a package, by its normalized name."""
        return next((row for row in self.rows if row.name == name), None)
