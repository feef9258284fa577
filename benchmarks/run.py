"""Measure tenv against the tools it stands on, in one run on one machine.

Run it with an interpreter that has tenv installed; the program `tenv` beside that interpreter is what is measured:

    python benchmarks/run.py --runs 5 --target cuda130

`--only against` runs the rows whose names hold that word; without a row of `create` nothing is installed.

Both sides of a row take turns, use the same cache, the same wheels, the same Python and the same kind of links, and
check every hash. A first round that is not counted fills the caches. Figures are medians.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from tenv import __version__
from tenv.environment.state import Environment
from tenv.locks.lock import Wheel
from tenv.locks.lock_file import read_lock
from tenv.sources.wheels.index_settings import uv_settings
from tenv.sources.wheels.installed import Wheels
from tenv.targets.search import find_places

TENV = Path(sys.executable).with_name("tenv")
UV = find_uv_bin()
QUICK_ROUNDS = 4  # short commands are run so many times more often
MACHINES = 10_000
DRIVERS = ("580.65.06", "535.104.12", "515.76", "570.133.20", "")
GPUS = (("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA GeForce GTX 1660 Ti", "7.5"), ("NVIDIA H200", "9.0"))


# A process counts the memory of the one that started it as its own, so that one is kept small.
STARTER = """\
import os, sys, time
start = time.perf_counter()
_, status, usage = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
seconds = time.perf_counter() - start
os.write(int(sys.argv[1]), b"%f %d" % (seconds, usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) and 1)
"""


@dataclass(frozen=True)
class Run:
    """One run of a program: its wall time in seconds, and the memory of its largest process in bytes."""

    seconds: float
    memory: int


@dataclass(frozen=True)
class Case:
    """One row: what tenv does, what it is measured against, and what is aimed at."""

    name: str
    ours: Callable[[], Run]
    theirs: Callable[[], Run]
    compare: Callable[[Run, Run], str]
    aim: str
    rounds: int = 1
    memory: bool = False


def run(words: Sequence[object], folder: Path, environment: Mapping[str, str], text: Path | None = None) -> Run:
    """Run a program to its end, which must be a good one."""
    command = [str(word) for word in words]
    told, tell = os.pipe()
    with (text or Path(os.devnull)).open("rb") as stdin, tempfile.TemporaryFile() as talk:
        starter = [sys.executable, "-I", "-S", "-c", STARTER, str(tell), *command]
        done = subprocess.run(
            starter, cwd=folder, env=environment, stdin=stdin, stdout=talk, stderr=talk, pass_fds=[tell], check=False
        )
        os.close(tell)
        with os.fdopen(told) as answer:
            seconds, _, kibibytes = answer.read().partition(" ")
        if done.returncode:
            talk.seek(0)
            raise SystemExit(f"{' '.join(command)} fails:\n{talk.read().decode(errors='replace')}")
    return Run(float(seconds), int(kibibytes) * 1024)


def add(first: Run, second: Run) -> Run:
    """Join two runs that follow each other."""
    return Run(first.seconds + second.seconds, max(first.memory, second.memory))


class Bench:
    """The commands that are measured.

    Attributes:
        target: The target that is created.
        folder: Where to; outside any project.
    """

    def __init__(self, target: str, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.ours = self.theirs = folder
        self.requirements = folder / "requirements.txt"
        # Without PYTHONDONTWRITEBYTECODE and its like: the uncounted round compiles what an installer would have.
        dropped = ("PWD", "VIRTUAL_ENV", "PYTHON")
        self.plain = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.uv = dict(uv_settings(self.plain, Path.home()).environment)

    def tenv(self, *words: object) -> Run:
        return run([TENV, *words], self.folder, self.plain)

    def bare(self) -> Run:
        return run([sys.executable, "-c", "pass"], self.folder, self.plain)

    def fresh(self) -> Path:
        """Return a folder that was never there.

        None is removed between two runs: for a minute ext4 gives nobody the inodes of removed files, and to look for
        others takes longer than to make a few hundred links.
        """
        return Path(tempfile.mkdtemp(dir=self.folder)) / "environment"

    def create(self) -> Run:
        self.ours = self.fresh()
        return self.tenv("create", self.target, "--frozen", "--prefix", self.ours, "--quiet")

    def install(self) -> Run:
        self.theirs = self.fresh()
        made = run([UV, "venv", self.theirs, "--python", self.python()], self.folder, self.uv)
        words = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--index-strategy", "unsafe-best-match")
        program = self.theirs / "bin" / "python"
        command = [UV, "pip", "install", "--python", program, *words, "--requirement", "-"]
        return add(made, run(command, self.folder, self.uv, self.requirements))

    def nothing(self) -> Run:
        return self.tenv("create", self.target, "--frozen", "--prefix", self.ours)

    def fleet(self) -> Path:
        """Return a file with a report a line, of machines that differ in driver, GPU, memory and disk."""
        file = self.folder / "fleet.jsonl"
        if not file.is_file():
            told = subprocess.run(
                [TENV, "host", "--json"], cwd=self.folder, env=self.plain, capture_output=True, check=True
            )
            plain = json.loads(told.stdout)["data"]
            with file.open("w", encoding="utf-8") as lines:
                lines.writelines(json.dumps(machine(plain, number)) + "\n" for number in range(MACHINES))
        return file

    def python(self) -> Path:
        """Return the Python that tenv took."""
        return (self.ours / "bin" / "python").resolve()

    def prepare(self) -> list[Wheel]:
        """Fill the caches and write down what tenv installs, for uv to install the same."""
        self.create()
        state = Environment(self.ours).state()
        if state is None:
            raise SystemExit(f"{self.ours} has no state")
        lock = read_lock(find_places(self.folder).find(self.target).lock_file, self.target)
        wheels = lock.wheels_for(state.platform, state.python)
        self.requirements.write_text(
            "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels)
        )
        self.install()
        self.check_same()
        return list(wheels)

    def check_same(self) -> None:
        """Stop when the two sides did not do the same work."""
        if Wheels(self.ours).versions() != Wheels(self.theirs).versions():
            raise SystemExit("the two environments do not hold the same packages")
        if self.links(self.ours) != self.links(self.theirs):
            raise SystemExit("the two environments are not linked to the cache in the same way")

    @staticmethod
    def links(prefix: Path) -> str:
        """Tell how a package's files came from the cache."""
        record = Wheels(prefix).distributions()[0] / "METADATA"
        return "hard links" if record.stat().st_nlink > 1 else "copies or reflinks"


def machine(plain: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the report of one machine of the fleet; `plain` is that of this one."""
    name, capability = GPUS[number % len(GPUS)]
    driver = DRIVERS[number % len(DRIVERS)]
    values = {
        "hostname": f"node{number}",
        "gpus": [{"name": name, "compute_capability": capability}],
        "memory": (64 << 30) + 4096 * number,
        "disk": {"path": "/home", "free": (500 << 30) + 4096 * number, "file_system": "ext4"},
    } | ({"driver": driver} if driver else {})
    facts = {key: {"value": value, "origin": "benchmark"} for key, value in values.items()}
    return {**plain, **({} if driver else {"driver": {"missing": "no driver"}}), **facts}


def ratio(ours: Run, theirs: Run) -> str:
    return f"{ours.seconds / theirs.seconds:.2f}x"


def extra(ours: Run, theirs: Run) -> str:
    return f"+{(ours.seconds - theirs.seconds) * 1000:.0f} ms"


def memory(ours: Run, theirs: Run) -> str:
    return f"{ours.memory / (1 << 20):.0f} MiB, {theirs.memory / (1 << 20):.0f} MiB"


def median(runs: Sequence[Run]) -> Run:
    return Run(statistics.median(run.seconds for run in runs), max(run.memory for run in runs))


def measure(case: Case, runs: int) -> tuple[Run, Run]:
    """Return the medians of both sides, which take turns; the first turn is not counted."""
    ours, theirs = [], []
    for _ in range(runs * case.rounds + 1):
        ours.append(case.ours())
        theirs.append(case.theirs())
    return median(ours[1:]), median(theirs[1:])


def cases(bench: Bench) -> list[Case]:
    return [
        Case(
            f"create {bench.target}, warm cache / uv venv + uv pip install",
            bench.create,
            bench.install,
            ratio,
            "1.2x",
            memory=True,
        ),
        Case("create, nothing to do / python -c pass", bench.nothing, bench.bare, extra, "150 ms", QUICK_ROUNDS),
        Case("tenv --version / python -c pass", lambda: bench.tenv("--version"), bench.bare, ratio, "5x", QUICK_ROUNDS),
        Case(
            "tenv check-driver / python -c pass",
            lambda: bench.tenv("check-driver"),
            bench.bare,
            extra,
            "150 ms",
            QUICK_ROUNDS,
        ),
        *(
            Case(
                f"tenv {command} --against {MACHINES:,} reports / python -c pass",
                lambda command=command: bench.tenv(command, "--against", bench.fleet()),
                bench.bare,
                ratio,
                "500x",
                memory=True,
            )
            for command in ("check-driver", "check")
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure tenv against the tools it stands on.")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side (short commands: four times as many)")
    parser.add_argument("--target", default="cuda130", help="the target to create")
    parser.add_argument(
        "--folder", type=Path, help="where environments are made; on the disk of uv's cache it is quickest"
    )
    parser.add_argument("--only", default="", help="the rows whose names hold this text")
    given = parser.parse_args()
    if not TENV.is_file():
        raise SystemExit(f"there is no {TENV}: install tenv in this interpreter")
    with tempfile.TemporaryDirectory(prefix="tenv-bench-", dir=given.folder) as folder:
        bench = Bench(given.target, Path(folder))
        chosen = [case for case in cases(bench) if given.only in case.name]
        about = ""
        if any(case.name.startswith("create") for case in chosen):
            wheels = bench.prepare()
            size = sum(wheel.size or 0 for wheel in wheels) / (1 << 20)
            about = f"{len(wheels)} wheels of {size:.0f} MiB, {bench.links(bench.ours)}, "
        print(f"tenv {__version__}, {about}Python {sys.version.split()[0]}, ", end="")
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, medians of {given.runs}\n")
        print(f"{'':<62}{'tenv':>10}{'other':>10}{'':>12}{'aim':>9}")
        for case in chosen:
            ours, theirs = measure(case, given.runs)
            times = f"{ours.seconds * 1000:>7.0f} ms{theirs.seconds * 1000:>7.0f} ms"
            print(f"{case.name:<62}{times}{case.compare(ours, theirs):>12}{case.aim:>9}", flush=True)
            if case.memory:
                print(
                    f"{'  memory of the largest process (most of all runs)':<62}{memory(ours, theirs):>20}"
                    f"{ours.memory / theirs.memory:>11.2f}x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
