"""Measure `lock`, `add`, `drop` and `update --dry-run` beside `uv lock`, and print the seconds as a table.

    python benchmarks/lock_speed.py

Two rounds take 2 to 4 minutes. Run it on a quiet machine, with the interpreter of tenv's environment. The target is the
built-in `cpu` by the name `mine`, without its lock; the project of uv has the same requests. *Cold* is with empty
caches; *stale* is with what the round before has left, asked again (`uv lock --refresh`, and tenv, which asks for each
page once in each command); *fresh* is `uv lock --offline` and `tenv … --offline`. Each round compares the bytes of a
lock with those that resolutions without a question ahead give. Behind the seconds of the clock stand those of the
processor, for the command and the processes that it starts, which depend less on the other work of the machine.
"""

import argparse
import compileall
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from uv import find_uv_bin

import tenv
from tenv.sources.wheels import ask_ahead
from tenv.targets.manifest import with_features
from tenv.targets.search import find_places

TENV = (sys.executable, "-m", "tenv")
SLOWLY = (
    "import sys; from tenv.sources.wheels import resolve; resolve._WORKERS = 99; from tenv.cli import main; "
    "main._main(sys.argv[1:])"
)
"""tenv with as many processes as cases, so that each asks the index for itself."""
WORK = ("uv lock", "lock", "add", "drop", "update --dry-run")
UV = ("uv lock",)


Times = tuple[float, float]
"""Seconds of the clock, and of the processor."""


def seconds(words: Sequence[str], folder: Path, environment: dict[str, str]) -> Times:
    """Return the seconds of a command that must succeed."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    taken, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_projects(folder: Path, manifest: Path) -> tuple[Path, Path]:
    """Write the project of tenv and the one of uv."""
    mine, theirs = folder / "mine", folder / "theirs"
    (mine / "manifests").mkdir(parents=True)
    theirs.mkdir()
    (mine / "tenv.toml").touch()
    (mine / "manifests" / "mine.toml").write_text(manifest.read_text())
    whole = with_features(find_places(mine).find("mine").manifest)  # with the requests of its parents
    lines = "\n".join(f'    "{line}",' for line in ask_ahead._lines(whole).lines)  # noqa: SLF001
    assert lines, f"{manifest} requests no wheels"
    text = f'[project]\nname = "theirs"\nversion = "0"\nrequires-python = ">=3.11"\ndependencies = [\n{lines}\n]\n'
    (theirs / "pyproject.toml").write_text(text)
    return mine, theirs


def one_round(folder: Path, manifest: Path) -> dict[tuple[str, str], Times]:
    """Return the seconds of each work in each state."""
    mine, theirs = write_projects(folder, manifest)
    lock = mine / "locks" / "mine.lock"
    caches = {"UV_CACHE_DIR": str(folder / "uv"), "TENV_CACHE_DIR": str(folder / "tenv")}
    environment, found = {**os.environ, **caches, "PYTHONDONTWRITEBYTECODE": ""}, {}

    def run(work: str, state: str, *words: str, where: Path = mine) -> None:
        found[work, state] = seconds(words, where, environment)

    def anew(state: str, *more: str) -> None:
        lock.unlink(missing_ok=True)
        run("lock", state, *TENV, "lock", "mine", *more)

    own = {**environment, "UV_CACHE_DIR": str(folder / "uv of uv")}
    for state, more in (("cold", ()), ("stale", ("--refresh",)), ("fresh", ("--offline",))):
        (theirs / "uv.lock").unlink(missing_ok=True)
        found["uv lock", state] = seconds([find_uv_bin(), "lock", "-q", *more], theirs, own)
    anew("cold")
    text = lock.read_bytes()
    anew("stale")
    assert lock.read_bytes() == text
    lock.unlink()
    seconds([sys.executable, "-c", SLOWLY, "lock", "mine"], mine, environment)
    assert lock.read_bytes() == text, "a lock without a question ahead has other bytes"
    anew("fresh", "--offline")  # without the sizes that only a server reports
    lock.write_bytes(text)
    run("add", "stale", *TENV, "add", "mine", "attrs")
    run("drop", "stale", *TENV, "drop", "mine", "attrs")
    assert lock.read_bytes() == text
    run("add", "fresh", *TENV, "add", "mine", "attrs", "--offline")
    run("drop", "fresh", *TENV, "drop", "mine", "attrs", "--offline")
    run("update --dry-run", "stale", *TENV, "update", "mine", "--dry-run")
    run("update --dry-run", "fresh", *TENV, "update", "mine", "--dry-run", "--offline")
    return found


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--manifest", type=Path, default=Path(__file__).parents[1] / "manifests" / "cpu.toml")
    options = parser.parse_args()
    compileall.compile_dir(Path(tenv.__file__).parent, quiet=2)  # as an installation has it
    rows: list[dict[tuple[str, str], Times]] = []
    for _ in range(options.rounds):
        folder = Path(tempfile.mkdtemp(prefix="lock-speed-"))
        try:
            rows.append(one_round(folder, options.manifest))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    states = ("cold", "stale", "fresh")
    print("| work | " + " | ".join(states) + " |\n|---|" + "--:|" * len(states))
    for work in WORK:
        cells = []
        for state in states:
            times = [row[work, state] for row in rows if (work, state) in row]
            clock, processor = [one for one, _ in times], [one for _, one in times]
            spread = f"{min(clock):.2f} to {max(clock):.2f}, {min(processor):.2f}" if times else ""
            cells.append(spread)
        print(f"| {work if work in UV else f'tenv {work}'} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
