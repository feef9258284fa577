"""Environments that an earlier tenv made stay ready: a shell that it did not know is no reason to make them again."""

import json
import os
from pathlib import Path

import pytest

from tenv.activation.shells.interface import STORED, StoredShell
from tenv.core.files import digest
from tests.support.projects import Project, call, snapshot

DATA = Path(__file__).parents[1] / "data" / "environments"
OLD = "activate.sh"
"""The script that environments of revision 2d00f5a have."""

each_shell = pytest.mark.parametrize("shell", STORED, ids=lambda shell: shell.SCRIPT)


def meta(project: Project) -> Path:
    return project.prefix / "tenv-meta"


def forget(project: Project, *scripts: str) -> None:
    """Make the environment one that was made before tenv spoke to some shells."""
    note = meta(project) / "made.json"
    rows = json.loads(note.read_text())
    for script in scripts:
        (meta(project) / script).unlink()
        del rows[f"tenv-meta/{script}"]
    note.write_text(json.dumps(rows))
    project.state_file.write_text(json.dumps({**project.state(), "made": digest(note)}) + "\n")


def of_2d00f5a(project: Project) -> None:
    """Write the notes of an environment as revision 2d00f5a wrote them."""
    old, now = json.loads((DATA / "state-2d00f5a.json").read_text()), project.state()
    of_the_target = ("target", "lock", "manifest", "platform", "python", "packages")
    project.state_file.write_text(json.dumps({**old, **{key: now[key] for key in of_the_target}}) + "\n")
    for shell in STORED:
        if shell.SCRIPT != OLD:
            (meta(project) / shell.SCRIPT).unlink()
    (meta(project) / OLD).write_text("# what that revision made\n")
    (meta(project) / "id").unlink()
    rows = {f"tenv-meta/{name}": f"sha256:{digest(meta(project) / name)}" for name in (OLD, "activation.json")}
    (meta(project) / "made.json").write_text(json.dumps(rows, indent=0, sort_keys=True) + "\n")


def check_ready(project: Project) -> None:
    assert [row["state"] for row in call("list", "--json").data] == ["ready"]
    assert project.ok("verify", "tiny", "--no-probes").out == ""


def touched(project: Project) -> dict[str, int]:
    """Return when each file outside tenv's notes was last changed."""
    files = (path for path in project.prefix.rglob("*") if path.is_file() and path.parent != meta(project))
    return {str(path): path.stat().st_mtime_ns for path in files if path.name != ".lock"}


def test_one_of_2d00f5a_is_ready_once_its_folder_is_called_safe(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_2d00f5a(created)
    created.index.stop()
    for words in (("activate", "tiny"), ("run", "tiny", "--", "true"), ("create", "tiny"), ("verify", "tiny")):
        said = created.fails(8, "environment-broken", *words)
        assert "was made by an older tenv" in said
        assert "`tenv create tiny --anew` puts the folder aside" in said
        assert f"`TENV_SAFE_FOLDERS={created.prefix} tenv create tiny` accepts it" in said
    with monkeypatch.context() as safe:
        safe.setenv("TENV_SAFE_FOLDERS", str(created.prefix))
        check_ready(created)
        state, files = created.state_file.read_bytes(), touched(created)
        assert created.ok("create", "tiny", "--json").data["changed"] is False
        assert (created.state_file.read_bytes(), touched(created)) == (state, files)
    check_ready(created)
    assert [*meta(created).glob("activate.*")] != []


def test_one_of_2d00f5a_is_made_anew_with_its_files_put_aside(created: Project) -> None:
    of_2d00f5a(created)
    (created.prefix / "notes.txt").write_text("mine")
    done = created.ok("create", "tiny", "--anew")
    aside = created.prefix.with_name(".tiny.aside-1")
    assert f"what was there is in {aside}" in done.err
    assert (aside / "notes.txt").read_text() == "mine"
    assert not (created.prefix / "notes.txt").exists()
    check_ready(created)


def test_one_of_2d00f5a_in_the_data_folder_is_ready_as_it_is(created: Project) -> None:
    home = Path(os.environ["XDG_DATA_HOME"]) / "tenv" / "envs" / "tiny"
    there = Project(created.folder, created.index)
    created.ok("create", "tiny", "--prefix", str(home))
    (home / "tenv-meta" / "id").unlink()
    assert [row["state"] for row in call("list", "--json").data if row["prefix"] == str(home)] == ["ready"]
    there.ok("activate", "tiny", "--prefix", str(home))
    there.ok("create", "tiny", "--prefix", str(home))
    assert (home / "tenv-meta" / "id").is_file()


@each_shell
def test_create_makes_a_missing_script_and_nothing_else(created: Project, shell: StoredShell) -> None:
    whole = snapshot(created.prefix)
    if shell.SCRIPT == OLD:
        (meta(created) / OLD).unlink()
    else:
        forget(created, shell.SCRIPT)
        check_ready(created)
    created.index.stop()
    state, files = {**created.state(), "made": ""}, touched(created)
    assert created.ok("create", "tiny", "--json").data["changed"] is False
    assert ({**created.state(), "made": ""}, touched(created)) == (state, files)
    assert {**snapshot(created.prefix), "tenv-meta/made.json": ""} == {**whole, "tenv-meta/made.json": ""}
    check_ready(created)


@each_shell
def test_activate_makes_the_script_that_it_needs(created: Project, shell: StoredShell) -> None:
    script = meta(created) / shell.SCRIPT
    whole = script.read_bytes()
    script.unlink()
    assert created.ok("activate", "tiny", "--shell", shell.NAMES[0], "--json").data["script"] == str(script)
    assert script.read_bytes() == whole
    check_ready(created)


def test_what_is_made_later_is_looked_at_as_well(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    of_2d00f5a(created)
    monkeypatch.setenv("TENV_SAFE_FOLDERS", str(created.prefix))
    created.ok("activate", "tiny", "--shell", "fish")
    with (meta(created) / "activate.fish").open("a") as file:
        file.write(" ")
    found = call("verify", "tiny", "--no-probes", "--json").data["integrity"]
    assert (found["missing"], found["changed"]) == ([], ["tenv-meta/activate.fish"])


def test_a_script_that_was_there_and_is_gone_is_missing(created: Project) -> None:
    (meta(created) / "activate.fish").unlink()
    found = call("verify", "tiny", "--no-probes", "--json").data["integrity"]
    assert found["missing"] == ["tenv-meta/activate.fish"]


@pytest.mark.parametrize("text", [None, "{", '{"target": "tiny", "prefix": "/", "changes": [{"name": 1}]}'])
def test_without_the_activation_the_environment_is_made_again(created: Project, text: str | None) -> None:
    forget(created, "activate.fish")
    stored = meta(created) / "activation.json"
    stored.unlink()
    if text is not None:
        stored.write_text(text)
    created.fails(8, "environment-broken", "activate", "tiny", "--shell", "fish")
    assert not os.path.lexists(meta(created) / "activate.fish")
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
    forget(created, "activate.fish")
    created.state_file.write_text(json.dumps({**created.state(), "state": "creating"}))
    created.fails(8, "environment-broken", "activate", "tiny", "--shell", "fish")
    assert not (meta(created) / "activate.fish").exists()
