"""The rows about archives: fetching and unpacking, beside a short program, curl, aria2c and tar.

A server in a process of its own, which does nothing but send files, has five archives. tenv fetches them in five
connections, compares their sha256 while they are written, and keeps them by it; so does a program of 15 lines that
keeps nothing; `curl --parallel` fetches them and `sha256sum` compares; `aria2c` does both by itself. Then one `tar.xz`
is unpacked by tenv, which looks at every name and link and hashes every file, and by `tar`.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from sides import Row, Run, run

__all__ = ["ArchiveBench"]

COUNT = 5
SIZE = 100_000_000
PACKED = 200_000_000
"""The bytes of the files in the archive that is unpacked."""

FETCH = """\
import sys, threading
from pathlib import Path
from tenv.sources.archives.download import Fetcher, RemoteFile
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

BY_REQUESTS = (
    PLAIN.replace("urllib.request.urlopen(url)", "requests.get(url, stream=True)")
    .replace("urllib.request", "requests")
    .replace("answer.read(", "answer.raw.read(")
)
"""The same with the library that tenv takes for retries, credentials, proxies and redirects."""

UNPACK = """\
import sys
from pathlib import Path
from tenv.sources.archives.unpack import unpack
unpack(Path(sys.argv[1]), "tar.xz", Path(sys.argv[2]))
"""


SERVER = """\
import functools, http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def copyfile(self, source, out): self.connection.sendfile(source)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()
"""


def fresh(folder: Path) -> Path:
    """Return a folder with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


class ArchiveBench:
    """Five files that a server has, and an archive of real libraries."""

    def __init__(self, home: Path) -> None:
        """Store the folder for everything; nothing is made yet."""
        self.home = home
        self.rows_file, self.sums, self.list = home / "rows.txt", home / "sums.txt", home / "list.txt"
        self.archive = home / "sample.tar.xz"
        self.environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        self.server: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Make the files, and serve them."""
        home = self.home
        served = fresh(home / "served")
        digests = {f"f{number}": self._write(served / f"f{number}", number) for number in range(COUNT)}
        self.server = subprocess.Popen([sys.executable, "-c", SERVER, str(served)], stdout=subprocess.PIPE)
        assert self.server.stdout
        self.url = f"http://127.0.0.1:{int(self.server.stdout.readline())}"
        self.rows_file.write_text("".join(f"{self.url}/{name} {one} {SIZE}\n" for name, one in digests.items()))
        self.sums.write_text("".join(f"{one}  {home / 'curl' / name}\n" for name, one in digests.items()))
        lines = (f"{self.url}/{name}\n checksum=sha-256={one}\n" for name, one in digests.items())
        self.list.write_text("".join(lines))
        self._pack()

    @staticmethod
    def _write(file: Path, seed: int) -> str:
        """Write noise in pieces, since what this process holds counts as memory of the programs that it starts."""
        source, digest = random.Random(seed), hashlib.sha256()  # noqa: S311 (the same bytes on every machine)
        with file.open("wb") as out:
            for _ in range(SIZE // 1_000_000):
                data = source.randbytes(1_000_000)
                digest.update(data)
                out.write(data)
        return digest.hexdigest()

    def _pack(self) -> None:
        total = 0
        with tarfile.open(self.archive, "w:xz", preset=1) as archive:
            for path in sorted(Path("/usr/lib").rglob("*.so*")):
                if total < PACKED and path.is_file() and not path.is_symlink():
                    total += path.stat().st_size
                    archive.add(path, f"top/{total}/{path.name}")

    def _run(self, *words: object, text: Path | None = None) -> Run:
        return run(words, self.home, self.environment, text)

    def ours(self) -> Run:
        """Fetch with tenv."""
        return self._run(sys.executable, "-c", FETCH, fresh(self.home / "tenv"), text=self.rows_file)

    def plain(self, program: str = PLAIN) -> Run:
        """Fetch with the short program."""
        return self._run(sys.executable, "-c", program, fresh(self.home / "plain"), text=self.rows_file)

    def curl(self) -> Run:
        """Fetch with curl, then compare."""
        words = ("-sSf", "--no-progress-meter", "--parallel", "--output-dir", fresh(self.home / "curl"))
        fetched = self._run("curl", *words, "--remote-name-all", *(f"{self.url}/f{number}" for number in range(COUNT)))
        return fetched + self._run("sha256sum", "--check", "--quiet", self.sums)

    def aria2c(self) -> Run:
        """Fetch with aria2c, which compares."""
        folder = fresh(self.home / "aria2c")
        return self._run("aria2c", "-q", "-d", folder, "-i", self.list, "-j", COUNT, "--file-allocation=none")

    def rows(self, rounds: int) -> Iterator[Row]:
        """Yield the comparisons, with the aim that the project has set itself."""
        few = max(rounds // 2, 1)
        peers = {"15 lines with five threads": self.plain, "`curl --parallel` + `sha256sum`": self.curl}
        if shutil.which("aria2c"):
            peers["`aria2c` with checksums"] = self.aria2c
        floor = "the 15 lines with `requests`", lambda: self.plain(BY_REQUESTS)
        yield Row(f"{COUNT} archives of {SIZE // 1_000_000} MB", self.ours, peers, 1.1, few, floor=floor)
        tar = {"`tar -xf`": lambda: self._run("tar", "-xf", self.archive, "-C", fresh(self.home / "tar"))}
        yield Row("unpack a `tar.xz` of 200 MB", self.unpack, tar, None, max(few // 2, 1))

    def unpack(self) -> Run:
        """Unpack with tenv."""
        target = self.home / "unpacked"
        shutil.rmtree(target, ignore_errors=True)
        return self._run(sys.executable, "-c", UNPACK, self.archive, target)

    def close(self) -> None:
        """End the server."""
        if self.server:
            self.server.kill()
            self.server.wait()
