"""Files of known digests that lie in a folder, such as the unpacked files of a bundle: no server is asked for them."""

from pathlib import Path

from tenv.core.dataclass import dataclass

__all__ = ["CarriedFiles"]


@dataclass(frozen=True, slots=True)
class CarriedFiles:
    """Files in a folder that this user made, each compared with its digest.

    Attributes:
        folder: The folder.
    """

    folder: Path

    @property
    def wheels(self) -> Path:
        """The folder of the wheels and source archives, each with its name on the index."""
        return self.folder / "wheels"

    @property
    def files(self) -> Path:
        """The folder of all other files, each with its sha256 as its name."""
        return self.folder / "files"

    def find(self, sha256: str) -> Path | None:
        """Return the file of a digest; None for one that is not there."""
        path = self.files / sha256
        return path if sha256 and path.is_file() else None
