"""A `.tenv` that came with a clone, a copy or another user, that was moved, or that lacks what is most necessary.

Each way names what happened before there were marks. What is planted leaves a trace when it is run; in none of the rows
may a command end with 0 and have used another prefix, another Python, or anything that was planted.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenv.activation.shells import posix
from tests.attacks.outside import make_victims
from tests.support.projects import SOURCE, Project, call
from tests.support.rarely import first_fast, some_fast

TRACE = "trace-of-the-attack"
EVIL = f"touch {TRACE}\nexport TENV_PREFIX=/evil TENV_TARGET=tiny\n"
DATA = "XDG_DATA_HOME"


def meta(project: Project) -> Path:
    return project.prefix / "tenv-meta"


def marks() -> Path:
    return Path(os.environ[DATA]) / "tenv" / "marks"


def plant(project: Project) -> None:
    """Make every script and program of the environment leave a trace, and let the notes say that all is well."""
    for script in meta(project).glob("activate.*"):
        script.write_text(EVIL)
    (project.site() / "evil.pth").write_text(f"import pathlib; pathlib.Path({TRACE!r}).touch()\n")
    made = meta(project) / "made.json"
    rows = {name: value for name, value in json.loads(made.read_text()).items() if "activate." not in name}
    made.write_text(json.dumps(rows))
    project.state_file.write_text(json.dumps({**project.state(), "made": ""}) + "\n")


def stand_in(folder: Path, project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return Project(folder, project.index)


Way = Callable[[Project, pytest.MonkeyPatch], Project]


def _without_marks(project: Project, _: pytest.MonkeyPatch) -> Project:
    shutil.rmtree(marks())
    return project


def _with_id(text: str) -> Way:
    def change(project: Project, _: pytest.MonkeyPatch) -> Project:
        (meta(project) / "id").write_text(text)
        return project

    return change


def _without_id(project: Project, _: pytest.MonkeyPatch) -> Project:
    (meta(project) / "id").unlink()
    return project


def _own_mark(project: Project, _: pytest.MonkeyPatch) -> Project:
    """Bring a mark along, and an id that leads to it."""
    (mark,) = marks().iterdir()
    shutil.copy(mark, project.folder / "abc")
    mark.unlink()
    (meta(project) / "id").write_text(os.path.relpath(project.folder / "abc", marks()))
    return project


def _of_another_user(project: Project, _: pytest.MonkeyPatch) -> Project:
    """Give the prefix to another user; who is not root says in the mark that it was another's."""
    if os.geteuid() == 0:
        os.chown(project.prefix, 4711, 4711)
        return project
    (mark,) = marks().iterdir()
    lines = mark.read_text().splitlines()
    mark.write_text("\n".join([lines[0], "4711", *lines[2:], ""]))
    os.utime(mark, (0, 0))
    return project


def _linked(name: str) -> Way:
    """Put a link to the folder of another project, whose environment is the user's own, into a clone."""

    def change(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
        clone = project.folder.with_name("clone")
        shutil.copytree(project.folder, clone, ignore=shutil.ignore_patterns(".tenv"))
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).symlink_to(project.folder / name)
        return stand_in(clone, project, monkeypatch)

    return change


def _moved(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    new = project.folder.with_name("moved project")
    project.folder.rename(new)
    return stand_in(new, project, monkeypatch)


def _moved_above(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    new = project.folder.parent / "deep" / "er" / project.folder.name
    new.parent.mkdir(parents=True)
    project.folder.rename(new)
    return stand_in(new, project, monkeypatch)


def _moved_and_replaced(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Move a project away; a folder that is no environment comes into its place."""
    moved = _moved(project, monkeypatch)
    project.prefix.mkdir(parents=True)
    return moved


def _copied(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    shutil.copytree(project.folder, new := project.folder.with_name("copy"), symlinks=True)
    return stand_in(new, project, monkeypatch)


def _copied_alone(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    copy = _copied(project, monkeypatch)
    shutil.rmtree(project.folder)
    return copy


def _id_of_another(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Copy the id of one of the user's environments, which a committed `.tenv` makes known, into another folder."""
    clone = project.folder.with_name("clone")
    shutil.copytree(project.folder, clone, symlinks=True)
    plant(made := stand_in(clone, project, monkeypatch))
    return made


STRANGE: dict[str, tuple[Way, str, str]] = {
    "a clone": (_without_marks, "foreign", "its scripts were sourced"),
    "a clone with an id": (_with_id("0" * 32 + "\n"), "foreign", "its scripts were sourced"),
    "a clone with an id that climbs": (_with_id("../../../" + "0" * 32), "foreign", "its scripts were sourced"),
    "a clone with an empty id": (_with_id(""), "foreign", "its scripts were sourced"),
    "a clone with a long id": (_with_id("a" * 1_000_000), "foreign", "its scripts were sourced"),
    "a clone that brings its mark": (_own_mark, "foreign", "its scripts were sourced"),
    "one without an id": (_without_id, "foreign", "it was used"),
    "one of another user": (_of_another_user, "foreign", "its scripts were sourced"),
    "the id of another one": (_id_of_another, "copied", "its scripts were sourced"),
    "a copy": (_copied, "copied", "the original was used and changed"),
    "a copy whose original is gone": (_copied_alone, "copied", "another Python ran"),
}
LINKED: dict[str, tuple[Way, str]] = {
    "a link to an environment": (_linked(".tenv/envs/tiny"), "another project's environment was used"),
    "a link to environments": (_linked(".tenv/envs"), "another project's environment was used"),
    "a link in the place of .tenv": (_linked(".tenv"), "another project's environment was used"),
}
MOVED: dict[str, tuple[Way, str]] = {
    "a project that was renamed": (_moved, "another Python ran, with status 0"),
    "a project that was put elsewhere": (_moved_above, "another Python ran, with status 0"),
    "a project that was moved and replaced": (_moved_and_replaced, "another Python ran, with status 0"),
}

USES = (
    ("activate", "tiny"),
    ("env", "tiny"),
    ("run", "tiny", "--", "python", "-c", ""),
    ("shell", "tiny"),
    ("verify", "tiny"),
    ("rollback", "tiny"),
)


def by_hook(project: Project) -> tuple[str, str]:
    """Return the prefix that `tenv activate` has activated in a bash with the hook, and what was said."""
    hook = posix.render_hook([sys.executable, "-m", "tenv"], Path(os.environ[DATA]) / "tenv" / "envs")
    text = f'{hook}\ncd "$1"\ntenv activate tiny\necho "${{TENV_PREFIX-none}}"\n'
    done = subprocess.run(
        ["bash", "-c", text, "bash", str(project.folder)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip(), done.stderr


def refused_by_all(project: Project, reason: str) -> None:
    row = next(row for row in call("list", "--json").data if row["prefix"] == str(project.prefix))
    assert (row["state"], row["reason"]) == ("broken", reason)
    for words in USES:
        ended = call(*words, "--json") if words[0] in ("activate", "verify") else call(*words)
        assert ended.status == 8, (words, ended)
        if "--json" in words:
            assert json.loads(ended.out)["data"]["reason"] == reason
    assert by_hook(project)[0] == "none"
    assert not list(project.folder.rglob(TRACE))


@pytest.mark.parametrize("name", some_fast(STRANGE, ("a clone that brings its mark", "one of another user")))
def test_what_carries_no_mark_is_refused_and_made_anew(
    name: str, created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, reason, _ = STRANGE[name]
    plant(created)
    (created.prefix / "mine.txt").write_text("the user's own")
    project = way(created, monkeypatch)
    victims = make_victims(project)
    before = victims.hashes()
    refused_by_all(project, reason)
    assert "--anew` puts the folder aside" in project.fails(8, "environment-broken", "create", "tiny")
    assert "rm -r " in project.fails(8, "environment-broken", "remove", "tiny")
    done = project.ok("create", "tiny", "--anew")
    assert f"the old environment is in {project.prefix.with_name('.tiny.aside-1')}" in done.err
    assert (project.prefix.with_name(".tiny.aside-1") / "mine.txt").read_text() == "the user's own"
    assert project.ok("list", "--json").data[0]["state"] == "ready"
    assert by_hook(project)[0] == str(project.prefix)
    assert not list(project.folder.rglob(TRACE))
    assert victims.hashes() == before


@pytest.mark.parametrize("name", LINKED)
def test_a_link_leads_to_no_environment_of_another_project(
    name: str, created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = LINKED[name][0](created, monkeypatch)
    before = created.state_file.read_bytes()
    for words in (*USES, ("create", "tiny"), ("create", "tiny", "--anew"), ("remove", "tiny")):
        assert call(*words).status == 8, words
    assert by_hook(clone)[0] == "none"
    assert created.state_file.read_bytes() == before
    assert created.prefix.is_dir()


@pytest.mark.parametrize("name", first_fast(MOVED))
def test_a_moved_one_is_repaired_in_its_place(name: str, created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (created.prefix / "mine.txt").write_text("the user's own")
    project = MOVED[name][0](created, monkeypatch)
    refused_by_all(project, "moved")
    done = project.ok("create", "tiny")
    assert f"{project.prefix} was moved: it was made as {created.prefix}: its packages were put there again" in done.err
    assert (project.prefix / "mine.txt").read_text() == "the user's own"
    assert project.ok("list", "--json").data[0]["state"] == "ready"
    assert project.ok("verify", "tiny", "--no-probes").out == "extra  mine.txt\n"
    assert by_hook(project)[0] == str(project.prefix)
    for file in (*(project.prefix / "bin").iterdir(), *meta(project).glob("activat*")):
        assert file.is_symlink() or str(created.prefix) not in file.read_text(errors="replace")


def test_a_link_to_the_new_place_of_a_project_keeps_it_ready(created: Project) -> None:
    new = created.folder.with_name("elsewhere")
    created.folder.rename(new)
    created.folder.symlink_to(new)
    assert created.ok("list", "--json").data[0]["state"] == "ready"
    assert by_hook(created)[0] == str(created.prefix)


# What is accepted by name.


def test_a_safe_folder_is_accepted_and_marked(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(marks())
    created.index.stop()
    monkeypatch.setenv("TENV_SAFE_FOLDERS", str(created.folder))
    created.ok("activate", "tiny")
    assert created.ok("create", "tiny", "--json").data["changed"] is False
    monkeypatch.delenv("TENV_SAFE_FOLDERS")
    created.ok("activate", "tiny")


@pytest.mark.parametrize("name", ["", "tenv-meta"])
def test_a_safe_folder_that_others_can_write_is_not(
    created: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shutil.rmtree(marks())
    monkeypatch.setenv("TENV_SAFE_FOLDERS", str(created.folder))
    (created.prefix / name).chmod(0o777)
    refused_by_all(created, "foreign")


def test_one_that_was_moved_into_a_safe_folder_is_repaired(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(marks())
    project = _moved(created, monkeypatch)
    monkeypatch.setenv("TENV_SAFE_FOLDERS", str(project.folder))
    refused_by_all(project, "moved")
    project.ok("create", "tiny")
    assert by_hook(project)[0] == str(project.prefix)


def test_a_safe_folder_is_named_by_its_whole_path(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(marks())
    monkeypatch.setenv("TENV_SAFE_FOLDERS", "project")
    assert "`project` is not a whole path" in created.fails(2, "usage", "activate", "tiny")


# What is most necessary is gone.


def _gone(name: str) -> Callable[[Path], None]:
    return lambda prefix: (prefix / name).unlink()


def _text(name: str, text: str) -> Callable[[Path], None]:
    def change(prefix: Path) -> None:
        (prefix / name).write_text(text)

    return change


def _cut(name: str) -> Callable[[Path], None]:
    def change(prefix: Path) -> None:
        data = (prefix / name).read_bytes()
        (prefix / name).write_bytes(data[: len(data) // 2])

    return change


def _dangling(prefix: Path) -> None:
    (prefix / "bin" / "python").unlink()
    (prefix / "bin" / "python").symlink_to("/nowhere/python3")


def _not_to_be_run(prefix: Path) -> None:
    (prefix / "bin" / "python").unlink()
    (prefix / "bin" / "python").write_text("")


GUTTED: dict[str, tuple[Callable[[Path], None], str]] = {
    "no python": (_gone("bin/python"), "another Python ran, with status 0"),
    "no python3": (_gone("bin/python3"), "another Python ran, with status 0"),
    "no base interpreter": (_dangling, "another Python ran, with status 0"),
    "a python that can't be run": (_not_to_be_run, "another Python ran, with status 0"),
    "no pyvenv.cfg": (_gone("pyvenv.cfg"), "the base interpreter's packages were used, with status 0"),
    "another pyvenv.cfg": (_text("pyvenv.cfg", "home = /evil\n"), "it was obeyed"),
    "an empty activate.sh": (_text("tenv-meta/activate.sh", ""), "nothing was activated, with status 0"),
    "a cut activate.sh": (_cut("tenv-meta/activate.sh"), "a syntax error in the shell"),
    "another activate.sh": (_text("tenv-meta/activate.sh", EVIL), "it was sourced"),
    "an empty activation.json": (_text("tenv-meta/activation.json", ""), "refused by `run` alone"),
    "no activation.json": (_gone("tenv-meta/activation.json"), "refused by `run` alone"),
    "an empty made.json": (_text("tenv-meta/made.json", "{}"), "`verify` was content"),
    "no made.json": (_gone("tenv-meta/made.json"), "`verify` was content"),
    "an empty state": (_text("tenv-meta/state.json", ""), "refused"),
    "no state": (_gone("tenv-meta/state.json"), "`create` refused the folder as a stranger's"),
}


FAST = ("no python", "another activate.sh", "no state")


@pytest.mark.parametrize("name", some_fast(GUTTED, FAST))
def test_a_gutted_one_is_refused_and_mended(name: str, created: Project) -> None:
    (created.prefix / "mine.txt").write_text("the user's own")
    GUTTED[name][0](created.prefix)
    if name != "no state":
        assert [(row["state"], row["reason"]) for row in call("list", "--json").data] == [("broken", "gutted")]
    for words in USES:
        if words[0] != "rollback":
            assert call(*words).status == 8, words
    assert by_hook(created)[0] == "none"
    assert not (created.folder / TRACE).exists()
    created.ok("create", "tiny")
    assert (created.prefix / "mine.txt").read_text() == "the user's own"
    assert created.ok("list", "--json").data[0]["state"] == "ready"
    assert created.ok("verify", "tiny", "--no-probes").out == "extra  mine.txt\n"
    assert by_hook(created)[0] == str(created.prefix)


def test_a_gutted_one_can_be_removed(created: Project) -> None:
    _dangling(created.prefix)
    created.ok("remove", "tiny")
    assert not created.prefix.exists()
    assert not any(marks().iterdir())
