"""Check that the CUDA packages of a lock belong together.

The ``cuda-toolkit`` metapackage pins almost all components of a release: 13.0.3 and 13.2.2 do not pin nvJitLink, so
that 13.5 is resolved, and some packages exist on a platform only as an empty placeholder. The nvidia channel of conda
pins even less: its cuda-toolkit 12.1.0 requires ``cuda-compiler >=12.1.0``, which resolves to nvcc 12.8.61.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.names import channel_url
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.locks.lock import CondaPackage, Lock, Wheel

__all__ = [
    "MIXED_HALVES",
    "MIXED_RELEASES",
    "PLACEHOLDER",
    "WRONG_MAJOR",
    "check_lock",
    "mixed_halves",
    "mixed_releases",
    "numbered_with_toolkit",
    "placeholders",
    "wrong_major",
]

MIXED_RELEASES = "TE301"
PLACEHOLDER = "TE302"
WRONG_MAJOR = "TE303"
MIXED_HALVES = "TE306"

NUMBERED_WITH_TOOLKIT = frozenset(
    f"nvidia-{name}"
    for name in (
        *("cuda-cccl", "cuda-crt", "cuda-culibos", "cuda-cuobjdump", "cuda-cupti", "cuda-cuxxfilt", "cuda-nvcc"),
        *("cuda-nvdisasm", "cuda-nvrtc", "cuda-opencl", "cuda-profiler-api", "cuda-runtime", "cuda-sanitizer-api"),
        *("cuda-tileiras", "nvfatbin", "nvjitlink", "nvml-dev", "nvptxcompiler", "nvtx", "nvvm"),
    )
) | {"cuda-toolkit"}
"""Packages whose version begins with the toolkit's own (requirements of cuda-toolkit 13.0.0 to 13.2.2 on PyPI)."""

_CONDA_NUMBERED = frozenset(
    (
        *("cuda", "cuda-cccl", "cuda-command-line-tools", "cuda-compiler", "cuda-crt", "cuda-ctadvisor", "cuda-cudart"),
        *("cuda-cuobjdump", "cuda-cupti", "cuda-cuxxfilt", "cuda-demo-suite", "cuda-documentation", "cuda-driver"),
        *("cuda-gdb", "cuda-libraries", "cuda-memcheck", "cuda-nsight", "cuda-nsight-compute", "cuda-nvcc"),
        *("cuda-nvdisasm", "cuda-nvml", "cuda-nvprof", "cuda-nvprune", "cuda-nvrtc", "cuda-nvtx", "cuda-nvvm"),
        *("cuda-nvvp", "cuda-opencl", "cuda-profiler-api", "cuda-runtime", "cuda-sanitizer-api", "cuda-tileiras"),
        *("cuda-toolkit", "cuda-tools", "cuda-version", "cuda-visual-tools", "cudatoolkit", "libnvfatbin"),
        *("libnvjitlink", "libnvptxcompiler", "libnvvm-samples", "pytorch-cuda"),
    )
)
"""The same for conda-forge and the nvidia channel, without the parts that packages are split into."""

_TOLD_FIRST = frozenset(("cuda-nvcc", "cuda-cudart", "cuda-version"))
_NVIDIA = channel_url("nvidia")
_CONDA_FORGE = channel_url("conda-forge")
_CONDA_FORGE_FROM = Version("12.0")
"""The first CUDA that conda-forge splits into parts. Before, cudatoolkit was one package without a compiler."""

_OTHER_NUMBERS = frozenset(("cuda-cccl-impl",))
_PART = re.compile(r"(-(dev|static|impl|tools))?(_(linux|win|osx)-\w+)?$")
_HALF = re.compile(r"(?P<library>lib[\w.]+|cudnn|nccl|cuda-[\w-]+?)-(dev|static)(_(linux|win|osx)-\w+)?")

_METADATA = "the requirements of the cuda-toolkit wheels on PyPI"
_EMPTY_WHEEL = 20_000
"""Bytes; the placeholder wheels of NVIDIA hold a README and no library."""


@lru_cache(maxsize=8)
def check_lock(lock: Lock) -> tuple[Finding, ...]:
    """Return the findings about the CUDA packages of a lock for each platform. A lock is judged once."""
    return tuple(_check(lock))


def _check(lock: Lock) -> Iterator[Finding]:
    cuda = _cuda(lock)
    for platform, wheels in lock.wheels.items():
        yield from _placeholders(platform, wheels)
        if cuda:
            yield from _mixed(platform, wheels, cuda)
            yield from _wrong_major(platform, wheels, cuda)
    for platform, packages in lock.conda.items():
        if cuda:
            yield from _mixed_conda(platform, packages, cuda, lock.channels)
        yield from _mixed_halves(platform, packages)


def _listed(platform: str, cuda: Version, found: list[Finding]) -> Iterator[Finding]:
    """Yield one finding for what has one cause: the packages of a platform that are of another release."""
    if len(found) <= 1:
        yield from found
        return
    names = [finding.subject.removesuffix(f" on {platform}") for finding in found]
    fixes = list(dict.fromkeys(finding.fix for finding in found))
    begin = f"{fixes[0].partition(': ')[0]}: "
    if len(fixes) > 1 and all(fix.startswith(begin) for fix in fixes):
        fixes = [begin + "; ".join(fix.removeprefix(begin) for fix in fixes)]
    yield replace(
        found[0],
        subject=f"{len(found)} packages on {platform}",
        message=f"are of another release than the toolkit, CUDA {cuda}: {', '.join(names)}",
        evidence=f"{found[0].evidence}, and {len(found) - 1} more",
        fix="; ".join(fixes),
    )


def mixed_releases(case: Case) -> Iterator[Finding]:
    """Yield one error per platform for the packages of the lock from another release than the target's CUDA."""
    lock, cuda = case.lock, _cuda(case.lock) if case.lock else None
    if lock is None or cuda is None:
        return
    for platform in dict.fromkeys((*lock.wheels, *lock.conda)):
        wheels, packages = lock.wheels.get(platform, ()), lock.conda.get(platform, ())
        found = [*_mixed(platform, wheels, cuda), *_mixed_conda(platform, packages, cuda, lock.channels)]
        yield from _listed(platform, cuda, found)


def placeholders(case: Case) -> Iterator[Finding]:
    """Yield one error per cause for the placeholder packages of the lock."""
    return _coded(case, PLACEHOLDER)


def wrong_major(case: Case) -> Iterator[Finding]:
    """Yield one error per cause for the packages of the lock that are built for another CUDA major."""
    return _coded(case, WRONG_MAJOR)


def mixed_halves(case: Case) -> Iterator[Finding]:
    """Yield one finding per cause for headers and static libraries from another release than their library."""
    return _coded(case, MIXED_HALVES)


def _coded(case: Case, code: str) -> Iterator[Finding]:
    """Yield the findings of a code; those that say the same of several packages are one with a list of these."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in check_lock(case.lock) if case.lock else ():
        if finding.code == code:
            platform, what = finding.subject.rpartition(" on ")[2], finding.message.partition(" (")[0]
            alike.setdefault((finding.severity, platform, what), []).append(finding)
    for (_, platform, what), found in alike.items():
        if len(found) == 1:
            yield from found
            continue
        yield replace(
            found[0],
            subject=f"{', '.join(one.subject.removesuffix(f' on {platform}') for one in found)} on {platform}",
            message=what,
            evidence="; ".join(dict.fromkeys(one.evidence for one in found)),
            fix="; ".join(dict.fromkeys(one.fix for one in found)),
        )


def _cuda(lock: Lock) -> Version | None:
    text = lock.requirements.get("cuda")
    return Version(text) if text else None


def numbered_with_toolkit(name: str) -> bool:
    """Return whether a conda package has the version of its toolkit (nvcc and cudart do, cuBLAS does not)."""
    return name not in _OTHER_NUMBERS and (name in _CONDA_NUMBERED or _PART.sub("", name) in _CONDA_NUMBERED)


def _mixed_conda(
    platform: str, packages: tuple[CondaPackage, ...], cuda: Version, channels: tuple[str, ...]
) -> Iterator[Finding]:
    for package in sorted(packages, key=lambda package: package.name not in _TOLD_FIRST):
        found = Version.find(package.version) if numbered_with_toolkit(package.name) else None
        if found and found.major_minor != cuda.major_minor:
            yield Finding(
                code=MIXED_RELEASES,
                severity=Severity.ERROR,
                subject=f"{package.name} {package.version} on {platform}",
                message=f"is from CUDA {found.major_minor} in a CUDA {cuda} toolkit",
                evidence=package.url,
                source="the versions of NVIDIA's conda packages, which begin with the version of their toolkit",
                fix=_conda_fix(package, packages, cuda, channels),
            )


def _conda_fix(
    package: CondaPackage, packages: tuple[CondaPackage, ...], cuda: Version, channels: tuple[str, ...]
) -> str:
    """Return the fix for a mixed toolkit: a pin, or channels that have the whole toolkit in one release."""
    if package.channel != _NVIDIA:
        return f'pin it in [dependencies]: {package.name} = "{cuda.major_minor}.*"'
    if cuda >= _CONDA_FORGE_FROM:
        where = "put" if _CONDA_FORGE in channels else "add"
        return (
            f'{where} "conda-forge" above "nvidia" in `channels`, and cuda-version = "{cuda.major_minor}.*" in '
            "[dependencies]: conda-forge's parts of CUDA then have one release"
        )
    release = next((row.version for row in packages if row.name == "cuda-toolkit"), f"{cuda.major_minor}.0")
    return f'put "nvidia/label/cuda-{release}" instead of "nvidia" in `channels`: it has only that release'


def _mixed_halves(platform: str, packages: tuple[CondaPackage, ...]) -> Iterator[Finding]:
    """Yield the headers and static libraries from another release than the library."""
    versions = {package.name: package for package in packages}
    for package in packages:
        match = _HALF.fullmatch(package.name)
        library = versions.get(match["library"]) if match else None
        if library is None or library.version == package.version or numbered_with_toolkit(package.name):
            continue  # packages with the toolkit's version have their own finding
        theirs, ours = Version.find(library.version), Version.find(package.version)
        same_minor = theirs is not None and ours is not None and theirs.major_minor == ours.major_minor
        yield Finding(
            code=MIXED_HALVES,
            severity=Severity.WARNING if same_minor else Severity.ERROR,
            subject=f"{package.name} {package.version} on {platform}",
            message=(
                f"is from another release than {library.name} {library.version}: code compiled with one's headers "
                "links the other's functions"
            ),
            evidence=f"{package.file}; {library.file}",
            source="the -dev and -static packages of a release match its own library",
            fix=f'set both to one version in [dependencies]: {package.name} = "{library.version}"',
        )


def _mixed(platform: str, wheels: tuple[Wheel, ...], cuda: Version) -> Iterator[Finding]:
    for wheel in wheels:
        found = Version.find(wheel.version)
        if wheel.name in NUMBERED_WITH_TOOLKIT and found and found.major_minor != cuda.major_minor:
            yield Finding(
                code=MIXED_RELEASES,
                severity=Severity.ERROR,
                subject=f"{wheel.name} on {platform}",
                message=f"is from CUDA {found.major_minor} in a CUDA {cuda} toolkit",
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
                message=f"version {wheel.version} is an empty placeholder ({wheel.size or '?'} bytes) without a "
                "library",
                evidence=wheel.file,
                source="the file's size on the index",
                fix=f"list {wheel.name} only for the platforms that have it: [platform.linux-64.pypi-dependencies]",
            )


def _wrong_major(platform: str, wheels: tuple[Wheel, ...], cuda: Version) -> Iterator[Finding]:
    for wheel in wheels:
        major = whole_number(wheel.name.rpartition("-cu")[2])
        if wheel.name.startswith("nvidia-") and major not in (None, cuda.major):
            yield Finding(
                code=WRONG_MAJOR,
                severity=Severity.ERROR,
                subject=f"{wheel.name} on {platform}",
                message=f"is built for CUDA {major}, but the target has CUDA {cuda}",
                evidence=wheel.file,
                source="the package's name",
                fix=f"use the package that ends in -cu{cuda.major}",
            )
