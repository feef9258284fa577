"""Measure the solve of a conda target beside plain py-rattler, in one run on one machine.

    python benchmarks/solve.py --channels FOLDER --target cuda126

FOLDER holds package lists, CHANNEL/PLATFORM/repodata.json; the excerpt that the tests use when left out (which has all
of cuda121 only). Both sides read the same lists from a server on 127.0.0.1, first with an empty cache each time, then
with one that is filled, ask for the same packages, and must choose the same. Each solve is a process of its own; what
is taken is the time from the requests to the records, without the start of Python
and its imports, and the memory of the process. Sides take turns; the figure is the quickest run of each, since what
else a machine does only adds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.support.channels import EXCERPT, Channels, read_folder  # noqa: E402 (the path is set above)

OURS = """\
import asyncio, json, os, rattler, sys, time
from tenv.rattler_api.network import Network
from tenv.sources.conda.choose import Conda
from tenv.core.progress import Silent
from tenv.targets.search import find_places
given = json.load(sys.stdin)
manifest = find_places().find(given["target"]).manifest
start = time.perf_counter()
answer = Conda(Network(given["mirrors"])).resolve(manifest, {}, Silent())
urls = sorted(record.url for records in answer.values() for record in records)
print(json.dumps([time.perf_counter() - start, urls]), flush=True)
os._exit(0)
"""

PLAIN = """\
import asyncio, json, os, rattler, sys, time
from rattler.config import Config
given = json.load(sys.stdin)
start = time.perf_counter()
mirrors = "".join(f"{json.dumps(url)} = {json.dumps(served)}\\n" for url, served in given["mirrors"].items())
config = Config.from_toml("[mirrors]\\n" + mirrors)
gateway = rattler.Gateway.from_config(config, cache_dir=os.environ["RATTLER_CACHE_DIR"] + "/repodata")
virtual = [
    rattler.GenericVirtualPackage(rattler.PackageName(name), rattler.Version(version), rattler.BuildString(build))
    for name, (version, build) in given["virtual"].items()
]
solve = rattler.solve(
    given["channels"], given["specs"], gateway=gateway, platforms=["linux-64", "noarch"], virtual_packages=virtual
)
urls = sorted(record.url for record in asyncio.run(solve))
print(json.dumps([time.perf_counter() - start, urls]), flush=True)
os._exit(0)
"""


@dataclass(frozen=True)
class Run:
    """One solve: its seconds, the memory of its process in bytes, and what it chose."""

    seconds: float
    memory: int
    urls: tuple[str, ...]


def run(program: str, given: str, cache: Path) -> Run:
    """Run one side once."""
    environment = {**os.environ, "RATTLER_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT / "src"), "PWD": str(ROOT)}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as talk, tempfile.TemporaryFile() as words:
        words.write(given.encode())
        words.seek(0)
        child = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, stdin=words, stdout=out, stderr=talk
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            talk.seek(0)
            raise SystemExit(f"status {child.returncode}\n{talk.read().decode(errors='replace')}")
        out.seek(0)
        seconds, urls = json.load(out)
    return Run(seconds, usage.ru_maxrss * 1024, tuple(urls))


def question(target: str, channels: Channels) -> str:
    """Return what both sides are asked, as JSON."""
    from tenv.sources.conda.choose import virtual_packages  # late: the path is set above
    from tenv.targets.search import find_places

    manifest = find_places(ROOT).find(target).manifest.on("linux-64")
    asked = {
        "target": target,
        "mirrors": {url: list(served) for url, served in channels.mirrors().items()},
        "channels": manifest.sources(),
        "specs": [request.spec(name) for name, request in sorted(manifest.dependencies.items())],
        "virtual": virtual_packages("linux-64", manifest.requirements),
    }
    return json.dumps(asked)


def measure(given: str, folder: Path, runs: int, *, warm: bool) -> tuple[list[Run], list[Run]]:
    """Return the runs of both sides, which take turns; the first turn is not counted."""
    ours, plain = [], []
    for turn in range(runs + 1):
        for side, program, rows in (("ours", OURS, ours), ("plain", PLAIN, plain)):
            rows.append(run(program, given, folder / (side if warm else f"{side}-{turn}")))
    return ours[1:], plain[1:]


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels", type=Path, default=EXCERPT, help="the folder with the package lists")
    parser.add_argument("--target", default="cuda126", help="a target for linux-64")
    parser.add_argument("--runs", type=int, default=7, help="runs of each side")
    given = parser.parse_args()
    lists = {place: json.dumps(data).encode() for place, data in read_folder(given.channels, ()).items()}
    with Channels(lists) as channels, tempfile.TemporaryDirectory() as folder:
        asked = question(given.target, channels)
        machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        print(f"solve of {given.target} beside plain py-rattler, quickest of {given.runs}, {machine}\n")
        print(f"{'':<14}{'tenv':>10}{'plain':>10}{'ratio':>8}{'aim':>8}   memory of the process")
        for warm in (False, True):
            ours, plain = measure(asked, Path(folder), given.runs, warm=warm)
            if {run.urls for run in ours} != {run.urls for run in plain}:
                raise SystemExit("the two sides did not choose the same packages")
            mine, other = (min(run.seconds for run in rows) for rows in (ours, plain))
            peaks = [max(run.memory for run in rows) / (1 << 20) for rows in (ours, plain)]
            name = "warm cache" if warm else "empty cache"
            print(
                f"{name:<14}{mine * 1000:>7.0f} ms{other * 1000:>7.0f} ms{mine / other:>7.2f}x{'1.15x':>8}"
                f"   {peaks[0]:.0f} MiB, {peaks[1]:.0f} MiB   {len(ours[0].urls)} packages"
            )


if __name__ == "__main__":
    main()
