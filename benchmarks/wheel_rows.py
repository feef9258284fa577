"""The rows about wheels, the short commands, verification and fleets, beside uv, the bare interpreter and hashlib."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from reports import machine
from sides import Row, Run, run
from uv import find_uv_bin

from tenv.environment.state import Environment
from tenv.locks.lock import Wheel
from tenv.locks.lock_file import read_lock
from tenv.sources.wheels.index_settings import uv_settings
from tenv.sources.wheels.installed import Wheels
from tenv.targets.search import find_places

__all__ = ["DROP", "SMALL", "TENV", "UV", "WheelBench", "pinned", "short"]

TENV = Path(sys.executable).with_name("tenv")
UV = find_uv_bin()
DROP = Path("/proc/sys/vm/drop_caches")
FEW = 5  # rounds of what takes seconds
SMALL = ("cmake", "jinja2", "networkx", "ninja", "numpy", "packaging", "pyyaml", "requests", "sympy")
SHORT = (
    (("--version",), 1.2),
    (("run", "TARGET", "--", "true"), 2.0),
    (("activate", "TARGET", "--shell", "bash"), 2.0),
    (("list",), 1.8),
    (("create", "TARGET", "--frozen"), 2.0),
    (("check-driver",), 2.8),
)
"""The commands of every minute, with their aims."""
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

LOOK = """\
import csv, os, sys
from pathlib import Path
for record in Path(sys.argv[1]).glob("lib/python*/site-packages/*.dist-info/RECORD"):
    with open(record, newline="") as file:
        for name, _, size in csv.reader(file):
            if size and os.lstat(record.parents[1] / name).st_size != int(size):
                raise SystemExit(name)
"""
"""A look at each file that uv has put there, since it links them without one."""


class WheelBench:
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
        self.few = folder / "few"
        self.wheels: list[Wheel] = []
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
        return self._install(self.theirs, self.requirements, self.uv)

    def install_and_look(self, *, few: bool = False) -> Run:
        """Install with uv, then look at each file."""
        done = self.install_small() if few else self.install()
        return done + run([sys.executable, "-c", LOOK, self.theirs], self.folder, self.plain)

    def create_small(self) -> Run:
        """Create a few wheels without a cache."""
        words = [TENV, "create", "small", "--frozen", "--prefix", self.fresh(), "--quiet"]
        return run(words, self.few, {**self.plain, "UV_CACHE_DIR": str(self.fresh())})

    def install_small(self) -> Run:
        """Install the same wheels without a cache."""
        file, self.theirs = self.few / "requirements.txt", self.fresh()
        return self._install(self.theirs, file, {**self.uv, "UV_CACHE_DIR": str(self.fresh())})

    def _install(self, prefix: Path, requirements: Path, environment: Mapping[str, str]) -> Run:
        made = run([UV, "venv", prefix, "--python", self.python()], self.folder, environment)
        words = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--index-strategy", "unsafe-best-match")
        command = [UV, "pip", "install", "--python", prefix / "bin" / "python", *words, "--requirement", "-"]
        return made + run(command, self.folder, environment, requirements)

    def without_bytecode(self, *words: object) -> Run:
        """Run a command that finds no compiled module, neither of tenv nor of Python."""
        return run(words, self.folder, {**self.plain, "PYTHONPYCACHEPREFIX": str(self.fresh())})

    def in_bash(self, body: str) -> Run:
        """Run a line many times in a shell with the hook."""
        hook = self.folder / "hook.sh"
        if not hook.is_file():
            hook.write_bytes(self.output("hook", "bash"))
        loop = f". {hook}\nnothing() {{ :; }}\nfor ((i = 0; i < {ACTIVATIONS}; i++)); do {body}; done"
        return run(["bash", "--norc", "-c", loop], self.folder, self.plain)

    def in_bash_plainly(self) -> Run:
        """Source the stored script as often, and read the lock."""
        lock = find_places(self.folder).find(self.target).lock_file
        return self.in_bash(f". {self.prefix}/tenv-meta/activate.sh; text=$(<{lock}); size=${{#text}}")

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

    def load_after(self, command: str) -> Run:
        """Read a single report with a command, which loads what it judges by, and the others as plain JSON."""
        one = self.folder / "one.jsonl"
        if not one.is_file():
            one.write_text(self.reports().read_text(encoding="utf-8").partition("\n")[0], encoding="utf-8")
        return self.tenv(command, "--against", one) + self.load(self.reports())

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

    def prepare(self) -> None:
        """Make the environment, and write down what tenv installs, for uv to install the same."""
        self.tenv("create", self.target, "--frozen", "--quiet")
        state = Environment(self.prefix).state()
        if state is None:
            raise SystemExit(f"{self.prefix} has no state")
        lock = read_lock(find_places(self.folder).find(self.target).lock_file, self.target)
        self.wheels = [wheel for wheel in lock.wheels_for(state.platform, state.python) if not wheel.features]
        self.requirements.write_text(pinned(self.wheels))
        manifests = self.few / "manifests"
        manifests.mkdir(parents=True)
        asked = "".join(f'{name} = "*"\n' for name in SMALL)
        head = f'platforms = ["{state.platform}"]\npython = "{state.python}.*"\n'
        (manifests / "small.toml").write_text(f"{head}[pypi-dependencies]\n{asked}")
        run([TENV, "lock", "small"], self.few, self.plain)
        small = read_lock(self.few / "locks" / "small.lock", "small")
        (self.few / "requirements.txt").write_text(pinned(small.wheels_for(state.platform, state.python)))

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

    def rows(self, rounds: int) -> Iterator[Row]:
        """Yield the comparisons, with the aims that the project has set itself."""
        interpreter: Mapping[str, Callable[[], Run]] = {"`python -c pass`": self.bare}
        for words, aim in short(self.target):
            name = f"`tenv {' '.join(words)}`" + (", nothing to do" if words[0] == "create" else "")
            yield Row(name, lambda words=words: self.tenv(*words), interpreter, aim, rounds)
        yield Row(
            "`activate` by the hook of bash",
            lambda: self.in_bash(f"tenv activate {self.target}"),
            {"an empty function": lambda: self.in_bash("nothing")},
            rounds=rounds,
            each=ACTIVATIONS,
            most=0.001,
            floor=("the stored script, and the lock read for its size", self.in_bash_plainly),
        )
        few = min(FEW, rounds)
        uv = {"`uv venv` + `uv pip install`": self.install}
        several = min(rounds, 2 * FEW)
        looked = "the peer, then a look at each file"
        yield Row(
            f"`create {self.target}`, warm cache",
            self.create,
            uv,
            1.15,
            several,
            last=self.check_same,
            floor=(looked, self.install_and_look),
        )
        yield Row(
            f"`create` of {len(SMALL)} wheels and what they require, no cache",
            self.create_small,
            {"`uv venv` + `uv pip install`": self.install_small},
            1.03,
            several,
            floor=(looked, lambda: self.install_and_look(few=True)),
        )
        hashes = {"hashlib, a thread a core": self.hash_files}
        yield Row("`verify --no-probes`", lambda: self.tenv("verify", self.target, "--no-probes"), hashes, 1.1, few)
        for command, aim in (("check-driver", 2.0), ("check", 5.0)):
            work = f"`{command} --against` {MACHINES:,} reports, "
            yield Row(
                work + "one file",
                lambda command=command: self.tenv(command, "--against", self.reports()),
                {"`json.loads` of each": lambda: self.load(self.reports())},
                aim,
                few,
                floor=("one report, then `json.loads` of each", lambda command=command: self.load_after(command)),
            )
            yield Row(
                work + "a file each",
                lambda command=command: self.tenv(command, "--against", self.folder_of_reports()),
                {"`json.loads` of each": lambda: self.load(*sorted(self.folder_of_reports().iterdir()))},
                aim,
                few,
            )
        yield from self._cold_rows(rounds)

    def _cold_rows(self, rounds: int) -> Iterator[Row]:
        """Yield the comparisons with a dropped page cache."""
        if not os.access(DROP, os.W_OK):
            return
        few = min(FEW, rounds)
        bare = {"`python -c pass`": lambda: self.without_bytecode(sys.executable, "-c", "pass")}
        for words in (("run", self.target, "--", "true"), ("check-driver",)):
            work = f"`tenv {' '.join(words)}`, really cold"
            yield Row(work, lambda words=words: self.without_bytecode(TENV, *words), bare, rounds=few, first=drop)
        uv = {"`uv venv` + `uv pip install`": self.install}
        yield Row(f"`create {self.target}`, wheels on disk, really cold", self.create, uv, rounds=few, first=drop)


def pinned(wheels: Iterable[Wheel]) -> str:
    """Return wheels as requirements with their hashes."""
    return "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels)


def short(target: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the commands of every minute, with their aims."""
    for words, aim in SHORT:
        yield tuple(target if word == "TARGET" else word for word in words), aim


def drop() -> None:
    """Drop the page cache."""
    os.sync()
    DROP.write_text("3")
