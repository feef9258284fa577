"""The stored activation and its scripts: `create` repairs an environment that lost one."""

import json
import os
from pathlib import Path

import pytest

from tenv.activation.shells.interface import STORED, StoredShell
from tests.support.projects import Project, call, snapshot

each_shell = pytest.mark.parametrize("shell", STORED, ids=lambda shell: shell.SCRIPT)


def meta(project: Project) -> Path:
    return project.prefix / "tenv-meta"


def check_ready(project: Project) -> None:
    assert [row["state"] for row in call("list", "--json").data] == ["ready"]
    assert project.ok("verify", "tiny", "--no-probes").out == ""


def touched(project: Project) -> dict[str, int]:
    """Return when each file outside tenv's notes was last changed."""
    files = (path for path in project.prefix.rglob("*") if path.is_file() and path.parent != meta(project))
    return {str(path): path.stat().st_mtime_ns for path in files if path.name != ".lock"}


@each_shell
def test_create_makes_a_missing_script_and_changes_no_package(created: Project, shell: StoredShell) -> None:
    whole, files = snapshot(created.prefix), touched(created)
    (meta(created) / shell.SCRIPT).unlink()
    created.index.stop()
    said = created.fails(8, "environment-broken", "activate", "tiny", "--shell", shell.NAMES[0])
    assert f"{shell.SCRIPT} is not what was written, so the environment can't be used" in said
    created.ok("create", "tiny")
    assert touched(created) == files
    assert snapshot(created.prefix).keys() == whole.keys()
    check_ready(created)


@pytest.mark.parametrize("text", [None, "{", '{"target": "tiny", "prefix": "/", "changes": [{"name": 1}]}'])
def test_without_the_activation_the_environment_is_made_again(created: Project, text: str | None) -> None:
    stored = meta(created) / "activation.json"
    stored.unlink()
    if text is not None:
        stored.write_text(text)
    created.fails(8, "environment-broken", "activate", "tiny", "--shell", "fish")
    assert created.ok("create", "tiny", "--json").data["changed"] is True
    check_ready(created)


def test_a_link_in_the_place_of_a_script_is_not_followed(created: Project, tmp_path: Path) -> None:
    script = meta(created) / "activate.fish"
    script.unlink()
    script.symlink_to(tmp_path / "elsewhere")
    created.fails(8, "environment-broken", "activate", "tiny", "--shell", "fish")
    created.ok("create", "tiny")
    assert not (tmp_path / "elsewhere").exists()
    assert script.is_file()
    assert not script.is_symlink()


def test_one_that_is_being_made_gets_no_script(created: Project) -> None:
    (meta(created) / "activate.fish").unlink()
    created.state_file.write_text(json.dumps({**created.state(), "state": "creating"}))
    created.fails(8, "environment-broken", "activate", "tiny", "--shell", "fish")
    assert not os.path.lexists(meta(created) / "activate.fish")
