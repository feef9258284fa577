"""The folders that root names for all users of a machine: who may name them, and their content."""

import os
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenv.core.errors import StorageError, UsageError
from tenv.core.files import exclusive
from tenv.core.other_users import closed_below, closed_part
from tenv.core.versions import Range
from tenv.environment import trust
from tenv.environment.marks import Registry
from tenv.install import for_others
from tenv.install.for_others import open_to_others
from tenv.project.context import Context
from tenv.sources.wheels.interpreters import search
from tenv.targets import config
from tenv.targets import search as target_search
from tenv.targets.manifest import WheelRequest
from tenv.targets.tree_request import TreeRequest
from tenv.verbs.create import _about_others
from tests.attacks.test_foreign import marks
from tests.support.projects import Project, call

if TYPE_CHECKING:
    from tenv.install.creation import Creation

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has its own rights")


@pytest.fixture
def system_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of root: its owner here is the tests' user, who is trusted as root is."""
    file = tmp_path / "etc" / "tenv" / "config.toml"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(config, "SYSTEM_FILE", file)
    return file


def test_root_accepts_an_environment_without_a_mark(created: Project, system_file: Path) -> None:
    shutil.rmtree(marks())
    words = ("activate", "--prefix", str(created.prefix), "--shell", "bash", "tiny")
    assert call(*words).status == 8
    system_file.write_text(f"safe-folders = ['{created.folder}']")
    assert call(*words).status == 0
    created.prefix.chmod(0o777)
    assert call(*words).status == 8
    created.prefix.chmod(0o755)
    for part in (system_file, system_file.parent):
        rights = part.stat().st_mode
        part.chmod(0o777)
        ended = call(*words)
        assert ended.status == 2
        assert f"{system_file} is not used: {part} is not root's alone" in ended.err
        part.chmod(rights)
    system_file.write_text("mirrors = {}")
    assert "mirrors" in call(*words).err
    system_file.write_text("safe-folders = ['envs']")
    assert "`envs` is not a whole path" in call(*words).err


def test_a_file_of_root_that_is_closed_is_named(
    tmp_path: Path, system_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root with the umask 077 made the folder. Where the user's own settings name the folder, nobody asks."""
    system_file.write_text("fault = 1")
    monkeypatch.setenv("TENV_SAFE_FOLDERS", str(tmp_path / "own"))
    assert next(iter(Context().registry().named())) == tmp_path / "own"
    uid, closed = os.geteuid(), system_file.parent
    closed.chmod(0)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nowhere")
    try:
        if uid == 0:
            os.seteuid(65534)
        with pytest.raises(UsageError, match="can't be read by this user") as error:
            config.system_safe_folders()
        assert f"chmod a+rx {closed}" in error.value.hint
        for folder in (closed, closed / "gone", Path("/")):  # such as that of root, after `su`
            assert target_search.find_project(folder) == (None, None)
    finally:
        os.seteuid(uid)
        closed.chmod(0o755)


@pytest.mark.usefixtures("system_file")
def test_an_environment_of_another_user_names_its_owner(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives a file to another user")
    where = ("--prefix", str(created.prefix))
    os.chown(created.prefix, 65534, -1)
    ended = call("run", *where, "tiny", "--", "true")
    assert ended.status == 8
    assert "was not created by this user: it belongs to nobody, so" in ended.err
    assert "if you trust nobody: `export TENV_SAFE_FOLDERS=" in ended.err
    assert "--anew` puts the folder aside" in ended.err
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK and Path(place).exists())
    assert "--anew" not in call("run", *where, "tiny", "--", "true").err


def test_users_of_an_environment_need_not_know_its_target(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    created.manifest.unlink()
    words = ("activate", "--prefix", str(created.prefix), "--shell", "bash", "tiny")
    assert "is stale is unknown" in call(*words).err
    monkeypatch.setattr(Registry, "is_shared", lambda *_: True)
    ended = call(*words)
    assert (ended.status, ended.err) == (0, "")
    assert "is stale is unknown" in call("run", "--locked", *words[1:3], "tiny", "--", "true").err


def test_a_folder_that_this_user_may_not_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uid, folder = os.geteuid(), tmp_path / "envs"
    monkeypatch.setattr(os, "access", partial(os.access, effective_ids=True))
    folder.mkdir()
    folder.chmod(0o555)
    for part in (tmp_path, *tmp_path.parents[:3]):
        part.chmod(part.stat().st_mode | 0o111)
    (folder / "env").mkdir(mode=0o555)
    try:
        if uid == 0:
            os.seteuid(65534)
        for name, place in (("env", "env"), ("new", ".")):
            with (
                pytest.raises(StorageError, match=f"^tenv create: this user may not write {folder / place}$"),
                exclusive(folder / name, "tenv create", print),
            ):
                pass
    finally:
        os.seteuid(uid)
        folder.chmod(0o755)


def test_a_project_that_others_can_write_is_none_of_root_s(tmp_path: Path, system_file: Path) -> None:
    """The folder is taken as another user's."""
    folder = tmp_path / "shared" / "project"
    folder.mkdir(parents=True)
    system_file.write_text(f"safe-folders = ['{tmp_path / 'shared'}']")
    assert target_search._is_safe(folder)
    (tmp_path / "shared").chmod(0o777)
    assert not target_search._is_safe(folder)
    assert not closed_below(folder, tmp_path / "elsewhere")


def test_an_environment_for_others_is_refused_where_they_can_t_enter(project: Project, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    ended = call("create", "tiny", "--prefix", str(closed / "env"), "--for-others")
    assert ended.status == 2
    assert "which other users can't enter" in ended.err
    assert not (closed / "env").exists()
    assert call("create", "tiny", "--for-others").status == 2


def test_others_may_read_and_run_and_nobody_but_the_owner_writes(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    (prefix / "bin").mkdir(parents=True, mode=0o700)
    for name, mode in (("bin/tool", 0o700), ("notes", 0o600), ("shared", 0o666)):
        (prefix / name).touch()
        (prefix / name).chmod(mode)
    (prefix / "link").symlink_to("/nowhere")
    (prefix / "own" / "deep").mkdir(parents=True, mode=0o700)
    for name, mode in (("own/deep/key", 0o600), ("bin/token", 0o620), ("bin/open", 0o666)):
        (prefix / name).touch()
        (prefix / name).chmod(mode)
    (prefix / "own" / "deep").chmod(0o700)
    (prefix / "own").chmod(0o700)
    prefix.chmod(0o2770)
    unmanaged = ("own/deep/key", "bin/token", "bin/open")
    assert open_to_others(prefix, unmanaged) == ["bin/token", "own", "own/deep", "own/deep/key"]
    kept = {name: oct((prefix / name).stat().st_mode & 0o7777) for name in (*unmanaged, "own")}
    assert kept == {"own/deep/key": "0o600", "bin/token": "0o600", "bin/open": "0o644", "own": "0o700"}
    found = {name: oct((prefix / name).stat().st_mode & 0o7777) for name in (".", "bin", "bin/tool", "notes", "shared")}
    assert found == {".": "0o2755", "bin": "0o755", "bin/tool": "0o755", "notes": "0o644", "shared": "0o644"}


def test_a_file_that_a_running_python_renames_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = for_others._open

    def renamed(path: Path, *given: Any, **more: Any) -> None:
        if path.name == "x.pyc.1":
            path.unlink()
        opened(path, *given, **more)

    monkeypatch.setattr(for_others, "_open", renamed)
    for name in ("a", "x.pyc.1", "z"):
        (tmp_path / name).touch(0o600)
    assert open_to_others(tmp_path) == []
    assert {(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {("a", 0o644), ("z", 0o644)}


def test_a_python_in_a_closed_folder_is_not_for_others(tmp_path: Path) -> None:
    program = Path(shutil.which("python3", path="/usr/bin:/usr/local/bin") or "")
    assert program.is_absolute(), "a Python of the system"
    minor = program.resolve().name.removeprefix("python")
    folder = tmp_path / "home" / "bin"
    folder.mkdir(parents=True)
    script = folder / f"python{minor}"
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    (tmp_path / "home").chmod(0o700)
    assert closed_part(script) is not None
    assert closed_part(script, tmp_path / "home") is None
    found = search([minor], {"PATH": f"{folder}:{program.parent}", "HOME": str(tmp_path)}, for_others=True)
    assert [closed_part(python.path) for python in found] == [None] * len(found)


def test_a_folder_that_others_can_t_enter_is_named_with_an_environment_for_others(tmp_path: Path) -> None:
    (tmp_path / "closed" / "vision").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    wheels = {
        name: WheelRequest(Range("*"), tree=TreeRequest(path="closed/vision", editable=editable, base=tmp_path))
        for name, editable in (("copied", False), ("vision", True))
    }
    job = SimpleNamespace(prefix=tmp_path / "env", manifest=SimpleNamespace(wheels=wheels))
    first = next(_about_others(cast("Creation", job), ()))
    assert first.startswith(f"other users can't import vision: it stays in {tmp_path / 'closed' / 'vision'}")


@pytest.mark.usefixtures("system_file")
def test_a_safe_folder_that_others_write_is_named_and_hides_no_other(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives a file to another user")
    words = ("activate", "--prefix", str(created.prefix), "--shell", "bash", "tiny")
    envs = created.prefix.parent
    os.chown(created.prefix, 65534, -1)
    envs.chmod(0o777)
    monkeypatch.setenv("TENV_SAFE_FOLDERS", str(created.folder))
    ended = call(*words)
    assert ended.status == 8
    assert f"others can write {envs}\n" in ended.err
    assert f"`chmod go-w {envs}`" in ended.err
    monkeypatch.setenv("TENV_SAFE_FOLDERS", f"{created.folder}:{created.prefix}")
    assert call(*words).status == 0


def test_a_closed_note_of_another_user_is_named(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "is_own", lambda _: False)
    note = created.prefix / "tenv-meta" / "activate.sh"
    readable = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != note and readable(place, mode))
    words = ("run", "--prefix", str(created.prefix), "tiny", "--", "true")
    ended = call(*words)
    assert ended.status == 8
    assert f"{note} can't be read: Permission denied" in ended.err
    assert "--for-others`, by the owner" in ended.err
