"""Detect the newest CUDA version that the driver's library offers.

This is the version of conda's ``__cuda``. cuda-compat raises it, and it is unrelated to toolkits.
"""

import re
from collections.abc import Mapping

from tenv.core.versions import Version
from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.nvidia import Nvidia, cuda_version

OVERRIDE = "CONDA_OVERRIDE_CUDA"
"""The variable that sets the driver's CUDA version for conda and pixi."""

# cuInit is not called: the version does not need it, and it may hang with a broken driver.
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
    """Return the value of ``CONDA_OVERRIDE_CUDA``; None if it is not set. An empty value means no CUDA."""
    text = environ.get(OVERRIDE)
    if text is None:
        return None
    text = text.strip()
    if not text:
        return Missing.because(ReasonKind.NO_CUDA)
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", text, re.ASCII):
        return Missing(f"{OVERRIDE} is `{text}`, which is not a version", ReasonKind.NO_VERSION)
    return Fact(Version(text), OVERRIDE, OriginKind.OVERRIDE)


def parse(text: str) -> Version | Missing:
    """Return the version from the number that the child prints."""
    line = text.strip()
    if not re.fullmatch(r"-?\d{1,9}", line, re.ASCII):
        return Missing(f"`{line}` is not a number", ReasonKind.UNREADABLE)
    return cuda_version(int(line))


def probe(nvidia: Nvidia) -> Fact[Version] | Missing:
    """Return the CUDA version: the override's, else NVML's, which asks libcuda, else libcuda's own.

    Args:
        nvidia: The driver's tools on the machine.
    """
    if (said := override(nvidia.places.environ)) is not None:
        return said
    reported = nvidia.nvml if isinstance(nvidia.nvml, Missing) else nvidia.nvml.cuda
    if isinstance(reported, Version):
        return Fact(reported, "NVML", OriginKind.NVML)
    answer = _libcuda(nvidia)
    return answer if isinstance(answer, Fact) else Missing.by_all([("NVML", reported), ("libcuda", answer)])


def _libcuda(nvidia: Nvidia) -> Fact[Version] | Missing:
    places = nvidia.places
    library = nvidia.loader.find(places.cuda_library)
    if isinstance(library, Missing):
        return library
    reported = library.ask(places, "-c", _CHILD, str(library.path), CUDA_VISIBLE_DEVICES="")
    version = reported if isinstance(reported, Missing) else parse(reported)
    if isinstance(version, Missing):
        return version
    return Fact(version, f"cuDriverGetVersion of {library.path}", OriginKind.LIBCUDA)


CUDA = HostField(
    label="cuda",
    meaning="the newest CUDA version that the driver's library (libcuda) offers; not that of a toolkit",
    form='`"12.4"`',
    probe=lambda scan: probe(scan.nvidia),
    lane=Lane.DRIVER,
)
