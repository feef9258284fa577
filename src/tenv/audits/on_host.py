"""Whether what was built runs on a host."""

from collections.abc import Iterator

from tenv.audits.codes import audit_finding
from tenv.audits.library import Needs
from tenv.checks.rules.interface import Finding, Scope, Severity, Unknown
from tenv.core.versions import Version
from tenv.core.wheel_platforms import MACHINES
from tenv.facts.cuda_gpu_arch import sm_of
from tenv.facts.tables import Facts
from tenv.host.interface import Missing, ReasonKind
from tenv.host.report import HostReport

__all__ = ["host_findings", "runs"]

_NAMED = 5
_SYMBOLS = "man 8 ld.so; `readelf -V` prints the versions that a library requires"


def host_findings(needs: Needs, host: HostReport, facts: Facts) -> list[Finding]:
    """Return what is against running libraries on a host; what is not known of it is a note."""
    return [*_processor(needs, host), *_symbols(needs, host), *_driver(needs, host, facts), *_gpus(needs, host)]


def runs(findings: list[Finding]) -> bool | None:
    """Return whether libraries run on a host; None where the report lacks what decides it."""
    if any(finding.severity is Severity.ERROR for finding in findings):
        return False
    return None if any(finding.unknown for finding in findings) else True


def _unknown(code: str, what: str, field: str, missing: Missing, fix: str) -> Finding:
    return audit_finding(
        code,
        Severity.NOTE,
        what,
        "is unknown, so that nothing is said about it",
        missing.reason,
        f"the host report, value `{field}`",
        fix,
        Unknown(Scope.RUN, field),
    )


def _processor(needs: Needs, host: HostReport) -> Iterator[Finding]:
    if isinstance(host.platform, Missing) or not needs.machines:
        return
    has = MACHINES.get(host.platform.value, "")
    if not has or has in needs.machines:
        return
    yield audit_finding(
        "TE005",
        Severity.ERROR,
        ", ".join(needs.machines),
        f"is the processor that it was built for, and the host is {host.platform.value}",
        f"{host.platform.value} ({host.platform.origin})",
        "System V ABI, e_machine",
        "build it for this processor",
    )


def _symbols(needs: Needs, host: HostReport) -> Iterator[Finding]:
    """Yield the versions of the C and C++ libraries that the host lacks."""
    if not needs.machines or (not isinstance(host.platform, Missing) and host.platform.value.startswith("win")):
        return
    libc, cxx = host.libc, host.libstdcxx
    if "GLIBC" in needs.symbols:
        if isinstance(libc, Missing):
            yield _unknown("TE005", "the C library of the host", "libc", libc, "`tenv host --json` on that machine")
        else:
            yield from _older(needs, "GLIBC", libc.value, f"glibc {libc.value} ({libc.origin})")
    families = [name for name in ("GLIBCXX", "CXXABI") if name in needs.symbols]
    if needs.own_libstdcxx or not families:
        return
    if isinstance(cxx, Missing):
        yield _unknown("TE005", "the C++ library of the host", "libstdcxx", cxx, "`tenv host --json` on that machine")
        return
    for family in families:
        has = cxx.value.glibcxx if family == "GLIBCXX" else cxx.value.cxxabi
        yield from _older(needs, family, has, f"{cxx.value.path} has {family}_{has} at most ({cxx.origin})")


def _older(needs: Needs, family: str, has: Version, evidence: str) -> Iterator[Finding]:
    needed, by = needs.symbols[family]
    if needed > has:
        yield audit_finding(
            "TE005",
            Severity.ERROR,
            f"{family}_{needed}",
            f"is required, and the host has {family}_{has}: the loader refuses the library",
            f"{by} requires it; {evidence}",
            _SYMBOLS,
            "build against an older C library (a conda target has its own), or run it on a newer system"
            if family == "GLIBC"
            else "put a newer libstdc++ on the loader's path (a conda target brings one), or build with an older GCC",
        )


def _driver(needs: Needs, host: HostReport, facts: Facts) -> Iterator[Finding]:
    """Yield an error for a driver that is older than the CUDA run time needs."""
    if not needs.cuda:
        return
    cuda = Version(f"{min(needs.cuda)}.0")
    if isinstance(host.driver, Missing):
        fix = "`--assume-driver 580.65.06` judges by a driver"
        yield _unknown("TE006", "the NVIDIA driver of the host", "driver", host.driver, fix)
        return
    platform = "" if isinstance(host.platform, Missing) else host.platform.value
    wsl = not isinstance(host.wsl, Missing) and host.wsl.value is True  # the driver is then that of Windows
    minimum = facts.cuda_driver.floor(cuda, wsl or platform.startswith("win"))
    if minimum is None or host.driver.value >= minimum.driver:
        return
    yield audit_finding(
        "TE006",
        Severity.ERROR,
        f"driver {host.driver.value}",
        f"does not run programs that are linked with the run time of CUDA {cuda.major}: {minimum.driver} does",
        f"driver {host.driver.value} ({host.driver.origin}); libcudart.so.{cuda.major}",
        minimum.basis.source,
        f"update the driver to {minimum.driver} or newer",
    )


def _gpus(needs: Needs, host: HostReport) -> Iterator[Finding]:
    """Yield the GPUs for which no library, or not every library, has code."""
    if not needs.code:
        return
    if isinstance(host.gpus, Missing):
        yield _unknown("TE007", "the GPU of the host", "gpus", host.gpus, "`--assume-gpu NAME` judges by a GPU")
        return
    if not host.gpus.value:
        none = Missing.because(ReasonKind.NONE)
        yield _unknown("TE007", "the GPU of the host", "gpus", none, "`--assume-gpu NAME` judges by a GPU")
    named = {gpu.compute_capability: gpu.name for gpu in host.gpus.value if gpu.compute_capability is not None}
    for capability, name in named.items():
        without = [row for row in needs.code if not row.code.serves(sm_of(capability))]
        if not without:
            continue
        nowhere = len(without) == len(needs.code)
        shown = ", ".join(row.path for row in without[:_NAMED])
        more = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
        codes = sorted({code for row in without for code in row.code.cubin})
        ptx = sorted({code for row in without for code in row.code.ptx})
        yield audit_finding(
            "TE007",
            Severity.ERROR if nowhere else Severity.WARNING,
            f"{name or 'a GPU'} (compute capability {capability})",
            "has no code in any library: kernels end with `no kernel image is available`"
            if nowhere
            else "has no code in some libraries, whose kernels can't run on it",
            f"{shown}{more}: sm {', '.join(map(str, codes)) or 'none'}; PTX {', '.join(map(str, ptx)) or 'none'}",
            "CUDA C++ Programming Guide, chapter on binary and PTX compatibility",
            f"build with TORCH_CUDA_ARCH_LIST that has {capability}, or an older one with `+PTX`",
        )
