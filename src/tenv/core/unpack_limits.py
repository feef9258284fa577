"""How much a package may unpack to: archives, conda packages and wheels alike."""

from tenv.core.dataclass import dataclass
from tenv.core.errors import ArchiveRefusedError
from tenv.core.size_text import format_bytes

UNPACK_LIMIT = "TENV_UNPACK_LIMIT"
"""The variable that sets the size that one package may unpack to; it wins over ``unpack-limit`` of ``config.toml``."""

_GIB = 1 << 30
_SMALLEST_FILE = 4096
"""Bytes that a file takes on most file systems, however small it is."""


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Limits on the content of one archive, conda package or wheel.

    The largest archive in NVIDIA's redist unpacks to some GiB, about ten times its packed size.
    """

    entries: int = 200_000
    """The maximum number of entries."""
    bytes: int = 64 * _GIB
    """The maximum unpacked size in bytes."""
    ratio: int = 200
    """The maximum of unpacked bytes per packed byte; 0 for any."""
    free: int = 64 << 20
    """The unpacked size up to which the ratio does not count."""
    path: int = 1024
    """The maximum length of a name in bytes."""
    depth: int = 64
    """The maximum number of folders in a name."""
    memory: int = 256 << 20
    """The maximum memory of a decompressor or a header in bytes."""

    @classmethod
    def of(cls, size: int | None) -> "UnpackLimits":
        """Return the limits where the user set the unpacked size in bytes, which alone counts then; None for none."""
        if size is None:
            return cls()
        return cls(entries=max(cls().entries, size // _SMALLEST_FILE), bytes=size, ratio=0)

    def most(self, packed: int) -> int:
        """Return the unpacked size in bytes that a package of a packed size may have."""
        return min(self.bytes, max(self.free, packed * self.ratio)) if self.ratio else self.bytes

    def check(self, name: str, packed: int, volume: int, entries: int = 0) -> None:
        """Refuse a package that unpacks to more than the limits.

        Args:
            name: The package, for the message.
            packed: Its packed size in bytes.
            volume: Its unpacked size, or the size that was read until now, in bytes.
            entries: The number of its entries, or of those that were seen until now.

        Raises:
            ArchiveRefusedError: It unpacks to more; the hint names the setting.
        """
        if entries > self.entries:
            raise self._refusal(f"{name}: exceeds the limit of {self.entries} entries", entries * _SMALLEST_FILE)
        if volume > (most := self.most(packed)):
            what = f"unpacks to {format_bytes(volume)} or more, and {format_bytes(most)} is the limit"
            raise self._refusal(f"{name}: {what} for {format_bytes(packed)} packed", volume)

    def _refusal(self, message: str, volume: int) -> ArchiveRefusedError:
        enough = max(1, -(-2 * volume // _GIB))
        return ArchiveRefusedError(
            message,
            hint=f"tenv keeps none of it; if you trust its maker, `tenv config unpack-limit {enough}GiB` admits it",
        )
