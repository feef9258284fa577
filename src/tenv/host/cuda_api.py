"""The newest CUDA version that the driver's library offers.

This is the number that conda's ``__cuda`` stands for. cuda-compat raises it, and it says nothing about a toolkit.
"""

import re
from collections.abc import Mapping

from tenv.core.versions import Version
from tenv.host.answer import cuda_version
from tenv.host.interface import Fact, Missing
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places

__all__ = ["NO_CUDA", "OVERRIDE", "is_misread", "override", "parse", "probe"]

OVERRIDE = "CONDA_OVERRIDE_CUDA"
NO_CUDA = f"{OVERRIDE} is empty, which means no CUDA"
"""The reason for a CUDA version that is missing because a person says so."""

_MISREAD = f"{OVERRIDE} is `"
# cuInit is not called: the version needs none, and where the driver is unwell it may hang.
_CHILD = """\
import ctypes, sys
version = ctypes.c_int()
try:
    status = ctypes.CDLL(sys.argv[1]).cuDriverGetVersion(ctypes.byref(version))
except (OSError, AttributeError) as error:
    sys.exit(str(error))
if status:
    sys.exit(f"cuDriverGetVersion fails with CUDA error {status}")
print(version.value)
"""


def override(environ: Mapping[str, str]) -> Fact[Version] | Missing | None:
    """Return what ``CONDA_OVERRIDE_CUDA`` says, None when it is not set; set to nothing, it says that there is none."""
    text = environ.get(OVERRIDE)
    if text is None:
        return None
    text = text.strip()
    if not text:
        return Missing(NO_CUDA)
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", text, re.ASCII):
        return Missing(f"{_MISREAD}{text}`, which is no version")
    return Fact(Version(text), OVERRIDE)


def is_misread(cuda: Fact[Version] | Missing) -> bool:
    """Tell whether the CUDA version is missing because the variable holds no version."""
    return isinstance(cuda, Missing) and cuda.reason.startswith(_MISREAD)


def parse(text: str) -> Version | Missing:
    """Return the version from the number that the child prints."""
    line = text.strip()
    return cuda_version(int(line)) if re.fullmatch(r"-?\d{1,9}", line, re.ASCII) else Missing(f"`{line}` is no number")


def probe(places: Places | None = None, nvidia: Nvidia | None = None) -> Fact[Version] | Missing:
    """Return the CUDA version: the override's, else NVML's, which asks libcuda, else libcuda's own.

    Args:
        places: Where to look; None means this machine.
        nvidia: The driver's tools, where others ask them too.
    """
    nvidia = nvidia or Nvidia(places)
    if (said := override(nvidia.places.environ)) is not None:
        return said
    told = nvidia.nvml
    reasons = [f"NVML: {told.reason}"] if isinstance(told, Missing) else []
    if not isinstance(told, Missing):
        if isinstance(told.cuda, Version):
            return Fact(told.cuda, "NVML")
        reasons = [f"NVML: {told.cuda.reason}"]
    answer = _libcuda(nvidia)
    if isinstance(answer, Fact):
        return answer
    return Missing("; ".join([*reasons, f"libcuda: {answer.reason}"]))


def _libcuda(nvidia: Nvidia) -> Fact[Version] | Missing:
    places = nvidia.places
    library = nvidia.loader.find(places.cuda_library)
    if isinstance(library, Missing):
        return library
    told = library.ask(places, "-c", _CHILD, str(library.path), CUDA_VISIBLE_DEVICES="")
    version = told if isinstance(told, Missing) else parse(told)
    return version if isinstance(version, Missing) else Fact(version, f"cuDriverGetVersion of {library.path}")
