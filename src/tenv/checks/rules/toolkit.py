"""Check that the CUDA packages of a lock belong together and have the parts that PyTorch needs to compile.

The ``cuda-toolkit`` metapackage pins almost all components of a release: 13.0.3 and 13.2.2 do not pin nvJitLink, so
that 13.5 is resolved, and some packages exist on a platform only as an empty placeholder. The nvidia channel of conda
pins even less: its cuda-toolkit 12.1.0 requires ``cuda-compiler >=12.1.0``, which resolves to nvcc 12.8.61.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.core.names import channel_url
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.locks.lock import CondaPackage, Lock, Wheel
from tenv.locks.wheel_requirement import requirement_of
from tenv.targets.manifest import Manifest, request_for_torch
from tenv.targets.torch_beside import find_beside
from tenv.targets.torch_cuda import conda_torch_cuda, torch_cuda

MIXED_RELEASES = "TE301"
PLACEHOLDER = "TE302"
WRONG_MAJOR = "TE303"
MIXED_HALVES = "TE306"
NVRTC = "TE310"
NVCC = "TE312"
WAITS = "TE313"
CPU_TORCH = "TE314"

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


@lru_cache(maxsize=32)
def check_lock(lock: Lock) -> tuple[Finding, ...]:
    """Return the findings about the CUDA packages of a lock for each platform; several rules read them."""
    return tuple(_check(lock))


def _check(lock: Lock) -> Iterator[Finding]:
    cuda = _cuda(lock)
    for platform, wheels in lock.wheels.items():
        yield from _placeholders(platform, wheels)
        if cuda:
            yield from _mixed(platform, wheels, cuda)
            yield from _wrong_major(platform, wheels, cuda)
            yield from _other_torch(platform, wheels, cuda, lock.target)
    for platform, packages in lock.conda.items():
        if cuda:
            yield from _mixed_conda(platform, packages, cuda, lock.channels)
            yield from _other_conda_torch(platform, packages, cuda)
        yield from _mixed_halves(platform, packages)


def _listed(platform: str, cuda: Version, found: list[Finding]) -> Iterator[Finding]:
    """Yield one finding for one cause: the packages of a platform that are of another release."""
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
        ending = f" on {platform}"
        found = [one for one in check_lock(lock) if one.code == MIXED_RELEASES and one.subject.endswith(ending)]
        yield from _listed(platform, cuda, found)


def placeholders(case: Case) -> Iterator[Finding]:
    """Yield one error per cause for the placeholder packages of the lock."""
    return _coded(case, PLACEHOLDER)


def wrong_major(case: Case) -> Iterator[Finding]:
    """Yield one error per cause for the packages of the lock that are built for another CUDA major."""
    return _coded(case, WRONG_MAJOR)


def cpu_torch(case: Case) -> Iterator[Finding]:
    """Yield one error per cause for a torch without CUDA, or of another release, in a target with CUDA."""
    return _coded(case, CPU_TORCH)


def mixed_halves(case: Case) -> Iterator[Finding]:
    """Yield one finding per cause for headers and static libraries from another release than their library."""
    return _coded(case, MIXED_HALVES)


def _coded(case: Case, code: str) -> Iterator[Finding]:
    """Yield the findings of a code; equal findings about several packages are one with a list of these."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in check_lock(case.lock) if case.lock else ():
        if finding.code == code:
            platform, fault = finding.subject.rpartition(" on ")[2], finding.message.partition(" (")[0]
            alike.setdefault((finding.severity, platform, fault), []).append(finding)
    for (_, platform, fault), found in alike.items():
        if len(found) == 1:
            yield from found
            continue
        yield replace(
            found[0],
            subject=f"{', '.join(one.subject.removesuffix(f' on {platform}') for one in found)} on {platform}",
            message=fault,
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
        found = Version.find(wheel.version) if wheel.name in NUMBERED_WITH_TOOLKIT else None
        if found and found.major_minor != cuda.major_minor:
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
            right = f"{wheel.name.rpartition('-cu')[0]}-cu{cuda.major}"
            both = _brought_with(wheels, wheel.name, right)
            if both and any(row.name == right for row in wheels):
                continue
            yield Finding(
                code=WRONG_MAJOR,
                severity=Severity.ERROR,
                subject=f"{wheel.name} on {platform}",
                message=f"is built for CUDA {major}, but the target has CUDA {cuda}",
                evidence=wheel.file,
                source="the package's name",
                fix=f"request {both}, which brings {right}"
                if both
                else f"use the package that ends in -cu{cuda.major}",
            )


def _brought_with(wheels: tuple[Wheel, ...], name: str, other: str) -> str:
    """Return the package that always brings a package, with its extra that brings another one; empty without one.

    Such a package has files of several CUDA majors beside each other: nvidia-cutlass-dsl 4.8.1 requires its libraries
    for CUDA 12, and its extra cu13 those for CUDA 13.
    """
    for wheel in wheels:
        rows = [row for text in wheel.requires or () if (row := requirement_of(text))]
        if any(row.name == name and not row.named for row in rows):
            extras = [extra for row in rows if row.name == other for extra in sorted(row.named)]
            if extras:
                return f"{wheel.name}[{extras[0]}]"
    return ""


def _other_torch(platform: str, wheels: tuple[Wheel, ...], cuda: Version, target: str) -> Iterator[Finding]:
    for wheel in wheels:
        if wheel.name != "torch" or wheel.requires is None or Version(wheel.version.partition("+")[0]) < _REQUIRING:
            continue
        found = torch_cuda(wheel.version, wheel.requires, platform, wheel.python[0])
        if found and found.major_minor == cuda.major_minor:
            continue
        has = f"is built for CUDA {found}" if found else "is built without CUDA"
        yield Finding(
            code=CPU_TORCH,
            severity=Severity.ERROR,
            subject=f"torch {wheel.version} on {platform}",
            message=f"{has}, and the target has CUDA {cuda}",
            evidence=wheel.file,
            source="the wheel's version and its requirements",
            fix=f"`tenv add {target} torch` names the newest torch with CUDA {cuda.major_minor} and its edits",
        )


def _without_torch(case: Case) -> Finding:
    """Return the finding for a toolkit beside an environment whose torch is not there."""
    found = find_beside(Path(case.manifest.beside))
    return Finding(
        code=WAITS,
        severity=Severity.WARNING,
        subject=case.manifest.beside,
        message="has no torch that the CUDA release can follow: driver, GPUs and compilers are judged when it has one",
        evidence=found.reason if isinstance(found, Missing) else f"`for` of {case.manifest.file}",
        source="the manifest",
        fix=f"install torch there, or remove the target: `tenv remove {case.manifest.name}`",
        unknown=Unknown(Scope.BOTH, "torch_headers"),
    )


def _other_conda_torch(platform: str, packages: tuple[CondaPackage, ...], cuda: Version) -> Iterator[Finding]:
    for torch in packages:
        found = conda_torch_cuda(torch.build)
        if torch.name != "pytorch" or (found and found.major == cuda.major) or (not found and "gpu" in torch.build):
            continue
        has = f"is built for CUDA {found}" if found else "is built without CUDA"
        yield Finding(
            code=CPU_TORCH,
            severity=Severity.ERROR,
            subject=f"pytorch {torch.version} {torch.build} on {platform}",
            message=f"{has}, and the target has CUDA {cuda}",
            evidence=torch.file,
            source="the package's build string",
            fix=f'[dependencies] asks for one: pytorch = {{ version = "*", build = "*cuda{cuda.major}*" }}',
        )


def waits_for_torch(case: Case) -> Iterator[Finding]:
    """Yield a finding for a target whose CUDA comes from a torch that is not locked yet."""
    if not case.manifest.requirements.waits:
        return
    if case.manifest.beside:
        yield _without_torch(case)
        return
    request = request_for_torch(case.manifest)
    torch = request.version if request else "*"
    yield Finding(
        code=WAITS,
        severity=Severity.WARNING,
        subject=f"torch {torch}",
        message="is not locked, and the CUDA release is that of the locked torch: driver, GPUs and compilers are "
        "judged after that",
        evidence=f"requirements.cuda of {case.manifest.file}",
        source="the manifest",
        fix=f"`tenv lock {case.manifest.name}` selects torch and the toolkit of its CUDA",
        unknown=Unknown(Scope.BOTH, "torch_headers"),
    )


_REQUIRING = Version("2.0")
"""The first torch whose wheels with CUDA require NVIDIA's; older ones hold the libraries themselves."""

_SOURCE = "aten/src/ATen/cuda/nvrtc_stub/ATenNVRTC.h of github.com/pytorch/pytorch includes nvrtc.h"


def without_nvrtc(case: Case) -> Iterator[Finding]:
    """Yield a finding where conda-forge's nvcc comes without the header of NVRTC.

    conda-forge has each part of the toolkit in its own packages, the header in ``cuda-nvrtc-dev``. Other channels and
    wheels have other layouts and are not judged.
    """
    packages = case.lock.conda.get(case.platform, ()) if case.lock else ()
    names = {package.name for package in packages}
    nvcc = next((package for package in packages if package.name.startswith("cuda-nvcc_")), None)
    archives = case.lock.archives.get(case.platform, ()) if case.lock else ()
    if nvcc is None or "cuda-nvrtc-dev" in names or any("nvrtc" in archive.url for archive in archives):
        return
    yield Finding(
        code=NVRTC,
        severity=Severity.ERROR,
        subject="cuda-nvrtc-dev",
        message=(
            "is not in the lock: PyTorch does not compile without the NVRTC header; extensions that do not "
            "include it compile"
        ),
        evidence=nvcc.url,
        source=_SOURCE,
        fix=f'add it to [dependencies] and lock again: cuda-nvrtc-dev = "{".".join(nvcc.version.split(".")[:2])}.*"',
    )


_RUNTIMES = ("nvidia-cuda-runtime", "cuda-cudart", "cudatoolkit", "cuda_cudart")
"""How the CUDA runtime's files are named: as wheel, as conda package (before CUDA 11.5 the second) and as archive."""
_COMPILERS = ("cuda-nvcc", "cuda-nvcc-impl", "cuda-nvcc-tools", "nvidia-cuda-nvcc", "cuda_nvcc")
_TORCHES = frozenset(("torch", "pytorch", "libtorch"))
_FIRST_WHOLE_WHEELS = 13
"""The first CUDA major whose wheels hold nvcc itself: nvidia-cuda-nvcc-cu12 has ptxas and no compiler driver."""


def _sole_runtime(lock: Lock, platform: str) -> str:
    """Return the package with the CUDA runtime of a lock that has no nvcc; empty for another lock."""
    conda, archives = lock.conda.get(platform, ()), lock.archives.get(platform, ())
    wheels = lock.wheels.get(platform, ())
    names = [*(one.name for one in conda), *(one.name for one in wheels), *(one.name for one in archives)]
    nvcc = any(name in _COMPILERS or name.startswith("cuda-nvcc_") for name in names)
    if nvcc or any("cuda_nvcc" in archive.url for archive in archives):
        return ""
    return next((name for name in names if name.startswith(_RUNTIMES)), "")


def compiles_no_cuda(lock: Lock, manifest: Manifest, platform: str) -> bool:
    """Return whether a lock has the CUDA runtime for the programs in it alone: for its torch, or by no request.

    Such an environment compiles no CUDA code, and needs no compiler for that.
    """
    here = manifest.on(platform)
    if not _sole_runtime(lock, platform) or "cuda-toolkit" in here.system:
        return False
    there = {row.name for row in lock.wheels.get(platform, ())} | {row.name for row in lock.conda.get(platform, ())}
    asked = (*here.wheels, *here.dependencies, *here.archives)
    return bool(there & _TORCHES) or not any(name.startswith(("cuda", "nvidia-cuda")) for name in asked)


def without_nvcc(case: Case) -> Iterator[Finding]:
    """Yield a finding where a target with CUDA locks the CUDA runtime and no nvcc, from whatever source.

    Targets that take the toolkit from the host are not judged by their lock.
    """
    cuda = case.manifest.requirements.cuda
    if case.lock is None or cuda is None or "cuda-toolkit" in case.manifest.system:
        return
    conda, wheels = case.lock.conda.get(case.platform, ()), case.lock.wheels.get(case.platform, ())
    runtime = _sole_runtime(case.lock, case.platform)
    if not runtime:
        return
    release = ".".join(str(cuda).split(".")[:2])
    if any(package.name == runtime for package in conda):
        fix = f'add it to [dependencies] and lock again: cuda-nvcc = "{release}.*"'
    elif int(release.split(".")[0]) >= _FIRST_WHOLE_WHEELS and any(wheel.name == runtime for wheel in wheels):
        fix = f'add it to [pypi-dependencies] and lock again: nvidia-cuda-nvcc = "{release}.*"'
    else:
        fix = f'take the toolkit from [archives] and lock again: cuda = "{release}.*"'
    yield Finding(
        code=NVCC,
        severity=Severity.ERROR,
        subject="nvcc",
        message=f"is not in the lock: it holds the runtime of CUDA {release} and no compiler, so no CUDA code compiles",
        evidence=f"{runtime} in the lock for {case.platform}",
        source="https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/",
        fix=fix,
    )
