"""ROCm: the GPUs, drivers and kernels of a release, the releases of a PyTorch, the architectures of a hipcc."""

from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows


@dataclass(frozen=True, slots=True)
class RocmRelease:
    """A release of ROCm."""

    rocm: Version
    """Its number."""
    gfx: tuple[str, ...]
    """The architectures that AMD lists as supported; empty if they were not read."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class RocmDriver:
    """A driver by AMD's name, and the ROCms that AMD lists with it."""

    amdgpu: str
    """Its name, two numbers."""
    rocm: tuple[str, ...]
    """Releases, or the first two numbers of several."""
    basis: Basis
    """How certain this is."""

    def lists(self, rocm: Version) -> bool:
        """Return whether AMD lists a release with the driver."""
        return rocm.major_minor in self.rocm or str(rocm) in self.rocm


@dataclass(frozen=True, slots=True)
class RocmModule:
    """The version of a kernel module and its driver by AMD's name."""

    module: Version
    """The version of amdgpu-dkms."""
    driver: Version
    """The driver."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class PytorchRocm:
    """A release of PyTorch and the ROCms of its wheels."""

    version: Version
    """The release, two numbers."""
    rocm: tuple[Version, ...]
    """The ROCms."""
    arch: tuple[str, ...]
    """The architectures of the wheels; empty if they were not read."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class RocmRequires:
    """The required parts of ROCm of a PyTorch."""

    since: Version
    """The first release that the row was read for."""
    packages: tuple[str, ...]
    """The CMake packages without which its LoadHIP.cmake stops."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class RocblasKernels:
    """The architectures that AMD's own rocBLAS has kernels for, from a release of ROCm on."""

    since: Version
    """The first release."""
    gfx: tuple[str, ...]
    """The architectures; where sources differ, the architectures of all."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class HipccArchs:
    """The architectures that a hipcc compiles for."""

    hipcc: Version
    """Its version."""
    system: str
    """The system that packages it."""
    takes: tuple[str, ...]
    """Architectures that it compiles for; it was tried with few."""
    refuses: Annotated[tuple[str, ...], Column(default=())]
    """Architectures that it refuses."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class RocmTable:
    """Every row of the table."""

    releases: Annotated[tuple[RocmRelease, ...], Rows("release", by=lambda row: row.rocm)]
    """One row per release of ROCm."""
    drivers: Annotated[tuple[RocmDriver, ...], Rows("driver")]
    """One row per driver by AMD's name."""
    modules: Annotated[tuple[RocmModule, ...], Rows("module")]
    """One row per known version of the kernel module."""
    pytorches: Annotated[tuple[PytorchRocm, ...], Rows("pytorch", by=lambda row: row.version)]
    """One row per release of PyTorch, oldest first."""
    requires: Annotated[tuple[RocmRequires, ...], Rows("requires", by=lambda row: row.since)]
    """The requirements of LoadHIP.cmake, oldest first."""
    kernels: Annotated[tuple[RocblasKernels, ...], Rows("rocblas", by=lambda row: row.since)]
    """The architectures of AMD's rocBLAS, oldest first."""
    compilers: Annotated[tuple[HipccArchs, ...], Rows("compiler")]
    """The architectures of each hipcc."""

    def release(self, rocm: Version) -> RocmRelease | None:
        """Return the row of a release whose architectures are known: its own, else the newest of the same minor."""
        known = [row for row in self.releases if row.gfx and row.rocm.major_minor == rocm.major_minor]
        exact = (row for row in known if row.rocm == rocm)
        return next(exact, max(known, key=lambda row: row.rocm, default=None))

    def driver(self, module: Version) -> tuple[RocmModule, RocmDriver] | None:
        """Return the rows of a module's driver by AMD's name; None for a module or a driver without a row."""
        for row in self.modules:
            if row.module == module:
                found = (one for one in self.drivers if one.amdgpu == row.driver.major_minor)
                return next(((row, one) for one in found), None)
        return None

    def pytorch(self, release: Version) -> PytorchRocm | None:
        """Return the row of a PyTorch; None for a release without one."""
        return next((row for row in self.pytorches if row.version.major_minor == release.major_minor), None)

    def wheels_of(self, rocm: Version) -> PytorchRocm | None:
        """Return the newest PyTorch whose wheels were built with a ROCm and whose architectures are known."""
        known = (row for row in reversed(self.pytorches) if row.arch)
        return next((row for row in known if any(rocm.major_minor == one.major_minor for one in row.rocm)), None)

    def required(self, release: Version) -> RocmRequires | None:
        """Return the required parts of a PyTorch: of the newest row up to it."""
        return next((row for row in reversed(self.requires) if row.since <= release), None)

    def rocblas(self, rocm: Version) -> RocblasKernels | None:
        """Return the kernels of AMD's rocBLAS: of the newest row up to a release; None before the first."""
        return next((row for row in reversed(self.kernels) if row.since <= rocm), None)

    def compiler(self, hip: Version) -> HipccArchs | None:
        """Return the row of a hipcc by the first two numbers of its version."""
        return next((row for row in self.compilers if row.hipcc.major_minor == hip.major_minor), None)
