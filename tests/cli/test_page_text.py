"""Pages on a terminal: folded, no word cut, nothing lost."""

import re

from tenv.cli.explain import render_page
from tests.support.each import each
from tests.test_docs import ROOT

RULES = sorted((ROOT / "docs" / "rules").glob("TE*.md"))


def test_a_page_as_a_terminal_shows_it() -> None:
    text = "# Title\n\nOne line\nand [a link](https://example.com/x).\n\n- first\n  item\n- second\n\n"
    text += "```text\n$ run\n```\nEnd.\n"
    assert list(render_page(text, 24, "<{}>")) == [
        "<Title>",
        "",
        "One line and a link",
        "(https://example.com/x).",
        "",
        "- first item",
        "- second",
        "",
        "    $ run",
        "End.",
    ]


@each("width", [60, 80, 200])
def test_the_pages_of_the_rules_lose_no_word(width: int) -> None:
    assert RULES
    for page in RULES:
        text = page.read_text()
        shown = list(render_page(text, width))
        assert all(len(line) <= width or len(line.split()) == 1 or line.startswith("|") for line in shown), page
        wanted = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r"\1 (\2)", re.sub(r"^```.*$", "", text, flags=re.MULTILINE))
        assert [word for line in shown for word in line.split()] == re.sub(
            r"^#+ ", "", wanted, flags=re.MULTILINE
        ).split()
