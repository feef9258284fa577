"""Make the locks that tenv ships, from package lists and redist manifests in a folder, or compare them with new ones.

    python scripts/lock_targets.py CHANNELS [TARGET]... [--check] [--redist FOLDER] [--keep] [--exclude-newer TIME]

CHANNELS holds ``CHANNEL/PLATFORM/repodata.json``, each what the channel of that name serves. The lists are served on
127.0.0.1 as a mirror, so that the locks keep the channels' own URLs; so are NVIDIA's redist manifests,
``PRODUCT/redistrib_LABEL.json`` below `--redist` (``../redist`` beside CHANNELS when left out). Each target is solved
from nothing, with `--keep` from the lock that is there. Records whose source left out some of their fields
(``less-complete.json``) count only for packages that can't be had otherwise. Every record of a new lock is then
compared, field by field, with the one in the lists, and each archive with the sha256 and size in NVIDIA's manifest.

Wheels come from the package index, without files that were uploaded after `--exclude-newer`, which is `WHEELS_OF` when
left out: the same time and the same lists give the same locks, to the byte. `--check` writes none, and ends with 1 when
a lock that is there differs from a new one. Archives by URL without a sha256, such as MAGMA's tarballs, need
`--trust-first-use`, which no shipped lock was made with. What is printed at the end is a table of what each lock holds.
"""

import argparse
import datetime as dt
import json
import os
import shutil
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
from tenv.sources.wheels.uv import Uv  # noqa: E402
from tenv.targets.config import Settings  # noqa: E402
from tenv.targets.search import Target, find_places  # noqa: E402
from tenv.verbs.lock import lock_target  # noqa: E402
from tests.support.channels import Channels, differences, read_folder, records_of  # noqa: E402
from tests.support.redist import Server  # noqa: E402

WHEELS_OF = dt.datetime(2026, 11, 18, tzinfo=dt.UTC)
"""The time up to which the wheels of the shipped locks were uploaded. Renew it with the locks.

It lies some days back: a mirror of the package index shows a file days after its upload, and a lock of today would
differ from one of tomorrow with a time that a mirror has not reached.
"""

NVIDIA = "https://developer.download.nvidia.com"

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
    """Where each server is served."""
    wheels_of: dt.datetime = WHEELS_OF
    """The time after which no uploaded wheel counts. The lists of channels count whole, since some of their records
    have no time."""

    def uv(self) -> Uv:
        """Return uv, which looks at no wheel that is newer."""
        uv = super(Mirrored, self).uv()  # zero-argument super() fails in dataclasses with slots
        uv.environment = {**uv.environment, "UV_EXCLUDE_NEWER": f"{self.wheels_of:%Y-%m-%dT%H:%M:%SZ}"}
        return uv

    def settings(self) -> Settings:
        """Return settings that name the mirrors."""
        return Settings(mirrors=self.mirrors)

    def network(self) -> Network:
        """Return how conda channels are reached."""
        return Network(self.mirrors)


def read_redist(folder: Path) -> dict[str, bytes | Path]:
    """Return NVIDIA's redist manifests of a folder by the paths that its server has them at."""
    return {f"/compute/{path.parent.name}/redist/{path.name}": path for path in folder.glob("*/redistrib_*.json")}


def listed_files(redist: Mapping[str, bytes | Path]) -> dict[str, tuple[str, int]]:
    """Return the sha256 and the size of every file that NVIDIA's manifests list, by its URL."""
    found: dict[str, tuple[str, int]] = {}

    def collect(home: str, value: object) -> None:
        if not isinstance(value, dict):
            return
        if "relative_path" in value:
            found[f"{NVIDIA}{home}/{value['relative_path']}"] = value["sha256"], int(value["size"])
        for inner in value.values():
            collect(home, inner)

    for path, file in redist.items():
        text = file.read_bytes() if isinstance(file, Path) else file
        collect(path.rpartition("/")[0], json.loads(text))
    return found


@dataclass(frozen=True, slots=True)
class Given:
    """What locks are made from."""

    folder: Path
    """The package lists."""
    redist: Mapping[str, bytes | Path]
    """NVIDIA's manifests, by their paths."""
    wheels_of: dt.datetime
    """The time after which no uploaded wheel counts."""
    limits: SolveOptions
    """Other options of the selection."""
    keep: bool
    """Keep the versions of the lock that is there; else a target is locked from nothing."""

    def attempt(self, target: Target, lists: Mapping[str, Any]) -> tuple[Lock, float]:
        """Lock a target from some package lists; return its lock and the seconds that took."""
        with Channels(lists) as channels, Server(self.redist) as nvidia, tempfile.TemporaryDirectory() as cache:
            os.environ["RATTLER_CACHE_DIR"] = cache
            context = Mirrored(mirrors={**channels.mirrors(), NVIDIA: (nvidia.url,)}, wheels_of=self.wheels_of)
            path = Path(cache) / f"{target.name}.lock"
            if self.keep and target.lock_home.is_file():
                shutil.copy(target.lock_home, path)
            start = time.perf_counter()
            lock_target(context, target, upgrade=() if self.keep else None, path=path, limits=self.limits)
            seconds = time.perf_counter() - start
            return read_lock(path, target.name), seconds

    def solve(self, target: Target) -> tuple[Lock, float, list[str]]:
        """Lock a target; return its lock, the seconds, and the packages for which incomplete records had to do."""
        try:
            return *self.attempt(target, read_folder(self.folder, ())), []
        except NoSolutionError:
            lock, _ = self.attempt(target, read_folder(self.folder))
        needed = sorted(name for name in incomplete(lock, self.folder))
        for name in list(needed):
            fewer = [other for other in needed if other != name]
            try:
                self.attempt(target, read_folder(self.folder, fewer))
            except NoSolutionError:
                continue
            needed = fewer
        return *self.attempt(target, read_folder(self.folder, needed)), needed


def incomplete(lock: Lock, folder: Path) -> set[str]:
    """Return the packages of a lock whose record lacks some of its fields."""
    known: set[str] = set()
    for path in folder.rglob("less-complete.json"):
        known.update(json.loads(path.read_text()))
    return {package.name for packages in lock.conda.values() for package in packages if package.file in known}


def strange(lock: Lock, known: Mapping[str, Mapping[str, Any]], listed: Mapping[str, tuple[str, int]]) -> list[str]:
    """Return what in a lock is not as the package lists and NVIDIA's manifests have it, a line for each file."""
    found = []
    for platform in lock.platforms:
        for record in read_records(lock.text, lock.target, platform):
            there = known.get(record.url)
            other = differences(json.loads(record.to_json()), there) if there else "is in no list"
            if other:
                found.append(f"{record.url}: {other}")
        found += [
            f"{row.url}: {row.sha256}, {row.size} bytes; NVIDIA lists {listed.get(row.url)}"
            for row in lock.archives.get(platform, ())
            if listed.get(row.url) != (row.sha256, row.size)
        ]
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
        counts = [str(len(held.get(platform, ()))) for held in (lock.conda, lock.archives, lock.wheels)]
        cells = [version(lock, platform, names) for names in COLUMNS.values()]
        yield [lock.target, platform, *counts, *cells, f"{seconds:.2f}"]


def parsed() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("channels", type=Path, help="the folder with the package lists")
    parser.add_argument("targets", nargs="*", help="all when left out")
    parser.add_argument("--check", action="store_true", help="write no lock; compare each with a new one")
    parser.add_argument("--redist", type=Path, help="the folder with NVIDIA's redist manifests")
    parser.add_argument("--keep", action="store_true", help="keep the versions of the locks that still fit")
    parser.add_argument(
        "--exclude-newer",
        type=dt.datetime.fromisoformat,
        default=WHEELS_OF,
        help=f"a time in UTC after which no uploaded wheel counts ({WHEELS_OF:%Y-%m-%d})",
    )
    parser.add_argument(
        "--trust-first-use", action="store_true", help="record digests of files without a published one"
    )
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    return parser.parse_intermixed_args()


def judge(target: Target, lock: Lock, *, check: bool) -> bool:
    """Write a new lock, or compare it with the one that is there; return whether that one is as it should be."""
    home = target.lock_home
    same = home.is_file() and home.read_bytes() == lock.text
    if check:
        print(f"{target.name}: {'the same to the byte' if same else 'DIFFERS from a new lock'}", file=sys.stderr)
        return same
    home.write_bytes(lock.text)
    return True


def main() -> int:
    """Lock the targets and print the table."""
    arguments = parsed()
    os.chdir(ROOT)
    os.environ["PWD"] = str(ROOT)
    redist = read_redist(arguments.redist or arguments.channels.resolve().parent / "redist")
    limits = SolveOptions(trust_first_use=arguments.trust_first_use)
    given = Given(arguments.channels, redist, arguments.exclude_newer, limits, arguments.keep)
    places, known, listed = find_places(), records_of(read_folder(arguments.channels)), listed_files(redist)
    table, failed = [["target", "platform", "packages", "archives", "wheels", *COLUMNS, "seconds"]], 0
    for name in arguments.targets or list(places.names()):
        target = places.find(name)
        try:
            lock, seconds, lacking = given.solve(target)
        except TenvError as error:
            failed += 1
            print(f"{name}: not locked: {error.message}\n  {error.hint}", file=sys.stderr)
            continue
        if lacking:
            print(f"{name}: the records of {', '.join(lacking)} lack some of their fields", file=sys.stderr)
        if wrong := strange(lock, known, listed):
            failed += 1
            print(f"{name}: not as the lists have it:", *wrong, sep="\n  ", file=sys.stderr)
        failed += not judge(target, lock, check=arguments.check)
        table += rows(lock, seconds)
    if arguments.json:
        print(json.dumps([dict(zip(table[0], row, strict=True)) for row in table[1:]], indent=2))
    else:
        for row in table:
            print("| " + " | ".join(row) + " |")
    return 1 if failed else 0


if __name__ == "__main__":
    leave(main())
