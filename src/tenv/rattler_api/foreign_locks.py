"""Read pixi locks of any version, and match specifications, with rattler."""

import tempfile
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.names import channel_word

__all__ = ["Spec", "parse_spec", "to_current"]


@dataclass(frozen=True, slots=True)
class Spec:
    """A conda match specification, as far as a manifest can express it.

    Attributes:
        name: The package's name.
        version: The accepted versions, in rattler's form; empty for any.
        build: A pattern for the build string, or an empty string.
        channel: The required channel, or an empty string.
        rest: Its other requirements as one text; usually empty.
    """

    name: str
    version: str = ""
    build: str = ""
    channel: str = ""
    rest: str = ""


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
