"""ROCm: the GPUs, drivers and kernels of a release, the releases of a PyTorch, the architectures of a hipcc."""

from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows


@dataclass(frozen=True, slots=True)
class RocmRelease:
    """A release of ROCm.

    Attributes:
        rocm: Its number.
        gfx: The architectures that AMD lists as supported; empty if they were not read.
        basis: How certain this is.
    """

    rocm: Version
    gfx: tuple[str, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class RocmDriver:
    """A driver by AMD's name, and the ROCms that AMD lists with it.

    Attributes:
        amdgpu: Its name, two numbers.
        rocm: Releases, or the first two numbers of several.
        basis: How certain this is.
    """

    amdgpu: str
    rocm: tuple[str, ...]
    basis: Basis

    def lists(self, rocm: Version) -> bool:
        """Return whether AMD lists a release with the driver."""
        return rocm.major_minor in self.rocm or str(rocm) in self.rocm


@dataclass(frozen=True, slots=True)
class RocmModule:
    """The version of a kernel module and its driver by AMD's name.

    Attributes:
        module: The version of amdgpu-dkms.
        driver: The driver.
        basis: How certain this is.
    """

    module: Version
    driver: Version
    basis: Basis


@dataclass(frozen=True, slots=True)
class PytorchRocm:
    """A release of PyTorch and the ROCms of its wheels.

    Attributes:
        version: The release, two numbers.
        rocm: The ROCms.
        arch: The architectures of the wheels; empty if they were not read.
        basis: How certain this is.
    """

    version: Version
    rocm: tuple[Version, ...]
    arch: tuple[str, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class RocmRequires:
    """The required parts of ROCm of a PyTorch.

    Attributes:
        since: The first release that the row was read for.
        packages: The CMake packages without which its LoadHIP.cmake stops.
        basis: How certain this is.
    """

    since: Version
    packages: tuple[str, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class RocblasKernels:
    """The architectures that AMD's own rocBLAS has kernels for, from a release of ROCm on.

    Attributes:
        since: The first release.
        gfx: The architectures; where sources differ, those of any.
        basis: How certain this is.
    """

    since: Version
    gfx: tuple[str, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class HipccArchs:
    """The architectures that a hipcc compiles for.

    Attributes:
        hipcc: Its version.
        system: The system that packages it.
        takes: Architectures that it compiles for; it was tried with few.
        refuses: Architectures that it refuses.
        basis: How certain this is.
    """

    hipcc: Version
    system: str
    takes: tuple[str, ...]
    refuses: Annotated[tuple[str, ...], Column(default=())]
    basis: Basis


@dataclass(frozen=True, slots=True)
class RocmTable:
    """Every row of the table.

    Attributes:
        releases: One row per release of ROCm.
        drivers: One row per driver by AMD's name.
        modules: One row per known version of the kernel module.
        pytorches: One row per release of PyTorch, oldest first.
        requires: The requirements of LoadHIP.cmake, oldest first.
        kernels: The architectures of AMD's rocBLAS, oldest first.
        compilers: The architectures of each hipcc.
    """

    releases: Annotated[tuple[RocmRelease, ...], Rows("release", by=lambda row: row.rocm)]
    drivers: Annotated[tuple[RocmDriver, ...], Rows("driver")]
    modules: Annotated[tuple[RocmModule, ...], Rows("module")]
    pytorches: Annotated[tuple[PytorchRocm, ...], Rows("pytorch", by=lambda row: row.version)]
    requires: Annotated[tuple[RocmRequires, ...], Rows("requires", by=lambda row: row.since)]
    kernels: Annotated[tuple[RocblasKernels, ...], Rows("rocblas", by=lambda row: row.since)]
    compilers: Annotated[tuple[HipccArchs, ...], Rows("compiler")]

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
