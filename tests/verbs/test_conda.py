"""Conda packages in an environment: installed from the lock, changed, and repaired."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.host.machine import current_platform
from tests.support.conda import PLACEHOLDER
from tests.support.conda_project import Conda, wheel_of
from tests.support.fakes import Index
from tests.support.projects import HERE, call, snapshot
from tests.support.rarely import first_fast

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packages with links and shell scripts")


def test_packages_are_installed_with_their_prefix(conda: Conda) -> None:
    conda.lock("tool", "data")
    ended = conda.create("--json")
    assert ended.data["counts"] == {"conda": 2, "wheels": 0, "archives": 0}
    assert conda.files() == {"bin/tool", "lib/libtool.so", "share/data.txt", "share/link"}
    assert subprocess.check_output([conda.prefix / "bin" / "tool"], text=True) == f"{conda.prefix}\n"
    library = (conda.prefix / "lib" / "libtool.so").read_bytes()
    assert library.startswith(b"\x7fELF\0" + os.fsencode(conda.prefix) + b"/lib\0")
    assert len(library) == 5 + len(PLACEHOLDER) + 6
    assert (conda.prefix / "share" / "link").readlink() == Path("data.txt")
    note = json.loads((conda.prefix / "conda-meta" / "tool-1-0.json").read_text())
    assert note["url"] == f"{conda.channel.root}/{current_platform()}/tool-1-0.conda"
    said = conda.create()
    assert "tiny is ready" in said.err + said.out
    assert "nothing to do" in said.err + said.out


def test_without_conda_packages_of_python_there_is_no_python(conda: Conda) -> None:
    conda.lock("data")
    conda.create()
    assert conda.project.state()["python"] == ""
    assert conda.project.state()["conda"]["data"][:2] == ["1", "0"]
    conda.project.ok("env", "tiny")


def test_packages_that_left_the_lock_are_removed_and_changed_ones_replaced(conda: Conda) -> None:
    conda.lock("tool", "data")
    conda.create()
    (conda.prefix / "notes.txt").write_text("mine")
    (conda.prefix / "share" / "mine.txt").write_text("mine")
    conda.make("data", "2", files={"share/data2.txt": "new\n"})
    conda.lock("data")
    conda.create()
    assert conda.files() == {"share/data2.txt", "notes.txt", "share/mine.txt"}
    assert {path.name for path in (conda.prefix / "conda-meta").glob("*.json")} == {"data-2-0.json"}
    conda.create("--exact")
    assert conda.files() == {"share/data2.txt"}


def test_the_same_version_from_another_file_is_installed_anew(conda: Conda) -> None:
    conda.lock("data")
    conda.create()
    conda.make("data", files={"share/data.txt": "rebuilt\n"})
    conda.lock("data")
    conda.create()
    assert (conda.prefix / "share" / "data.txt").read_text() == "rebuilt\n"


def test_what_is_missing_in_a_ready_environment_is_noticed_and_repaired(conda: Conda) -> None:
    conda.lock("tool", "data")
    conda.create()
    clean = snapshot(conda.prefix)
    (conda.prefix / "conda-meta" / "data-1-0.json").unlink()
    (conda.prefix / "share" / "data.txt").unlink()
    conda.create("--exact")
    assert snapshot(conda.prefix).keys() == clean.keys()


def test_wheels_go_into_the_environments_own_python(conda: Conda, python_package: Path, index: Index) -> None:
    conda.take(python_package)
    conda.make(
        "pure", noarch="python", depends=["python"], entry_points=["pure = pure:main"],
        files={"site-packages/pure.py": "import alpha\ndef main(): print('pure', alpha.VERSION)\n"},
    )  # fmt: skip
    conda.lock("python", "pure", wheels=(wheel_of(index, "alpha"),))
    ended = conda.create("--json")
    assert ended.data["counts"] == {"conda": 2, "wheels": 1, "archives": 0}
    assert ended.data["python"] == HERE
    program = conda.prefix / "bin" / "python"
    assert subprocess.check_output([program, "-c", "import sys; print(sys.prefix)"], text=True) == f"{conda.prefix}\n"
    assert subprocess.check_output([conda.prefix / "bin" / "pure"], text=True) == "pure 1.0\n"
    assert not (conda.prefix / "pyvenv.cfg").exists()


@pytest.mark.parametrize("damage", first_fast(["no JSON", "gone", "nothing"]))
def test_a_package_whose_note_is_lost_is_repaired(conda: Conda, damage: str) -> None:
    conda.lock("tool", "data")
    conda.create()
    before = snapshot(conda.prefix)
    note = conda.prefix / "conda-meta" / "tool-1-0.json"
    if damage == "gone":
        note.unlink()
    else:
        note.write_text({"no JSON": "{", "nothing": ""}[damage])
    assert call("verify", "tiny", "--no-probes").status == 8
    conda.create("--repair")
    assert snapshot(conda.prefix).keys() == before.keys()
    conda.project.ok("verify", "tiny", "--no-probes")


def test_link_scripts_are_not_run_and_said(conda: Conda, tmp_path: Path) -> None:
    conda.make("scripted", files={"bin/.scripted-post-link.sh": f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
    conda.lock("scripted")
    said = conda.create().err
    assert "note: scripted 1 has a link script (`bin/.scripted-post-link.sh`), which tenv does not run" in said
    assert not (tmp_path / "ran").exists()


def test_what_a_person_installed_with_conda_stays(conda: Conda) -> None:
    conda.lock("tool")
    conda.create()
    note = json.loads((conda.prefix / "conda-meta" / "tool-1-0.json").read_text())
    note |= {"name": "mine", "files": ["share/mine.txt"], "paths_data": {"paths_version": 1, "paths": []}}
    (conda.prefix / "conda-meta" / "mine-1-0.json").write_text(json.dumps(note))
    (conda.prefix / "share").mkdir()
    (conda.prefix / "share" / "mine.txt").write_text("mine")
    conda.lock("data")
    conda.create()
    assert conda.files() == {"share/data.txt", "share/link", "share/mine.txt"}
    assert (conda.prefix / "conda-meta" / "mine-1-0.json").exists()
    conda.create("--exact")
    assert conda.files() == {"share/data.txt", "share/link"}


def test_a_create_that_was_stopped_is_finished(conda: Conda) -> None:
    conda.lock("tool", "data")
    conda.create()
    clean = snapshot(conda.prefix)
    (conda.prefix / "notes.txt").write_text("mine")
    state = conda.project.state() | {"state": "creating", "foreign": ["notes.txt"]}
    conda.project.state_file.write_text(json.dumps(state))
    (conda.prefix / "conda-meta" / "data-1-0.json").unlink()  # linked, but its note not written
    conda.create()
    (conda.prefix / "notes.txt").unlink()
    assert snapshot(conda.prefix) == clean


def test_a_state_that_cannot_be_read_is_repaired(conda: Conda) -> None:
    conda.lock("tool", "data")
    conda.create()
    clean = snapshot(conda.prefix)
    (conda.prefix / "notes.txt").write_text("mine")
    conda.project.state_file.write_text("{")
    conda.create()
    assert (conda.prefix / "notes.txt").read_text() == "mine"
    (conda.prefix / "notes.txt").unlink()
    assert snapshot(conda.prefix) == clean


def test_show_and_list_know_conda_packages(conda: Conda) -> None:
    conda.lock("tool", "data")
    conda.create()
    rows = {row["name"]: row for row in conda.project.ok("show", "tiny", "--json").data["packages"]}
    assert rows["tool"]["locked"] == "1"
    assert rows["tool"]["size"] > 0
    (row,) = conda.project.ok("list", "--json").data
    assert row["bytes"] > 0
    names = [row["name"] for row in conda.project.ok("clean", "--json").data]
    assert "conda packages" in names
