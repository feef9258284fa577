"""Whether the CUDA packages of a lock belong together.

The ``cuda-toolkit`` metapackage pins the components of a release as a set, nearly: 13.0.3 and 13.2.2 leave nvJitLink
loose, so that a 13.5 comes in, and some packages exist on a platform only as an empty placeholder. What the lock holds
is therefore checked. Of conda packages the nvidia channel pins less still: its cuda-toolkit 12.1.0 asks for
``cuda-compiler >=12.1.0``, and an nvcc 12.8.61 comes in.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.names import channel_url
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
"""The same of conda-forge and of the nvidia channel, without the parts that packages are split into."""

_TOLD_FIRST = frozenset(("cuda-nvcc", "cuda-cudart", "cuda-version"))
_NVIDIA = channel_url("nvidia")
_CONDA_FORGE = channel_url("conda-forge")
_CONDA_FORGE_FROM = Version("12.0")
"""The first CUDA that conda-forge has in parts, as against cudatoolkit in one piece, without a compiler."""

_OTHER_NUMBERS = frozenset(("cuda-cccl-impl",))
_PART = re.compile(r"(-(dev|static|impl|tools))?(_(linux|win|osx)-\w+)?$")
_HALF = re.compile(r"(?P<library>lib[\w.]+|cudnn|nccl|cuda-[\w-]+?)-(dev|static)(_(linux|win|osx)-\w+)?")

_METADATA = "the requirements of the cuda-toolkit wheels on PyPI"
_EMPTY_WHEEL = 20_000
"""Bytes; the placeholder wheels of NVIDIA hold a README and no library."""


@lru_cache(maxsize=8)
def check_lock(lock: Lock) -> tuple[Finding, ...]:
    """Return what is wrong with the CUDA packages of a lock, platform by platform; a lock is judged once."""
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
    """Yield an error a platform for the packages of the lock that are of another release than the target's CUDA."""
    lock, cuda = case.lock, _cuda(case.lock) if case.lock else None
    if lock is None or cuda is None:
        return
    for platform in dict.fromkeys((*lock.wheels, *lock.conda)):
        wheels, packages = lock.wheels.get(platform, ()), lock.conda.get(platform, ())
        found = [*_mixed(platform, wheels, cuda), *_mixed_conda(platform, packages, cuda, lock.channels)]
        yield from _listed(platform, cuda, found)


def placeholders(case: Case) -> Iterator[Finding]:
    """Yield an error for each package of the lock that holds nothing."""
    return _coded(case, PLACEHOLDER)


def wrong_major(case: Case) -> Iterator[Finding]:
    """Yield an error for each package of the lock that is made for another CUDA major."""
    return _coded(case, WRONG_MAJOR)


def mixed_halves(case: Case) -> Iterator[Finding]:
    """Yield what is of another release than the library that it is the headers or the static form of."""
    return _coded(case, MIXED_HALVES)


def _coded(case: Case, code: str) -> Iterator[Finding]:
    return (finding for finding in (check_lock(case.lock) if case.lock else ()) if finding.code == code)


def _cuda(lock: Lock) -> Version | None:
    text = lock.requirements.get("cuda")
    return Version(text) if text else None


def numbered_with_toolkit(name: str) -> bool:
    """Tell whether NVIDIA numbers a conda package with the toolkit (nvcc and cudart are, cuBLAS is not)."""
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
                message=f"is of CUDA {found.major_minor} inside a CUDA {cuda} toolkit",
                evidence=package.url,
                source="the numbers of NVIDIA's conda packages, which begin with those of their toolkit",
                fix=_conda_fix(package, packages, cuda, channels),
            )


def _conda_fix(
    package: CondaPackage, packages: tuple[CondaPackage, ...], cuda: Version, channels: tuple[str, ...]
) -> str:
    """Return what puts a mixed toolkit right: a pin, or channels where the whole toolkit is of one release."""
    if package.channel != _NVIDIA:
        return f'pin it in [dependencies]: {package.name} = "{cuda.major_minor}.*"'
    if cuda >= _CONDA_FORGE_FROM:
        where = "put" if _CONDA_FORGE in channels else "add"
        return (
            f'{where} "conda-forge" above "nvidia" in `channels`, and cuda-version = "{cuda.major_minor}.*" in '
            "[dependencies]: that holds conda-forge's parts of CUDA together"
        )
    release = next((row.version for row in packages if row.name == "cuda-toolkit"), f"{cuda.major_minor}.0")
    return f'put "nvidia/label/cuda-{release}" in the place of "nvidia" in `channels`: it has that release alone'


def _mixed_halves(platform: str, packages: tuple[CondaPackage, ...]) -> Iterator[Finding]:
    """Yield the headers and static libraries that are of another release than the library itself."""
    versions = {package.name: package for package in packages}
    for package in packages:
        match = _HALF.fullmatch(package.name)
        library = versions.get(match["library"]) if match else None
        if library is None or library.version == package.version or numbered_with_toolkit(package.name):
            continue  # what is numbered with the toolkit is told as such
        theirs, ours = Version.find(library.version), Version.find(package.version)
        same_minor = theirs is not None and ours is not None and theirs.major_minor == ours.major_minor
        yield Finding(
            code=MIXED_HALVES,
            severity=Severity.WARNING if same_minor else Severity.ERROR,
            subject=f"{package.name} {package.version} on {platform}",
            message=(
                f"is of another release than {library.name} {library.version}: what compiles with the headers of the "
                "one calls the functions of the other"
            ),
            evidence=f"{package.file}; {library.file}",
            source="the -dev and -static packages of a release are made for its own library",
            fix=f'ask for both in one version in [dependencies]: {package.name} = "{library.version}"',
        )


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
