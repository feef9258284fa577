"""``tenv audit``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.check import against_option, torch_option
from tenv.cli.command import FilePath, command, not_empty, prefix_option
from tenv.cli.here import yes
from tenv.cli.host import host_options
from tenv.cli.output import Result, Voice, count, out, print_findings, print_labelled, print_table
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from tenv.audits.against_torch import TorchAudit
    from tenv.verbs.audit import Audit

_MOST_ROWS = 60


@command("audit", short_help="Report what a built torch, a wheel or a library needs, and where it runs.")
@click.argument("path", type=FilePath())
@click.option("--target", default=None, callback=not_empty, help="Hold it against this target and its environment.")
@prefix_option
@torch_option
@against_option
@host_options
def audit(
    voice: Voice,  # noqa: ARG001 (every command has a voice)
    *,
    path: Path,
    target: str | None,
    prefix: Path | None,
    torch: str,
    against: Path | None,
    **options: Any,
) -> Result:
    """Report what PATH needs and where it runs: a built torch, a wheel, a library, or a folder of libraries.

    It prints the GPU code of each library, the symbol versions that it requires, its run path and C++ ABI; the oldest
    manylinux tag; what is missing, comes from outside the environment, or differs from the lock. Status 1 with an error
    finding, or with a machine of --against that it does not run on; 2 for a folder without any library.
    """
    from tenv.checks.host_options import HostOptions
    from tenv.project.context import Context
    from tenv.verbs.audit import AuditRequest
    from tenv.verbs.audit import audit as judge

    found = judge(Context(), AuditRequest(path, target, prefix, HostOptions(**options), against, torch))

    def show() -> None:
        _show(found)
        print_findings(found.findings)

    return Result(found.to_json(), text=show, findings=found.findings, status=Exit.DONE if found.fits else Exit.CHECK)


def _show(found: "Audit") -> None:
    rows = [row.to_json() for row in found.libraries]
    shown = [
        (
            row["path"],
            " ".join(text.removeprefix("sm_") for text in row["architectures"]) or "-",
            " ".join(text.removeprefix("compute_") for text in row["ptx"]) or "-",
            " ".join(f"{family} {version}" for family, version in row["needs"].items() if family != "GCC") or "-",
            row["cxx11_abi"] or "-",
            ":".join(row["rpath"]) or "-",
        )
        for row in rows
    ]
    if not rows and not found.findings:
        out(f"no library in {found.path.name}: it needs no more of a machine than its Python")
        return
    print_table(("FILE", "GPU CODE", "PTX", "REQUIRES", "C++11 ABI", "RUN PATH"), shown[:_MOST_ROWS])
    if len(shown) > _MOST_ROWS:
        out(f"and {count(len(shown) - _MOST_ROWS, 'file')} more (`--json` lists all)")
    out()
    if found.note:
        version = f", PyTorch {found.note.version}" if found.note.version else ""  # an extension has none
        changed = f", commit {found.note.commit[:12]}" if found.note.commit else ""
        out(f"built by: target {found.note.target}{version}{changed}")
    if found.torch:
        out(_of_torch(found.torch))
    if found.tag:
        because = f" ({found.tag.because})" if found.tag.because else ""
        brought = f"; not allowed by any tag: {', '.join(found.tag.outside)}" if found.tag.outside else ""
        print_labelled("manylinux: ", len("manylinux: "), f"{found.tag.tag}{because}{brought}")
    if found.machines is None:
        out(f"runs here: {yes(found.run)}")
    else:
        _show_machines(found)


def _of_torch(held: "TorchAudit") -> str:
    """Return the line about the torch that an extension is held against."""
    pythons = f"; Python: {', '.join(held.pythons)}" if held.pythons else ""
    if not held.wanted:
        return f"torch: {held.torch.label}; it wants no symbol of torch{pythons}"
    stable = "its stable ABI alone" if held.stable else "no stable ABI"
    found = f"{held.wanted - len(held.missing or ())} of {count(held.wanted, 'symbol')} ({stable})"
    if held.missing is None:
        found = f"{count(held.wanted, 'symbol')} wanted ({stable}), and no library to compare"
    return f"torch: {held.torch.label}; {found}{pythons}"


def _show_machines(found: "Audit") -> None:
    machines = found.machines or []
    fine = [row for row in machines if not row.problem and row.answers[0].run]
    out(
        f"runs on {len(fine)} of {count(len(machines), 'machine')}"
        + (", not on these:" if len(fine) < len(machines) else "")
    )
    rows = []
    for row in machines:
        if row.problem:
            rows.append((row.machine, "unknown", row.problem))
        elif not row.answers[0].run:
            reasons = [f for f in row.answers[0].findings if f.severity == "error" or f.unknown]
            decisive = [f for f in reasons if f.severity == "error"] or reasons
            since = "; ".join(f"{f.code} {f.subject} {f.message}" for f in decisive)
            rows.append((row.machine, yes(row.answers[0].run), since))
    if rows:
        print_table(("MACHINE", "RUNS", "SINCE"), rows)
