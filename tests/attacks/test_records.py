"""Records, states and links in a prefix that somebody else has written: nothing outside is written or removed."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenv.environment.state import Environment
from tests.attacks.outside import make_victims
from tests.support.archive_server import MAGMA, ask
from tests.support.conda_project import Conda
from tests.support.projects import Project, call
from tests.support.rarely import first_fast, pairs_fast, some_fast
from tests.support.redist import Server, pack, regular

MAGMA_LINE = 'magma = {{ url = "{}/magma-cuda121-2.6.1-1.tar.bz2" }}'
UP = "../../.."


@pytest.fixture
def placed(project: Project, served: Server) -> Project:
    """An environment of two archives."""
    ask(project, 'cunovel = "7.1.0"', MAGMA_LINE.format(served.url))
    project.ok("lock", "tiny", "--trust-first-use")
    project.ok("create", "tiny")
    return project


def _record(**values: Any) -> Callable[[Path, Path], None]:
    """Return a change of the record of `magma`."""

    def change(prefix: Path, victim: Path) -> None:
        path = prefix / "tenv-meta" / "archives" / "magma.json"
        text = json.dumps({**json.loads(path.read_text()), **values})
        path.write_text(text.replace("VICTIM", str(victim)).replace("UP", os.path.relpath(victim, prefix)))

    return change


def _named(prefix: Path, victim: Path) -> None:
    """Write a record whose name leads to a file outside."""
    path = prefix / "tenv-meta" / "archives" / "magma.json"
    data = json.loads(path.read_text())
    data["name"] = os.path.relpath(victim.with_suffix(""), path.parent)
    path.write_text(json.dumps(data))


def _through(prefix: Path, victim: Path) -> None:
    """Name a file of a folder that is a link to a folder outside."""
    (prefix / "opt" / "way").symlink_to(victim.parent)
    _record(files={f"opt/way/{victim.name}": "ab"})(prefix, victim)


def _file_through(prefix: Path, victim: Path) -> None:
    """Put a link to a folder outside in the place of a folder of the archive."""
    shutil.rmtree(prefix / "opt" / "magma" / "include")
    (victim.parent / "magma.h").write_text("the user's own magma.h")
    (prefix / "opt" / "magma" / "include").symlink_to(victim.parent)


RECORDS: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "a file that climbs": (_record(files={"UP": "ab"}), "it was removed"),
    "an absolute file": (_record(files={"VICTIM": "ab"}), "it was removed"),
    "a link that climbs": (_record(links={"UP": "x"}), "it was removed"),
    "a name that climbs": (_named, "it was removed, with `.json` at its end"),
    "a file behind a link": (_through, "it was removed"),
    "a link in the place of a folder": (_file_through, "what was there under the same names was removed"),
    "files are a list": (_record(files=["UP"]), "a traceback"),
    "files are numbers": (_record(files={"a": 5}), "a traceback"),
    "to is a number": (_record(to=5), "a traceback"),
    "a null byte": (_record(files={"a\0b": "ab"}), "a traceback"),
    "a file of tenv's own": (_record(files={"tenv-meta/state.json": "ab"}), "the state was removed"),
}


FAST = ("a file that climbs", "files are numbers")


@pytest.mark.parametrize("name", some_fast(RECORDS, FAST))
def test_a_record_of_an_archive_removes_nothing_outside(name: str, placed: Project) -> None:
    victims = make_victims(placed)
    RECORDS[name][0](placed.prefix, victims.project.folder / "package.json")
    before = victims.hashes()
    ask(placed, 'cunovel = "7.1.0"')
    for words in (("create", "tiny"), ("create", "tiny", "--repair"), ("verify", "tiny"), ("remove", "tiny")):
        ended = call(*words)
        assert ended.status in (0, 1, 6, 8), (words, ended.err)
        assert "error[bug]" not in ended.err
        assert victims.hashes() == before, words


@pytest.mark.parametrize("name", ["tenv-meta/archives/evil.json", "tenv-meta/activate.sh", "conda-meta/evil-1-0.json"])
def test_an_archive_plants_no_record(name: str, project: Project, served: Server) -> None:
    served.files["/magma-cuda121-2.6.1-1.tar.bz2"] = pack("tar.bz2", [*MAGMA, regular(name, b"{}")])
    ask(project, f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2", to = "." }}')
    project.ok("lock", "tiny", "--trust-first-use")
    assert "is reserved for tenv and conda" in project.fails(6, "archive-refused", "create", "tiny")
    assert not (project.prefix / name).exists()


def _link(name: str) -> Callable[[Path, Path], None]:
    """Return what moves a folder of a prefix elsewhere and puts a link in its place."""

    def change(prefix: Path, victim: Path) -> None:
        elsewhere = victim.parent / "elsewhere"
        (prefix / name).rename(elsewhere) if (prefix / name).exists() else elsewhere.mkdir()
        (elsewhere / ".hidden").write_text("the user's own")
        (elsewhere / "000001.lock").write_text("the user's own")
        (prefix / name).symlink_to(elsewhere)

    return change


LINKS = {
    "the prefix": "",
    "tenv's notes": "tenv-meta",
    "tenv's records": "tenv-meta/archives",
    "kept locks": "tenv-meta/locks",
    "stamps": "tenv-meta/system",
    "conda's notes": "conda-meta",
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_the_place_of_a_folder_is_not_followed(name: str, placed: Project) -> None:
    victims = make_victims(placed)
    _link(LINKS[name])(placed.prefix, placed.folder / "package.json")
    before = victims.hashes()
    ask(placed, 'cunovel = "7.1.0"')
    for words in (("create", "tiny"), ("create", "tiny", "--exact"), ("create", "tiny", "--repair")):
        assert re.search("is a symbolic link|leads by a link to", placed.fails(8, "foreign-folder", *words))
        assert victims.hashes() == before


def test_a_kept_lock_of_another_name_is_none(placed: Project) -> None:
    names = {"x.lock", "0.lock", "99999999999999999999.lock", "-1.lock", "00000a.lock"}
    for name in names:
        (placed.prefix / "tenv-meta" / "locks" / name).write_text("tenv: {}")
    ask(placed, 'cunovel = "7.1.0"')
    placed.ok("create", "tiny")
    assert names.isdisjoint(path.name for path in Environment(placed.prefix).kept_locks())


STATES = {
    "not JSON": "{",
    "a list": "[]",
    "another type of status": '{"state": 5, "schema": 2}',
    "another type of schema": '{"state": "ready", "schema": "2"}',
    "packages are a list": '{"state": "ready", "schema": 2, "target": "tiny", "packages": []}',
    "archives of three": '{"state": "ready", "schema": 2, "target": "tiny", "archives": {"a": ["b", "c", "d"]}}',
    "foreign files outside": '{"state": "creating", "schema": 2, "target": "tiny", "foreign": ["../../../x"]}',
    "deep": "[" * 100_000,
    "a number of many digits": '{"state": "ready", "schema": ' + "9" * 5000 + "}",
    "not UTF-8": "\udcff",
}


def test_a_state_that_is_none_of_tenvs_harms_nothing(placed: Project) -> None:
    victims = make_victims(placed)
    before = victims.hashes()
    for name, text in STATES.items():
        placed.state_file.write_text(text, errors="surrogateescape")
        for words in (
            ("list",),
            ("verify", "tiny"),
            ("activate", "tiny"),
            ("create", "tiny"),
            ("create", "tiny", "--exact"),
        ):
            ended = call(*words)
            assert "error[bug]" not in ended.err, (name, words, ended.err)
        assert victims.hashes() == before, name
        assert call("list", "--json").data[0]["state"] == "ready", name


@pytest.mark.parametrize(("how", "place"), pairs_fast(["up", "absolute", "through"], ["files", "paths_data"]))
def test_a_note_of_a_conda_package_removes_nothing_outside(how: str, place: str, conda: Conda) -> None:
    conda.lock("data")
    conda.create()
    victims = make_victims(conda.project)
    victim = conda.project.folder / "package.json"
    named = {"up": os.path.relpath(victim, conda.prefix), "absolute": str(victim), "through": f"way/{victim.name}"}[how]
    (conda.prefix / "way").symlink_to(victim.parent)
    (note,) = (conda.prefix / "conda-meta").glob("data-*.json")
    data = json.loads(note.read_text())
    if place == "files":
        data["files"].append(named)
    else:
        data["paths_data"]["paths"].append({"_path": named, "path_type": "hardlink", "size_in_bytes": 1})
    note.write_text(json.dumps(data))
    before = victims.hashes()
    conda.make("data", "2", files={"share/data.txt": "new\n"})
    conda.lock("data")
    ended = call("create", "tiny", "--frozen")
    assert ended.status in (0, 8), ended.err
    assert victims.hashes() == before


@pytest.mark.parametrize("how", first_fast(["through", "up", "absolute"], 2))
def test_a_record_of_a_wheel_removes_nothing_outside(how: str, created: Project) -> None:
    victims = make_victims(created)
    victim = created.folder / "package.json"
    site = created.site()
    named = {"up": os.path.relpath(victim, site), "absolute": str(victim), "through": f"way/{victim.name}"}[how]
    (site / "way").symlink_to(victim.parent)
    (record,) = site.glob("alpha-*.dist-info/RECORD")
    record.write_text(record.read_text() + f"{named},sha256=x,1\n")
    before = victims.hashes()
    created.edit('alpha  = ">=1"\n', "")
    ended = call("create", "tiny")
    assert ended.status in (0, 8), ended.err
    assert victims.hashes() == before
    assert not list(site.glob("alpha-*"))
