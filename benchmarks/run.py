"""Measure tenv beside its peers, in turns, in one run on one machine.

Install the wheel of tenv in a virtual environment; the program `tenv` beside the interpreter is what is measured:

    python benchmarks/run.py --rounds 20 --target cuda130 --write docs/benchmarks.md

`--only reports` runs the rows whose work holds that word. Peers that are not on PATH are named as absent. Both sides of
a row use the same cache, the same wheels, the same Python and the same kind of links, and check every hash. The rows
on conda packages, archives and solving have programs of their own: `conda_install.py`, `archives.py`, `solve.py`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from page import lines
from reports import machine
from sides import Figure, Row, Run, measure, run
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
PEERS = ("pixi", "micromamba", "conda")
FEW = 5  # rounds of what takes seconds
MACHINES = 10_000
ACTIVATIONS = 200
LOAD = "import json, sys\nfor name in sys.argv[1:]:\n for line in open(name): json.loads(line)"
HASH = """\
import hashlib, os, sys
from concurrent.futures import ThreadPoolExecutor
def one(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
with ThreadPoolExecutor(os.cpu_count()) as pool:
    for _ in pool.map(one, sys.stdin.read().splitlines(), chunksize=16): pass
"""


class Bench:
    """The commands that are measured.

    Attributes:
        target: The target that is created.
        folder: A project of its own, with the user's data folder in it.
    """

    def __init__(self, target: str, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.prefix = folder / ".tenv" / "envs" / target
        self.ours = self.theirs = folder
        self.requirements = folder / "requirements.txt"
        (folder / "tenv.toml").touch()
        # Without PYTHONDONTWRITEBYTECODE and its like: the uncounted round compiles what an installer would have.
        dropped = ("PWD", "VIRTUAL_ENV", "PYTHON", "TENV_")
        self.plain = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.plain["XDG_DATA_HOME"] = str(folder / "data")
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
        return made + run(command, self.folder, self.uv, self.requirements)

    def in_bash(self, body: str) -> Run:
        """Run a line many times in a shell with the hook."""
        hook = self.folder / "hook.sh"
        if not hook.is_file():
            hook.write_bytes(self.output("hook", "bash"))
        loop = f". {hook}\nnothing() {{ :; }}\nfor ((i = 0; i < {ACTIVATIONS}; i++)); do {body}; done"
        return run(["bash", "--norc", "-c", loop], self.folder, self.plain)

    def output(self, *words: str) -> bytes:
        done = subprocess.run([TENV, *words], cwd=self.folder, env=self.plain, capture_output=True, check=True)
        return done.stdout

    def reports(self) -> Path:
        """Return a file with a report a line, of machines that differ in driver, GPU, memory and disk."""
        file = self.folder / "fleet.jsonl"
        if not file.is_file():
            plain = json.loads(self.output("host", "--json"))["data"]
            with file.open("w", encoding="utf-8") as rows:
                rows.writelines(json.dumps(machine(plain, number)) + "\n" for number in range(MACHINES))
        return file

    def folder_of_reports(self) -> Path:
        """Return a folder with the same reports, a file each."""
        folder = self.folder / "fleet"
        if not folder.is_dir():
            folder.mkdir()
            for number, line in enumerate(self.reports().read_text(encoding="utf-8").splitlines()):
                (folder / f"node{number}.json").write_text(line, encoding="utf-8")
        return folder

    def load(self, *files: Path) -> Run:
        return run([sys.executable, "-c", LOAD, *files], self.folder, self.plain)

    def hash_files(self) -> Run:
        """Hash the files of the environment in a thread a core."""
        names = self.folder / "files.txt"
        if not names.is_file():
            found = (path for path in self.prefix.rglob("*") if path.is_file() and not path.is_symlink())
            names.write_text("".join(f"{path}\n" for path in found))
        return run([sys.executable, "-c", HASH], self.folder, self.plain, names)

    def python(self) -> Path:
        """Return the Python that tenv took."""
        return (self.prefix / "bin" / "python").resolve()

    def prepare(self) -> list[Wheel]:
        """Make the environment, and write down what tenv installs, for uv to install the same."""
        self.tenv("create", self.target, "--frozen", "--quiet")
        state = Environment(self.prefix).state()
        if state is None:
            raise SystemExit(f"{self.prefix} has no state")
        lock = read_lock(find_places(self.folder).find(self.target).lock_file, self.target)
        wheels = [wheel for wheel in lock.wheels_for(state.platform, state.python) if not wheel.features]
        self.requirements.write_text(
            "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels)
        )
        return wheels

    def check_same(self) -> None:
        """Stop when the two sides did not do the same work."""
        if Wheels(self.ours).versions() != Wheels(self.theirs).versions():
            raise SystemExit("the two environments do not hold the same packages")
        if self.links(self.ours) != self.links(self.theirs):
            raise SystemExit("the two environments are not linked to the cache in the same way")

    @staticmethod
    def links(prefix: Path) -> str:
        """Return how a package's files came from the cache."""
        record = Wheels(prefix).distributions()[0] / "METADATA"
        return "hard links" if record.stat().st_nlink > 1 else "copies or reflinks"


def rows(bench: Bench, rounds: int) -> Iterator[Row]:
    """Yield the comparisons, with the aims that the project has set itself."""
    interpreter: Mapping[str, Callable[[], Run]] = {"`python -c pass`": bench.bare}
    for words, aim in (
        (("--version",), 1.2),
        (("run", bench.target, "--", "true"), 2.0),
        (("activate", bench.target, "--shell", "bash"), 2.0),
        (("list",), 1.8),
        (("create", bench.target, "--frozen"), 2.0),
        (("check-driver",), 2.8),
    ):
        name = f"`tenv {' '.join(words)}`" + (", nothing to do" if words[0] == "create" else "")
        yield Row(name, lambda words=words: bench.tenv(*words), interpreter, aim, rounds)
    yield Row(
        "`activate` by the hook of bash",
        lambda: bench.in_bash(f"tenv activate {bench.target}"),
        {"an empty function": lambda: bench.in_bash("nothing")},
        rounds=rounds,
        each=ACTIVATIONS,
        most=0.001,
    )
    few = min(FEW, rounds)
    uv = {"`uv venv` + `uv pip install`": bench.install}
    yield Row(f"`create {bench.target}`, warm cache", bench.create, uv, 1.15, min(rounds, 2 * FEW))
    hashes = {"hashlib, a thread a core": bench.hash_files}
    yield Row("`verify --no-probes`", lambda: bench.tenv("verify", bench.target, "--no-probes"), hashes, 1.1, few)
    for command, aim in (("check-driver", 2.0), ("check", 5.0)):
        work = f"`{command} --against` {MACHINES:,} reports, "
        yield Row(
            work + "one file",
            lambda command=command: bench.tenv(command, "--against", bench.reports()),
            {"`json.loads` of each": lambda: bench.load(bench.reports())},
            aim,
            few,
        )
        yield Row(
            work + "a file each",
            lambda command=command: bench.tenv(command, "--against", bench.folder_of_reports()),
            {"`json.loads` of each": lambda: bench.load(*sorted(bench.folder_of_reports().iterdir()))},
            aim,
            few,
        )


def figures(bench: Bench, chosen: list[Row]) -> Iterator[Figure]:
    """Yield each row when it is measured."""
    for row in chosen:
        figure = measure(row)
        if "warm cache" in row.work:
            bench.check_same()
        yield figure


def head(bench: Bench, wheels: list[Wheel]) -> str:
    """Return a paragraph about what is measured where."""
    size = sum(wheel.size or 0 for wheel in wheels) / (1 << 20)
    absent = [peer for peer in PEERS if not shutil.which(peer)]
    named = f" Absent: {', '.join(absent)}." if absent else ""
    return (
        f"tenv {__version__}, {bench.target} with {len(wheels)} wheels of {size:.0f} MiB, Python "
        f"{sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.{named}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure tenv beside its peers.")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of the short commands")
    parser.add_argument("--target", default="cuda130", help="the target to create")
    parser.add_argument("--folder", type=Path, help="where environments are made; best on the disk of uv's cache")
    parser.add_argument("--only", default="", help="the rows whose work holds this text")
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    given = parser.parse_args()
    if not TENV.is_file():
        raise SystemExit(f"there is no {TENV}: install tenv in this interpreter")
    with tempfile.TemporaryDirectory(prefix="tenv-bench-", dir=given.folder) as folder:
        bench = Bench(given.target, Path(folder).resolve())
        about = head(bench, bench.prepare())
        chosen = [row for row in rows(bench, given.rounds) if given.only in row.work]
        print(about, end="\n\n", flush=True)
        table = []
        for line in lines(figures(bench, chosen)):
            print(line, flush=True)
            table.append(line)
    if given.write:
        before, mark, _ = given.write.read_text(encoding="utf-8").partition("## Last run\n")
        if not mark:
            raise SystemExit(f"{given.write} has no heading `Last run`")
        given.write.write_text(before + mark + "\n".join(["", about, "", *table, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
