"""Which CUDA goes before a newer one that a revision of PyTorch and the host's system both leave aside."""

from tenv.checks.before_create import Surroundings
from tenv.core.versions import Version
from tenv.facts.pytorch_build import Release
from tenv.host.interface import Fact

__all__ = ["is_stable", "why_aside"]


def why_aside(cuda: Version, around: Surroundings) -> str:
    """Return why a CUDA that builds and runs goes after an older one; an empty string for one that does not.

    That takes both: the revision's release calls the CUDA experimental, and has no wheels with it on the index, and
    NVIDIA packages that CUDA for no system with the host's glibc. One of them alone is no reason to use an older one.

    Args:
        cuda: The release of the toolkit.
        around: The host and the PyTorch revision.
    """
    row, libc = _release(around), around.host.libc
    if row is None or not isinstance(libc, Fact) or not _among(cuda, row.cuda_experimental):
        return ""
    ended = around.facts.cuda_host_compiler.ended(cuda, libc.value)
    if ended is None or is_stable(cuda, around):
        return ""
    return (
        f"PyTorch {row.version.major_minor} calls CUDA {cuda.major_minor} experimental, and NVIDIA packages none after "
        f"{ended.last} for {ended.system} (glibc {ended.glibc})"
    )


def is_stable(cuda: Version, around: Surroundings) -> bool:
    """Return whether the revision's release calls a CUDA stable, or has wheels with it on the index."""
    row = _release(around)
    return row is not None and _among(cuda, (*row.cuda_stable, *([row.wheel_cuda] if row.wheel_cuda else [])))


def _release(around: Surroundings) -> Release | None:
    """Return the row of the revision's minor release; None without a revision, or if the table has no such release."""
    row = around.facts.pytorch_build.release(around.source.version.value) if around.source else None
    same = row and around.source and row.version.major_minor == around.source.release.major_minor
    return row if same else None


def _among(cuda: Version, others: tuple[Version, ...]) -> bool:
    return any(other.major_minor == cuda.major_minor for other in others)
