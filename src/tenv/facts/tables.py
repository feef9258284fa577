"""All tables in one value; each is read on first use."""

import importlib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tenv.facts.table_files import Data, default_overrides, find_overrides, read_data

if TYPE_CHECKING:
    from tenv.facts.build_failures import BuildFailureTable
    from tenv.facts.cuda_driver import CudaDriverTable
    from tenv.facts.cuda_gpu_arch import GpuArchTable, GpuPciTable
    from tenv.facts.cuda_host_compiler import HostCompilerTable
    from tenv.facts.cuda_parts import CudaPartTable, CudaRedistTable
    from tenv.facts.gpu_driver import GpuDriverTable
    from tenv.facts.gpu_names import NamedGpu
    from tenv.facts.hip_names import NameTable
    from tenv.facts.library_releases import CudnnTable, CusparseltTable, MagmaTable
    from tenv.facts.libstdcxx import LibstdcxxTable
    from tenv.facts.pytorch_build import PytorchBuildTable
    from tenv.facts.pytorch_switches import SwitchTable
    from tenv.facts.pytorch_tried import CreatedTargetTable, PytorchTriedTable
    from tenv.facts.rocm import RocmTable
    from tenv.facts.torch_headers import TorchHeadersTable, TorchWheelTable
    from tenv.facts.torch_packages import TorchPackageTable

__all__ = ["default_overrides"]

_TABLES = {
    "cuda_driver": "cuda_driver:read",
    "cuda_gpu_arch": "cuda_gpu_arch:GpuArchTable",
    "gpu_driver": "gpu_driver:GpuDriverTable",
    "gpu_pci": "cuda_gpu_arch:GpuPciTable",
    "cuda_host_compiler": "cuda_host_compiler:HostCompilerTable",
    "created_targets": "pytorch_tried:CreatedTargetTable",
    "cuda_parts": "cuda_parts:CudaPartTable",
    "libstdcxx": "libstdcxx:LibstdcxxTable",
    "torch_packages": "torch_packages:TorchPackageTable",
    "pytorch_build": "pytorch_build:PytorchBuildTable",
    "pytorch_switches": "pytorch_switches:SwitchTable",
    "pytorch_tried": "pytorch_tried:PytorchTriedTable",
    "cusparselt": "library_releases:read_cusparselt",
    "cudnn": "library_releases:read_cudnn",
    "hip_names": "hip_names:read",
    "cuda_redist": "cuda_parts:CudaRedistTable",
    "magma": "library_releases:read_magma",
    "rocm": "rocm:RocmTable",
    "torch_wheels": "torch_headers:TorchWheelTable",
}
"""The dataclass of each table, or the function that reads it, with its module: a rule must not load other tables."""


class Facts:
    """The compatibility tables, each by the name of its file; `tenv.facts.table_files.LAYOUTS` has their content.

    Attributes:
        files: The user's files of each table, highest precedence first.
        gpu_answers: The cached results of GPU names.
    """

    cuda_driver: "CudaDriverTable"
    cuda_gpu_arch: "GpuArchTable"
    gpu_driver: "GpuDriverTable"
    gpu_pci: "GpuPciTable"
    cuda_host_compiler: "HostCompilerTable"
    created_targets: "CreatedTargetTable"
    cuda_parts: "CudaPartTable"
    libstdcxx: "LibstdcxxTable"
    torch_packages: "TorchPackageTable"
    pytorch_build: "PytorchBuildTable"
    pytorch_switches: "SwitchTable"
    pytorch_tried: "PytorchTriedTable"
    cusparselt: "CusparseltTable"
    cudnn: "CudnnTable"
    hip_names: "NameTable"
    cuda_redist: "CudaRedistTable"
    magma: "MagmaTable"
    rocm: "RocmTable"
    torch_wheels: "TorchWheelTable"

    def __init__(self, files: Mapping[str, tuple[Path, ...]] = MappingProxyType({})) -> None:
        self.files = files
        self.gpu_answers: dict[str, NamedGpu | None] = {}

    def data(self, name: str) -> Data:
        """Read the rows of a table as written; raises FactsError if a user's file is invalid."""
        return read_data(name, self.files.get(name, ()))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Read a table on first use; raises FactsError if a user's file is invalid."""
            if name not in _TABLES:
                raise AttributeError(name)
            module, _, reader = _TABLES[name].partition(":")
            read = getattr(importlib.import_module(f"tenv.facts.{module}"), reader)
            found = self.data(name).table(read) if isinstance(read, type) else read(self.data(name))
            self.__dict__[name] = found
            return found

    @cached_property
    def build_failures(self) -> "BuildFailureTable":
        """Why builds fail; the names of HIP are read when an error has one."""
        from tenv.facts.build_failures import read

        return read(self.data("build_failures"), lambda: self.hip_names)

    @cached_property
    def torch_headers(self) -> "TorchHeadersTable":
        """The parts of CUDA that the headers of torch include, beside the torch wheels."""
        from tenv.facts.torch_headers import read

        return read(self.data("torch_headers"), self.torch_wheels)


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
