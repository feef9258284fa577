"""What a choice of files is limited to."""

import datetime as dt
from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a choice is limited to.

    Attributes:
        seconds: How long reading the package lists of channels, and then solving, may take.
        exclude_newer: Files that came later do not count; in UTC.
        afresh: Conda packages are solved for even where the kept ones answer the manifest, since they may be a mixture.
        trust_first_use: Whether a file whose digest nobody names may be taken as it is seen now.
    """

    seconds: float = 300.0
    exclude_newer: dt.datetime | None = None
    afresh: bool = False
    trust_first_use: bool = False
