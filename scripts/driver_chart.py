"""Write the chart of drivers, CUDA and PyTorch into docs/guide/drivers.md, from the facts and the shipped targets.

    python scripts/driver_chart.py [--check]

A column is a Linux driver: the oldest that runs programs of CUDA 11, and those with which releases of CUDA came. A row
is the CUDA of a shipped target. `--check` writes nothing and ends with 1 when the chart is not what it would write.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from tenv.core.versions import Version  # noqa: E402 (the path is set above)
from tenv.facts.cuda_driver import CudaDriverTable  # noqa: E402
from tenv.facts.tables import load_facts  # noqa: E402
from tenv.targets.search import find_places  # noqa: E402

__all__ = ["PAGE", "chart", "drivers"]

PAGE = ROOT / "docs" / "guide" / "drivers.md"
BEGIN, END = "<!-- chart:begin -->", "<!-- chart:end -->"
FLOOR_OF = "11.0"
CAME_WITH = ("11.4", "11.7", "11.8", "12.0", "12.1", "12.2", "12.4", "12.6", "12.8", "12.9", "13.0", "13.2", "13.3")
"""The releases of CUDA whose drivers are columns: those of targets, and of long-lived branches (470, 525, 535)."""


def drivers(table: CudaDriverTable) -> list[Version]:
    """Return the drivers of the columns, oldest first."""
    found = [table.floor(Version(FLOOR_OF), windows=False)]
    found += [table.native(Version(cuda), windows=False) for cuda in CAME_WITH]
    return sorted({one.driver for one in found if one})


def word(table: CudaDriverTable, cuda: Version, driver: Version) -> str:
    """Return how a driver runs programs of a CUDA release."""
    native, least = table.native(cuda, windows=False), table.minimum(cuda, windows=False)
    if native and driver >= native.driver:
        return "native"
    return "minor" if least and driver >= least.driver else "no"


def chart() -> str:
    """Return the chart as Markdown."""
    table, places = load_facts().cuda_driver, find_places(ROOT)
    rows: dict[Version, list[str]] = {}
    for name in places.names():
        manifest = places.find(name).manifest
        if manifest.requirements.cuda and any(platform.startswith("linux") for platform in manifest.platforms):
            said = f"[`{name}`](../targets/{name}.md) {manifest.pytorch}".replace("|", "\\|")
            rows.setdefault(manifest.requirements.cuda, []).append(said)
    columns = drivers(table)
    lines = [["CUDA", "targets, for PyTorch", *map(str, columns)], ["--:", "---", *(":-:" for _ in columns)]]
    lines += [
        [str(cuda), ", ".join(rows[cuda]), *(word(table, cuda, driver) for driver in columns)]
        for cuda in sorted(rows, reverse=True)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> int:
    """Write the chart, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    before, _, rest = PAGE.read_text().partition(BEGIN)
    text = f"{before}{BEGIN}\n{chart()}\n{END}{rest.partition(END)[2]}"
    if check:
        return int(text != PAGE.read_text())
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
