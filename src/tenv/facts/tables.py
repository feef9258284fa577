"""All tables in one value; each is read on first use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.facts.table_files import Data, default_overrides, find_overrides, read_data

if TYPE_CHECKING:
    from tenv.facts.build_failures import BuildFailureTable
    from tenv.facts.cuda_driver import CudaDriverTable
    from tenv.facts.cuda_gpu_arch import GpuArchTable, GpuPciTable
    from tenv.facts.cuda_host_compiler import HostCompilerTable
    from tenv.facts.cuda_parts import CudaPartTable, CudaRedistTable
    from tenv.facts.gpu_driver import GpuDriverTable
    from tenv.facts.gpu_names import NamedGpu
    from tenv.facts.library_releases import CudnnTable, CusparseltTable, MagmaTable
    from tenv.facts.libstdcxx import LibstdcxxTable
    from tenv.facts.pytorch_build import PytorchBuildTable
    from tenv.facts.pytorch_switches import SwitchTable
    from tenv.facts.pytorch_tried import CreatedTargetTable, PytorchTriedTable
    from tenv.facts.rocm import RocmTable
    from tenv.facts.torch_headers import TorchHeadersTable
    from tenv.facts.torch_packages import TorchPackageTable
    from tenv.facts.torch_wheels import TorchWheelTable

__all__ = ["Facts", "default_overrides", "load_facts"]

# Late imports: a rule that uses one table must not load the others


@dataclass(frozen=True)  # no slots: `cached_property` needs a `__dict__`
class Facts:
    """The compatibility tables.

    Attributes:
        files: The user's files of each table, highest precedence first.
    """

    files: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    def data(self, name: str) -> Data:
        """Read the rows of a table as written; raises FactsError if a user's file is invalid."""
        return read_data(name, self.files.get(name, ()))

    @cached_property
    def cuda_driver(self) -> "CudaDriverTable":
        """The driver that a CUDA toolkit needs."""
        from tenv.facts.cuda_driver import read

        return read(self.data("cuda_driver"))

    @cached_property
    def cuda_gpu_arch(self) -> "GpuArchTable":
        """The architectures of a CUDA toolkit, the compute capability of a GPU."""
        from tenv.facts.cuda_gpu_arch import read

        return read(self.data("cuda_gpu_arch"))

    @cached_property
    def gpu_driver(self) -> "GpuDriverTable":
        """The driver branches and the kernel module of a GPU."""
        from tenv.facts.gpu_driver import read

        return read(self.data("gpu_driver"))

    @cached_property
    def gpu_pci(self) -> "GpuPciTable":
        """The GPU behind a PCI device id."""
        from tenv.facts.cuda_gpu_arch import read_pci

        return read_pci(self.data("gpu_pci"))

    @cached_property
    def gpu_answers(self) -> "dict[str, NamedGpu | None]":
        """The cached results of GPU names."""
        return {}

    @cached_property
    def cuda_host_compiler(self) -> "HostCompilerTable":
        """The host compilers and the glibc that a CUDA toolkit works with."""
        from tenv.facts.cuda_host_compiler import read

        return read(self.data("cuda_host_compiler"))

    @cached_property
    def created_targets(self) -> "CreatedTargetTable":
        """Where environments of the built-in targets were created."""
        from tenv.facts.pytorch_tried import read_created

        return read_created(self.data("created_targets"))

    @cached_property
    def cuda_parts(self) -> "CudaPartTable":
        """The parts of a CUDA toolkit that a build looks for."""
        from tenv.facts.cuda_parts import read

        return read(self.data("cuda_parts"))

    @cached_property
    def libstdcxx(self) -> "LibstdcxxTable":
        """The libstdc++ symbols of a GCC and of a distribution."""
        from tenv.facts.libstdcxx import read

        return read(self.data("libstdcxx"))

    @cached_property
    def torch_packages(self) -> "TorchPackageTable":
        """The packages that compile against an installed torch."""
        from tenv.facts.torch_packages import read

        return read(self.data("torch_packages"))

    @cached_property
    def pytorch_build(self) -> "PytorchBuildTable":
        """The requirements of building a PyTorch release."""
        from tenv.facts.pytorch_build import read

        return read(self.data("pytorch_build"))

    @cached_property
    def pytorch_switches(self) -> "SwitchTable":
        """The switches that some revisions of PyTorch read and others do not."""
        from tenv.facts.pytorch_switches import read

        return read(self.data("pytorch_switches"))

    @cached_property
    def pytorch_tried(self) -> "PytorchTriedTable":
        """The known failures of PyTorch revisions."""
        from tenv.facts.pytorch_tried import read

        return read(self.data("pytorch_tried"))

    @cached_property
    def torch_headers(self) -> "TorchHeadersTable":
        """The parts of CUDA that the headers of torch include."""
        from tenv.facts.torch_headers import read

        return read(self.data("torch_headers"), self.torch_wheels)

    @cached_property
    def cusparselt(self) -> "CusparseltTable":
        """The releases of cuSPARSELt."""
        from tenv.facts.library_releases import read_cusparselt

        return read_cusparselt(self.data("cusparselt"))

    @cached_property
    def cudnn(self) -> "CudnnTable":
        """The releases of cuDNN."""
        from tenv.facts.library_releases import read_cudnn

        return read_cudnn(self.data("cudnn"))

    @cached_property
    def build_failures(self) -> "BuildFailureTable":
        """The causes of failed builds."""
        from tenv.facts.build_failures import read

        return read(self.data("build_failures"))

    @cached_property
    def cuda_redist(self) -> "CudaRedistTable":
        """The releases of CUDA in NVIDIA's redist and their components."""
        from tenv.facts.cuda_parts import read_redist

        return read_redist(self.data("cuda_redist"))

    @cached_property
    def magma(self) -> "MagmaTable":
        """The MAGMA binaries that PyTorch builds use."""
        from tenv.facts.library_releases import read_magma

        return read_magma(self.data("magma"))

    @cached_property
    def rocm(self) -> "RocmTable":
        """The GPUs and drivers of a ROCm, and the ROCms of a PyTorch."""
        from tenv.facts.rocm import read

        return read(self.data("rocm"))

    @cached_property
    def torch_wheels(self) -> "TorchWheelTable":
        """The torch wheels of the default index."""
        from tenv.facts.torch_wheels import read

        return read(self.data("torch_wheels"))


def load_facts(overrides: Sequence[Path] = ()) -> Facts:
    """Return the tables; each is read on first use.

    Args:
        overrides: Files and folders of the user, highest precedence first.

    Raises:
        FactsError: A place does not exist, or a file has not the name of a table.
    """
    return Facts(find_overrides(overrides)) if overrides else _built_in()


@cache
def _built_in() -> Facts:
    return Facts()
