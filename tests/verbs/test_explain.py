"""`tenv explain`: the page of a rule."""

import tomllib
from pathlib import Path

import pytest

from tests.support.projects import call

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs" / "rules").glob("TE*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_can_be_read(page: Path) -> None:
    text = page.read_text()
    assert call("explain", page.stem).out == text
    data = call("explain", page.stem.lower(), "--json").data
    assert data == {"code": page.stem, "title": text.splitlines()[0].removeprefix(f"# {page.stem}: "), "text": text}


def test_an_unknown_code_is_an_error_of_usage() -> None:
    ended = call("explain", "TE1O4")
    assert (ended.status, ended.out) == (2, "")
    assert "there is no rule `TE1O4`" in ended.err
    assert "`TE104`" in ended.err
    assert "the rules are TE001 to TE" in call("explain", "../xyz").err
    assert call("explain").status == 2


def test_the_pages_travel_in_the_wheel() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build["force-include"]["docs/rules"] == "tenv/builtin/rules"
