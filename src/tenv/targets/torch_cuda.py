"""The CUDA release of a torch wheel, and the toolkit of a target that follows it: ``[requirements] cuda = "torch"``."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tenv.core.names import normalize
from tenv.core.versions import CondaRange, Range, Version
from tenv.core.wheel_platforms import evaluated, marker_values
from tenv.targets.manifest import CONDA_TORCHES, ArchiveRequest, CondaRequest, Manifest, WheelRequest
from tenv.targets.torch_beside import BesideTorch

_LABEL = re.compile(r"\+cu(\d{2,3})(\d)\b")
_RUNTIMES = re.compile(r"(cuda-toolkit|nvidia-cuda-runtime(-cu\d+)?)")
"""The requirements with the version of CUDA: the first from torch 2.11 on, the other before."""


def torch_cuda(version: str, requires: Iterable[str], platform: str, python: str) -> Version | None:
    """Return the CUDA release of a torch wheel, major and minor; None for one without CUDA.

    A wheel of PyTorch's own index has the release in its version, ``2.9.1+cu126``. One of the Python package index
    pins the CUDA runtime.

    Args:
        version: Its version.
        requires: Its requirements.
        platform: The platform.
        python: The Python minor.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # late: only for a target with torch

    if label := _LABEL.search(version):
        return Version(f"{label[1]}.{label[2]}")
    if "+" in version:
        return None
    values = marker_values(platform, python)
    for line in requires:
        try:
            asked = Requirement(line)
        except InvalidRequirement:
            continue
        here = asked.marker is None or evaluated(asked.marker, values)
        if here and _RUNTIMES.fullmatch(normalize(asked.name)) and (found := Version.find(str(asked.specifier))):
            return Version(found.major_minor)
    return None


_BUILD = re.compile(r"(?:^|_)cuda(\d{1,2})\.?(\d)(?!\d)", re.ASCII)


def conda_torch_cuda(build: str) -> Version | None:
    """Return the CUDA release of a conda package of torch by its build string; None for one without CUDA.

    conda-forge writes ``cuda129_mkl_py312_h0d04637_301``, the channel pytorch ``py3.12_cuda12.4_cudnn9.1.0_0``.
    """
    match = _BUILD.search(build)
    return Version(f"{match[1]}.{match[2]}") if match else None


_WHOLE_WHEELS = 13
"""The first CUDA major whose wheels hold nvcc: nvidia-cuda-nvcc-cu12 has ptxas and no compiler driver."""

_COMPILER = ("cccl", "crt", "cudart", "nvcc", "nvjitlink", "nvrtc", "nvtx", "nvvm", "profiler")
"""The extras of cuda-toolkit that nvcc, ``torch.utils.cpp_extension`` and ``find_package(Torch)`` need.

nvcc includes crt and cudart and starts cicc of nvvm; both link cudart; TorchConfig.cmake looks for nvrtc and nvtx.
"""

_CONDA = {
    "cccl": "cuda-cccl",
    "cublas": "libcublas-dev",
    "cudart": "cuda-cudart-dev",
    "cufft": "libcufft-dev",
    "cufile": "libcufile-dev",
    "curand": "libcurand-dev",
    "cusolver": "libcusolver-dev",
    "cusparse": "libcusparse-dev",
    "nvcc": "cuda-nvcc",
    "nvjitlink": "libnvjitlink-dev",
    "nvml": "cuda-nvml-dev",
    "nvrtc": "cuda-nvrtc-dev",
    "nvtx": "cuda-nvtx-dev",
    "profiler": "cuda-profiler-api",
}
"""The packages of conda-forge with the parts of CUDA, by the extra of cuda-toolkit; cuda-nvcc brings crt and nvvm."""


def follow(manifest: Manifest, cuda: Version | None) -> Manifest:
    """Return a manifest whose CUDA follows torch with the release of a torch, and with the toolkit for it.

    Wheels hold the toolkit from CUDA 13 on, NVIDIA's archives before; a target whose Python or torch is a conda package
    has the parts of conda-forge. A toolkit that the manifest asks for itself stays.

    Args:
        manifest: The manifest; one that has followed a torch before follows the other one.
        cuda: The CUDA release of the torch; None while there is no lock.
    """
    if not manifest.requirements.cuda_from:
        return manifest
    base = replace(manifest.unfollowed or manifest, features=manifest.features, inherited=manifest.inherited)
    if cuda is None:
        return base
    from tenv.facts.tables import load_facts  # late: only for a target that follows torch

    parts = sorted({*_COMPILER, *load_facts().torch_headers.parts_for(cuda)})

    def laid(view: Manifest) -> Manifest:
        return _with_toolkit(replace(view, requirements=replace(view.requirements, cuda=cuda)), cuda, parts)

    views = {platform: laid(view) for platform, view in base.by_platform.items()}
    return replace(laid(base), by_platform=views, unfollowed=base)


_OWN = frozenset({"cccl", "crt", "cudart", "nvcc", "nvvm", "profiler"})
"""The parts of a toolkit beside another environment that tenv installs even where that environment has them."""

_LINKING = frozenset({"cublas", "cufft", "cusolver", "cusparse", "nvjitlink"})
"""The parts whose wheels require nvJitLink, of any release."""

_OLDEST_OF_CONDA = Version("12.0")
"""The first CUDA that conda-forge has in parts."""

_REDIST = {
    "cccl": "cuda_cccl",
    "cublas": "libcublas",
    "cudart": "cuda_cudart",
    "cufft": "libcufft",
    "curand": "libcurand",
    "cusolver": "libcusolver",
    "cusparse": "libcusparse",
    "nvcc": "cuda_nvcc",
    "nvjitlink": "libnvjitlink",
    "nvml": "cuda_nvml_dev",
    "nvrtc": "cuda_nvrtc",
    "nvtx": "cuda_nvtx",
    "profiler": "cuda_profiler_api",
}
"""The components of NVIDIA's archives with the parts of CUDA; cuda_nvcc holds crt and nvvm before CUDA 13."""


def follow_beside(manifest: Manifest, torch: BesideTorch) -> Manifest:
    """Return a manifest with the CUDA release of the torch beside it, and the parts that are not taken from there.

    Args:
        manifest: The manifest; one that has followed a torch before follows the other one.
        torch: The torch.
    """
    base = replace(manifest.unfollowed or manifest, features=manifest.features, inherited=manifest.inherited)
    cuda = torch.cuda
    if cuda is None:

        def plain(view: Manifest) -> Manifest:
            return replace(view, requirements=replace(view.requirements, cuda_from=""))

        views = {platform: plain(view) for platform, view in base.by_platform.items()}
        return replace(plain(base), by_platform=views, unfollowed=base)
    from tenv.facts.tables import load_facts  # late: only for a target that follows torch

    needed = {*_COMPILER, *load_facts().torch_headers.parts_for(cuda)}
    parts = sorted(needed - (torch.held - _OWN))

    def laid(view: Manifest) -> Manifest:
        view = replace(view, requirements=replace(view.requirements, cuda=cuda))
        if view.dependencies and cuda >= _OLDEST_OF_CONDA:
            return _with_conda(view, cuda, sorted(needed))
        if cuda.major >= _WHOLE_WHEELS:
            return _with_wheels(view, cuda, parts)
        named = tuple(_REDIST[part] for part in parts if part in _REDIST)
        known = tuple(name for name in named if cuda >= _OLDEST_OF_CONDA or name != "libnvjitlink")
        asked = ArchiveRequest(f"{cuda.major_minor}.*", components=known)
        return replace(view, archives={"cuda": asked, **view.archives})

    views = {platform: laid(view) for platform, view in base.by_platform.items()}
    return replace(laid(base), by_platform=views, unfollowed=base)


def _with_toolkit(view: Manifest, cuda: Version, parts: Sequence[str]) -> Manifest:
    release = f"{cuda.major_minor}.*"
    if {"cuda-toolkit", "cuda", "cuda-nvcc"} & {*view.system, *view.archives, *view.wheels, *view.dependencies}:
        return view
    if {"python", *CONDA_TORCHES} & {*view.dependencies}:
        return _with_conda(view, cuda, parts)
    if cuda.major < _WHOLE_WHEELS:
        return replace(view, archives={"cuda": ArchiveRequest(version=release), **view.archives})
    return _with_wheels(view, cuda, parts)


def _with_conda(view: Manifest, cuda: Version, parts: Sequence[str]) -> Manifest:
    named = [_CONDA[part] for part in parts if part in _CONDA]
    packages = {"cuda-version": CondaRequest(CondaRange(f"{cuda.major_minor}.*"))}
    packages |= dict.fromkeys(named, CondaRequest(CondaRange("*")))
    return replace(view, dependencies={**packages, **view.dependencies})


def _with_wheels(view: Manifest, cuda: Version, parts: Sequence[str]) -> Manifest:
    release = Range(f"{cuda.major_minor}.*")
    asked = {"cuda-toolkit": WheelRequest(release, tuple(parts))}
    if _LINKING & {*parts}:  # the metapackage pins all parts but nvJitLink
        asked["nvidia-nvjitlink"] = WheelRequest(release)
    return replace(view, wheels={**asked, **view.wheels})
