"""Write and read the conda part of a lock in the current pixi format, read pixi locks of any version, with rattler."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import LockCorruptError
from tenv.core.names import channel_word

if TYPE_CHECKING:
    from rattler import RepoDataRecord


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


@dataclass(frozen=True, slots=True)
class Spec:
    """A conda match specification, as far as a manifest can express it."""

    name: str
    """The package's name."""
    version: str = ""
    """The accepted versions, in rattler's form; empty for any."""
    build: str = ""
    """A pattern for the build string, or an empty string."""
    channel: str = ""
    """The required channel, or an empty string."""
    rest: str = ""
    """Its other requirements as one text; usually empty."""


def to_current(raw: bytes) -> str:
    """Convert a pixi lock of any version that rattler reads to the version that it writes.

    Raises:
        ValueError: It is unreadable; the message has the reason on one line.
    """
    from rattler import LockFile  # late: 40 ms and 25 MB

    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        path = Path(folder) / "pixi.lock"
        path.write_bytes(raw)
        try:
            LockFile.from_path(path).to_path(path)
        except Exception as error:  # rattler's errors have no common base
            raise ValueError(_one_line(error)) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # a Rust panic
                raise
            raise ValueError(_one_line(error)) from error
        return path.read_text(encoding="utf-8")


def parse_spec(text: str) -> Spec:
    """Parse a match specification.

    Raises:
        ValueError: It is invalid; the message has the reason.
    """
    from rattler import MatchSpec

    try:
        spec = MatchSpec(text)
    except Exception as error:  # rattler's errors have no common base
        raise ValueError(_one_line(error)) from error
    rest: dict[str, object] = {"subdir": spec.subdir, "build_number": spec.build_number, "file": spec.file_name}
    rest |= {"md5": spec.md5, "sha256": spec.sha256, "extras": spec.extras, "condition": spec.condition}
    return Spec(
        name=str(spec.name.normalized),
        version=str(spec.version or ""),
        build=str(spec.build or ""),
        channel=_channel(spec.channel),
        rest=", ".join(name for name, value in rest.items() if value),
    )


def _channel(channel: Any) -> str:
    if channel is None:
        return ""
    return str(channel.name) if channel.name == "defaults" else channel_word(str(channel.base_url))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
