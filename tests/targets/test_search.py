import os
import stat as stat_module
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.core.errors import UnknownTargetError, UsageError
from tenv.core.versions import Version
from tenv.host.machine import current_platform
from tenv.targets.nearest_cuda import HostDriver
from tenv.targets.search import Origin, Place, SearchPath, find_project
from tenv.verbs.build import find_checkout
from tests.support.each import each
from tests.support.projects import Project, call, write_config

TEXT = 'platforms = ["linux-64"]\n'


@pytest.fixture
def places(tmp_path: Path) -> SearchPath:
    found = []
    for origin in Origin:
        folder = tmp_path / origin.name
        (folder / "manifests").mkdir(parents=True)
        (folder / "locks").mkdir()
        found.append(Place(origin, folder))
    return SearchPath(tmp_path / "PROJECT", tuple(found), tmp_path / "data")


def write(places: SearchPath, origin: Origin, name: str, *, lock: bool = False) -> None:
    place = next(place for place in places.places if place.origin is origin)
    place.manifest_file(name).write_text(TEXT)
    if lock:
        place.lock_file(name).write_text("")


def test_the_nearest_manifest_wins(places: SearchPath) -> None:
    write(places, Origin.BUILT_IN, "a")
    write(places, Origin.USER, "a")
    assert places.find("a").origin is Origin.USER


def test_a_built_in_lock_serves_a_built_in_manifest(places: SearchPath) -> None:
    write(places, Origin.BUILT_IN, "a", lock=True)
    target = places.find("a")
    assert target.lock_file == places.places[2].lock_file("a")
    assert target.lock_home == places.places[0].lock_file("a")


def test_a_built_in_lock_says_nothing_of_a_project_s_own_manifest(places: SearchPath) -> None:
    write(places, Origin.BUILT_IN, "a", lock=True)
    write(places, Origin.PROJECT, "a")
    assert places.find("a").lock_file == places.places[0].lock_file("a")


def test_a_nearer_lock_wins(places: SearchPath) -> None:
    write(places, Origin.BUILT_IN, "a", lock=True)
    places.places[0].lock_file("a").write_text("")
    assert places.find("a").lock_file == places.places[0].lock_file("a")


def test_names_are_told_once_and_parents_not_at_all(places: SearchPath) -> None:
    write(places, Origin.BUILT_IN, "b")
    write(places, Origin.USER, "b")
    write(places, Origin.PROJECT, "a")
    write(places, Origin.PROJECT, "_parent")
    assert list(places.names()) == ["a", "b"]


@pytest.mark.parametrize("name", ["nosuch", "../secret", "_parent", "", "a/b", ".hidden"])
def test_what_is_no_target_is_told(places: SearchPath, name: str) -> None:
    write(places, Origin.PROJECT, "_parent")
    with pytest.raises(UnknownTargetError, match="there is no target"):
        places.find(name)


def test_a_misspelt_name_comes_with_the_nearest_ones(places: SearchPath) -> None:
    for name in ("cuda130", "cuda132", "cpu"):
        write(places, Origin.BUILT_IN, name)
    with pytest.raises(UnknownTargetError) as error:
        places.find("cud1300")
    assert error.value.hint == "did you mean `cuda130`? (`tenv targets` lists them)"


@pytest.mark.parametrize("name", ["cuda13o", "cuds130", "cuda-30", "cPu"])
def test_one_wrong_letter_comes_before_numbers(places: SearchPath, name: str) -> None:
    for known in ("cuda130", "cuda132", "cpu"):
        write(places, Origin.BUILT_IN, known)
    with pytest.raises(UnknownTargetError) as error:
        places.find(name)
    assert error.value.hint == f"did you mean `{'cpu' if name == 'cPu' else 'cuda130'}`? (`tenv targets` lists them)"


@each(
    "name, meant",
    [
        ("cuda122", "12.2: `cuda121`, `cuda121-archives`"),
        ("cuda12", "12: `cuda129`"),
        ("cuda129x", "12.9: `cuda129`"),
        ("cuda12.7", "12.7: `cuda121`, `cuda121-archives`"),
        ("cuda131", "13.1: `cuda130`"),
        ("cuda14", "14: `cuda132`"),
        ("cuda115", "11.5: `cuda118`"),
        ("CUDA-130", "13.0: `cuda130`"),
        ("cu121", "12.1: `cuda121`, `cuda121-archives`"),
        ("cu12", "12: `cuda129`"),
        ("cu124-archives", "12.4: `cuda121`, `cuda121-archives`"),
        ("12.4", "12.4: `cuda121`, `cuda121-archives`"),
        ("11.7.1", "11.7: `cuda118`"),
        ("cuda-12.4", "12.4: `cuda121`, `cuda121-archives`"),
    ],
)
def test_a_release_of_cuda_is_answered_by_its_number(
    places: SearchPath, name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostDriver, "detect", lambda: None)
    for known in ("cuda118", "cuda121", "cuda121-archives", "cuda129", "cuda130", "cuda132", "cpu"):
        write(places, Origin.BUILT_IN, known)
    with pytest.raises(UnknownTargetError) as error:
        places.find(name)
    assert error.value.hint.startswith(f"nearest to CUDA {meant}; `auto` selects")


@pytest.mark.parametrize(
    ("driver", "name", "meant"),
    [
        ("535.104.12", "cuda122", "nearest to CUDA 12.2: `cuda121`, which driver 535.104.12 of this host runs"),
        ("525.60.13", "cuda12", "nearest to CUDA 12: `cuda129`, which"),  # the floor of CUDA 12
        ("525.60.12", "cuda12", "nearest to CUDA 12 that driver 525.60.12 of this host runs: `cuda118`; it does not"),
        ("535.104.12", "cuda14", "nearest to CUDA 14 that driver 535.104.12 of this host runs: `cuda129`; it does not"),
        ("515.76", "cuda122", "nearest to CUDA 12.2 that driver 515.76 of this host runs: `cuda118`; it does not run"),
        ("390.157", "cuda122", "nearest to CUDA 12.2: `cuda121`, which driver 390.157 of this host does not run"),
    ],
)
def test_the_nearest_release_is_one_that_the_driver_runs(
    places: SearchPath, driver: str, name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostDriver, "detect", lambda: HostDriver(Version(driver), windows=False))
    for known in ("cuda118", "cuda121", "cuda129", "cuda130", "cpu"):
        write(places, Origin.BUILT_IN, known)
    with pytest.raises(UnknownTargetError) as error:
        places.find(name)
    assert error.value.hint.startswith(meant)


def test_a_file_that_can_be_no_manifest_is_named(places: SearchPath, tmp_path: Path) -> None:
    folder = tmp_path / "PROJECT" / "manifests"
    for name, why in (
        ("my target", "is no target: a name has letters, digits"),
        ("gr\u00fcn", "rename it, such as to gr-n.toml"),
        ("nowhere", "leads nowhere"),
        ("folder", "is no regular file"),
        ("x" * 300, "there is no target"),
    ):
        if name == "nowhere":
            (folder / "nowhere.toml").symlink_to("gone")
        elif name == "folder":
            (folder / "folder.toml").mkdir()
        elif len(name) < 255:
            (folder / f"{name}.toml").touch()
        with pytest.raises(UnknownTargetError) as error:
            places.find(name)
        assert why in f"{error.value.message} {error.value.hint}", name


def test_a_project_is_found_upwards(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "tenv.toml").touch()
    assert find_project(deep) == (tmp_path, None)
    manifests = tmp_path / "a" / "manifests"
    manifests.mkdir()
    (manifests / "readme.md").touch()
    assert find_project(deep) == (tmp_path, None)  # another tool's folder
    (manifests / "broken.toml").write_text("[")
    assert find_project(deep) == (tmp_path / "a", None)


def test_the_walk_ends_at_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, deep = tmp_path / "theirs", tmp_path / "theirs" / "mine"
    deep.mkdir(parents=True)
    (tmp_path / "tenv.toml").touch()
    (theirs / "manifests").mkdir()
    owners(monkeypatch, {theirs: 4711})
    assert find_project(deep) == (None, None)
    (theirs / "manifests" / "evil.toml").touch()
    assert find_project(deep) == (None, theirs)
    owners(monkeypatch, {theirs / "manifests": 4711})  # such as /tmp/manifests, seen by root
    assert find_project(deep) == (None, theirs)
    monkeypatch.setenv("TENV_SAFE_FOLDERS", str(theirs))
    assert find_project(deep) == (theirs, None)
    write_config(f'safe-folders = ["{tmp_path}"]\n')
    monkeypatch.delenv("TENV_SAFE_FOLDERS")
    assert find_project(deep) == (theirs, None)


def test_no_checkout_above_that_another_user_can_change_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as /tmp/setup.py, seen by root."""
    deep = tmp_path / "mine" / "deep"
    deep.mkdir(parents=True)
    setup = tmp_path / "setup.py"
    setup.write_text("import torch\n")
    assert find_checkout(deep) == tmp_path
    for theirs in (tmp_path, setup):
        owners(monkeypatch, {theirs: 4711})
        with pytest.raises(UsageError, match="belongs to another user"):
            find_checkout(deep)
        assert find_checkout(tmp_path) == tmp_path
    monkeypatch.setenv("TENV_SAFE_FOLDERS", str(tmp_path))
    assert find_checkout(deep) == tmp_path


def test_the_walk_ends_at_the_border_of_a_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "mounted" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "tenv.toml").touch()
    owners(monkeypatch, {tmp_path / "mounted": None, deep: None})
    assert find_project(deep) == (None, None)
    (tmp_path / "mounted" / "tenv.toml").touch()
    assert find_project(deep) == (tmp_path / "mounted", None)


def test_a_folder_of_another_user_is_named_where_its_target_is_missed(
    places: SearchPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownTargetError) as error:
        replace(places, refused=tmp_path).find("nowhere")
    assert f"{tmp_path} belongs to another user" in error.value.message
    assert error.value.hint == f"`TENV_SAFE_FOLDERS={tmp_path}` trusts it"
    with pytest.raises(UsageError, match="belongs to another user"):
        replace(places, refused=tmp_path).require_trust()
    places.require_trust()


def test_a_folder_of_another_user_is_named_where_no_target_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tenv.toml").touch()
    owners(monkeypatch, {tmp_path: 4711})
    monkeypatch.chdir(tmp_path)
    for command in (("add", "numpy"), ("create",), ("lock",), ("config", "sync", "true", "--project"), ("outdated",)):
        ended = call(*command)
        assert ended.status == 2, command
        assert f"{tmp_path} belongs to another user" in ended.err, (command, ended.err)


def owners(monkeypatch: pytest.MonkeyPatch, others: dict[Path, int | None]) -> None:
    """Let folders belong to other users, by number, or lie on another device where the number is None."""
    real = Path.stat

    def stat(self: Path, **settings: bool) -> os.stat_result:
        found = [*real(self, **settings)]
        if self in others:
            owner = others[self]
            found[stat_module.ST_DEV if owner is None else stat_module.ST_UID] = 99 if owner is None else owner
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", stat)


def test_environments_lie_in_the_project_or_in_the_user_s_folder(places: SearchPath, tmp_path: Path) -> None:
    assert places.environments() == tmp_path / "PROJECT" / ".tenv" / "envs"
    assert SearchPath(None, places.places, tmp_path / "data").environments() == tmp_path / "data" / "envs"


@each("name", ["x" * 251, "x" * 5000])
def test_a_name_that_is_too_long_for_a_file_is_unknown(tmp_path: Path, name: str) -> None:
    places = SearchPath(tmp_path, (Place(Origin.PROJECT, tmp_path),), tmp_path)
    with pytest.raises(UnknownTargetError):
        places.find(name)
    with pytest.raises(UnknownTargetError):
        places.find_parent(f"_{name}")


def test_a_target_of_another_platform_is_named_only_where_there_is_no_other(
    places: SearchPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostDriver, "detect", lambda: None)
    other = "win-64" if current_platform() != "win-64" else "linux-64"
    write(places, Origin.BUILT_IN, "cuda102-win")
    file = next(place for place in places.places if place.origin is Origin.BUILT_IN).manifest_file("cuda102-win")
    file.write_text(f'platforms = ["{other}"]\n')
    with pytest.raises(UnknownTargetError) as error:
        places.find("cuda101")
    assert "`cuda102-win`" in error.value.hint
    write(places, Origin.BUILT_IN, "cuda117")
    with pytest.raises(UnknownTargetError) as error:
        places.find("cuda101")
    assert error.value.hint.startswith("nearest to CUDA 10.1: `cuda117`; ")


@pytest.mark.parametrize("parent", ["cu118", "12.4", "CUDA 11.8 and more", "cuda999"])
def test_a_missing_parent_with_the_name_of_a_cuda_is_reported(project: Project, parent: str) -> None:
    """The hint looks for the nearest target of that CUDA, which may be the one that asks."""
    for name in ("cuda118-mine", "cuda124-mine"):
        (project.folder / "manifests" / f"{name}.toml").write_text(
            f'extends = "{parent}"\nplatforms = ["linux-64"]\n[requirements]\ncuda = "11.8"\n'
        )
    assert f"no manifest `{parent}`" in project.fails(3, "manifest", "show", "cuda118-mine")
