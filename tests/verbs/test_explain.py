"""`tenv explain`: the page of a rule."""

import tomllib
from pathlib import Path

import pytest

from tenv.verbs.explain import error_codes
from tests.support.each import each
from tests.support.projects import call

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs" / "rules").glob("TE*.md"))


@each("page", PAGES)
def test_every_page_can_be_read(page: Path) -> None:
    text = page.read_text()
    assert call("explain", page.stem).out == text
    data = call("explain", page.stem.lower(), "--json").data
    assert data == {"code": page.stem, "title": text.splitlines()[0].removeprefix(f"# {page.stem}: "), "text": text}


def test_the_name_of_a_cause_is_explained(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text("a.cpp:1:10: fatal error: cuda_runtime.h: No such file or directory\n")
    cause = call("explain", str(log), "--json").data["cause"]
    ended = call("explain", cause["name"], "--json")
    assert (ended.data["code"], ended.data["title"]) == (cause["code"], cause["name"])
    assert cause["source"] in ended.data["text"]
    assert call("explain", "out-of-memory").out.startswith("# TE701: out-of-memory\n\nThe machine ran out of memory")


def test_an_unknown_code_is_an_error_of_usage() -> None:
    ended = call("explain", "TE1O4")
    assert (ended.status, ended.out) == (2, "")
    assert "there is no rule `TE1O4`" in ended.err
    assert "`TE104`" in ended.err
    assert "the rules are TE001 to TE" in call("explain", "xyz").err
    assert call("explain").status == 2


def test_a_file_in_place_of_a_code_is_a_log(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text("a.cpp:1:10: fatal error: cuda_runtime.h: No such file or directory\n")
    assert "error[TE809]" in (ended := call("explain", str(log))).out
    assert ended.out == call("explain", "--log", str(log)).out
    assert f"{log}s: no such file" in call("explain", f"{log}s").err
    assert "nosuch.log: no such file" in call("explain", "nosuch.log").err


@each("slip", ["TE1O4", "te1o4", "104", "ET104"])
def test_a_slip_of_one_place_leads_to_the_rule(slip: str) -> None:
    assert "hint: did you mean" in (err := call("explain", slip).err)
    assert "`TE104`" in err


@each("word", ["TE555", "TE", "xyz"])
def test_a_word_far_from_every_rule_leads_to_their_list(word: str) -> None:
    err = call("explain", word).err
    assert "did you mean" not in err
    assert "hint: the rules are TE001 to TE992: docs/check.md lists them" in err


def test_a_file_given_as_a_rule_is_read_as_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my build.log").write_text("ninja: build stopped: subcommand failed.\n")
    ended = call("explain", "my build.log")
    assert ended.status == 0
    assert ended.out == call("explain", "--log", "my build.log").out != ""


@each("word", ["unknown-target", "[lock-stale]", "error[no-solution]"])
def test_the_code_of_an_error_leads_to_its_explanation(word: str) -> None:
    err = call("explain", word).err
    code = word.removeprefix("error").strip("[]")
    assert f"`{code}` is the code of an error" in err
    assert f'docs/guide/troubleshooting.md, "Troubleshooting by message", explains `error[{code}]`' in err


def test_the_page_of_messages_has_every_error() -> None:
    page = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text()
    assert page.startswith("# Troubleshooting by message\n")
    assert {code for code in error_codes() if f"`error[{code}]`" not in page} == set()


def test_the_pages_travel_in_the_wheel() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build["force-include"]["docs/rules"] == "tenv/builtin/rules"


def test_the_reading_of_a_large_log_is_shown(tmp_path: Path) -> None:
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    small.write_text("[1/2] Building CXX object a.o\n")
    large.write_text(small.read_text() * 50_000)
    assert call("explain", str(small)).err == ""
    assert call("explain", str(large)).err == f"reading {large} …\n"
    assert call("explain", str(large), "--quiet").err == ""
