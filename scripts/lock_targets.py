"""Make the locks of conda and archive targets that tenv ships, from package lists and redist manifests in a folder.

    python scripts/lock_targets.py CHANNELS [TARGET]... [--redist FOLDER] [--keep] [--exclude-newer TIME]

CHANNELS holds ``CHANNEL/PLATFORM/repodata.json``, each what the channel of that name serves. The lists are served on
127.0.0.1 as a mirror, so that the locks keep the channels' own URLs; so are NVIDIA's redist manifests,
``PRODUCT/redistrib_LABEL.json`` below `--redist` (``../redist`` beside CHANNELS when left out). Each target is solved
from nothing, with `--keep` from the lock that is there. Records whose source left out some of their fields
(``less-complete.json``) count only for packages that can't be had otherwise. Every record of a new lock is then
compared, field by field, with the one in the lists. With `--exclude-newer`, files that were uploaded later do not
count, so that the same time and the same lists give the same wheels. Archives by URL without a sha256, such as MAGMA's
tarballs, need `--trust-first-use`, which no shipped lock was made with. What is printed at the end is a table of what
each lock holds.
"""

import argparse
import datetime as dt
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tenv.__main__ import leave  # noqa: E402 (the path is set above)
from tenv.core.errors import NoSolutionError, TenvError  # noqa: E402
from tenv.locks.lock import Lock  # noqa: E402
from tenv.locks.lock_file import read_lock  # noqa: E402
from tenv.project.context import Context  # noqa: E402
from tenv.rattler_api.lockfile import read_records  # noqa: E402
from tenv.rattler_api.network import Network  # noqa: E402
from tenv.sources.interface import SolveOptions  # noqa: E402
from tenv.targets.config import Settings  # noqa: E402
from tenv.targets.layers import with_features  # noqa: E402
from tenv.targets.search import Target, find_places  # noqa: E402
from tenv.verbs.lock import lock_target  # noqa: E402
from tests.support.channels import Channels, differences, read_folder, records_of  # noqa: E402
from tests.support.redist import Server  # noqa: E402

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "python": ("python",),
    "cmake": ("cmake",),
    "ninja": ("ninja",),
    "gcc": ("gcc_impl_linux-64", "gcc_impl_linux-aarch64"),
    "nvcc": ("cuda-nvcc", "cuda-nvcc-impl", "cuda_nvcc"),
    "cuda-version": ("cuda-version",),
    "cuDNN": ("cudnn",),
    "MAGMA": ("libmagma", "magma-cuda117", "magma-cuda118", "magma-cuda121"),
    "MKL": ("mkl-static", "mkl-devel", "mkl"),
}
"""The columns of the table, each with the packages that fill it, the first of them that is there."""


@dataclass(frozen=True, slots=True)
class Mirrored(Context):
    """What every verb is given, with channels that come from here."""

    mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def settings(self) -> Settings:
        """Return settings that name the mirrors."""
        return Settings(mirrors=self.mirrors)

    def network(self) -> Network:
        """Return how conda channels are reached."""
        return Network(self.mirrors)


def read_redist(folder: Path) -> dict[str, bytes | Path]:
    """Return NVIDIA's redist manifests of a folder by the paths that its server has them at."""
    return {f"/compute/{path.parent.name}/redist/{path.name}": path for path in folder.glob("*/redistrib_*.json")}


def attempt(
    target: Target, lists: Mapping[str, Any], redist: Mapping[str, bytes | Path], limits: SolveOptions, *, keep: bool
) -> tuple[Lock, float]:
    """Lock a target; return its lock and the seconds that took.

    Args:
        target: The target.
        lists: The package lists.
        redist: NVIDIA's manifests.
        limits: Which files count.
        keep: Keep the versions of the lock that is there; else the target is locked from nothing.
    """
    with Channels(lists) as channels, Server(redist) as nvidia, tempfile.TemporaryDirectory() as cache:
        os.environ["RATTLER_CACHE_DIR"] = cache
        mirrors = {**channels.mirrors(), "https://developer.download.nvidia.com": (nvidia.url,)}
        context = Mirrored(mirrors=mirrors)
        start = time.perf_counter()
        lock_target(context, target, upgrade=() if keep else None, limits=limits)
        seconds = time.perf_counter() - start
    return read_lock(target.lock_home, target.name), seconds


def solve(
    target: Target, folder: Path, redist: Mapping[str, bytes | Path], limits: SolveOptions, *, keep: bool
) -> tuple[Lock, float, list[str]]:
    """Lock a target; return its lock, the seconds, and the packages for which incomplete records had to do."""
    try:
        return *attempt(target, read_folder(folder, ()), redist, limits, keep=keep), []
    except NoSolutionError:
        lock, _ = attempt(target, read_folder(folder), redist, limits, keep=keep)
    needed = sorted(name for name in incomplete(lock, folder))
    for name in list(needed):
        fewer = [other for other in needed if other != name]
        try:
            attempt(target, read_folder(folder, fewer), redist, limits, keep=keep)
        except NoSolutionError:
            continue
        needed = fewer
    return *attempt(target, read_folder(folder, needed), redist, limits, keep=keep), needed


def incomplete(lock: Lock, folder: Path) -> set[str]:
    """Return the packages of a lock whose record lacks some of its fields."""
    known: set[str] = set()
    for path in folder.rglob("less-complete.json"):
        known.update(json.loads(path.read_text()))
    return {package.name for packages in lock.conda.values() for package in packages if package.file in known}


def strange(lock: Lock, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what in a lock is not as the package lists have it, a line for each record."""
    found = []
    for platform in lock.platforms:
        for record in read_records(lock.text, lock.target, platform):
            there = known.get(record.url)
            other = differences(json.loads(record.to_json()), there) if there else "is in no list"
            if other:
                found.append(f"{record.url}: {other}")
    return found


def version(lock: Lock, platform: str, names: tuple[str, ...]) -> str:
    """Return the version of the first package of `names` that a lock has, or a dash."""
    found = {package.name: package.version for package in lock.conda.get(platform, ())}
    found = {**{wheel.name: wheel.version for wheel in lock.wheels.get(platform, ())}, **found}
    found = {**{row.name: row.version for row in lock.archives.get(platform, ())}, **found}
    return next((found[name] for name in names if name in found), "-")


def rows(lock: Lock, seconds: float) -> Iterator[list[str]]:
    """Yield the rows of a lock, one a platform."""
    for platform in lock.platforms:
        packages = lock.conda.get(platform, ())
        cells = [version(lock, platform, names) for names in COLUMNS.values()]
        yield [lock.target, platform, str(len(packages)), *cells, f"{seconds:.2f}"]


def main() -> int:
    """Lock the targets and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("channels", type=Path, help="the folder with the package lists")
    parser.add_argument("targets", nargs="*", help="all with conda packages or archives when left out")
    parser.add_argument("--redist", type=Path, help="the folder with NVIDIA's redist manifests")
    parser.add_argument("--keep", action="store_true", help="keep the versions of the locks that still fit")
    parser.add_argument(
        "--exclude-newer", type=dt.datetime.fromisoformat, help="a time in UTC after which no uploaded file counts"
    )
    parser.add_argument(
        "--trust-first-use", action="store_true", help="record digests of files without a published one"
    )
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    os.environ["PWD"] = str(ROOT)
    limits = SolveOptions(exclude_newer=arguments.exclude_newer, trust_first_use=arguments.trust_first_use)
    redist = read_redist(arguments.redist or arguments.channels.resolve().parent / "redist")
    places, known = find_places(), records_of(read_folder(arguments.channels))
    table, failed = [["target", "platform", "packages", *COLUMNS, "seconds"]], 0
    for name in arguments.targets or list(places.names()):
        target = places.find(name)
        whole = with_features(target.manifest)
        views = [whole.on(platform) for platform in whole.platforms]
        if not any(view.dependencies or view.archives for view in views):
            continue
        try:
            lock, seconds, lacking = solve(target, arguments.channels, redist, limits, keep=arguments.keep)
        except TenvError as error:
            failed += 1
            print(f"{name}: not locked: {error.message}\n  {error.hint}", file=sys.stderr)
            continue
        if lacking:
            print(f"{name}: the records of {', '.join(lacking)} lack some of their fields", file=sys.stderr)
        if wrong := strange(lock, known):
            failed += 1
            print(f"{name}: not as the lists have it:", *wrong, sep="\n  ", file=sys.stderr)
        table += rows(lock, seconds)
    if arguments.json:
        print(json.dumps([dict(zip(table[0], row, strict=True)) for row in table[1:]], indent=2))
    else:
        for row in table:
            print("| " + " | ".join(row) + " |")
    return 1 if failed else 0


if __name__ == "__main__":
    leave(main())
