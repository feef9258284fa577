"""Measure the installation of conda packages against plain py-rattler, in one run on one machine.

Run it with an interpreter that has tenv and its test extra:

    python benchmarks/conda_install.py --runs 5

A channel of packages is made and served on 127.0.0.1, and a first round that is not counted fills the package cache.
Then both sides take turns at an environment from the same lock and the same cache. micromamba and pixi are measured
where they are on PATH. Figures are medians.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tenv import __version__  # noqa: E402 (the path is set above)
from tenv.host.machine import current_platform  # noqa: E402
from tenv.targets.search import find_places  # noqa: E402
from tests.support.conda import PLACEHOLDER, Channel, make_conda, write_lock  # noqa: E402
from tests.support.fakes import noise  # noqa: E402

PLAIN = """\
import asyncio, os, sys
from rattler import LockFile
from rattler.install import install
environment = LockFile.from_path(sys.argv[1]).environment("bench")
records = environment.conda_repodata_records_for_platform(environment.platforms()[0])
asyncio.run(install(records, sys.argv[2], show_progress=False))
os._exit(0)
"""
FILES = 150
"""Files of each package: a hundred packages then have 15 000, as an environment with CMake, Python and CUDA has."""


def make_channel(folder: Path, packages: int) -> list[str]:
    """Make packages of small files; one file in twenty has a prefix to replace."""
    data = noise(1 << 16)
    names = [f"package{number}" for number in range(packages)]
    for index, name in enumerate(names):
        files: dict[str, str | bytes] = {}
        for number in range(FILES):
            start = (index * 31 + number * 7) % 50_000
            body = data[start : start + 500 + 97 * (number % 100)]
            text = f"{PLACEHOLDER}/{name}/{number}\n".encode() + body.hex().encode()
            files[f"share/{name}/{number}"] = text if number % 20 == 0 else body
        make_conda(folder, name, "1", files=files)  # type: ignore[arg-type]
    return names


def run(words: Sequence[object], folder: Path, environment: dict[str, str]) -> tuple[float, int]:
    """Return the seconds that a program takes, which must end well, and the bytes of its memory at its largest."""
    with tempfile.TemporaryFile() as talk:
        start = time.perf_counter()
        child = subprocess.Popen(list(map(str, words)), cwd=folder, env=environment, stdout=talk, stderr=talk)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            talk.seek(0)
            raise SystemExit(f"{words}: status {child.returncode}\n{talk.read().decode(errors='replace')}")
    return seconds, usage.ru_maxrss * 1024


def same(ours: Path, theirs: Path) -> None:
    """Stop when the two sides did not do the same work."""
    left, right = (
        {str(path.relative_to(root)) for path in root.rglob("*") if not str(path.relative_to(root)).startswith("tenv-")}
        for root in (ours, theirs)
    )
    if left != right:
        raise SystemExit(f"the two environments differ: {sorted(left ^ right)[:5]}")


def others(lock: Path, prefix: Path) -> dict[str, list[object]]:
    """Return the commands of other tools that are on PATH, by the name of the tool."""
    found: dict[str, list[object]] = {}
    if micromamba := shutil.which("micromamba"):
        urls = [line.split("conda: ")[1] for line in lock.read_text().splitlines() if line.startswith("- conda: ")]
        explicit = lock.with_suffix(".txt")
        explicit.write_text("\n".join(["@EXPLICIT", *urls]) + "\n")
        found["micromamba create -f"] = [micromamba, "create", "-y", "-q", "-p", prefix, "-f", explicit]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the installation of conda packages.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--packages", type=int, default=100)
    given = parser.parse_args()
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100 (the folder is changed below)
    with tempfile.TemporaryDirectory(prefix="tenv-bench-") as name, Channel(Path(name) / "channel") as channel:
        root = Path(name)
        names = make_channel(channel.folder, given.packages)
        channel.refresh()
        project = root / "project"
        (project / "manifests").mkdir(parents=True)
        asked = "".join(f'{package} = "*"\n' for package in names)
        manifest = f'platforms = ["{current_platform()}"]\nchannels = ["{channel.root}"]\n[dependencies]\n{asked}'
        (project / "manifests" / "bench.toml").write_text(manifest)
        os.chdir(project)
        write_lock(find_places(project).find("bench"), channel, names)
        measure(root, project, given.runs)


def measure(root: Path, project: Path, runs: int) -> None:
    """Print a row for each thing that is measured."""
    sources = os.pathsep.join(entry for entry in sys.path if entry)  # absolute, whatever PYTHONPATH says
    environment = {**os.environ, "RATTLER_CACHE_DIR": str(root / "packages"), "PWD": str(project)}
    environment["PYTHONPATH"] = sources
    ours, theirs, lock = root / "env-tenv", root / "env-them", project / "locks" / "bench.lock"
    create = [sys.executable, "-m", "tenv", "create", "bench", "--frozen", "--prefix", ours, "--quiet"]

    def fresh(prefix: Path, words: Sequence[object]) -> Callable[[], tuple[float, int]]:
        def once() -> tuple[float, int]:
            if prefix.exists():  # moved and not removed: for a minute ext4 looks long for inodes if many were freed
                prefix.rename(Path(tempfile.mkdtemp(dir=root)) / prefix.name)
            return run(words, project, environment)

        return once

    plain = [sys.executable, "-c", PLAIN, lock, theirs]
    rows = {
        "create, warm cache / plain py-rattler": (fresh(ours, create), fresh(theirs, plain), "1.15x"),
        **{
            f"create, warm cache / {tool}": (fresh(ours, create), fresh(theirs, words), "")
            for tool, words in others(lock, theirs).items()
        },
        "create, nothing to do / python -c pass": (
            lambda: run(create, project, environment),
            lambda: run([sys.executable, "-c", "pass"], project, environment),
            "+150 ms",
        ),
    }
    head = {"tenv": __version__, "python": sys.version.split()[0], "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    print(json.dumps(head))
    for title, (one, other, aim) in rows.items():
        pairs = [(one(), other()) for _ in range(runs + 1)][1:]
        if "plain" in title:
            same(ours, theirs)
        mine, his = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
        memory = [max(pair[side][1] for pair in pairs) / (1 << 20) for side in (0, 1)]
        result = f"{mine / his:.2f}x" if "nothing" not in title else f"+{(mine - his) * 1000:.0f} ms"
        print(
            f"{title:<46}{mine * 1000:>8.0f} ms{his * 1000:>8.0f} ms{result:>10}  aim {aim or '-':<8}"
            f"memory {memory[0]:.0f}, {memory[1]:.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
