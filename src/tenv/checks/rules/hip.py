"""Check ROCm of the host: its driver, the GPUs, its compiler, its parts, and the PyTorch to build.

``tenv/facts/data/rocm.toml`` has AMD's lists. A release, a GPU or a pair that a list lacks is not listed, which is a
warning and no error: the lists hold AMD's support, and more works. Errors follow from the end of a build or a
program: a compiler that does not know the GPU, a part that LoadHIP.cmake requires, a rocBLAS without kernels, code
for other architectures alone.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from tenv.checks.rules.common import chosen_rocm, doubt
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.checks.rules.judged_driver import under_wsl
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing, ReasonKind
from tenv.host.report import AmdGpu, Lead, Rocm

DRIVER = "TE116"
NO_GPU = "TE117"
UNLISTED = "TE208"
REFUSED = "TE209"
KERNELS = "TE210"
CODE = "TE211"
PARTS = "TE315"
CORE = "TE316"
BESIDE_CUDA = "TE317"
OFF = "TE318"
PYTORCH = "TE616"

ARCHS = "PYTORCH_ROCM_ARCH"
OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_SWITCH = "USE_ROCM"
_GENERIC = {
    "gfx9-generic": r"gfx90[02469c]",
    "gfx9-4-generic": r"gfx94[0-2]|gfx950",
    "gfx10-1-generic": r"gfx101[0-3]",
    "gfx10-3-generic": r"gfx103[0-6]",
    "gfx11-generic": r"gfx11[05][0-3]",
    "gfx12-generic": r"gfx120[01]",
}
"""The architectures that run generic code (LLVM, User Guide for AMDGPU Backend, generic processors)."""
_OFF = ("0", "OFF", "NO", "FALSE", "N")


def _taken(case: Case) -> tuple[Rocm, Version] | None:
    """Return the ROCm that the target uses, with its release; None if it uses none or the host has none that fits."""
    choice = chosen_rocm(case)
    found = choice.taken if choice else None
    return (found, found.version) if found and found.version else None


def _setting(case: Case, name: str) -> str:
    """Return a variable of the build: the manifest's, else the caller's; an empty string without one."""
    request = case.manifest.environment.get(name)
    return (request.text or "") if request else case.exported.get(name, "")


def _acting(case: Case) -> str:
    """Return the architecture that all GPUs act as, by HSA_OVERRIDE_GFX_VERSION; empty without a usable value."""
    if not (text := _setting(case, OVERRIDE)):
        return ""
    from tenv.host.amd import gfx_of_override  # late: few set the variable

    return gfx_of_override(text)


def _gpus(case: Case) -> tuple[AmdGpu, ...]:
    """Return the AMD GPUs with the architectures that they act as, one of each; those without one are left out."""
    if isinstance(case.host.amd_gpus, Missing):
        return ()
    acting = _acting(case)
    gpus = [replace(gpu, gfx=acting or gpu.gfx) for gpu in case.host.amd_gpus.value]
    return tuple({gpu.gfx: gpu for gpu in gpus if gpu.gfx}.values())


def _archs(case: Case) -> list[str]:
    """Return the architectures of PYTORCH_ROCM_ARCH without their features."""
    words = re.split(r"[;,\s]+", _setting(case, ARCHS))
    return [word.partition(":")[0] for word in words if word.startswith("gfx")]


def _label(gpu: AmdGpu) -> str:
    return f"{gpu.name} ({gpu.gfx})" if gpu.name else gpu.gfx


def _seen(case: Case) -> str:
    if isinstance(case.host.amd_gpus, Missing):
        return ""
    acting = _acting(case)
    acts = f" and act as {acting} by {OVERRIDE}={_setting(case, OVERRIDE)}" if acting else ""
    return f"the GPUs are by {case.host.amd_gpus.origin}{acts}"


def driver_unlisted(case: Case) -> Iterator[Finding]:
    """Yield a warning if AMD does not list the ROCm with the driver.

    The version of the kernel module is not AMD's name of the driver; nothing follows from one without a known name.
    """
    taken, driver = _taken(case), case.host.amd_driver
    if taken is None or isinstance(driver, Missing):
        return
    rows = case.facts.rocm.driver(driver.value)
    if rows is None or rows[1].lists(taken[1]):
        return
    module, row = rows
    yield Finding(
        code=DRIVER,
        severity=Severity.WARNING,
        subject=f"amdgpu {driver.value}",
        message=f"is AMD's driver {module.driver}, which AMD does not list with ROCm {taken[1]}"
        + doubt(module.basis, row.basis),
        evidence=f"{driver.value} ({driver.origin})",
        source=row.basis.source,
        fix=f"install a driver that AMD lists with it, or one of ROCm {', '.join(row.rocm)}; the pair may work",
    )


def no_amd_gpu(case: Case) -> Iterator[Finding]:
    """Yield an error if the user can use no AMD GPU; under WSL and for want of a value, a warning without a verdict."""
    if "rocm" not in case.manifest.system:
        return
    missing = case.host.amd_gpus
    if isinstance(missing, Fact):
        yield from _closed(case)
        return
    wsl = under_wsl(case.host)
    none = missing.kind is ReasonKind.NONE and not wsl
    message = "was not looked for, so that nothing is known about running"
    if wsl:
        message = (
            "is not visible to tenv under WSL, where ROCm uses /dev/dxg without KFD; nothing is known about running"
        )
    elif none:
        message = "is not visible, so that HIP finds no device (hipErrorNoDevice)"
    yield Finding(
        code=NO_GPU,
        severity=Severity.ERROR if none else Severity.WARNING,
        subject="AMD GPU",
        message=message,
        evidence=missing.reason,
        source="AMD's ROCm on WSL: librocdxg in place of KFD"
        if wsl
        else "KFD lists each GPU that ROCm can use (rocm_agent_enumerator)",
        fix="look for the GPU in the output of `rocminfo`"
        if wsl
        else "load the module amdgpu (`modprobe amdgpu`); in a container: `--device=/dev/kfd --device=/dev/dri`",
        unknown=None if none else Unknown(Scope.RUN, "amd_gpus"),
    )


def _closed(case: Case) -> Iterator[Finding]:
    """Yield an error if the user may not open /dev/kfd; a report without the value decides nothing."""
    kfd = case.host.kfd
    if isinstance(kfd, Missing) and kfd.kind is ReasonKind.NONE and not under_wsl(case.host):
        yield Finding(
            code=NO_GPU,
            severity=Severity.ERROR,
            subject="/dev/kfd",
            message="is missing beside the GPU, so that HIP finds no device (hipErrorNoDevice)",
            evidence=kfd.reason,
            source="ROCm opens /dev/kfd; a container shows /sys of the host without its devices",
            fix="in a container: `--device=/dev/kfd --device=/dev/dri`",
        )
    if isinstance(kfd, Missing) or kfd.value.opens:
        return
    group = kfd.value.group
    yield Finding(
        code=NO_GPU,
        severity=Severity.ERROR,
        subject="/dev/kfd",
        message="can't be opened by this user, so that HIP finds no device (hipErrorNoDevice)",
        evidence=f"{kfd.origin}: group {group}, without access for this user",
        source="ROCm opens /dev/kfd for reading and writing",
        fix=f"add the user to its group (`usermod -aG {group} USER`) and log in again; in a container: "
        f"`--group-add {group}`",
    )


def gpu_unlisted(case: Case) -> Iterator[Finding]:
    """Yield a warning for each GPU that AMD does not list for the ROCm, or for a release without a list.

    A GPU that acts as another one by HSA_OVERRIDE_GFX_VERSION is judged as itself: AMD lists no GPU that acts.
    """
    taken = _taken(case)
    if taken is None or isinstance(case.host.amd_gpus, Missing):
        return
    row = case.facts.rocm.release(taken[1])
    for gpu in {gpu.gfx: gpu for gpu in case.host.amd_gpus.value if gpu.gfx}.values():
        if row is None or gpu.gfx not in row.gfx:
            yield Finding(
                code=UNLISTED,
                severity=Severity.WARNING,
                subject=_label(gpu),
                message=f"is not in AMD's list for ROCm {taken[1]}; it may work"
                if row
                else f"is not known to work with ROCm {taken[1]}, which tenv's tables do not list",
                evidence=f"ROCm {taken[1]} in {taken[0].path}; {_seen(case)}",
                source=row.basis.source if row else "`tenv facts rocm`",
                fix="nothing, if it works; otherwise install a ROCm that lists the GPU (`tenv facts rocm`)",
            )


def gpu_refused(case: Case) -> Iterator[Finding]:
    """Yield an error for each architecture of the build that HIP's compiler does not compile for.

    The list is PYTORCH_ROCM_ARCH, else the GPUs. It is a warning for one of several GPUs: `create` lists the
    others. Generic names (``gfx11-generic``) are neither in the compiler's list nor in the names of its libraries.
    """
    taken = _taken(case)
    if taken is None:
        return
    text, named = _setting(case, ARCHS), _archs(case)
    asked = [gfx for gfx in dict.fromkeys(named or [gpu.gfx for gpu in _gpus(case)]) if not gfx.endswith("-generic")]
    rocm, row = taken[0], case.facts.rocm.compiler(taken[0].hip or taken[1])
    known = rocm.compiles if rocm.compiles is not None else row.takes if row else ()
    refused = [gfx for gfx in asked if (gfx not in known if rocm.compiles is not None else row and gfx in row.refuses)]
    for gfx in refused:
        yield Finding(
            code=REFUSED,
            severity=Severity.ERROR if named or len(refused) == len(asked) else Severity.WARNING,
            subject=gfx,
            message=f"is not known to the compiler of ROCm {taken[1]} or its device libraries; compiling for it fails",
            evidence=f"{f'{ARCHS}={text}' if named else _seen(case)}; {rocm.clang or rocm.path} compiles for "
            f"{', '.join(known)}",
            source="`clang++ --print-supported-cpus` and the names of the device libraries"
            if rocm.compiles is not None or row is None
            else row.basis.source,
            fix=f"install a newer ROCm (`tenv facts rocm`), or set {ARCHS} to architectures that it compiles for",
        )


def without_kernels(case: Case) -> Iterator[Finding]:
    """Yield an error for each GPU that rocBLAS has no kernels for, if it has kernels for others.

    It is a warning beside a GPU with kernels: a program may use that one alone. A report without the parts of the ROCm
    has no files of rocBLAS either; the table of AMD's packages stands in for them.
    """
    taken = _taken(case)
    if taken is None:
        return
    rocm, gpus = taken[0], _gpus(case)
    row = None if rocm.kernels or rocm.parts else case.facts.rocm.rocblas(taken[1])
    kernels = rocm.kernels or (row.gfx if row else ())
    of = f"of AMD's packages of ROCm {taken[1]}" if row else f"in {rocm.path}"
    lacking = [gpu for gpu in gpus if kernels and gpu.gfx not in kernels]
    for gpu in lacking:
        yield Finding(
            code=KERNELS,
            severity=Severity.ERROR if len(lacking) == len(gpus) else Severity.WARNING,
            subject=_label(gpu),
            message="has no kernels in rocBLAS: the first matrix product ends the program "
            "(`Cannot read TensileLibrary.dat`)",
            evidence=f"rocBLAS {of} has kernels for {', '.join(kernels)}; {_seen(case)}",
            source=row.basis.source if row else "rocBLAS loads its kernels by architecture from rocblas/library",
            fix="install a ROCm whose rocBLAS has kernels for it; for a GPU of the same family, "
            "HSA_OVERRIDE_GFX_VERSION names the one to act as",
        )


def without_code(case: Case) -> Iterator[Finding]:
    """Yield an error for each GPU that none of the named architectures runs on: HIP translates no code.

    It is a warning beside a GPU with code.
    """
    named = _archs(case)
    if _taken(case) is None or not named:
        return
    gpus = _gpus(case)
    code = re.compile("|".join(_GENERIC.get(name) or re.escape(name) for name in named))
    lacking = [gpu for gpu in gpus if not code.fullmatch(gpu.gfx)]
    for gpu in lacking:
        yield Finding(
            code=CODE,
            severity=Severity.ERROR if len(lacking) == len(gpus) else Severity.WARNING,
            subject=_label(gpu),
            message=f"runs none of the code of this build: {ARCHS} names {', '.join(named)} "
            "(`HIP error: invalid device function`)",
            evidence=f"{ARCHS}={_setting(case, ARCHS)}; {_seen(case)}",
            source="HIP loads code of the GPU's own architecture or of its generic one (LLVM, AMDGPU Backend)",
            fix=f"add {gpu.gfx} to {ARCHS}, or unset it",
        )


def without_parts(case: Case) -> Iterator[Finding]:
    """Yield an error for the parts that PyTorch's LoadHIP.cmake requires and the ROCm lacks."""
    taken, source = _taken(case), case.source
    if taken is None or source is None or not taken[0].parts:
        return
    from tenv.host.rocms import PARTS as KNOWN_PARTS  # late: only for a PyTorch to build with ROCm

    rocm, have = taken[0], {name for name, _ in taken[0].parts}
    by_cmake = rocm.hip if rocm.derived and rocm.hip else taken[1]
    row = case.facts.rocm.required(source.release)
    if source.rocm_parts:
        needed = [part.name for part in source.rocm_parts if part.applies(by_cmake)]
        origin = f"{source.root}/cmake/public/LoadHIP.cmake"
    else:
        needed, origin = list(row.packages) if row else [], row.basis.source if row else ""
    gone = [name for name in dict.fromkeys(needed) if name in KNOWN_PARTS and name not in have]
    if gone:
        yield Finding(
            code=PARTS,
            severity=Severity.ERROR,
            subject=f"ROCm {taken[1]}",
            message=f"has no CMake package of {', '.join(gone)}, without which PyTorch {source.version.value} can't be "
            "configured with ROCm",
            evidence=f"{rocm.path} has {', '.join(sorted(have))}",
            source=origin,
            fix="install them (AMD's packages rocm-libs, miopen-hip-dev, hipblaslt-dev …; Debian has neither hipblaslt "
            "nor miopen)",
        )


def without_core(case: Case) -> Iterator[Finding]:
    """Yield a warning for a ROCm without rocm-core, whose release LoadHIP.cmake takes from HIP with its patch."""
    taken = _taken(case)
    if taken is None or not taken[0].derived or taken[0].hip is None:
        return
    hip = taken[0].hip
    yield Finding(
        code=CORE,
        severity=Severity.WARNING,
        subject=f"ROCm {taken[1]}",
        message=f"has no rocm-core: PyTorch's CMake takes HIP's number {hip} for ROCm's, and its patch number makes "
        "each test for a newer ROCm hold (`ROCM_VERSION >= 70200`)",
        evidence=f"{taken[0].path} has include/hip/hip_version.h and no rocm_version.h",
        source="cmake/public/LoadHIP.cmake of PyTorch's trunk of June 2026; run on Debian 13",
        fix="install rocm-core, where the distribution has it, or AMD's packages",
    )


def beside_cuda(case: Case) -> Iterator[Finding]:
    """Yield a warning if a target with CUDA is built where PyTorch's CMake finds a ROCm, too."""
    rocms = case.host.rocms
    if case.manifest.requirements.cuda is None or isinstance(rocms, Missing) or "rocm" in case.manifest.system:
        return
    seen = [one for one in rocms.value if one.led_by(Lead.ROCM_VARIABLE, Lead.ROCM_SDK, Lead.DEFAULT_FOLDER)]
    if not seen or _setting(case, _SWITCH).upper() in _OFF:
        return
    yield Finding(
        code=BESIDE_CUDA,
        severity=Severity.WARNING,
        subject=f"ROCm {seen[0].version or ''}".strip(),
        message="is found by PyTorch's CMake beside CUDA: USE_ROCM is on by default on Linux",
        evidence=f"{seen[0].path}, by {seen[0].ways}",
        source="cmake/public/LoadHIP.cmake; option USE_ROCM of PyTorch's CMakeLists.txt",
        fix="set USE_ROCM=0 for this build, or use the target rocm-system for one with ROCm",
    )


def switched_off(case: Case) -> Iterator[Finding]:
    """Yield an error if USE_ROCM is off for a target with ROCm: activation keeps the value."""
    switch = _setting(case, _SWITCH)
    if "rocm" not in case.manifest.system or switch.upper() not in _OFF:
        return
    whose = "the manifest" if _SWITCH in case.manifest.environment else "the caller's environment"
    yield Finding(
        code=OFF,
        severity=Severity.ERROR,
        subject=f"{_SWITCH}={switch}",
        message="turns ROCm off for a target with ROCm: activation keeps the value, and PyTorch is built without ROCm",
        evidence=f"{_SWITCH}={switch} in {whose}",
        source="option USE_ROCM of PyTorch's CMakeLists.txt",
        fix=f"unset {_SWITCH}, or use a target without ROCm",
    )


def pytorch_unlisted(case: Case) -> Iterator[Finding]:
    """Yield a warning if PyTorch published no wheels of the release for the ROCm, which its CI then did not build."""
    taken, source = _taken(case), case.source
    row = case.facts.rocm.pytorch(source.release) if source else None
    if taken is None or source is None or row is None:
        return
    if any(taken[1].major_minor == one.major_minor for one in row.rocm):
        return
    yield Finding(
        code=PYTORCH,
        severity=Severity.WARNING,
        subject=f"PyTorch {source.version.value}",
        message=f"was not published for ROCm {taken[1].major_minor}, but for {', '.join(map(str, row.rocm))}"
        + doubt(row.basis),
        evidence=f"ROCm {taken[1]} in {taken[0].path}",
        source=row.basis.source,
        fix=f"install one of ROCm {', '.join(map(str, row.rocm))}, or try: others may build",
    )
