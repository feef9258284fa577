from pathlib import Path

import pytest

from tenv.core.errors import UnknownTargetError
from tenv.targets.search import Origin, Place, SearchPath, find_project

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


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("cuda122", "12.2: `cuda121`, `cuda121-archives`"),
        ("cuda12", "12: `cuda129`"),
        ("cuda129x", "12.9: `cuda129`"),
        ("cuda12.7", "12.7: `cuda121`, `cuda121-archives`"),
        ("cuda131", "13.1: `cuda130`"),
        ("cuda14", "14: `cuda132`"),
        ("cuda115", "11.5: `cuda118`"),
        ("CUDA-130", "13.0: `cuda130`"),
    ],
)
def test_a_release_of_cuda_is_answered_by_its_number(places: SearchPath, name: str, meant: str) -> None:
    for known in ("cuda118", "cuda121", "cuda121-archives", "cuda129", "cuda130", "cuda132", "cpu"):
        write(places, Origin.BUILT_IN, known)
    with pytest.raises(UnknownTargetError) as error:
        places.find(name)
    assert error.value.hint.startswith(f"nearest to CUDA {meant}; `auto` selects")


def test_a_project_is_found_upwards(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "tenv.toml").touch()
    assert find_project(deep) == tmp_path
    (tmp_path / "a" / "manifests").mkdir()
    assert find_project(deep) == tmp_path / "a"


def test_environments_lie_in_the_project_or_in_the_user_s_folder(places: SearchPath, tmp_path: Path) -> None:
    assert places.environments() == tmp_path / "PROJECT" / ".tenv" / "envs"
    assert SearchPath(None, places.places, tmp_path / "data").environments() == tmp_path / "data" / "envs"
