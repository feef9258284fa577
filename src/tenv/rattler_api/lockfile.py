"""Write and read the conda part of a lock in the current pixi format with rattler."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.errors import LockCorruptError

if TYPE_CHECKING:
    from rattler import RepoDataRecord

__all__ = ["read_records", "write_conda_part"]


def write_conda_part(
    target: str,
    platforms: Sequence[str],
    channels: Sequence[str],
    records: "Mapping[str, Sequence[RepoDataRecord]] | None" = None,
) -> str:
    """Return the text of a lock of the current pixi format, with one environment named after the target.

    Args:
        target: The target's name.
        platforms: Its platforms.
        channels: The channels, best first, as URLs or names.
        records: The packages of each platform.
    """
    from rattler import LockChannel, LockFile, LockPlatform  # late: 40 ms and 25 MB

    known = {platform: LockPlatform(platform) for platform in platforms}
    lock = LockFile(list(known.values()))
    lock.set_channels(target, [LockChannel(channel) for channel in channels])
    for platform, packages in (records or {}).items():
        for package in sorted(packages, key=lambda record: record.url):
            lock.add_conda_package(target, known[platform], package)
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        path = Path(folder) / "pixi.lock"
        lock.to_path(path)
        return path.read_text(encoding="utf-8")


def read_records(text: bytes, target: str, platform: str) -> "list[RepoDataRecord]":
    """Return the conda packages of one platform of a lock with their channel records.

    Args:
        text: The lock's bytes.
        target: The target's name.
        platform: The platform.

    Raises:
        LockCorruptError: rattler can't parse the bytes.
    """
    from rattler import LockFile  # late: 40 ms and 25 MB

    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        path = Path(folder) / "pixi.lock"
        path.write_bytes(text)
        try:
            environment = LockFile.from_path(path).environment(target)
        except Exception as error:  # rattler's errors have no common base below Exception
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = f"`tenv lock {target}` writes it again"
            raise LockCorruptError(f"the conda part of the lock of {target}: {first}", hint=hint) from error
    for known in environment.platforms() if environment else ():
        if environment is not None and known.name == platform:
            return environment.conda_repodata_records_for_platform(known) or []
    return []
