"""Files of known digests that lie in a folder, such as the unpacked files of a bundle: no server is asked for them."""

import shlex
from collections.abc import Collection
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class CarriedFiles:
    """Files in a folder that this user made, each compared with its digest."""

    folder: Path
    """The folder."""
    shown: str = ""
    """The name of their bundle in messages."""
    target: str = ""
    """The target that they are of."""
    minor: str = ""
    """The only Python minor whose wheels they have; empty for all of the lock."""
    features: tuple[str, ...] | None = None
    """The only features whose files they have; None for all of the lock."""

    def require(self, minor: str, features: Collection[str]) -> None:
        """Raise UsageError unless the files of a Python minor (empty for none) and of some features are there."""
        if self.minor and minor not in ("", self.minor):
            raise UsageError(
                f"{self.shown} has the wheels of Python {self.minor} alone, not of {minor}",
                hint=f"`{self.create} --python {self.minor}` takes that one; "
                f"or `tenv bundle {self.target} --python {minor}` makes another bundle",
            )
        absent = [] if self.features is None else sorted({*features} - {*self.features})
        if absent:
            has = ",".join(self.features or ()) or "none"
            raise UsageError(
                f"{self.shown} has no files of the feature {absent[0]}: it was made with `--with {has}`",
                hint=f"`{self.create} --with {has}` leaves it out; "
                f"or `tenv bundle {self.target} --with {','.join(sorted(features))}` makes another bundle",
            )

    @property
    def create(self) -> str:
        """The command that makes the environment, as it is typed."""
        return shlex.join(["tenv", "create", self.target, "--bundle", self.shown])

    @property
    def wheels(self) -> Path:
        """The folder of the wheels and source archives, each with its name on the index."""
        return self.folder / "wheels"

    @property
    def files(self) -> Path:
        """The folder of all other files, each with its sha256 as its name."""
        return self.folder / "files"

    @property
    def pythons(self) -> Path:
        """The folder of uv's Pythons, with the layout of uv's server."""
        return self.folder / "pythons"

    @property
    def python_table(self) -> Path:
        """The table of these Pythons for uv; only there if the user vouches for more than the lock names."""
        return self.folder / "pythons.json"

    def find(self, sha256: str) -> Path | None:
        """Return the file of a digest; None for one that is not there."""
        path = self.files / sha256
        return path if sha256 and path.is_file() else None
