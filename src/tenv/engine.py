"""py-rattler under our own names, types and errors: the one importer of ``rattler``.

Its interface changes between minor versions, so that everything the rest of tenv needs of it stands here.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

__all__ = ["leave", "used", "write_conda_part"]


def used() -> bool:
    """Tell whether rattler was imported in this process."""
    return "rattler" in sys.modules


def leave(status: int) -> NoReturn:
    """End the process at once, its output flushed.

    rattler's threads now and then crash while the interpreter is taken down, after all work is done; a process that
    used it leaves without that step.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def write_conda_part(target: str, platforms: Sequence[str], channels: Sequence[str]) -> str:
    """Return the text of a lock of the current pixi format, with one environment named after the target."""
    from rattler import LockChannel, LockFile, LockPlatform  # noqa: PLC0415 (late: 40 ms and 25 MB)

    lock = LockFile([LockPlatform(platform) for platform in platforms])
    lock.set_channels(target, [LockChannel(channel) for channel in channels])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pixi.lock"
        lock.to_path(path)
        return path.read_text()
