"""Measure tenv beside its peers, in turns, in one run on one machine.

Install the wheel of tenv in a virtual environment; the program `tenv` beside the interpreter is what is measured:

    python benchmarks/run.py --rounds 20 --target cuda130 --write docs/benchmarks.md

`--only reports` runs the rows whose work holds that word. Peers that are not on PATH are named as absent. Both sides of
a row use the same cache, the same wheels, the same Python and the same kind of links, and check every hash.

Some rows need more: those on conda packages the test extra; `--before PROGRAM` a tenv of an earlier release, `--lists
FOLDER` package lists of real channels (CHANNEL/PLATFORM/repodata.json), which both solve; the cold ones leave to drop
the page cache; the table of instructions valgrind.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import instructions
from archive_rows import ArchiveBench
from conda_rows import CondaBench
from page import floor_lines, lines
from sides import Figure, Row, measure
from wheel_rows import DROP, TENV, UV, WheelBench, short

from tenv import __version__

PEERS = ("pixi", "micromamba", "conda")


def head(bench: WheelBench, before: Path | None, lists: Path | None) -> str:
    """Return a paragraph about what is measured where."""
    size = sum(wheel.size or 0 for wheel in bench.wheels) / (1 << 20)
    absent = [peer for peer in PEERS if not shutil.which(peer)]
    absent += [] if before and lists else ["an earlier tenv or package lists, so that solving is not measured"]
    absent += [] if os.access(DROP, os.W_OK) else ["leave to drop the page cache"]
    named = f" Absent: {', '.join(absent)}." if absent else ""
    return (
        f"tenv {__version__}, {bench.target} with {len(bench.wheels)} wheels of {size:.0f} MiB, Python "
        f"{sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.{named}"
    )


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description="Measure tenv beside its peers.")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of the short commands")
    parser.add_argument("--target", default="cuda130", help="the target to create")
    parser.add_argument("--folder", type=Path, help="where environments are made; best on the disk of uv's cache")
    parser.add_argument("--only", default="", help="the rows whose work holds this text")
    parser.add_argument(
        "--before", type=lambda text: Path(text).absolute(), help="the program tenv of an earlier release"
    )
    parser.add_argument("--lists", type=Path, help="a folder with the package lists of real channels")
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    return parser.parse_args()


def figures(chosen: Iterable[Row], done: list[Figure]) -> Iterator[Figure]:
    """Yield each row when it is measured, and add it to those that are done."""
    for row in chosen:
        figure = measure(row)
        row.last()
        done.append(figure)
        yield figure


def tables(given: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Yield the lines of what is measured, as it is measured."""
    places = [folder / name for name in ("wheels", "conda", "archives")]
    for place in places:
        place.mkdir()
    wheels = WheelBench(given.target, places[0])
    wheels.prepare()
    yield head(wheels, given.before, given.lists)
    yield ""
    with ExitStack() as held:
        conda = held.enter_context(closing(CondaBench(places[1], TENV, (UV, wheels.uv), given.before, given.lists)))
        archives = held.enter_context(closing(ArchiveBench(places[2])))
        chosen = [row for row in wheels.rows(given.rounds) if given.only in row.work]
        for side in (conda, archives):
            rows = [row for row in side.rows(given.rounds) if given.only in row.work]
            if rows:
                side.prepare()
            chosen += rows
        os.sync()  # what was prepared is not to be written while something is measured
        done: list[Figure] = []
        yield from lines(figures(chosen, done))
    yield from ("", "Floors:", "")
    yield from floor_lines(done)
    if shutil.which("valgrind") and given.only in "instructions":
        yield from ("", "Instructions and modules of the short commands:", "")
        yield from instructions.lines(TENV, [words for words, _ in short(given.target)], wheels.folder, wheels.plain)


def main() -> None:
    given = arguments()
    if not TENV.is_file():
        raise SystemExit(f"there is no {TENV}: install tenv in this interpreter")
    with tempfile.TemporaryDirectory(prefix="tenv-bench-", dir=given.folder) as folder:
        table = []
        for line in tables(given, Path(folder).resolve()):
            print(line, flush=True)
            table.append(line)
    if given.write:
        before, mark, _ = given.write.read_text(encoding="utf-8").partition("## Last run\n")
        if not mark:
            raise SystemExit(f"{given.write} has no heading `Last run`")
        given.write.write_text(before + mark + "\n".join(["", *table, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
