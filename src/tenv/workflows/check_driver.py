"""Compare this machine's driver with what targets need."""

import sys
from dataclasses import dataclass
from typing import Any

from tenv.errors import ManifestError
from tenv.facts.cuda_driver import load
from tenv.host.driver import is_wsl, probe
from tenv.host.interface import Fact, Missing
from tenv.rules.driver import DriverVerdict, judge
from tenv.targets import Target
from tenv.versions import Version
from tenv.workflows.context import Context

__all__ = ["Report", "Row", "check"]


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict on one target.

    Attributes:
        target: The target's name.
        cuda: Its CUDA release, or None.
        verdict: The verdict.
    """

    target: str
    cuda: Version | None
    verdict: DriverVerdict


@dataclass(frozen=True, slots=True)
class Report:
    """A driver against targets.

    Attributes:
        driver: The driver, or why none is known.
        rows: The verdict on each target.
    """

    driver: Fact[Version] | Missing
    rows: tuple[Row, ...]

    def driver_text(self) -> str:
        """Return the driver in words."""
        if isinstance(self.driver, Missing):
            return f"not found ({self.driver.reason})"
        return f"{self.driver.value} (by {self.driver.origin})"

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        driver = (
            {"missing": self.driver.reason}
            if isinstance(self.driver, Missing)
            else {"value": str(self.driver.value), "origin": self.driver.origin}
        )
        rows = [
            {
                "target": row.target,
                "cuda": str(row.cuda or ""),
                "verdict": row.verdict.verdict.value,
                "minimum_driver": str(row.verdict.minimum.driver) if row.verdict.minimum else "",
                "build": True,
                "run": row.verdict.run,
            }
            for row in self.rows
        ]
        return {"driver": driver, "targets": rows}


def check(context: Context, name: str | None) -> Report:
    """Return the verdict on a target, or on every target that can be read."""
    targets = [context.places.find(name)] if name else _all_targets(context)
    driver = probe()
    windows = sys.platform == "win32" or is_wsl()
    table = load()
    rows = [
        Row(target.name, cuda, judge(cuda, driver, table, windows))
        for target in targets
        for cuda in [target.manifest.requirements.cuda]
    ]
    return Report(driver, tuple(rows))


def _all_targets(context: Context) -> list[Target]:
    found = []
    for name in context.places.names():
        try:
            found.append(context.places.find(name))
        except ManifestError:  # `tenv targets` tells what is wrong with it
            continue
    return found
