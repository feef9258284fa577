"""Measure the budgets of tenv in one run, and print them as a table.

Install the wheel of tenv with its byte code in a virtual environment, and run with its interpreter:

    uv venv bench && uv pip install --compile-bytecode --python bench/bin/python 'dist/WHEEL[test]'
    bench/bin/python benchmarks/budgets.py --write docs/benchmarks.md

Both sides of a row run in turns, so that the other work of the machine meets both, and a ratio is the median of the
ratios of the rounds. `--no-wheels` leaves out the environment of real wheels, of some GB: the short commands then use
one of small made packages. `--only fleet` measures the rows whose work holds that word.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from tenv import __version__
from tenv.environment.state import Environment
from tenv.host.machine import current_platform
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.targets.search import find_places

sys.path.append(str(Path(__file__).resolve().parents[1]))

from tests.support.conda import PLACEHOLDER, Channel, make_conda
from tests.support.fakes import noise

BARE = "python -c pass"
COMMANDS = {
    "--version": 1.5,
    "run TARGET -- true": 10,
    "activate TARGET --shell bash": 10,
    "list": 10,
    "env TARGET": 10,
    "create TARGET": 11,
    "targets": 11,
    "show BUILT-IN": 25,
    "host": 25,
    "packages BUILT-IN": 25,
    "lock BUILT-IN --check": 25,
    "check BUILT-IN": 40,
    "check-driver": 40,
}
"""The commands, with their times as multiples of the bare interpreter's."""
WHEELS, CONDA = 3.0, 2.2
"""The times of a first `create` with a warm cache, as multiples of uv's and of py-rattler's."""
SEEN, NEW = 3, 100
"""Milliseconds for each machine of a fleet: of a kind that was seen, and of a new one."""
PACKAGES, FILES = 100, 150
"""The made conda packages, and the files of each: as many as an environment with CMake, Python and CUDA has."""
MACHINES, KINDS = 1000, 20
RATTLER = """\
import asyncio, os, sys
from rattler import LockFile
from rattler.install import install
environment = LockFile.from_path(sys.argv[1]).environment(sys.argv[3])
records = environment.conda_repodata_records_for_platform(environment.platforms()[0])
asyncio.run(install(records, sys.argv[2], show_progress=False))
os._exit(0)
"""
HEAD = ("work", "measured against", "tenv", "budget", "met")


@dataclass(frozen=True)
class Row:
    """A budget and its figure.

    Attributes:
        work: The work.
        peer: The other side.
        figure: The measured ratio, or milliseconds.
        budget: The largest figure that meets the budget.
        unit: The unit; empty for a ratio.
    """

    work: str
    peer: str
    figure: float
    budget: float
    unit: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        met = "yes" if self.figure <= self.budget else "no"
        shown = f"{self.figure:.2f}{self.unit}"
        return self.work, self.peer, shown, f"{self.budget:g}{self.unit}", met


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of the rounds."""
    return statistics.median(left / right for left, right in zip(ours, theirs, strict=True))


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table of Markdown."""
    lines = [HEAD, ("---", "---", "--:", "--:", "---"), *(row.cells() for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


class Bench:
    """A project in a folder of its own, with the caches and the data folder of the measured programs."""

    def __init__(self, folder: Path, target: str, rounds: int, *, wheels: bool) -> None:
        self.folder, self.built_in, self.rounds, self.wheels = folder, target, rounds, wheels
        self.target = target if wheels else "made"
        self.tenv = Path(sys.executable).with_name("tenv")
        self.project = folder / "project"
        (self.project / "manifests").mkdir(parents=True)
        dropped = ("PWD", "VIRTUAL_ENV", "PYTHON", "TENV_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.environment |= {"XDG_DATA_HOME": str(folder / "data"), "RATTLER_CACHE_DIR": str(folder / "packages")}
        self.held = ExitStack()

    def seconds(
        self, *words: object, done: Sequence[int] = (0,), environment: Mapping[str, str] | None = None
    ) -> float:
        """Run a program to its end and return the seconds; raise SystemExit with its output where it fails."""
        command, start = [str(word) for word in words], time.perf_counter()
        ended = subprocess.run(
            command,
            cwd=self.project,
            env=environment or self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        taken = time.perf_counter() - start
        if ended.returncode not in done:
            raise SystemExit(f"{' '.join(command)} fails:\n{ended.stdout.decode(errors='replace')}")
        return taken

    def compare(self, ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> float:
        """Return the ratio of two sides that run in turns; the first turn fills the caches and does not count."""
        pairs = [(ours(), theirs()) for _ in range(rounds + 1)]
        return ratio(*zip(*pairs[1:], strict=True))

    def fresh(self) -> Path:
        """Return a folder that does not exist yet. None is removed before the end: ext4 reuses inodes slowly."""
        return Path(tempfile.mkdtemp(dir=self.folder)) / "environment"

    def prepare(self) -> None:
        """Make the channel of made packages, its target, and the environment of the short commands."""
        channel = self.held.enter_context(Channel(self.folder / "channel"))
        data, names = noise(1 << 16), [f"package{number}" for number in range(PACKAGES)]
        for index, name in enumerate(names):
            files: dict[str, str | bytes] = {}
            for number in range(FILES):
                start = (index * 31 + number * 7) % 50_000
                body = data[start : start + 500 + 97 * (number % 100)]
                text = f"{PLACEHOLDER}/{name}/{number}\n".encode() + body.hex().encode()
                files[f"share/{name}/{number}"] = text if number % 20 == 0 else body
            make_conda(channel.folder, name, "1", files=files)
        channel.refresh()
        head = f'platforms = ["{current_platform()}"]\nchannels = ["{channel.root}"]\n[dependencies]\n'
        asked = "".join(f'{name} = "*"\n' for name in names)
        (self.project / "manifests" / "made.toml").write_text(head + asked)
        self.seconds(self.tenv, "lock", "made")
        self.seconds(self.tenv, "create", self.target, "--frozen", "--quiet")

    def commands(self, only: str) -> Iterator[Row]:
        """Yield the rows of the short commands."""
        for command, budget in COMMANDS.items():
            work = f"`tenv {command.replace('BUILT-IN', self.built_in).replace('TARGET', self.target)}`"
            if only not in work:
                continue
            words = work.strip("`").split()[1:]
            done = (0, 1) if words[0].startswith("check") else (0,)
            figure = self.compare(
                lambda words=words, done=done: self.seconds(self.tenv, *words, done=done),  # type: ignore[misc]
                lambda: self.seconds(sys.executable, "-c", "pass"),
                self.rounds,
            )
            yield Row(work, f"`{BARE}`", figure, budget)

    def create_wheels(self, rounds: int) -> Row:
        """Return the row of a first environment of real wheels, with a warm cache of uv."""
        prefix = self.project / ".tenv" / "envs" / self.built_in
        state = Environment(prefix).state()
        assert state is not None
        lock = read_lock(find_places(self.project).find(self.built_in).lock_file, self.built_in)
        wheels = [wheel for wheel in lock.wheels_for(state.platform, state.python) if not wheel.features]
        file = self.folder / "requirements.txt"
        file.write_text("".join(f"{row.name}=={row.version} --hash=sha256:{row.sha256}\n" for row in wheels))
        uv, settings = find_uv_bin(), {**self.environment, **Context().uv().environment}
        python = (prefix / "bin" / "python").resolve()
        given = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--index-strategy", "unsafe-best-match")

        def install() -> float:
            folder = self.fresh()
            made = self.seconds(uv, "venv", folder, "--python", python, environment=settings)
            words = ("--python", folder / "bin" / "python", *given, "--requirement", file)
            return made + self.seconds(uv, "pip", "install", *words, environment=settings)

        figure = self.compare(lambda: self.create(self.built_in), install, rounds)
        work = f"first `tenv create {self.built_in}`, {len(wheels)} wheels in the cache"
        return Row(work, "`uv venv` and `uv pip install --require-hashes`", figure, WHEELS)

    def create(self, target: str) -> float:
        """Make an environment in a new folder."""
        return self.seconds(self.tenv, "create", target, "--frozen", "--prefix", self.fresh(), "--quiet")

    def create_conda(self, rounds: int) -> Row:
        """Return the row of a first environment of conda packages, with a warm cache of rattler."""
        lock = self.project / "locks" / "made.lock"
        figure = self.compare(
            lambda: self.create("made"),
            lambda: self.seconds(sys.executable, "-c", RATTLER, lock, self.fresh(), "made"),
            rounds,
        )
        return Row(f"first `tenv create`, {PACKAGES} conda packages in the cache", "py-rattler", figure, CONDA)

    def fleet(self, rounds: int) -> Iterator[Row]:
        """Yield the rows of a fleet: the time of a file of reports, less the time of the first report alone."""
        shown = subprocess.run(
            [self.tenv, "host", "--json"], cwd=self.project, env=self.environment, stdout=subprocess.PIPE, check=True
        )
        plain = json.loads(shown.stdout)["data"]
        files = {
            "one": [machine(plain, 0)],
            "seen": [machine(plain, number) for number in range(MACHINES + 1)],
            "new": [machine(plain, number, kind=number) for number in range(KINDS + 1)],
        }
        for name, reports in files.items():
            (self.folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(report)}\n" for report in reports))

        def judge(name: str) -> float:
            return self.seconds(self.tenv, "check", "--against", self.folder / f"{name}.jsonl", done=(0, 1))

        for name, count, budget, work in (
            ("seen", MACHINES, SEEN, "a machine of a fleet, of a kind that was seen"),
            ("new", KINDS, NEW, "a machine of a fleet, of a new kind"),
        ):
            times = [(judge(name) - judge("one")) * 1000 / count for _ in range(rounds)]
            yield Row(work, "`tenv check --against`, every target", statistics.median(times), budget, " ms")

    def rows(self, only: str) -> Iterator[Row]:
        """Yield each row as it is measured."""
        few = max(self.rounds // 3, 1)
        yield from self.commands(only)
        if self.wheels and only in "first create wheels":
            yield self.create_wheels(few)
        if only in "first create conda":
            yield self.create_conda(few)
        if only in "fleet":
            yield from self.fleet(few)


def machine(plain: Mapping[str, Any], number: int, kind: int = 0) -> dict[str, Any]:
    """Return the report of a machine of a fleet.

    Args:
        plain: The report of this machine.
        number: The number of the machine, by which its name, memory and disk differ from the others'.
        kind: The number of its kind, by which its driver differs.
    """
    values = {
        "hostname": f"node{number}",
        "driver": f"580.{65 + kind}.06",
        "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}],
        "memory": (64 << 30) + 4096 * number,
        "disk": {"path": "/home", "free": (500 << 30) + 4096 * number, "file_system": "ext4"},
    }
    return {**plain, **{key: {"value": value, "origin": "benchmark"} for key, value in values.items()}}


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description="Measure the budgets of tenv.")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of a short command; of the others a third")
    parser.add_argument("--target", default="cuda130", help="the built-in target of real wheels")
    parser.add_argument("--no-wheels", action="store_true", help="leave out the environment of real wheels")
    parser.add_argument("--only", default="", help="the rows whose work holds this text")
    parser.add_argument("--folder", type=Path, help="where environments are made; best on the disk of uv's cache")
    parser.add_argument("--write", type=Path, help="the page whose last table is replaced")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        bench = Bench(Path(folder).resolve(), given.target, given.rounds, wheels=not given.no_wheels)
        with bench.held:
            bench.prepare()
            rows = []
            for row in bench.rows(given.only):
                print("  ".join(row.cells()), file=sys.stderr, flush=True)
                rows.append(row)
    python = sys.version.split()[0]
    head = f"tenv {__version__}, Python {python}, {os.cpu_count()} cores, {given.rounds} rounds."
    text = f"{head}\n\n{table(rows)}"
    print(text, end="")
    if given.write:
        before, title, _ = given.write.read_text(encoding="utf-8").partition("## Last run\n")
        given.write.write_text(f"{before}{title}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
