"""The packages that go with a release of torch: what the wheels on the index require of each other."""

import re
from collections.abc import Mapping, Sequence

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, required_version

__all__ = ["Companions", "companions_of"]


@dataclass(frozen=True, slots=True)
class Companions:
    """The packages that go with a release of torch.

    Attributes:
        torch: The release.
        torchvision: The torchvision whose wheel requires exactly this torch; empty if there is none.
        torchaudio: The same for torchaudio, which requires no torch from 2.11 on.
        triton: The triton that the wheel of torch requires, exact unless it begins with ``~=``; empty before 2.0.
        basis: How certain this is.
    """

    torch: Version
    torchvision: str
    torchaudio: str
    triton: str
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "Companions":
        """Read one row of the data file; raises FactsError with the row's path."""
        names = ("torchvision", "torchaudio", "triton")
        for name in names:
            row.parsed(name, lambda text: Version(text.removeprefix("~=")), None)
        torchvision, torchaudio, triton = map(row.text, names)
        return cls(required_version(row, "torch"), torchvision, torchaudio, triton, Basis.read(row, sources))

    def minors(self) -> dict[str, str]:
        """Return the minor version of each package that there is, by its name."""
        found = {"torchvision": self.torchvision, "torchaudio": self.torchaudio, "triton": self.triton}
        return {name: Version(text.removeprefix("~=")).major_minor for name, text in found.items() if text}


def companions_of(rows: Sequence[Companions], version: str) -> Companions | None:
    """Return the packages that go with a version of torch, or with the last release of its minor version.

    Args:
        rows: The rows of the table, oldest first.
        version: The version as written, such as ``2.9.0a0+git1234``.

    Returns:
        The row; None for a minor version that the table lacks, of which nothing has been released yet.
    """
    match = re.match(r"\d+\.\d+(\.\d+)*", version)
    asked = Version(match.group()) if match else Version("0")
    same = [row for row in rows if row.torch.major_minor == asked.major_minor]
    return next((row for row in same if row.torch == asked), same[-1] if same else None)
