"""Choose the GPU architectures that an activation lists in `TORCH_CUDA_ARCH_LIST`."""

import re

from tenv.activation.changes import ACTIVATION, read_activation
from tenv.activation.variables import Archs
from tenv.checks.rules.common import KnownGpu, identify
from tenv.checks.rules.gpu import VARIABLE, in_range, misread
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.versions import Version
from tenv.host import amd, gpus
from tenv.host.collect import Scan
from tenv.host.installed_torch import InstalledTorch
from tenv.host.interface import Fact, Missing
from tenv.host.machine import sees_gpu
from tenv.host.places import Places
from tenv.install.creation import Creation

_CODE = re.compile(r"(sm|compute)_(\d{1,2})(\d[af]?)")


def chosen_archs(job: Creation) -> Archs | None:
    """Return the architectures to compile for if PyTorch can't detect them or detects some that nvcc rejects.

    None if nvcc compiles for all GPUs, if the release is unknown, or if the user sets the variable. For HIP, they are
    always listed.
    """
    return _rocm_archs(job) if job.toolchain.rocm else _cuda_archs(job)


def _cuda_archs(job: Creation) -> Archs | None:
    cuda = _cuda(job)
    if cuda is None or _says_archs(job):
        return None
    facts = job.context.facts()
    listed, left = in_range(_gpus(job), facts.cuda_gpu_arch.archs(cuda))
    if listed and left:
        names = ", ".join(dict.fromkeys(gpu.name for gpu in left))
        why = (
            f"nvcc of CUDA {cuda.major_minor} does not compile for every GPU that PyTorch detects: not for the {names}"
        )
        return Archs(tuple(map(str, listed)), why)
    if wrong := misread(listed):
        why = f"PyTorch's own detection, of every release up to 2.15, turns {wrong[0]} into 2.0, which nvcc refuses"
        return Archs(tuple(map(str, listed)), why)
    if sees_gpu():
        return None
    machine = "aarch64" if job.platform.endswith("aarch64") else "x86_64"
    found = facts.pytorch_build.newest_archs(cuda, machine)
    if found is None:
        return None
    why = (
        "no GPU is detected here, and PyTorch's fallback list does not work with this nvcc; these are the "
        f"architectures of its own wheels ({found[1].source})"
    )
    return Archs(found[0], why)


def _cuda(job: Creation) -> Version | None:
    from_machine = "cuda-toolkit" in job.toolchain.system
    return job.toolchain.cuda_version if from_machine else job.manifest.requirements.cuda


def detected_archs(job: Creation) -> tuple[str, ...]:
    """Return the architectures of this machine's NVIDIA GPUs that the target's nvcc compiles for, rising."""
    cuda, here = _cuda(job), _gpus(job)
    if cuda is None or (known := job.context.facts().cuda_gpu_arch.archs(cuda)) is None:
        return tuple(map(str, sorted({gpu.capability for gpu in here if gpu.capability is not None})))
    return tuple(map(str, in_range(here, known)[0]))


def _rocm_archs(job: Creation) -> Archs | None:
    """Return the architectures for HIP: of the GPUs here, else of AMD's list or PyTorch's wheels for this ROCm.

    LoadHIP.cmake stops where no GPU is detected and PYTORCH_ROCM_ARCH is not set.
    """
    around, known, rocm = job.__dict__.get("around"), job.toolchain.gfx, job.toolchain.rocm_version
    found = around.host.amd_gpus if around else amd.probe(Places(environ=job.context.environ))
    request = job.manifest.environment.get("HSA_OVERRIDE_GFX_VERSION")
    override = request.text if request else job.context.environ.get("HSA_OVERRIDE_GFX_VERSION")
    acting = amd.gfx_of_override(override or "")  # HIP loads code for the architecture that a GPU acts as
    here = [] if isinstance(found, Missing) else [acting or gpu.gfx for gpu in found.value if acting or gpu.gfx]
    if here:
        taken = tuple(gfx for gfx in dict.fromkeys(here) if not known or gfx in known)
        return Archs(taken, "the AMD GPUs of this machine that HIP's compiler takes") if taken else None
    if rocm is None:
        return None
    facts = job.context.facts().rocm
    row, wheels = facts.release(rocm), facts.wheels_of(rocm)
    listed, source = (row.gfx, row.basis.source) if row else (wheels.arch, wheels.basis.source) if wheels else ((), "")
    taken = tuple(gfx for gfx in listed if not known or gfx in known)
    of = "that AMD supports with" if row else "of PyTorch's wheels for"
    why = f"no AMD GPU is detected here, and PyTorch's CMake stops without a list; these are the GPUs {of} ROCm {rocm}"
    return Archs(taken, f"{why} ({source})") if taken else None


def archs_beside(job: Creation, torch: InstalledTorch) -> Archs | None:
    """Return the architectures of this machine's GPUs that nvcc compiles for; without a GPU, the torch's own.

    None for a torch without CUDA, and where neither is known.

    Args:
        job: The job of a toolkit beside another environment.
        torch: The torch there.
    """
    if not isinstance(torch.cuda, Fact):
        return None
    listed, _ = in_range(_gpus(job), job.context.facts().cuda_gpu_arch.archs(torch.cuda.value))
    if listed:
        return Archs(tuple(map(str, listed)), "the GPUs of this machine that nvcc compiles for")
    if isinstance(torch.gpu_code, Missing) or sees_gpu():
        return None
    found = [match for code in torch.gpu_code.value if (match := _CODE.fullmatch(code))]
    names = tuple(f"{match[2]}.{match[3]}{'+PTX' * (match[1] == 'compute')}" for match in found)
    why = f"no GPU is detected here; these are the architectures of torch {torch.label} ({torch.gpu_code.origin})"
    return Archs(names, why) if names else None


def _says_archs(job: Creation) -> bool:
    """Return whether the caller's environment sets the architectures, not the activation of this environment."""
    said = job.context.environ.get(VARIABLE, "")
    if not said or job.context.environ.get("TENV_PREFIX") != str(job.prefix):
        return bool(said)
    try:
        changes = read_activation(job.environment.meta / ACTIVATION).changes
    except EnvironmentBrokenError:
        return True
    return said not in [change.value for change in changes if change.name == VARIABLE]


def _gpus(job: Creation) -> list[KnownGpu]:
    """Return the GPUs of the host that the environment is for."""
    around = job.__dict__.get("around")  # without it, no rule has asked about the host
    if around is None and not sees_gpu():
        return []
    found = around.host.gpus if around else gpus.probe(Scan(Places(environ=job.context.environ)).nvidia)
    facts = around.facts if around else job.context.facts()
    return [] if isinstance(found, Missing) else [identify(gpu, facts) for gpu in found.value]
