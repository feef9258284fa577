"""tenv's note on a build, beside it or in its package, compared with the build and its target."""

import json
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from tenv.audits.audited_tree import AuditedKind, AuditedTree, read_note
from tenv.audits.library import AuditedFile, Needs, audit_finding
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.names import infos_of
from tenv.environment.built_torch import NOTE
from tenv.facts.cuda_gpu_arch import GpuArch, asked_codes, unserved


@dataclass(frozen=True, slots=True)
class BuildNote:
    """Where a build came from."""

    target: str
    """The target."""
    lock: str = ""
    """The digest of its lock."""
    prefix: str = ""
    """The environment that built it."""
    commit: str = ""
    """The commit of the checkout, with ``+changes`` where files were changed."""
    version: str = ""
    """The version of PyTorch."""
    architectures: str = ""
    """The value of TORCH_CUDA_ARCH_LIST; empty where it was not set."""
    values: dict[str, Any] = field(default_factory=dict)
    """All of it, as it was written."""


def note_of(raw: bytes | None) -> BuildNote | None:
    """Return the origin of a build; None for bytes that are no such note."""
    if raw is None:
        return None
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not isinstance(values.get("target"), str):
        return None

    def text(key: str) -> str:
        value = values.get(key)
        return value if isinstance(value, str) else ""

    switches = values.get("switches")
    archs = switches.get("TORCH_CUDA_ARCH_LIST", "") if isinstance(switches, dict) else ""
    return BuildNote(
        text("target"),
        text("lock"),
        text("prefix"),
        text("commit"),
        text("version"),
        archs if isinstance(archs, str) else "",
        values,
    )


def find_note(tree: AuditedTree) -> BuildNote | None:
    """Return the origin of an audited build, from the note in it, beside its package, or in its checkout."""
    inside = (name for name in tree.files if name.rpartition("/")[2] == NOTE)
    found = [note for name in inside if (note := note_of(tree.note(name)))]
    if found or tree.kind is AuditedKind.WHEEL:
        return next(iter(found), None)
    folder = tree.path if tree.kind is AuditedKind.FOLDER else tree.path.parent
    for place in (folder, *list(folder.parents)[:3]):  # torch/lib/libtorch.so is two folders below its package's
        notes = [*place.glob(f"{infos_of('torch')}/{NOTE}"), *place.glob(f".tenv/builds/*/{NOTE}")]
        for path in sorted(notes, key=_time, reverse=True):
            if note := note_of(read_note(path)):
                return note
    return None


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@dataclass(frozen=True, slots=True)
class ServedCode:
    """The GPU code of libraries, compared with the architectures that were asked for."""

    there: tuple[GpuArch, ...]
    """The architectures with machine code."""
    lacking: tuple[GpuArch, ...]
    """The architectures asked for that neither machine code nor PTX of the libraries serves."""
    none: bool
    """Whether there is no GPU code at all."""

    @property
    def words(self) -> str:
        """The architectures with machine code, in words."""
        return ", ".join(f"sm_{code}" for code in self.there) or "none"


def gpu_code(libraries: list[AuditedFile], asked: str) -> ServedCode:
    """Return the GPU code of libraries, and the architectures of a TORCH_CUDA_ARCH_LIST that it does not serve."""
    cubin = {code for row in libraries for code in row.code.cubin}
    ptx = {code for row in libraries for code in row.code.ptx}
    return ServedCode(tuple(sorted(cubin)), unserved(asked, cubin, ptx), not cubin and not ptx)


def architecture_findings(libraries: list[AuditedFile], asked: str, where: str) -> Iterator[Finding]:
    """Yield the architectures that were asked for and that no library has."""
    cubin = {code for row in libraries for code in row.code.cubin}
    ptx = {code for row in libraries for code in row.code.ptx}
    if not cubin and not ptx:
        return
    wanted, wanted_ptx = asked_codes(asked)
    # GpuArch of an architecture's family or of it alone was asked for by name, or follows from its suffix.
    lacking = [f"{code}" for code in sorted(wanted) if code not in cubin]
    lacking += [f"PTX of {code}" for code in sorted(wanted_ptx) if code not in ptx]
    if lacking:
        yield audit_finding(
            "TE008",
            Severity.WARNING,
            ", ".join(lacking),
            "was asked for and is in no library",
            f"TORCH_CUDA_ARCH_LIST={asked} ({where}); there are {', '.join(map(str, sorted(cubin))) or 'none'}",
            "TORCH_CUDA_ARCH_LIST of PyTorch",
            "`tenv build --fresh` configures with the list of today",
        )


def lock_findings(
    note: BuildNote | None, target: str, digest: str, cuda: int | None, needs: Needs
) -> Iterator[Finding]:
    """Yield how a build differs from its target as it is now.

    Args:
        note: Where the build came from; None where that is unknown.
        target: The target that it is held against.
        digest: The digest of the target's lock; empty for none.
        cuda: The major version of the target's CUDA; None for none.
        needs: The needs of the libraries.
    """
    if note and note.target == target and note.lock and digest and note.lock != digest:
        yield audit_finding(
            "TE012",
            Severity.WARNING,
            target,
            "has another lock than the build was made with",
            f"lock {note.lock[:12]} of the build, {digest[:12]} now",
            NOTE,
            f"`tenv build {target}` builds with the lock of today",
        )
    if cuda is not None and needs.cuda and cuda not in needs.cuda:
        yield audit_finding(
            "TE012",
            Severity.ERROR,
            f"CUDA {', '.join(map(str, needs.cuda))}",
            f"is what the libraries are linked with, and the target {target} has CUDA {cuda}",
            ", ".join(f"libcudart.so.{major}" for major in needs.cuda),
            f"the manifest of {target}",
            f"`tenv build {target} --clean` builds with the target's CUDA",
        )
