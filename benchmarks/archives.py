"""Measure how tenv fetches and unpacks archives against the tools that people use for it, in one run on one machine.

    python benchmarks/archives.py --runs 3 --folder /some/disk

Five archives of 100 MB come from a server on this machine, which does nothing but send files: tenv fetches them in five
connections, compares their sha256 while they are written, and keeps them by it; so does a program of 15 lines that
keeps nothing; `curl --parallel` fetches them and `sha256sum` compares; `aria2c`, where it is, does both by itself. Then
one `tar.xz` is unpacked by tenv, which looks at every name and link and hashes every file, and by `tar`. Sides take
turns; figures are medians; the first round is not counted.
"""

import argparse
import hashlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

COUNT = 5
SIZE = 100_000_000
HERE = Path(__file__).parent.parent / "src"

FETCH = """\
import sys, threading
from pathlib import Path
from tenv.sources.archives.download import Fetcher
from tenv.sources.archives.partial_file import RemoteFile
from tenv.sources.archives.store import Store
store = Store(Path(sys.argv[1]))
fetcher = Fetcher()
threads = [
    threading.Thread(target=store.fetch, args=(fetcher, RemoteFile(url, url, sha256, int(size))))
    for url, sha256, size in (line.split() for line in sys.stdin)
]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len([path for path in (store.folder / "files").iterdir()]) == len(threads)
"""

PLAIN = """\
import hashlib, sys, threading, urllib.request
def fetch(url, sha256, name):
    digest = hashlib.sha256()
    with urllib.request.urlopen(url) as answer, open(name, "wb") as file:
        while piece := answer.read(1 << 20):
            file.write(piece)
            digest.update(piece)
    if digest.hexdigest() != sha256:
        raise SystemExit(name)
rows = [line.split() for line in sys.stdin]
threads = [threading.Thread(target=fetch, args=(url, sha256, f"{sys.argv[1]}/{sha256}")) for url, sha256, _ in rows]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
"""What a program of 15 lines does: fetch in threads, and hash while it writes."""

UNPACK = """\
import sys
from pathlib import Path
from tenv.sources.archives.unpack import unpack
unpack(Path(sys.argv[1]), "tar.xz", Path(sys.argv[2]))
"""


@dataclass(frozen=True)
class Run:
    """Wall time and CPU time in seconds, and the memory of the largest process in KiB."""

    seconds: float
    cpu: float
    memory: int


def run(words: Sequence[object], text: str = "") -> Run:
    """Run a program to its end, which must be a good one; return what it took."""
    start = time.perf_counter()
    with subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, env=environment()) as child:
        assert child.stdin
        child.stdin.write(text.encode())
        child.stdin.close()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{words[0]} ended with status {child.returncode}")
    return Run(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


def serve(folder: Path) -> "tuple[subprocess.Popen[bytes], str]":
    """Start a server of a folder in a process of its own."""
    code = (
        "import http.server, functools, sys\n"
        "class H(http.server.SimpleHTTPRequestHandler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    def log_message(self, *a): pass\n"
        "    def copyfile(self, source, out): self.connection.sendfile(source)\n"
        "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(H, directory=sys.argv[1]))\n"
        "print(s.server_port, flush=True)\n"
        "s.serve_forever()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
    assert child.stdout
    return child, f"http://127.0.0.1:{int(child.stdout.readline())}"


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


class Downloads:
    """Five files, and three ways to fetch them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        source = fresh(home / "served")
        self.digests = {}
        for number in range(COUNT):
            # In pieces: what this process holds counts as memory of the programs that it starts.
            noise, digest = random.Random(number), hashlib.sha256()  # noqa: S311 (the same bytes on every machine)
            with (source / f"f{number}").open("wb") as file:
                for _ in range(SIZE // 1_000_000):
                    data = noise.randbytes(1_000_000)
                    digest.update(data)
                    file.write(data)
            self.digests[f"f{number}"] = digest.hexdigest()
        self.server, self.url = serve(source)

    def rows(self) -> str:
        return "".join(f"{self.url}/{name} {sha256} {SIZE}\n" for name, sha256 in self.digests.items())

    def tenv(self) -> Run:
        return run([sys.executable, "-c", FETCH, fresh(self.home / "tenv")], self.rows())

    def plain(self) -> Run:
        return run([sys.executable, "-c", PLAIN, fresh(self.home / "plain")], self.rows())

    def curl(self, *, compare: bool = True) -> Run:
        folder = fresh(self.home / "curl")
        sums = "".join(f"{sha256}  {folder}/{name}\n" for name, sha256 in self.digests.items())
        words = ["curl", "-sSf", "--no-progress-meter", "--parallel", "--output-dir", folder, "--remote-name-all"]
        fetched = run([*words, *(f"{self.url}/{name}" for name in self.digests)])
        if not compare:
            return fetched
        compared = run(["sha256sum", "--check", "--quiet", "-"], sums)
        return Run(fetched.seconds + compared.seconds, fetched.cpu + compared.cpu, fetched.memory)

    def aria2c(self) -> Run:
        folder = fresh(self.home / "aria2c")
        rows = "".join(f"{self.url}/{name}\n checksum=sha-256={sha256}\n" for name, sha256 in self.digests.items())
        return run(["aria2c", "-q", "-d", folder, "-i", "-", "-j", COUNT, "--file-allocation=none"], rows)


class Unpacking:
    """A tar.xz of real programs and libraries, and two ways to unpack it."""

    def __init__(self, home: Path, size: int) -> None:
        self.home = home
        self.archive = home / f"sample-{size}.tar.xz"
        total = 0
        with tarfile.open(self.archive, "w:xz", preset=1) as archive:
            for path in sorted(Path("/usr/lib").rglob("*.so*")):
                if path.is_symlink() or not path.is_file() or total > size:
                    continue
                total += path.stat().st_size
                archive.add(path, f"top/{total}/{path.name}")
        self.total = total

    def tenv(self) -> Run:
        target = self.home / "out-tenv"
        shutil.rmtree(target, ignore_errors=True)
        return run([sys.executable, "-c", UNPACK, self.archive, target])

    def tar(self) -> Run:
        target = fresh(self.home / "out-tar")
        return run(["tar", "-xf", self.archive, "-C", target])


def measure(ways: Sequence[Callable[[], Run]], runs: int) -> list[Run]:
    """Return the medians of each way, which take turns, and the most memory."""
    rows: list[list[Run]] = [[] for _ in ways]
    for _ in range(runs + 1):
        for row, way in zip(rows, ways, strict=True):
            row.append(way())
    return [
        Run(
            statistics.median(one.seconds for one in row[1:]),
            statistics.median(one.cpu for one in row[1:]),
            max(one.memory for one in row[1:]),
        )
        for row in rows
    ]


def line(name: str, ours: Run, theirs: Run) -> None:
    wall, cpu = f"{ours.seconds / theirs.seconds:.2f}x", f"{ours.cpu / theirs.cpu:.2f}x"
    times = f"{ours.seconds:>8.2f} s{theirs.seconds:>8.2f} s{wall:>8}{ours.cpu:>8.2f} s{theirs.cpu:>8.2f} s{cpu:>8}"
    print(f"{name:<58}{times}{ours.memory / 1024:>8.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure tenv's archives against curl, aria2c and tar.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, medians of {given.runs}"
    print(f"{load}\n{'':<58}{'tenv':>10}{'other':>10}{'wall':>8}{'tenv':>10}{'other':>10}{'CPU':>8}{'memory':>12}")
    with tempfile.TemporaryDirectory(prefix="tenv-bench-", dir=given.folder) as folder:
        downloads = Downloads(Path(folder))
        try:
            ways = [downloads.tenv, downloads.plain, downloads.curl, lambda: downloads.curl(compare=False)]
            ours, plain, curl, bare, *others = measure(
                [*ways, *([downloads.aria2c] if shutil.which("aria2c") else ())], given.runs
            )
        finally:
            downloads.server.kill()
            downloads.server.wait()
        line("5 x 100 MB from loopback / 15 lines with five threads", ours, plain)
        line("5 x 100 MB from loopback / curl --parallel + sha256sum", ours, curl)
        for aria in others:
            line("5 x 100 MB from loopback / aria2c with checksums", ours, aria)
        line("5 x 100 MB from loopback / curl --parallel, no sha256", ours, bare)
        for size in (50_000_000, 400_000_000):
            unpacking = Unpacking(Path(folder), size)
            ours, tar = measure((unpacking.tenv, unpacking.tar), given.runs)
            line(f"unpack a tar.xz of {unpacking.total / 1e6:.0f} MB / tar -xf", ours, tar)


if __name__ == "__main__":
    main()
