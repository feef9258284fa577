"""Kills and races of an installation of conda packages: the next `create` always ends with the same files.

TENV_TESTS_KILLS    how many kills (four without it)
"""

import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenv.host.machine import current_platform
from tenv.rattler_api.cache import cache_folder, downloads_folder
from tenv.targets.search import find_places
from tests.support.conda import PLACEHOLDER, Channel, make_conda, write_lock
from tests.support.fakes import noise
from tests.support.projects import Project, finish, snapshot

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="signals as Linux has them")]

KILLS = int(os.environ.get("TENV_TESTS_KILLS", "4"))
AT_ONCE = 4
"""Creates; each of them loads rattler, so that more take a while."""
PACKAGES = 30
FILES = 20


@pytest.fixture
def conda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project, locked, with a target of many small conda packages whose files have a prefix to replace."""
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    names = [f"package{number}" for number in range(PACKAGES)]
    with Channel(tmp_path / "channel") as channel:
        for name in names:
            files: dict[str, str | bytes] = {f"share/{name}/{n}": f"{PLACEHOLDER} {name} {n}\n" for n in range(FILES)}
            files |= {f"lib/{name}.so": b"\x7fELF\0" + PLACEHOLDER.encode() + b"\0" + noise(1 << 14)}
            make_conda(channel.folder, name, "1", files=files)
        channel.refresh()
        project = Project(tmp_path / "project", channel)
        project.manifest.parent.mkdir(parents=True)
        monkeypatch.chdir(project.folder)
        monkeypatch.setenv("PWD", str(project.folder))
        asked = "".join(f'{name} = "*"\n' for name in names)
        project.manifest.write_text(
            f'platforms = ["{current_platform()}"]\nchannels = ["{channel.root}"]\n[dependencies]\n{asked}'
        )
        write_lock(find_places(project.folder).find("tiny"), channel, names)
        yield project
        project.end_all()


def create(project: Project, *words: str) -> None:
    assert project.run("create", "tiny", "--frozen", *words).status == 0


def test_kills_at_any_moment_leave_what_the_next_create_repairs(conda: Project) -> None:
    """The moments are spread over the time of one create; every other pair of kills begins without a cache."""
    project, kills = conda, KILLS
    create(project)
    clean = snapshot(project.prefix)
    (project.prefix / "notes.txt").write_text("mine")
    begun = time.monotonic()
    create(project, "--exact")
    whole = time.monotonic() - begun
    assert snapshot(project.prefix) == clean
    moments = random.Random(20240229)
    for number in range(kills):
        mine = bool(number % 2)
        if mine:  # half of them over an environment that somebody uses, half of them from nothing
            (project.prefix / "notes.txt").write_text("mine")
            project.state_file.write_text(project.state_file.read_text().replace('"ready"', '"broken"'))
        else:
            assert project.run("remove", "tiny").status == 0
        if number % 4 > 1:
            shutil.rmtree(cache_folder())
        child = project.start("create", "tiny", "--frozen")
        time.sleep(whole * (number + moments.random()) / kills)
        child.kill()
        finish(child)
        create(project)
        assert project.state()["state"] == "ready"
        if mine:
            assert (project.prefix / "notes.txt").read_text() == "mine", number
            (project.prefix / "notes.txt").unlink()
        assert snapshot(project.prefix) == clean, number
    create(project, "--offline")


def test_several_at_once_make_one_environment(conda: Project) -> None:
    children = [conda.start("create", "tiny", "--frozen", "--json") for _ in range(AT_ONCE)]
    ended = [finish(child) for child in children]
    assert [one.status for one in ended] == [0] * AT_ONCE, [one.err for one in ended]
    assert sum(one.data["changed"] for one in ended) == 1
    together = snapshot(conda.prefix)
    conda.ok("remove", "tiny")
    create(conda)
    assert snapshot(conda.prefix) == together


def test_several_at_once_with_one_cache_make_as_many_environments(conda: Project, tmp_path: Path) -> None:
    prefixes = [tmp_path / "envs" / str(number) for number in range(AT_ONCE)]
    children = [conda.start("create", "tiny", "--frozen", "--prefix", str(prefix)) for prefix in prefixes]
    ended = [finish(child) for child in children]
    assert [one.status for one in ended] == [0] * AT_ONCE, [one.err for one in ended]
    kept = {frozenset(snapshot(prefix)) for prefix in prefixes}
    assert len(kept) == 1
    assert len([path for path in cache_folder().iterdir() if path.is_dir()]) == PACKAGES
    assert list(downloads_folder().iterdir()) == []
