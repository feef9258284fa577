"""One environment for all tests that begin with one: made by the first of them, and copied for the others.

An environment can't be moved: its scripts and records, its mark and uv's cache name its folder, the user's folders and
the index. So these have one place and one port in all such tests of a process.
"""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

__all__ = ["MadeOnce"]


class MadeOnce:
    """The place of the project and of its user.

    Attributes:
        project: The folder of the project.
        user: The folder of the user's home, settings, data and cache.
        port: The port of the index.
    """

    def __init__(self, folder: Path) -> None:
        self._now, self._kept = folder / "now", folder / "kept"
        self.project, self.user = self._now / "place" / "project", self._now / "user"
        # A socket that never listens holds the port between two servers.
        self._holder = socket.socket()
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind(("127.0.0.1", 0))
        self.port: int = self._holder.getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.close()

    def keep(self) -> None:
        """Keep a copy of the project and of the user's folders."""
        _copy(self._now, self._kept)

    def copy(self) -> bool:
        """Bring back the copy; return whether there is one."""
        if not self._kept.is_dir():
            return False
        _copy(self._kept, self._now)
        self._mark()
        return True

    def _mark(self) -> None:
        """Write the inode of the copied environment into its mark, which refuses copies."""
        for mark in (self.user / "home" / "data" / "tenv" / "marks").iterdir():
            prefix, owner, _, *needs = mark.read_text().split("\n")
            time = mark.stat().st_mtime_ns
            mark.write_text("\n".join([prefix, owner, str(Path(prefix).stat().st_ino), *needs]))
            os.utime(mark, ns=(time, time))


def _copy(source: Path, to: Path) -> None:
    """Copy a folder into another one with its times and with the hard links among its files."""
    to.mkdir(exist_ok=True)
    subprocess.run([shutil.which("cp") or "cp", "-a", f"{source}/.", to], check=True)
