"""The rows about conda packages: creating and solving, beside py-rattler, uv and an earlier release of tenv.

A channel of made packages and, for solving, the package lists of real channels are served on 127.0.0.1 by threads of
the benchmark, whose work counts on both sides alike.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from sides import Row, Run, run
from wheel_rows import SMALL, pinned

from tenv.host.machine import current_platform
from tenv.locks.lock_file import read_lock
from tenv.sources.conda.choose import virtual_packages
from tenv.targets.search import find_places

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from tests.support.channels import Channels, read_folder  # noqa: E402 (the path is set above)
from tests.support.conda import PLACEHOLDER, Channel, make_conda  # noqa: E402
from tests.support.fakes import noise  # noqa: E402

__all__ = ["CondaBench"]

PLAIN = """\
import asyncio, os, sys
from rattler import LockFile
from rattler.install import install
environment = LockFile.from_path(sys.argv[1]).environment(sys.argv[3])
records = environment.conda_repodata_records_for_platform(environment.platforms()[0])
asyncio.run(install(records, sys.argv[2], show_progress=False))
os._exit(0)
"""
LOOK = """\
import os, sys
for name in sys.stdin.read().splitlines(): os.lstat(name)
"""
"""A look at each file of the cache: an installer links them, so that an edit in one environment changes all."""

FETCH = """\
import hashlib, sys, urllib.request, zipfile
from concurrent.futures import ThreadPoolExecutor
import zstandard
def fetch(row):
    url, sha256, name = row.split()
    data = urllib.request.urlopen(url).read()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise SystemExit(name)
    with open(name, "wb") as file:
        file.write(data)
    with zipfile.ZipFile(name) as package:
        for part in package.namelist():
            if part.endswith(".zst"):
                with zstandard.ZstdDecompressor().stream_reader(package.open(part)) as reader:
                    while reader.read(1 << 20): pass
with ThreadPoolExecutor(8) as pool:
    for _ in pool.map(fetch, sys.stdin.read().splitlines()): pass
"""
"""Packages that are compared with their digests, and unpacked once to measure them, before rattler gets them."""

PLAIN_SOLVE = """\
import asyncio, json, os, sys
from pathlib import Path
from rattler import BuildString, ChannelPriority, Client, Config, Gateway, GenericVirtualPackage
from rattler import MatchSpec, PackageName, Subdir, Version, solve
asked = json.loads(Path(sys.argv[1]).read_text())
config = Config()
for url, served in asked["mirrors"].items():
    config.set(f'mirrors."{url}"', json.dumps(served))
gateway = Gateway.from_config(config, cache_dir=Path(sys.argv[2]), client=Client.from_config(config))
given = [GenericVirtualPackage(PackageName(n), Version(v), BuildString(b)) for n, (v, b) in asked["virtual"].items()]
found = asyncio.run(
    solve(
        asked["channels"],
        [MatchSpec(spec, strict=True) for spec in asked["specs"]],
        gateway=gateway,
        platforms=[Subdir(asked["platform"]), Subdir("noarch")],
        virtual_packages=given,
        channel_priority=ChannelPriority.Strict,
        channel_relations="disabled",
    )
)
Path(sys.argv[3]).write_text("".join(f"- conda: {record.url}\\n" for record in found))
os._exit(0)
"""
MINOR = ".".join(map(str, sys.version_info[:2]))
PACKAGES = 100
FILES = 150
"""Files of each package: a hundred packages then have 15,000, as an environment with CMake, Python and CUDA has."""
SOLVED = {"cuda121": 0.55, "cuda126": 0.49}
"""Targets of the earlier release that are solved, with the largest ratio that counts as met."""


class CondaBench:
    """Projects with conda packages, and what makes environments of them."""

    def __init__(
        self, folder: Path, tenv: Path, uv: tuple[str, Mapping[str, str]], before: Path | None, lists: Path | None
    ) -> None:
        """Store what is needed; nothing is made yet.

        Args:
            folder: An empty folder for everything.
            tenv: The program that is measured.
            uv: uv, and its environment variables.
            before: The program of an earlier release, and below its environment its manifests; None if it is absent.
            lists: The package lists of real channels; None if they are absent.
        """
        self.folder, self.tenv, self.uv, self.before, self.lists = folder, tenv, uv, before, lists
        self.held = ExitStack()
        self.project, self.earlier = folder / "conda", folder / "conda-before"
        self.ours = self.theirs = folder
        self.solved: dict[Path, set[str]] = {}
        self.mirrors: dict[str, list[str]] = {}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TENV_"))},
            "XDG_DATA_HOME": str(folder / "data"),
            "RATTLER_CACHE_DIR": str(folder / "packages"),
        }
        for name in ("PWD", "VIRTUAL_ENV"):
            self.environment.pop(name, None)

    def prepare(self) -> None:
        """Make packages of small files, of which one in twenty has a prefix to replace, and projects of them."""
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
        head = f'platforms = ["{current_platform()}"]\nchannels = ["{channel.root}"]\n'
        asked = "[dependencies]\n" + "".join(f'{package} = "*"\n' for package in names)
        wheels = "[pypi-dependencies]\n" + "".join(f'{wheel} = "*"\n' for wheel in SMALL)
        for project, program in ((self.project, self.tenv), (self.earlier, self.before)):
            (project / "manifests").mkdir(parents=True)
            (project / "manifests" / "plain.toml").write_text(head + asked)
            (project / "manifests" / "mixed.toml").write_text(f'python = "{MINOR}.*"\n{head}{asked}{wheels}')
            for target in ("plain", "mixed") if program else ():
                run([program, "lock", target], project, self.environment)
        if self.before and self.lists:
            self._serve_lists(self.lists)

    def _serve_lists(self, lists: Path) -> None:
        """Serve real package lists, with the manifests of the earlier release, which both sides solve."""
        read = {place: json.dumps(data).encode() for place, data in read_folder(lists, ()).items()}
        channels = self.held.enter_context(Channels(read))
        settings = self.folder / "configuration" / "tenv"
        settings.mkdir(parents=True)
        (settings / "config.toml").write_text(channels.settings())
        self.mirrors = {url: list(served) for url, served in channels.mirrors().items()}
        assert self.before
        [manifests] = self.before.parents[1].glob("lib/python*/site-packages/tenv/builtin/manifests")
        own = shutil.copytree(manifests, self.folder / "solving" / "manifests")
        for file in own.glob("*.toml"):  # without the archives, whose lists are on NVIDIA's server alone
            file.write_text(re.sub(r"(?ms)^\[archives\]\n.*?(?=^\[|\Z)", "", file.read_text()))

    def _prefix(self) -> Path:
        """Return a folder that was never there; see `wheel_rows.WheelBench.fresh`."""
        return Path(tempfile.mkdtemp(dir=self.folder)) / "environment"

    def create(self, target: str, *, earlier: bool = False, cold: bool = False) -> Run:
        """Create an environment; `cold` without any cache."""
        program, project = (self.before, self.earlier) if earlier else (self.tenv, self.project)
        prefix = self._prefix()
        if not earlier:
            self.ours = prefix
        words = [program, "create", target, "--frozen", "--prefix", prefix, "--quiet"]
        return run(words, project, self._cold() if cold else self.environment)

    def _cold(self) -> dict[str, str]:
        caches = Path(tempfile.mkdtemp(dir=self.folder))
        return {**self.environment, "RATTLER_CACHE_DIR": str(caches / "conda"), "TENV_CACHE_DIR": str(caches / "tenv")}

    def rattler(self, target: str, *, cold: bool = False) -> Run:
        """Install the conda packages of a lock with py-rattler alone, and its wheels with uv."""
        return self._rattler(target, self._cold() if cold else self.environment)

    def _rattler(self, target: str, environment: Mapping[str, str]) -> Run:
        prefix, lock = self._prefix(), self.project / "locks" / f"{target}.lock"
        self.theirs = prefix
        done = run([sys.executable, "-c", PLAIN, lock, prefix, target], self.project, environment)
        if target == "plain":
            return done
        uv, settings = self.uv
        made = run([uv, "venv", "--allow-existing", prefix, "--python", sys.executable], self.folder, settings)
        words = ("--no-deps", "--python", prefix / "bin" / "python", "--requirement", self._requirements(lock))
        return done + made + run([uv, "pip", "install", *words], self.folder, settings)

    def rattler_after_a_look(self, target: str) -> Run:
        """Do the same after a look at each file of the cache."""
        names = self.folder / "cached.txt"
        if not names.is_file():
            files = (path for path in (self.folder / "packages").rglob("share/**/*") if path.is_file())
            names.write_text("".join(f"{path}\n" for path in files))
        return run([sys.executable, "-c", LOOK], self.folder, self.environment, names) + self.rattler(target)

    def rattler_after_fetching(self) -> Run:
        """Fetch the packages, compare digests, measure what they unpack to, and install them with py-rattler."""
        environment, rows = self._cold(), self.folder / "rows.txt"
        fetched = Path(environment["TENV_CACHE_DIR"]) / "fetched"
        fetched.mkdir(parents=True)
        if not rows.is_file():
            found = read_lock(self.project / "locks" / "plain.lock", "plain").conda[current_platform()]
            rows.write_text("".join(f"{one.url} {one.sha256} {one.url.rpartition('/')[2]}\n" for one in found))
        return run([sys.executable, "-c", FETCH], fetched, environment, rows) + self._rattler("plain", environment)

    def _requirements(self, lock: Path) -> Path:
        file = self.folder / "mixed.txt"
        if not file.is_file():
            wheels = read_lock(lock, "mixed").wheels_for(current_platform(), MINOR)
            file.write_text(pinned(wheels))
        return file

    def solve(self, target: str, program: Path) -> Run:
        """Lock a target anew, with a cache of package lists for each program."""
        project = self.folder / "solving"
        shutil.rmtree(project / "locks", ignore_errors=True)
        cache = self.folder / ("lists-before" if program == self.before else "lists-now")
        places = {"XDG_CONFIG_HOME": str(self.folder / "configuration"), "RATTLER_CACHE_DIR": str(cache)}
        done = run([program, "lock", target], project, {**self.environment, **places})
        lines = (project / "locks" / f"{target}.lock").read_text().splitlines()
        self.solved[program] = {line.strip() for line in lines if line.lstrip().startswith("- conda: ")}
        return done

    def solve_plainly(self, target: str) -> Run:
        """Solve the same question with py-rattler alone, and choose the wheels with uv, which tenv does, too."""
        asked, wheels = self.folder / f"{target}.json", self.folder / f"{target}.txt"
        if not asked.is_file():
            manifest = find_places(self.folder / "solving").find(target).manifest.on(current_platform())
            question = {
                "mirrors": self.mirrors,
                "platform": current_platform(),
                "channels": manifest.sources(current_platform()),
                "specs": [request.spec(name) for name, request in sorted(manifest.dependencies.items())],
                "virtual": virtual_packages(current_platform(), manifest.requirements),
            }
            asked.write_text(json.dumps(question))
            rows = (f"{name}{request.version}".removesuffix("*") for name, request in manifest.wheels.items())
            wheels.write_text("".join(f"{row}\n" for row in rows))
        cache, found = self.folder / "lists-now" / "repodata", self.folder / "found.txt"
        done = run([sys.executable, "-c", PLAIN_SOLVE, asked, cache, found], self.folder, self.environment)
        self.solved[found] = set(found.read_text().splitlines())
        if not wheels.stat().st_size:
            return done
        uv, settings = self.uv
        return done + run([uv, "pip", "compile", "--quiet", "--python-version", "3.11", wheels], self.folder, settings)

    def check_same(self) -> None:
        """Stop when the two sides did not put the same packages there."""
        left, right = (
            {str(path.relative_to(root)) for path in root.rglob("*") if path.is_relative_to(root / "share")}
            | {path.name for path in root.glob("conda-meta/*.json")}
            for root in (self.ours, self.theirs)
        )
        if not left or left != right:
            raise SystemExit(f"the two environments differ: {sorted(left ^ right)[:5]}")

    def check_solved(self) -> None:
        """Stop when the two sides did not choose the same packages."""
        first, *others = self.solved.values()
        if not first or any(chosen != first for chosen in others):
            raise SystemExit("the two sides did not choose the same packages")

    def rows(self, rounds: int) -> Iterator[Row]:
        """Yield the comparisons, with the aims that the project has set itself."""
        few = max(rounds // 4, 1)
        for target, more, peer in (("plain", "", ""), ("mixed", f" and {len(SMALL)} wheels", " + uv")):
            yield Row(
                f"`create` of {PACKAGES} conda packages{more}, warm cache",
                lambda target=target: self.create(target),
                {f"py-rattler as a process{peer}": lambda target=target: self.rattler(target)},
                1.05,
                few * 2,
                last=self.check_same,
                floor=(
                    "a look at each cached file, then the peer",
                    lambda target=target: self.rattler_after_a_look(target),
                ),
            )
        if self.before is None:
            yield self._cold_row({"py-rattler as a process": lambda: self.rattler("plain", cold=True)}, None, few)
            return
        peers = {
            "tenv 2d00f5a": lambda: self.create("plain", earlier=True, cold=True),
            "py-rattler as a process": lambda: self.rattler("plain", cold=True),
        }
        yield self._cold_row(peers, 0.92, few)
        if self.lists:
            for target, aim in SOLVED.items():
                yield Row(
                    f"`lock` of {target}, warm lists",
                    lambda target=target: self.solve(target, self.tenv),
                    {"tenv 2d00f5a": lambda target=target: self.solve(target, self.before or self.tenv)},
                    aim,
                    few * 2,
                    last=self.check_solved,
                    floor=("py-rattler alone, and uv for wheels", lambda target=target: self.solve_plainly(target)),
                )

    def _cold_row(self, peers: Mapping[str, Callable[[], Run]], aim: float | None, rounds: int) -> Row:
        work = f"`create` of {PACKAGES} conda packages, no cache"
        floor = "fetching, digests and sizes in 20 lines, then py-rattler", self.rattler_after_fetching
        return Row(work, lambda: self.create("plain", cold=True), peers, aim, rounds, floor=floor)

    def close(self) -> None:
        """End the servers."""
        self.held.close()
