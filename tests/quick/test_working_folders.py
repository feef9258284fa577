"""The short way finds the folders that the program finds, or leaves the command to it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tenv.project.context import Context
from tenv.quick.working_folders import Folders, find_folders, is_name
from tenv.targets import search
from tests.support.project_folders import LAYOUTS
from tests.support.projects import write_config


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))


def same_as_program(found: Folders | None) -> Folders:
    """Hold what the short way found against what the program finds."""
    known = search.find_places()
    assert found is not None
    assert (found.project, found.data) == (known.project and str(known.project), str(known.data))
    assert found.home == str(known.environments())
    assert found.searched == [str(place.folder) for place in known.places]
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_projects_are_those_of_the_program(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, is_project = LAYOUTS[layout]
    stand_in(tmp_path / "p" / "deep", monkeypatch)
    make(tmp_path / "p")
    found = find_folders()
    if layout == "of another user" and os.geteuid() == 0:
        assert found is None
    else:
        assert bool(same_as_program(found).project) is is_project


def test_a_checkout_keeps_its_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytorch" / "torch" / "csrc").mkdir(parents=True)
    (tmp_path / "pytorch" / "setup.py").touch()
    stand_in(tmp_path / "pytorch" / "torch", monkeypatch)
    assert same_as_program(find_folders()).home == f"{tmp_path}/pytorch/.tenv/envs"


def test_a_checkout_above_the_project_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytorch" / "torch" / "csrc").mkdir(parents=True)
    (tmp_path / "pytorch" / "setup.py").touch()
    stand_in(tmp_path / "pytorch" / "own", monkeypatch)
    (tmp_path / "pytorch" / "own" / "tenv.toml").touch()
    assert same_as_program(find_folders()).home == f"{tmp_path}/pytorch/own/.tenv/envs"


def test_a_link_to_a_folder_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "tenv.toml").touch()
    (tmp_path / "link").symlink_to("real/deep")
    stand_in(tmp_path / "link", monkeypatch)
    assert same_as_program(find_folders()).project == str(tmp_path / "real")


def test_outside_a_project_the_lock_of_the_user_replaces_the_built_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "nothing", monkeypatch)
    places = same_as_program(find_folders())
    lock, nearer = search.find_places().lock_of("cuda130")
    assert places.locks_of(places.home, "cuda130") == [*map(str, nearer), str(lock)]
    assert places.locks_of(places.home, "unknown") is None


def test_an_environment_outside_a_project_has_no_lock_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "p", monkeypatch)
    (tmp_path / "p" / "manifests").mkdir()
    (tmp_path / "p" / "manifests" / "cpu.toml").touch()
    places = same_as_program(find_folders())
    assert places.locks_of(places.home, "cpu") == [f"{tmp_path}/p/locks/cpu.lock"]
    assert f"{tmp_path}/p/locks/cpu.lock" not in (places.locks_of(places.outer, "cpu") or ())


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("", ""),
        ("# nothing\n", ""),
        ('default = "cpu"\n', "cpu"),
        ('# ours\n\ndefault = "cuda130"', "cuda130"),
        ("sync = true\n", None),
        ('default = "cpu"\nsync = false\n', None),
        ('default = "auto"\n', None),
        ('default = "c\\u0070u"\n', None),
        ("default = cpu\n", None),
        ('default = "a" # "b"\n', None),
        ("[", None),
        ("\udcff", None),
    ],
)
def test_settings_of_a_project(text: str, default: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path / "p", monkeypatch)
    (tmp_path / "p" / "tenv.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    found = find_folders()
    assert (found.default if found else None) == default
    if found and default:
        assert Context().default_target() == default


def change_config(_: Path) -> None:
    write_config("sync = true\n")


def double_slash(folder: Path) -> None:
    os.environ["PWD"] = f"{folder.parent}//{folder.name}"


def two_data_folders(folder: Path) -> None:
    os.environ["XDG_DATA_HOME"] = f"{folder}/../data"


@pytest.mark.parametrize("change", [change_config, double_slash, two_data_folders])
def test_what_takes_more_than_a_look_is_left_to_the_program(
    change: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "p", monkeypatch)
    monkeypatch.setenv("XDG_DATA_HOME", os.environ.get("XDG_DATA_HOME", str(tmp_path / "data")))
    assert find_folders() is not None
    change(tmp_path / "p")
    assert find_folders() is None


@pytest.mark.parametrize(
    "name", ["cpu", "cuda130", "cpu-1.10", "a_b", "", "-x", ".a", "a/b", "a b", "auto", "ä", "a\n"]
)
def test_names(name: str) -> None:
    assert is_name(name) is (search.is_target_name(name) and name != search.AUTO)
