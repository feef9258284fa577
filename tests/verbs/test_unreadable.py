"""What the rights hide is said to be unreadable, and never to be missing or a stranger's."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenv.core.other_users import closed_to_others
from tenv.install import make
from tests.support.projects import HERE, Ended, Project
from tests.support.rarely import first_fast

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the modes and capabilities of Linux")

# Root loses the right to read everything, so that the modes of folders count for it as for anyone.
PLAIN = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if hasattr(os, "geteuid") and os.geteuid() == 0 else ()


@contextmanager
def closed(folder: Path, mode: int) -> Iterator[None]:
    """Take the rights to a folder away."""
    before = folder.stat().st_mode & 0o777
    folder.chmod(mode)
    try:
        yield
    finally:
        folder.chmod(before)


def ask(project: Project, *words: str) -> Ended:
    """Run a command as a user whose rights are those of the modes."""
    return project.run(*words, wrapped=PLAIN)


@pytest.mark.parametrize("mode", first_fast([0o000, 0o444]))
@pytest.mark.parametrize("part", first_fast(["", "tenv-meta"]))
def test_an_environment_without_permission_is_broken_and_says_so(created: Project, part: str, mode: int) -> None:
    folder = created.prefix / part
    hint = f"`chmod u+rwx {folder}` gives you the rights"
    with closed(folder, mode):
        listed = ask(created, "list", "--json").data
        plain = ask(created, "list")
        shown = ask(created, "list", "--check")
        ended = [ask(created, *words) for words in (("run", "tiny", "--", "true"), ("activate", "tiny"))]
    assert [(row["target"], row["state"], row["reason"]) for row in listed] == [("tiny", "broken", "unreadable")]
    assert f"{folder} can't be read: Permission denied; {hint}" in plain.err
    assert shown.status == 1
    for one in ended:
        assert (one.status, f"error[environment-broken]: {folder} can't be read: Permission denied" in one.err) == (
            8,
            True,
        ), one
        assert hint in one.err
    assert ask(created, "list", "--json").data[0]["state"] == "ready"


def test_one_beside_it_hides_it_from_no_list(created: Project) -> None:
    other = created.prefix.with_name("other")
    (other / "tenv-meta").mkdir(parents=True)
    with closed(other, 0o000):
        said = ask(created, "list")
    assert [line.split()[:2] for line in said.out.splitlines()[1:]] == [["other", "broken"], ["tiny", "ready"]]


@pytest.mark.parametrize("name", [".tenv/envs", "manifests"])
@pytest.mark.long
def test_a_folder_of_the_project_without_permission_is_not_empty(created: Project, name: str) -> None:
    with closed(created.folder / name, 0o000):
        ended = [ask(created, *words) for words in (("list",), ("run", "tiny", "--", "true"), ("show", "tiny"))]
    for one in ended[:1] if name != "manifests" else ended[1:]:
        assert one.status == 8, one
        assert f"error[storage]: {created.folder / name}" in one.err
        assert "Permission denied" in one.err
    for one in ended:
        assert "there is no" not in one.err


def test_a_program_in_a_folder_without_permission_is_not_missing(created: Project) -> None:
    folder = created.folder / "private"
    folder.mkdir()
    with closed(folder, 0o000):
        ended = ask(created, "run", "tiny", "--", "private/script")
    assert ended.status == 2
    assert "private can't be read, so `private/script` can't be started: Permission denied" in ended.err


def test_a_python_in_the_closed_home_of_another_user_is_not_gone(created: Project, tmp_path: Path) -> None:
    home = tmp_path / "home"
    program = home / "uv" / "python"
    program.parent.mkdir(parents=True)
    link = created.prefix / "bin" / "python"
    shutil.copy(os.path.realpath(link), program)
    link.unlink()
    link.symlink_to(program)
    with closed(home, 0o000):
        ended = ask(created, "run", "tiny", "--", "true")
        (row,) = ask(created, "list", "--json").data
    assert (row["state"], row["reason"]) == ("broken", "unreadable")
    assert ended.status == 8
    assert f"is {program}, which this user can't reach: {home} is closed to others" in ended.err
    assert "--anew --python /usr/bin/python3" in ended.err
    assert "gone" not in ended.err


def test_a_shared_environment_names_a_python_that_others_can_not_reach(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        home, shared, private = (Path(name) / part for part in ("home", "shared", "private"))
        for folder in (Path(name), home, shared, private):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
        program = home / "python"
        program.write_text("")
        assert closed_to_others(program, shared / "env") is None
        home.chmod(0o750)
        private.chmod(0o700)
        assert closed_to_others(program, shared / "env") == home
        assert closed_to_others(program, home / "env") is None
        assert closed_to_others(program, private / "env") is None
    monkeypatch.setattr(make, "closed_to_others", lambda _, __: home)
    monkeypatch.setattr(make, "_SYSTEM", project.folder)
    (project.folder / "python3.8").touch()  # the lock serves none such
    words = ("create", "tiny", "--prefix", str(project.folder / "shared"))
    said = project.ok(*words).err
    assert f"lies in {home}, which other users can't enter\n" in said
    (project.folder / f"python{HERE}").touch()
    said = project.ok(*words, "--anew").err
    assert f"lies in {home}, which other users can't enter: `--python {project.folder}/python{HERE}` takes" in said
