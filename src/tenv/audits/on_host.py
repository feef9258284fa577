"""Where a build runs: on a host, and by its symbols on every system of a manylinux tag.

Sources: PEP 600; the table of symbol versions of auditwheel 6.8 (``manylinux-policy.json``, read on 2026-11-22), which
holds the versions of the distributions behind each tag.
"""

from collections.abc import Iterable, Iterator, Mapping

from tenv.audits.library import Needs, audit_finding
from tenv.checks.rules.interface import Finding, Scope, Severity, Unknown
from tenv.core.dataclass import dataclass
from tenv.core.names import platform_tags
from tenv.core.size_text import some_of
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.core.wheel_platforms import MACHINES
from tenv.facts.cuda_gpu_arch import sm_of
from tenv.facts.tables import Facts
from tenv.host.interface import Missing, ReasonKind
from tenv.host.report import HostReport

_FAMILIES = ("GLIBC", "GLIBCXX", "CXXABI", "GCC")
_POLICIES = (
    ("2.5", "3.4.8", "1.3.1", "4.2.0"),
    ("2.12", "3.4.13", "1.3.3", "4.3.0"),
    ("2.17", "3.4.19", "1.3.7", "4.8.0"),
    ("2.24", "3.4.22", "1.3.10", "4.8.0"),
    ("2.26", "3.4.22", "1.3.10", "4.8.0"),
    ("2.27", "3.4.24", "1.3.11", "7.0.0"),
    ("2.28", "3.4.24", "1.3.11", "7.0.0"),
    ("2.31", "3.4.28", "1.3.12", "7.0.0"),
    ("2.34", "3.4.29", "1.3.13", "7.0.0"),
    ("2.35", "3.4.30", "1.3.13", "12.0.0"),
    ("2.38", "3.4.30", "1.3.13", "12.0.0"),
    ("2.39", "3.4.33", "1.3.14", "14.0.0"),
    ("2.41", "3.4.33", "1.3.15", "14.0.0"),
)
"""The highest version of each family that a tag allows, oldest tag first."""
_LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}

ALLOWED = frozenset(
    {
        *("libatomic.so.1", "libgcc_s.so.1", "libstdc++.so.6", "libm.so.6", "libmvec.so.1", "libanl.so.1"),
        *("libdl.so.2", "librt.so.1", "libc.so.6", "libnsl.so.1", "libutil.so.1", "libpthread.so.0"),
        *("libX11.so.6", "libXext.so.6", "libXrender.so.1", "libICE.so.6", "libSM.so.6", "libGL.so.1"),
        *("libgobject-2.0.so.0", "libgthread-2.0.so.0", "libglib-2.0.so.0", "libresolv.so.2"),
        *("libexpat.so.1", "libz.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-linux.so.2"),
        *("ld64.so.2"),
    }
)
"""The libraries that every tag expects of the system."""


@dataclass(frozen=True, slots=True)
class TagAnswer:
    """The oldest tag."""

    glibc: Version | None
    """The glibc of the tag; None where no tag allows the symbols."""
    tag: str
    """The tag, or ``linux_x86_64`` where none is allowed."""
    because: str
    """The symbol version that decides it; empty without one."""
    outside: tuple[str, ...]
    """The libraries that no tag expects of the system and that are not brought along."""


def tag_answer(needs: Mapping[str, Version], machine: str, outside: Iterable[str]) -> TagAnswer:
    """Return the oldest tag that allows the highest symbol versions of some libraries.

    Args:
        needs: The highest version of each family of symbols (``GLIBC``, ``GLIBCXX`` …).
        machine: The processor.
        outside: The libraries that are needed and not brought along.
    """
    left = tuple(sorted(set(outside) - ALLOWED))
    decided = Version("2.17" if machine != "x86_64" else "2.5")
    because = ""
    for number, family in enumerate(_FAMILIES):
        needed = needs.get(family)
        if needed is None:
            continue
        tag = _first(number, needed)
        if tag is None:
            return TagAnswer(None, f"linux_{machine}", f"{family}_{needed}", left)
        if tag > decided:
            decided, because = tag, f"{family}_{needed}"
    return TagAnswer(decided, f"manylinux_{decided.major}_{decided.minor}_{machine}", because, left)


def _first(number: int, needed: Version) -> Version | None:
    """Return the glibc of the oldest tag that allows a version; of glibc itself there are tags without a row."""
    for row in _POLICIES:
        if needed <= Version(row[number]):
            return max(Version(row[0]), needed) if number == 0 and needed > Version("2.17") else Version(row[0])
    return needed if number == 0 else None


def tags_of_name(name: str) -> tuple[tuple[str, Version], ...]:
    """Return the manylinux tags in the name of a wheel, each with the glibc that it promises."""
    found = []
    for tag in platform_tags(name):
        words = tag.split("_")
        major, minor = map(whole_number, (*words[1:3], "", "")[:2])
        if words[0] == "manylinux" and words[3:] and major is not None and minor is not None:
            found.append((tag, Version(f"{major}.{minor}")))
        elif words[0] in _LEGACY:
            found.append((tag, Version(_LEGACY[words[0]])))
    return tuple(found)


_NAMED = 5
_SYMBOLS = "man 8 ld.so; `readelf -V` prints the versions that a library requires"


def host_findings(needs: Needs, host: HostReport, facts: Facts) -> list[Finding]:
    """Return the findings against running libraries on a host; an unknown value is a note."""
    return [*_processor(needs, host), *_symbols(needs, host), *_driver(needs, host, facts), *_gpus(needs, host)]


def runs(findings: list[Finding]) -> bool | None:
    """Return whether libraries run on a host; None where the report lacks a value that decides it."""
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
    wsl = not isinstance(host.wsl, Missing) and host.wsl.value is True  # then the driver is the one of Windows
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
        shown = some_of([row.path for row in without], _NAMED)
        codes = sorted({code for row in without for code in row.code.cubin})
        ptx = sorted({code for row in without for code in row.code.ptx})
        yield audit_finding(
            "TE007",
            Severity.ERROR if nowhere else Severity.WARNING,
            f"{name or 'a GPU'} (compute capability {capability})",
            "has no code in any library: kernels end with `no kernel image is available`"
            if nowhere
            else "has no code in some libraries, whose kernels can't run on it",
            f"{shown}: sm {', '.join(map(str, codes)) or 'none'}; PTX {', '.join(map(str, ptx)) or 'none'}",
            "CUDA C++ Programming Guide, chapter on binary and PTX compatibility",
            f"build with TORCH_CUDA_ARCH_LIST that has {capability}, or an older one with `+PTX`",
        )
