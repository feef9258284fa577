"""Parse `TORCH_CUDA_ARCH_LIST` as PyTorch's CMake and `torch.utils.cpp_extension` do."""

import re

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.targets.manifest import Manifest

__all__ = ["VARIABLE", "Arch", "arch_list", "named_archs", "runs_on"]

VARIABLE = "TORCH_CUDA_ARCH_LIST"

_NAMES = {
    "kepler": "3.5 3.7",
    "kepler+tesla": "3.7",
    "kepler+tegra": "3.2",
    "maxwell": "5.0 5.2+PTX",
    "maxwell+tegra": "5.3",
    "pascal": "6.0 6.1+PTX",
    "volta": "7.0+PTX",
    "turing": "7.5+PTX",
    "ampere": "8.0 8.6+PTX",
    "ada": "8.9+PTX",
    "hopper": "9.0+PTX",
    "blackwell": "10.0 10.3 12.0 12.1+PTX",
    "blackwell+tegra": "11.0",
}
"""The names of architectures: ``named_arches`` in torch/utils/cpp_extension.py of 2.9."""

_ARCH = re.compile(r"(?P<capability>\d{1,2}\.\d)(?P<variant>[af]?)(\(\d{1,2}\.\d\))?(?P<ptx>\+PTX)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Arch:
    """An architecture to compile for.

    Attributes:
        capability: The compute capability.
        variant: ``a`` for code that runs only on this architecture, ``f`` for its family, otherwise empty.
        ptx: Whether PTX is built too, which newer drivers compile for newer GPUs.
    """

    capability: Version
    variant: str
    ptx: bool

    @property
    def text(self) -> str:
        """The architecture as the list spells it."""
        return f"{self.capability}{self.variant}{'+PTX' if self.ptx else ''}"


def arch_list(text: str) -> tuple[Arch, ...] | None:
    """Return the architectures of a list; None if it is empty or only PyTorch can expand it (``Auto``)."""
    found = []
    for word in re.split(r"[;\s]+", text.strip()):
        for one in _NAMES.get(word.lower(), word).split():
            match = _ARCH.fullmatch(one)
            if match is None:
                return None
            found.append(Arch(Version(match["capability"]), match["variant"], bool(match["ptx"])))
    return tuple(found) or None


def named_archs(manifest: Manifest, said: str) -> str:
    """Return the list that a build gets: the manifest's, which activation sets, else the caller's variable."""
    request = manifest.environment.get(VARIABLE)
    return (request.text or "") if request else said


def runs_on(arch: Arch, capability: Version) -> bool:
    """Return whether the binary code of an architecture, without its PTX, runs on a GPU.

    Code runs on later minors of the same major (CUDA C++ Programming Guide, binary compatibility). ``a`` code does not.
    """
    if arch.variant == "a":
        return arch.capability == capability
    return arch.capability.major == capability.major and arch.capability <= capability
