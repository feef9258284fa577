"""A `create` that has nothing to do says so without the program, and only then."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenv import __version__
from tenv.quick import short_way as quick
from tests.quick.ways import ways
from tests.support.projects import Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the short way is for Linux alone")

META = "tenv-meta"


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the short way writes to standard error, which pytest has replaced."""
    lines: list[str] = []

    def tell(line: str) -> bool:
        lines.append(line)
        return True

    monkeypatch.setattr(quick, "_tell", tell)
    return lines


def taken(project: Project) -> bool:
    return quick.answer(["create", project.prefix.name])


def _gone(name: str) -> Callable[[Project], object]:
    return lambda project: (project.prefix / name).unlink()


def _named(project: Project, change: Callable[[Path], object]) -> None:
    """Change a name in a folder, whose time is that of another tick of the file system's clock."""
    change(project.site())
    os.utime(project.site(), ns=(1, 1))


BEFORE_CREATE: dict[str, Callable[[Project], object]] = {
    "a manifest of another time": lambda project: os.utime(project.manifest, (1, 1)),
    "a manifest that counts more": lambda project: (project.manifest.parent / "a.toml").write_text(""),
    "no create-note": _gone(f"{META}/create-note"),
    "a create-note that is cut": lambda project: (project.prefix / META / "create-note").write_text("0.1.0\n"),
    "a create-note without rows": lambda project: (project.prefix / META / "create-note").write_text("0.1.0\n\n"),
    "a create-note of another version": lambda project: (project.prefix / META / "create-note").write_text(
        (project.prefix / META / "create-note").read_text().replace(__version__, "0.0.1", 1)
    ),
    "a script is gone": _gone(f"{META}/activate.fish"),
    "a package is gone": lambda project: _named(project, lambda site: shutil.rmtree(site / "alpha-1.0.dist-info")),
    "a package more": lambda project: _named(project, lambda site: (site / "more-1.dist-info").mkdir()),
    "what a killed command left": lambda project: (project.prefix / META / ".state.json.1").touch(),
    "a state of another time": lambda project: os.utime(project.state_file, (1, 1)),
}


@pytest.mark.parametrize("change", BEFORE_CREATE)
def test_what_create_looks_at_is_left_to_the_program_when_it_changed(
    change: str, both: Project, said: list[str]
) -> None:
    both.ok("create", "tiny")
    assert taken(both)
    BEFORE_CREATE[change](both)
    assert not taken(both)
    both.ok("create", "tiny")
    both.ok("create", "tiny")
    assert taken(both)


@pytest.mark.parametrize(
    ("words", "short"),
    [
        (("create", "tiny"), True),
        (("create", "tiny", "--frozen"), True),
        (("create", "--locked", "tiny"), True),
        (("create", "tiny", "--locked", "--frozen"), False),
        (("create", "tiny", "--with", "none"), False),
        (("create", "tniy"), False),
        (("create",), False),
    ],
    ids=str,
)
def test_both_ways_have_nothing_to_do(words: tuple[str, ...], *, short: bool, both: Project, said: list[str]) -> None:
    both.ok("create", "tiny")
    assert quick.answer([*words]) is short
    assert said == [f"tiny is ready in {both.prefix}: nothing to do\n"] * short
    ours, whole = ways(both, *words)
    assert ours == whole


def test_a_create_that_has_no_errors_to_write_to(both: Project) -> None:
    both.ok("create", "tiny")
    short, whole = ways(both, "create", "tiny", wrapped=("sh", "-c", 'exec "$@" 2>/dev/full', "sh"))
    assert short == whole


def test_a_system_tool_is_always_looked_for(both: Project) -> None:
    both.manifest.write_text(both.manifest.read_text() + '\n[system]\ngcc = "*"\n')
    both.ok("create", "tiny")
    both.ok("create", "tiny")
    assert not taken(both)


def test_a_pipe_in_the_place_of_the_note_stops_nobody(both: Project) -> None:
    note = both.prefix / META / "create-note"
    os.mkfifo(note)
    assert not taken(both)
    both.ok("create", "tiny")
    assert not taken(both)
