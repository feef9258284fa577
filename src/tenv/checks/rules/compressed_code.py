"""Check that the driver reads what nvcc compresses in the mode that a variable asks for.

``-compress-mode=size`` and ``balance``, which nvcc has from 12.8 on, yield code that drivers before CUDA 12.4 do not
read: ``device kernel image is invalid``. A driver that old runs what CUDA 12 builds otherwise.
"""

import re
from collections.abc import Iterator, Mapping

from tenv.checks.rules.common import cuda_of
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.checks.rules.judged_driver import compat_first, driver_of, of_windows, on_jetson
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing

__all__ = ["COMPRESSED", "compressed_code", "nvcc_flags"]

COMPRESSED = "TE112"

_FIRST_READER = Version("12.4")
_VARIABLES = ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "TORCH_NVCC_FLAGS")
_UNREAD = ("size", "balance")
_MODE = re.compile(r"(?:^|\s)--?compress-mode(?:=|\s+)(\w+)(?=\s|$)")


def compressed_code(case: Case) -> Iterator[Finding]:
    """Yield an error if a variable asks nvcc for a compression that the driver does not read."""
    cuda, asked = cuda_of(case), _asked(case)
    if cuda is None or asked is None or on_jetson(case.host, case.facts):
        return
    reader = case.facts.cuda_driver.native(_FIRST_READER, of_windows(case.host))
    driver = driver_of(case.host, case.facts)
    if compat_first(case.host) and isinstance(case.host.compat, Fact):
        loaded, what = case.host.compat.value.version, f"cuda-compat {case.host.compat.value.version}"
    elif isinstance(driver, Missing):
        return
    else:
        loaded, what = driver.value, f"driver {driver.value} ({driver.origin})"
    if reader is None or loaded is None or loaded >= reader.driver:
        return
    variable, mode = asked
    yield Finding(
        code=COMPRESSED,
        severity=Severity.ERROR,
        subject=variable,
        message=(
            f"asks nvcc for -compress-mode={mode}, whose code needs NVIDIA driver {reader.driver} or newer (CUDA "
            f"{_FIRST_READER}): on an older one every kernel ends with `device kernel image is invalid`"
        ),
        evidence=what,
        source="docs.nvidia.com/cuda/cuda-compiler-driver-nvcc: --compress-mode; "
        "github.com/pytorch/pytorch/pull/161316",
        fix=f"remove it from {variable} (-compress-mode=speed is the default of CUDA 12), or install a newer driver",
    )


def nvcc_flags(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the caller that hold flags of nvcc."""
    return {name: environ[name] for name in _VARIABLES if name in environ}


def _asked(case: Case) -> tuple[str, str] | None:
    """Return the variable that names a mode which older drivers do not read, and the mode; None if none does."""
    own = {name: request.text or "" for name, request in case.manifest.environment.items()}
    environ = {**case.exported, **own}
    for name in _VARIABLES:
        modes = _MODE.findall(environ.get(name, ""))
        if modes:
            return (name, modes[-1]) if modes[-1] in _UNREAD else None
    return None
