"""Locks of other tools through tenv and back.

Small ones are made here. For those of public repositories, put them into a folder, one folder for each, and name it in
TENV_TEST_LOCKS; the table of what was read is printed with `-rP`.
"""

import re
from pathlib import Path

import pytest

from tests.interop.records import LOCKS, SOURCE_ONLY, write_conda_lock, write_pixi
from tests.interop.round_trip import (
    Trip,
    public_locks,
    releases_of_conda_lock,
    releases_of_pixi,
    round_trip,
    seen_by_conda_lock,
    seen_by_rattler,
)
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("empty_project")


def pixi_trip(file: Path) -> Trip:
    return round_trip(file, "pixi", seen_by_rattler, releases_of_pixi)


def conda_lock_trip(file: Path) -> Trip:
    return round_trip(file, "conda-lock", seen_by_conda_lock, releases_of_conda_lock)


@pytest.mark.parametrize("name", ["pixi", "old-pixi", *map(str, public_locks("pixi.lock"))])
def test_a_pixi_lock_reads_the_same_after_a_round_trip(name: str, tmp_path: Path) -> None:
    file = LOCKS[name](tmp_path) if name in LOCKS else Path(name)
    if not seen_by_rattler(file):
        assert "has nothing for a platform that tenv supports" in call("import", str(file), "--name", "trip").err
        return
    _told(file, pixi_trip(file))


@pytest.mark.parametrize("name", ["conda-lock", *map(str, public_locks("conda-lock.yml"))])
def test_a_conda_lock_reads_the_same_after_a_round_trip(name: str, tmp_path: Path) -> None:
    from pydantic import ValidationError

    file = LOCKS[name](tmp_path) if name in LOCKS else Path(name)
    try:
        seen_by_conda_lock(file)
    except ValidationError:  # then neither does tenv, which reads it with the same models
        assert "conda-lock can't read it" in call("import", str(file), "--name", "trip").err
        return
    _told(file, conda_lock_trip(file))


def _told(file: Path, trip: Trip) -> None:
    trip.check()
    assert trip.after
    print(f"{file}: {len(trip.before)} packages, {len(trip.after)} after, {len(trip.left)} can't be held")  # noqa: T201 (the table)


def test_all_of_a_pixi_lock_can_be_held(tmp_path: Path) -> None:
    trip = pixi_trip(write_pixi(tmp_path))
    assert len(trip.after) == 9
    assert trip.after == trip.before


def test_of_a_conda_lock_only_other_platforms_are_not_held(tmp_path: Path) -> None:
    file = write_conda_lock(tmp_path)
    trip = conda_lock_trip(file)
    assert not trip.left
    assert trip.lost == ["skipped platforms: osx-64"]
    ended = call("import", str(file), "--name", "again")
    assert "note: the packages of the categories dev come with the rest" in ended.err


def test_a_source_archive_that_no_index_has_leaves_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    file = write_conda_lock(tmp_path)
    file.write_text(file.read_text() + SOURCE_ONLY)
    ended = call("import", str(file), "--name", "trip")
    assert ended.status == 0, ended.err
    assert "not imported: its lock, since tenv can't lock source-only, and " in ended.err
    assert "source-only = { version" in Path("manifests/trip.toml").read_text()
    assert not Path("locks/trip.lock").exists()


@pytest.mark.parametrize("form", ["pixi", "conda-lock"])
def test_a_round_trip_the_other_way_gives_the_same_lock(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"pixi": pixi_trip, "conda-lock": conda_lock_trip}[form](LOCKS[form](tmp_path))
    assert made.after
    first = Path("locks/trip.lock").read_bytes()
    again = Path("out") / ("pixi.lock" if form == "pixi" else "conda-lock.yml")
    if form == "pixi":  # the index of the user's settings is none of the manifest
        monkeypatch.setenv("UV_DEFAULT_INDEX", re.search(r'index-url = "(.+)"', Path("out/pixi.toml").read_text())[1])  # type: ignore[index]
    assert call("import", str(again), "--name", "trip", "--force").status == 0
    assert Path("locks/trip.lock").read_bytes() == first
