"""Throw changed files at every reader of tenv, each in a process of its own: a crash, a hang or a flood is a fault.

    python -m tests.fuzz.fuzz_readers JOURNAL --seconds 3600 [--only lock]
    python -m tests.fuzz.fuzz_readers JOURNAL --report
    python -m tests.fuzz.fuzz_readers JOURNAL --compact

JOURNAL keeps what was done, and the next run goes on where the last one ended. `journal.jsonl` beside this script adds
up the hours of all machines; `--compact` leaves one row in it for each seed and kind of file. Two runs at a time need
two seeds and two journals, which are joined as files. A round is made from the seed, the kind of file and its number
alone. It fails when anything but tenv's own error comes out, when it takes more than 5 s of processor time, or when the
process holds more than 500 MB. The file that failed is kept beside the journal.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.fuzz.mutate import mutated

HERE = Path(__file__).parent
SLOW = 5.0
"""Seconds of processor time."""
LARGE = 500_000
"""KiB of memory."""
HANG = 60
"""Seconds of processor time after which the kernel ends a worker beyond its batch."""
PATIENCE = 3600.0
"""Seconds that a worker may last: it may run at idle priority beside other work."""
BATCH = 30.0
"""Seconds of processor time of one worker."""


def round_of(kind: str, seed: str, number: int) -> tuple[str, bytes]:
    """Return the name and the content of the file of a round."""
    from tests.fuzz.readers import READERS

    rng = random.Random(f"{seed} {kind} {number}")
    examples = READERS[kind].examples()
    name = rng.choice(sorted(examples))
    return name, mutated(rng, Path(name).name, examples[name])


def play(kind: str, name: str, raw: bytes) -> str:
    """Let tenv read a file; return what went wrong, or an empty text."""
    from tenv.core.errors import TenvError
    from tests.fuzz.readers import READERS

    with tempfile.TemporaryDirectory(prefix="tenv-fuzz-") as folder:
        file = Path(folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
        begun = time.process_time()
        try:
            READERS[kind].use(Path(folder), name)
        except TenvError:
            pass
        except Exception as error:  # noqa: BLE001 (any other error is a fault)
            return f"{type(error).__name__}: {error}"
        spent = time.process_time() - begun
    return f"took {spent:.1f} s" if spent > SLOW else ""


def held() -> str:
    """Return what this process has held at most, where that is too much."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"held {most / 1024:.0f} MB" if most > LARGE else ""


def work(kind: str, seed: str, first: int, seconds: float) -> None:
    """Play rounds for some seconds of processor time.

    The number of each is printed before it begins, and what went wrong after it.
    """
    most = int(seconds) + HANG
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    number = first
    while time.process_time() < seconds:
        print(f"round {number}", flush=True)
        if fault := play(kind, *round_of(kind, seed, number)) or held():
            print(f"fault {json.dumps(fault)}", flush=True)
            if fault.startswith("held"):
                return  # the memory of a process is never given back
        number += 1
    print("over", flush=True)


def run_worker(kind: str, seed: str, first: int, seconds: float) -> dict[str, Any]:
    """Run one worker, and return its row of the journal."""
    words = [sys.executable, "-m", "tests.fuzz.fuzz_readers", "-", "--work", kind, "--seed", seed]
    words += ["--first", str(first), "--seconds", str(seconds)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    faults: dict[int, str] = {}
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=HERE.parents[1])
        lines, ended = done.stdout.splitlines(), f"ended with {done.returncode}: {done.stderr[-300:]}"
    except subprocess.TimeoutExpired as error:
        lines, ended = (error.stdout or b"").decode().splitlines(), f"did not end within {PATIENCE:.0f} s"
    number = first
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "round":
            number = int(rest)
        elif word == "fault":
            faults[number] = json.loads(rest)
    if not lines or (lines[-1] != "over" and number not in faults):
        faults[number] = ended
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = {"kind": kind, "seed": seed, "first": first, "rounds": number - first + 1, "cpu": round(spent, 2)}
    return {**row, "faults": {str(at): fault for at, fault in faults.items()}}


def rows_of(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.is_file() else []


def compact(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each seed and kind of file, from its first round to its last one."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        whole = sums.setdefault((row["kind"], row["seed"]), {**row, "rounds": 0, "cpu": 0.0, "faults": {}})
        whole["first"] = min(whole["first"], row["first"])
        whole["rounds"] += row["rounds"]
        whole["cpu"] = round(whole["cpu"] + row["cpu"], 2)
        whole["faults"] |= row["faults"]
    return [sums[key] for key in sorted(sums)]


def report(rows: list[dict[str, Any]]) -> str:
    """Return the rounds, the hours and the faults of each kind of file."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0])
    for row in rows:
        for at, value in enumerate((row["rounds"], row["cpu"], len(row["faults"]))):
            sums[row["kind"]][at] += value
            sums["all"][at] += value
    lines = [f"{'kind':20} {'rounds':>10} {'CPU hours':>10} {'faults':>7}"]
    lines += [f"{kind:20} {int(n):>10} {cpu / 3600:>10.3f} {int(bad):>7}" for kind, (n, cpu, bad) in sums.items()]
    return "\n".join(lines)


def keep(journal: Path, row: dict[str, Any]) -> None:
    """Keep the files that failed beside the journal, and show why."""
    for number, fault in row["faults"].items():
        name, raw = round_of(row["kind"], row["seed"], int(number))
        folder = journal.with_name(f"{journal.name}.failed") / row["kind"].replace(" ", "-") / f"{row['seed']}-{number}"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)
        print(f"{row['kind']} round {number}: {fault} ({folder})", flush=True)


def main() -> int:
    """Fuzz for a while; return 1 if a round failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journal", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", help="one kind of file")
    parser.add_argument("--report", action="store_true", help="print what the journal holds")
    parser.add_argument("--compact", action="store_true", help="join the rows of each seed and kind of file")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.seed, given.first, given.seconds)
        return 0
    if given.compact:
        whole = compact(rows_of(given.journal))
        aside = given.journal.with_name(f"{given.journal.name}.new")
        aside.write_text("".join(f"{json.dumps(row)}\n" for row in whole))
        aside.replace(given.journal)  # the only record of hours is never half there
    elif not given.report:
        fuzz(given.journal, given.seed, given.only, given.seconds)
    rows = rows_of(given.journal)
    print(report(rows))
    return int(any(row["faults"] for row in rows))


def fuzz(journal: Path, seed: str, only: str | None, seconds: float) -> None:
    """Run workers of all kinds in turn, the one with the least time so far first."""
    from tests.fuzz.readers import READERS

    left = seconds
    while left > 0:
        rows = [row for row in rows_of(journal) if row["seed"] == seed]
        spent = {kind: sum(row["cpu"] for row in rows if row["kind"] == kind) for kind in READERS}
        kind = only or min(spent, key=lambda kind: spent[kind])
        first = max((row["first"] + row["rounds"] for row in rows if row["kind"] == kind), default=0)
        row = run_worker(kind, seed, first, min(BATCH, left))
        keep(journal, row)
        with journal.open("a") as file:
            file.write(json.dumps(row) + "\n")
        left -= max(row["cpu"], 1.0)  # one that died at once counts, too


if __name__ == "__main__":
    sys.exit(main())
