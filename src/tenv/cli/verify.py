"""``tenv verify``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command, prefix_option, target_argument
from tenv.cli.output import Result, Voice, count, format_seconds, out, paint
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from tenv.verbs.verify import Verified

_SHOWN = 20


@command("verify", short_help="Verify every file of an environment, and run its tools.")
@target_argument
@prefix_option
@click.option("--no-probes", is_flag=True, help="Verify files alone; compile and run nothing.")
@click.option("--store", is_flag=True, help="Also verify every file in the store of archives.")
@click.option("--deep", is_flag=True, help="Also compare the files with those of the lock, which are fetched again.")
def verify(
    voice: Voice, *, target: str | None, prefix: Path | None, no_probes: bool, store: bool, deep: bool
) -> Result:
    """Compare every file of the environment of TARGET with its digest, then compile and run short programs.

    Status 8 if a file is missing or changed, else 1 if a program fails or the environment is stale. Files that tenv
    did not put there are listed, and are no fault. Nothing is changed: `tenv create TARGET --repair` does that.
    """
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs.lock_standing import Standing
    from tenv.verbs.verify import verify as look

    with Terminal(voice) as progress:
        found = look(Context(progress=progress), target, prefix, with_probes=not no_probes, with_store=store, deep=deep)
    status = Exit.DONE if found.works and found.standing.word is not Standing.STALE else Exit.CHECK
    return Result(
        found.to_json(),
        text=lambda: _print(found),
        summary=_summary(found, prefix),
        status=status if found.whole else Exit.ENVIRONMENT,
    )


def _print(found: "Verified") -> None:
    for word, names, color in (
        ("missing", found.faults.missing, "31"),
        ("changed", found.faults.changed, "31"),
        ("extra", found.extra, "36"),
    ):
        for name in names[:_SHOWN]:
            out(f"{paint(word, color, sys.stdout)}  {name}")
        if len(names) > _SHOWN:
            out(f"{word}  … and {len(names) - _SHOWN} more (`--json` has all)")
    for drift in found.machine:
        out(f"{paint('missing' if drift.gone else 'changed', '31', sys.stdout)}  {drift.file} (system)")
    for damage in found.store or ():
        out(f"{paint('changed', '31', sys.stdout)}  {damage.path}: {damage.reason}")
    for outcome in found.outcomes or ():
        word = paint("works", "32", sys.stdout) if outcome.ok else paint("fails", "31", sys.stdout)
        out(f"{word}    {outcome.name}  {format_seconds(outcome.seconds)}")
        if not outcome.ok:
            out("\n".join(f"    {line}" for line in outcome.log.splitlines()))


def _summary(found: "Verified", prefix: Path | None) -> list[str]:
    bad = len(found.faults.missing) + len(found.faults.changed)
    files = f"{count(bad, 'file')} changed or missing" if bad else "all files are intact"
    extra = f", {count(len(found.extra), 'unmanaged file')}" if found.extra else ""
    failed = [outcome.name for outcome in found.outcomes or () if not outcome.ok]
    notes = [f"note: {note}" for outcome in found.outcomes or () for note in outcome.notes]
    tried = f"; failed: {', '.join(failed)}" if failed else f"; {count(len(found.outcomes or ()), 'probe')} passed"
    lines = [f"{found.target} ({found.prefix}): {files}{extra}{tried if found.outcomes else ''}", *notes]
    if found.machine:
        where = f" --prefix {prefix}" if prefix else ""
        files = count(len(found.machine), "file")
        lines.append(f"{files} of the system that {found.target} uses changed after its last create")
        hint = f"`tenv create{where} {found.target}` accepts the present files"
        lines.append(f"{paint('hint', '1;36', sys.stderr)}: {hint}")
    if found.fault:
        lines.append(f"{found.fault.message}")
    if bad or found.fault:
        where = f" --prefix {prefix}" if prefix else ""
        hint = f"`tenv create {found.target}{where} --repair` reinstalls the damaged packages"
        lines.append(f"{paint('hint', '1;36', sys.stderr)}: {hint}")
    if found.standing.reason:
        lines.append(found.standing.sentence(found.target))
    if found.store is not None:
        lines.append(_of_store(found))
    if found.store:
        hint = "`tenv clean --archives` empties the store; the next `tenv create` downloads what it needs"
        lines.append(f"{paint('hint', '1;36', sys.stderr)}: {hint}")
    return lines


def _of_store(found: "Verified") -> str:
    if not found.store:
        return "store of archives: all files are intact"
    return f"store of archives: {count(len(found.store), 'damaged file')}"
