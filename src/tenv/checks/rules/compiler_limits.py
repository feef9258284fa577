"""Which host compilers nvcc of the target's toolkit accepts, with the source of each limit.

nvcc's ``crt/host_config.h`` stops with an ``#error`` outside its bounds. If a toolkit of the target's release is
present, its header is read: the environment's before a system's. Otherwise the table holds what NVIDIA's packages
have.
"""

from tenv.checks.rules.common import cuda_of, doubt
from tenv.checks.rules.interface import Case
from tenv.core.dataclass import dataclass
from tenv.facts.cuda_host_compiler import HostCompilers
from tenv.host.interface import Missing
from tenv.host.report import CompilerLimits

__all__ = ["Bound", "header_of", "msvc_bounds", "newest", "row_of"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A version limit of nvcc.

    Attributes:
        value: The newest major version; of MSVC, a ``_MSC_VER``.
        detail: The suffix of a message, with a leading space, or an empty string.
        source: The source of the limit.
    """

    value: int
    detail: str
    source: str


def row_of(case: Case) -> HostCompilers | None:
    """Return the table's row for the target's CUDA, None if there is none."""
    cuda = cuda_of(case)
    return case.facts.cuda_host_compiler.limits(cuda) if cuda else None


def header_of(case: Case) -> CompilerLimits | None:
    """Return the bounds in the header of a present toolkit with the target's release; None if there is none."""
    cuda = cuda_of(case)
    if cuda is None or isinstance(case.host.toolkits, Missing):
        return None
    same = (row for row in case.host.toolkits.value if row.version and row.version.major_minor == cuda.major_minor)
    return next((row.compilers for row in same if row.compilers), None)


def newest(case: Case, kind: str) -> Bound | None:
    """Return the newest major version of GCC (`g++`) or clang (`clang++`) that nvcc accepts; None if unknown."""
    header, row = header_of(case), row_of(case)
    said = (header.gcc_max if kind == "g++" else header.clang_max) if header else None
    if header and said is not None:
        return Bound(said, "", header.file)
    if row is None:
        return None
    if kind != "g++":
        return Bound(row.clang_max.major, doubt(row.basis), row.basis.source)
    detail = f" ({row.gcc_max_detail.rstrip('.')})" if row.gcc_max_detail else ""
    return Bound(row.gcc_max, f"{detail}{doubt(row.basis)}", row.basis.source)


def msvc_bounds(case: Case) -> tuple[Bound, Bound] | None:
    """Return the lowest ``_MSC_VER`` that nvcc accepts and the lowest that is too new; None if unknown."""
    header, row = header_of(case), row_of(case)
    if header and header.msvc_min is not None and header.msvc_below is not None:
        return Bound(header.msvc_min, "", header.file), Bound(header.msvc_below, "", header.file)
    if row is None:
        return None
    detail, source = doubt(row.basis), row.basis.source
    return Bound(row.msvc_min, detail, source), Bound(row.msvc_below, detail, source)
