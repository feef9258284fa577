"""The conda part of a lock, written by rattler in the current pixi format."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["write_conda_part"]


def write_conda_part(target: str, platforms: Sequence[str], channels: Sequence[str]) -> str:
    """Return the text of a lock of the current pixi format, with one environment named after the target."""
    from rattler import LockChannel, LockFile, LockPlatform  # noqa: PLC0415 (late: 40 ms and 25 MB)

    lock = LockFile([LockPlatform(platform) for platform in platforms])
    lock.set_channels(target, [LockChannel(channel) for channel in channels])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pixi.lock"
        lock.to_path(path)
        return path.read_text()
