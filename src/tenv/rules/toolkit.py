"""Whether the CUDA packages of a lock belong together.

The ``cuda-toolkit`` metapackage pins the components of a release as a set, nearly: 13.0.3 and 13.2.2 leave nvJitLink
loose, so that a 13.5 comes in, and some packages exist on a platform only as an empty placeholder. What the lock holds
is therefore checked.
"""

from collections.abc import Iterator

from tenv.lock import Lock, Wheel
from tenv.rules.interface import Finding, Severity
from tenv.versions import Version

__all__ = ["MIXED_RELEASES", "PLACEHOLDER", "WRONG_MAJOR", "check_lock"]

MIXED_RELEASES = "TE301"
PLACEHOLDER = "TE302"
WRONG_MAJOR = "TE303"

NUMBERED_WITH_TOOLKIT = frozenset(
    f"nvidia-{name}"
    for name in (
        *("cuda-cccl", "cuda-crt", "cuda-culibos", "cuda-cuobjdump", "cuda-cupti", "cuda-cuxxfilt", "cuda-nvcc"),
        *("cuda-nvdisasm", "cuda-nvrtc", "cuda-opencl", "cuda-profiler-api", "cuda-runtime", "cuda-sanitizer-api"),
        *("cuda-tileiras", "nvfatbin", "nvjitlink", "nvml-dev", "nvptxcompiler", "nvtx", "nvvm"),
    )
) | {"cuda-toolkit"}
"""Packages whose version begins with the toolkit's own (requirements of cuda-toolkit 13.0.0 to 13.2.2 on PyPI)."""

_METADATA = "the requirements of the cuda-toolkit wheels on PyPI"
_EMPTY_WHEEL = 20_000
"""Bytes; the placeholder wheels of NVIDIA hold a README and no library."""


def check_lock(lock: Lock) -> Iterator[Finding]:
    """Yield what is wrong with the CUDA packages of a lock, platform by platform."""
    text = lock.requirements.get("cuda")
    for platform, wheels in lock.wheels.items():
        yield from _placeholders(platform, wheels)
        if text:
            yield from _mixed(platform, wheels, Version(text))
            yield from _wrong_major(platform, wheels, Version(text))


def _mixed(platform: str, wheels: tuple[Wheel, ...], cuda: Version) -> Iterator[Finding]:
    for wheel in wheels:
        found = Version.find(wheel.version)
        if wheel.name in NUMBERED_WITH_TOOLKIT and found and found.major_minor != cuda.major_minor:
            yield Finding(
                code=MIXED_RELEASES,
                severity=Severity.ERROR,
                subject=f"{wheel.name} on {platform}",
                message=f"is of CUDA {found.major_minor} inside a CUDA {cuda} toolkit",
                evidence=wheel.file,
                source=_METADATA,
                fix=f'pin it in [pypi-dependencies]: {wheel.name} = "{cuda.major_minor}.*"',
            )


def _placeholders(platform: str, wheels: tuple[Wheel, ...]) -> Iterator[Finding]:
    for wheel in wheels:
        empty = wheel.size is not None and wheel.size < _EMPTY_WHEEL and wheel.name != "cuda-toolkit"
        if wheel.name.startswith("nvidia-") and wheel.version.startswith("0.0.0") and (empty or wheel.size is None):
            yield Finding(
                code=PLACEHOLDER,
                severity=Severity.ERROR,
                subject=f"{wheel.name} on {platform}",
                message=f"version {wheel.version} is an empty placeholder ({wheel.size or '?'} bytes), no library",
                evidence=wheel.file,
                source="the file's size on the index",
                fix=f"ask for {wheel.name} only on the platforms that have it: [platform.linux-64.pypi-dependencies]",
            )


def _wrong_major(platform: str, wheels: tuple[Wheel, ...], cuda: Version) -> Iterator[Finding]:
    for wheel in wheels:
        _, _, suffix = wheel.name.rpartition("-cu")
        if wheel.name.startswith("nvidia-") and suffix.isdigit() and int(suffix) != cuda.major:
            yield Finding(
                code=WRONG_MAJOR,
                severity=Severity.ERROR,
                subject=f"{wheel.name} on {platform}",
                message=f"is made for CUDA {suffix}, the target is CUDA {cuda}",
                evidence=wheel.file,
                source="the package's name",
                fix=f"take the package that ends in -cu{cuda.major}",
            )
