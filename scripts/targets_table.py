"""Write the table of the shipped targets into docs/targets/index.md: target, kind, PyTorch, Python, and each platform.

    python scripts/targets_table.py [--check]

A platform is *created* when an environment of the target was made there from its locked files, which the table
``created_targets`` of the facts records with the place; it is *resolved* when its files are locked and no environment
was made. `--check` writes nothing and ends with 1 when the table is not what it would write.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from tenv.core.versions import Version  # noqa: E402 (the path is set above)
from tenv.facts.pytorch_tried import CreatedTargetTable  # noqa: E402
from tenv.facts.tables import load_facts  # noqa: E402
from tenv.locks.lock_file import read_lock  # noqa: E402
from tenv.targets.search import Target, find_places  # noqa: E402
from tenv.targets.toolkit_kind import toolkit_kind  # noqa: E402

BEGIN, END = "<!-- targets:begin -->", "<!-- targets:end -->"
PLATFORMS = ("linux-64", "linux-aarch64", "win-64")


def row(target: Target, created: CreatedTargetTable) -> list[str]:
    """Return the cells of a target."""
    manifest = target.manifest
    cells = [f"[`{target.name}`]({target.name}.md)", toolkit_kind(manifest).value, f"{manifest.pytorch}"]
    locked = read_lock(target.lock_file, target.name).platforms if target.lock_file.is_file() else ()
    for platform in PLATFORMS:
        if platform not in manifest.platforms:
            cells.append("")
        elif platform not in locked:
            cells.append("not locked")
        else:
            cells.append("created" if platform in created.places(target.name) else "resolved")
    return cells


def table() -> str:
    """Return the table as Markdown."""
    created = load_facts().created_targets
    places = find_places(ROOT)
    targets = [places.find(name) for name in places.names()]

    def order(target: Target) -> tuple[Version, str]:
        return target.manifest.requirements.cuda or Version("0"), target.name

    rows = [row(target, created) for target in sorted(targets, key=order, reverse=True)]
    head = ["target", "kind", "for PyTorch", *PLATFORMS]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main() -> int:
    """Write the table, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    page = ROOT / "docs" / "targets" / "index.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if check:
        return int(text != page.read_text())
    page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
