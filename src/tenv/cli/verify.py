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

__all__ = ["verify"]

_SHOWN = 20


@command("verify", short_help="Look at every file of an environment, and try its tools.")
@target_argument
@prefix_option
@click.option("--no-probes", is_flag=True, help="Look at the files alone; compile and run nothing.")
@click.option("--store", is_flag=True, help="Read the store of archives, too, all of it.")
def verify(voice: Voice, *, target: str | None, prefix: Path | None, no_probes: bool, store: bool) -> Result:
    """Compare every file of the environment of TARGET with what was installed, then compile and run short programs.

    Status 8 when a file is missing or changed, else 1 when a program fails or the environment is stale. Files that tenv
    did not put there are listed, and are no fault. Nothing is changed: `tenv create TARGET --repair` does that.
    """
    from tenv.project.context import Context  # late: loads what it needs
    from tenv.verbs.lock_standing import Standing
    from tenv.verbs.verify import verify as look

    with Terminal(voice) as progress:
        found = look(Context(progress=progress), target, prefix, with_probes=not no_probes, with_store=store)
    status = Exit.DONE if found.works and found.standing.word is not Standing.STALE else Exit.CHECK
    return Result(
        found.to_json(),
        text=lambda: _print(found),
        summary=_summary(found, prefix),
        status=status if found.whole else Exit.ENVIRONMENT,
    )


def _print(found: "Verified") -> None:
    for word, names, colour in (
        ("missing", found.faults.missing, "31"),
        ("changed", found.faults.changed, "31"),
        ("extra", found.extra, "36"),
    ):
        for name in names[:_SHOWN]:
            out(f"{paint(word, colour, sys.stdout)}  {name}")
        if len(names) > _SHOWN:
            out(f"{word}  … and {len(names) - _SHOWN} more (`--json` has all)")
    for drift in found.machine:
        out(f"{paint('missing' if drift.gone else 'changed', '31', sys.stdout)}  {drift.file} (the machine's)")
    for damage in found.store or ():
        out(f"{paint('changed', '31', sys.stdout)}  {damage.path}: {damage.reason}")
    for outcome in found.outcomes or ():
        word = paint("works", "32", sys.stdout) if outcome.ok else paint("fails", "31", sys.stdout)
        out(f"{word}    {outcome.name}  {format_seconds(outcome.seconds)}")
        if not outcome.ok:
            out("\n".join(f"    {line}" for line in outcome.log.splitlines()))


def _summary(found: "Verified", prefix: Path | None) -> list[str]:
    bad = len(found.faults.missing) + len(found.faults.changed)
    files = f"{count(bad, 'file')} not as installed" if bad else "every file is as installed"
    extra = f", {count(len(found.extra), 'file')} of your own" if found.extra else ""
    failed = [outcome.name for outcome in found.outcomes or () if not outcome.ok]
    tried = f"; failed: {', '.join(failed)}" if failed else f"; {count(len(found.outcomes or ()), 'probe')} worked"
    lines = [f"{found.target} ({found.prefix}): {files}{extra}{tried if found.outcomes else ''}"]
    if found.machine:
        where = f" --prefix {prefix}" if prefix else ""
        files = count(len(found.machine), "file")
        lines.append(f"{files} of the machine, which {found.target} uses, not as when it was created")
        hint = f"`tenv create{where} {found.target}` accepts what is there now"
        lines.append(f"{paint('hint', '1;36', sys.stderr)}: {hint}")
    if bad:
        where = f" --prefix {prefix}" if prefix else ""
        hint = f"`tenv create {found.target}{where} --repair` installs again what was changed"
        lines.append(f"{paint('hint', '1;36', sys.stderr)}: {hint}")
    if found.standing.reason:
        lines.append(found.standing.sentence(found.target))
    if found.store is not None:
        lines.append(_of_store(found))
    if found.store:
        hint = "`tenv clean --archives` empties it, and what is needed is fetched again"
        lines.append(f"{paint('hint', '1;36', sys.stderr)}: {hint}")
    return lines


def _of_store(found: "Verified") -> str:
    if not found.store:
        return "the store of archives: every file is as fetched"
    return f"the store of archives: {count(len(found.store), 'file')} not as fetched"
