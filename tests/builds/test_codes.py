"""The codes of the steps: each has a page, a place in the docs, and is in use."""

import re
from pathlib import Path

from tenv.builds.build_job import CODES

ROOT = Path(__file__).parents[2]


def test_every_code_has_its_page_and_its_place_in_the_docs() -> None:
    pages = {page.stem: page for page in (ROOT / "docs" / "rules").glob("TE9*.md")}
    assert set(pages) == set(CODES)
    table = (ROOT / "docs" / "build.md").read_text()
    for code, page in pages.items():
        text = page.read_text()
        assert text.startswith(f"# {code}: ")
        assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == ["What", "Why", "Example", "Fix", "Sources"]
        assert f"rules/{code}.md" in table


def test_every_code_is_in_use() -> None:
    steps = [
        path.read_text() for path in (ROOT / "src" / "tenv" / "builds").glob("*.py") if path.name != "build_job.py"
    ]
    used = {code for text in steps for code in re.findall(r'"(TE9\d\d)"', text)}
    assert used == set(CODES)
