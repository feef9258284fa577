"""Select the GPUs of a host that nvcc compiles for, if it does not compile for all of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tenv.checks.rules.arch_list import Arch, arch_list, runs_on
from tenv.checks.rules.common import KnownGpu, cuda_of, known_gpus
from tenv.core.versions import Version

if TYPE_CHECKING:
    from tenv.checks.rules.interface import Case
    from tenv.facts.cuda_gpu_arch import ToolkitArchs

__all__ = ["in_range", "is_covered", "listed_archs"]


def in_range(gpus: Iterable[KnownGpu], archs: "ToolkitArchs | None") -> tuple[list[Version], list[KnownGpu]]:
    """Return the compute capabilities that a toolkit compiles for, rising, and the GPUs that it does not compile for.

    Args:
        gpus: The GPUs; those without a known compute capability are in neither list.
        archs: The toolkit's architectures; None if unknown, which yields two empty lists.
    """
    known = [(gpu, gpu.capability) for gpu in gpus if gpu.capability is not None] if archs else []
    inside = sorted({one for _, one in known if archs and archs.supports(one)})
    return inside, list(dict.fromkeys(gpu for gpu, one in known if one not in inside))


def listed_archs(case: "Case") -> tuple[Version, ...]:
    """Return what activation lists in TORCH_CUDA_ARCH_LIST, since nvcc compiles only for some of the GPUs.

    Empty if it compiles for all or none of them, or if the manifest or the user sets the variable.
    """
    cuda = cuda_of(case)
    if cuda is None or arch_list(case.arch_list) is not None:
        return ()
    gpus = known_gpus(case)
    inside, outside = in_range(gpus, case.facts.cuda_gpu_arch.archs(cuda) if gpus else None)
    return tuple(inside) if outside else ()


def is_covered(gpu: KnownGpu, listed: Iterable[Version]) -> bool:
    """Return whether code for one of the listed compute capabilities runs on a GPU."""
    return gpu.capability is not None and any(runs_on(Arch(one, "", ptx=False), gpu.capability) for one in listed)
