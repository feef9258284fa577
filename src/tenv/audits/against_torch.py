"""Hold an extension against a torch: symbols, C++ ABI, CUDA, GPU code and glibc, and whether it uses the stable ABI.

Torch's C++ interface changes with each release; an extension loads where the libraries of that torch define every
symbol that it wants of it. The functions in C of ``torch/csrc/stable`` and of AOTInductor's shim stay as they are.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tenv.audits.audited_tree import open_tree
from tenv.audits.library import AuditedFile, Needs, audit_finding, torch_symbols
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.elf import CxxAbi, ElfFaultError, open_elf
from tenv.core.size_text import some_of
from tenv.facts.cuda_gpu_arch import GpuArch
from tenv.host.installed_torch import InstalledTorch
from tenv.host.interface import Fact, Missing
from tenv.host.torch_files import TorchPlace

_NAMED = 5
_LIBRARIES = ("libc10*.so*", "libtorch*.so*", "libshm.so*")
_MODULE = re.compile(r"\.(?:cpython-(\d{2,4}t?)-[\w-]+|(abi3))\.so$", re.ASCII)
"""The end of the name of an extension module on Linux: PEP 3149, and the stable interface (PEP 384)."""
_STABLE = ("aoti_torch_", "torch_")


@dataclass(frozen=True, slots=True)
class TorchAudit:
    """An extension held against a torch."""

    torch: InstalledTorch
    """The torch."""
    wanted: int
    """The number of symbols that the extension wants of torch."""
    missing: tuple[str, ...] | None
    """Those that this torch lacks; None where its libraries can't be read."""
    stable: bool | None
    """Whether it uses torch's stable ABI alone; None where it wants nothing of torch."""
    pythons: tuple[str, ...]
    """The Pythons that its modules are for: ``cp312``, ``abi3`` for Python's stable ABI."""
    findings: tuple[Finding, ...]
    """Its faults."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        missing = None if self.missing is None else list(self.missing)
        return {
            "version": self.torch.label,
            "place": self.torch.place,
            "wanted": self.wanted,
            "missing": missing,
            "stable_abi": self.stable,
            "python_abi": list(self.pythons),
        }


def libraries_of_torch(torch: InstalledTorch) -> list[Path]:
    """Return the libraries of an installed torch that extensions are linked with; none of a wheel or a version."""
    folders = [Path(torch.place) / "lib", *([Path(torch.prefix) / "lib"] if torch.prefix else [])]
    found = [path for folder in folders for name in _LIBRARIES for path in sorted(folder.glob(name))]
    return [path for path in found if path.is_file()]


def audit_against_torch(libraries: Sequence[AuditedFile], needs: Needs, torch: InstalledTorch) -> TorchAudit:
    """Return an extension held against a torch."""
    wanted = frozenset[str]().union(*(row.torch.wanted for row in libraries if row.torch))
    own = frozenset[str]().union(*(row.torch.defined for row in libraries if row.torch))
    wanted -= own
    missing = _missing(wanted, torch)
    stable = all(name.startswith(_STABLE) for name in wanted) if wanted else None
    pythons = _pythons(libraries)
    findings = [
        *_symbols(wanted, missing, torch),
        *_python(pythons, torch),
        *_abi(libraries, torch),
        *_cuda(needs, torch),
        *_code(needs, torch),
        *_glibc(needs, torch),
    ]
    missed = None if missing is None else tuple(sorted(missing))
    return TorchAudit(torch, len(wanted), missed, stable, pythons, tuple(findings))


def _missing(wanted: frozenset[str], torch: InstalledTorch) -> frozenset[str] | None:
    """Return the symbols that no library of a torch defines; None where none of them can be read."""
    left, read = set(wanted), False
    for defined in _defined(torch):
        left -= defined
        read = True
        if not left:  # the largest library of a wheel need not be unpacked
            break
    return frozenset(left) if read else None


def _defined(torch: InstalledTorch) -> Iterator[frozenset[str]]:
    """Yield the symbols that each library of a torch defines, of a wheel too."""
    for path in libraries_of_torch(torch):
        try:
            with open_elf(path) as file:
                yield torch_symbols(file.data).defined
        except (OSError, ElfFaultError):
            continue
    wheel = Path(torch.place)
    if torch.where is TorchPlace.WHEEL and wheel.is_file():
        for part in open_tree(wheel).libraries([f"torch/lib/{name}" for name in _LIBRARIES]):
            with suppress(ElfFaultError):
                yield torch_symbols(part.data).defined if part.data else frozenset()


def _pythons(libraries: Iterable[AuditedFile]) -> tuple[str, ...]:
    found = (match for row in libraries if (match := _MODULE.search(row.path)))
    return tuple(sorted({match[2] or f"cp{match[1]}" for match in found}))


def _python(pythons: Sequence[str], torch: InstalledTorch) -> Iterator[Finding]:
    """Yield an error for modules of another Python than torch's."""
    if isinstance(torch.python, Missing) or not pythons or {torch.python.value, "abi3"} & {*pythons}:
        return
    yield audit_finding(
        "TE014",
        Severity.ERROR,
        ", ".join(pythons),
        f"is the Python of its modules, and torch {torch.label} is for {torch.python.value}: the import finds none",
        torch.python.origin,
        "PEP 3149; PEP 425",
        f"a wheel of the extension for {torch.python.value}, or a build by that Python",
    )


def _symbols(wanted: Iterable[str], missing: frozenset[str] | None, torch: InstalledTorch) -> Iterator[Finding]:
    if not missing:
        return
    names = sorted(missing)
    yield audit_finding(
        "TE013",
        Severity.ERROR,
        f"torch {torch.label}",
        f"lacks {len(names)} of the {len(set(wanted))} symbols that the extension wants of torch: its import fails "
        "with `undefined symbol`",
        some_of(names, _NAMED),
        "the dynamic symbols of both (System V ABI, chapter 5)",
        f"a wheel for torch {torch.release}, or a build: pip install --no-build-isolation --no-binary NAME NAME",
    )


def _abi(libraries: Iterable[AuditedFile], torch: InstalledTorch) -> Iterator[Finding]:
    abi = torch.cxx11_abi
    if isinstance(abi, Missing):
        return
    other = CxxAbi.OLD if abi.value else CxxAbi.NEW
    found = [row.path for row in libraries if row.elf and row.elf.cxx_abi is other]
    if found:
        yield audit_finding(
            "TE010",
            Severity.ERROR,
            ", ".join(found[:_NAMED]),
            f"was compiled with _GLIBCXX_USE_CXX11_ABI={other.value}, and torch {torch.label} with {int(abi.value)}",
            abi.origin,
            "GCC manual of libstdc++, Dual ABI",
            f"compile it with _GLIBCXX_USE_CXX11_ABI={int(abi.value)}, or take the wheel with that ABI in its name",
        )


def _cuda(needs: Needs, torch: InstalledTorch) -> Iterator[Finding]:
    if not needs.cuda:
        return
    linked = " and ".join(f"libcudart.so.{major}" for major in needs.cuda)
    if isinstance(torch.cuda, Missing):
        yield _other_cuda(linked, f"and torch {torch.label} has no CUDA", torch)
    elif needs.cuda != (torch.cuda.value.major,):
        yield _other_cuda(linked, f"and torch {torch.label} is of CUDA {torch.cuda.value}", torch)


def _other_cuda(linked: str, what: str, torch: InstalledTorch) -> Finding:
    origin = torch.cuda.origin if isinstance(torch.cuda, Fact) else torch.cuda.reason
    return audit_finding(
        "TE012",
        Severity.ERROR,
        linked,
        f"is linked, {what}: two CUDA run times in one process share no stream and no memory",
        origin,
        "CUDA Driver API, contexts; DT_NEEDED of the extension",
        f"a wheel of the extension for the CUDA of torch {torch.label}, or compile it with that toolkit",
    )


def _code(needs: Needs, torch: InstalledTorch) -> Iterator[Finding]:
    """Yield a warning for the GPUs that torch has code for, and the extension none that runs there."""
    if isinstance(torch.gpu_code, Missing) or not needs.code:
        return
    asked = [int(name.removeprefix("sm_").rstrip("af")) for name in torch.gpu_code.value if name.startswith("sm_")]
    lacking = [number for number in asked if not any(row.code.serves(number) for row in needs.code)]
    if lacking:
        yield audit_finding(
            "TE008",
            Severity.WARNING,
            ", ".join(f"sm_{GpuArch(number)}" for number in lacking),
            f"has code in torch {torch.label}, and none in the extension: its kernels fail on such GPUs with `no "
            "kernel image is available`",
            "; ".join(f"{row.path}: {' '.join(map(str, row.code.cubin))}" for row in needs.code[:_NAMED]),
            torch.gpu_code.origin,
            "where such a GPU is meant: compile the extension with TORCH_CUDA_ARCH_LIST",
        )


def _glibc(needs: Needs, torch: InstalledTorch) -> Iterator[Finding]:
    row = needs.symbols.get("GLIBC")
    if row is None or isinstance(torch.glibc, Missing) or row[0] <= torch.glibc.value:
        return
    yield audit_finding(
        "TE005",
        Severity.NOTE,
        f"glibc {row[0]}",
        f"is needed by {row[1]}, and torch {torch.label} runs on {torch.glibc.value}: fewer systems load the extension",
        f"GLIBC_{row[0]} in {row[1]}",
        torch.glibc.origin,
        f"where older systems count: build in a container with glibc {torch.glibc.value}",
    )
