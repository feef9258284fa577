"""Write the list of causes into the pages of the codes that only a build's log yields: ``docs/rules/TE8*.md``.

    python scripts/failure_pages.py

The causes are the rows of ``src/tenv/facts/data/build_failures.toml``; what stands above the list is written by hand.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from tenv.facts.tables import load_facts  # noqa: E402 (after the path is set)

HEAD = "## Causes\n"
PAGES = ROOT / "docs" / "rules"


def causes(code: str) -> str:
    """Return the list of causes of a code, as its page has it."""
    rows = [one for row in load_facts().build_failures.failures if row.code == code for one in row.every]
    return HEAD + "\n" + "\n".join(f"### {row.name}\n{row.described()}" for row in rows)


def written(page: str, code: str) -> str:
    """Return a page with its list of causes."""
    return page.partition(HEAD)[0] + causes(code)


if __name__ == "__main__":
    for file in sorted(PAGES.glob("TE8*.md")):
        file.write_text(written(file.read_text(encoding="utf-8"), file.stem), encoding="utf-8")
