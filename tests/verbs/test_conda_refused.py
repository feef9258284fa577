"""Conda packages that are refused, or do not fit here: names that lead elsewhere, files in the way, full disks."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tenv.host.machine import current_platform
from tests.faults.test_storage import mounted, needs_mounts
from tests.support.conda import PLACEHOLDER, Link
from tests.support.conda_project import Conda, nothing_changed
from tests.support.projects import call, snapshot
from tests.support.rarely import first_fast

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packages with links and shell scripts")


UNSAFE: dict[str, dict[str, Any]] = {
    "above": {"files": {"ok.txt": "x"}, "paths": {"ok.txt": "../outside.txt"}},
    "absolute": {"files": {"ok.txt": "x"}, "paths": {"ok.txt": "/tmp/outside.txt"}},  # noqa: S108 (never written)
    "drive": {"files": {"ok.txt": "x"}, "paths": {"ok.txt": "C:/outside.txt"}},
    "notes": {"files": {"tenv-meta/state.json": "{}"}},
    "record": {"files": {"conda-meta/other-1-0.json": "{}"}},
    "program": {"noarch": "python", "entry_points": ["../../outside = a:b"]},
    "through": {"files": {"way": Link("/usr"), "way2/x.txt": "x"}, "paths": {"way2/x.txt": "way/x.txt"}},
}


def test_a_path_too_long_for_its_packages_is_told(conda: Conda, tmp_path: Path) -> None:
    conda.lock("tool")
    prefix = tmp_path / ("a" * 150) / ("b" * 150)
    said = conda.fails(2, "usage", "--prefix", str(prefix))
    assert f"{prefix}: this path is too long for the packages: " in said
    assert "hint: choose a shorter path: `--prefix FOLDER`" in said


@pytest.mark.parametrize("kind", first_fast(sorted(UNSAFE), 4))
def test_a_package_that_would_write_elsewhere_is_refused(conda: Conda, kind: str) -> None:
    conda.lock("tool")
    conda.create()
    before = snapshot(conda.prefix)
    conda.make("evil", **UNSAFE[kind])
    conda.lock("tool", "evil")
    said = conda.fails(6, "unsafe-package")
    assert re.search(r"which is (outside the environment|reserved for tenv and conda)|below it\n", said)
    nothing_changed(conda, before)


def test_a_package_below_a_link_of_another_is_refused(conda: Conda, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    conda.make("way", files={"way": Link(str(tmp_path / "elsewhere"))})
    conda.make("walker", files={"way/x.txt": "x"})
    conda.lock("way", "walker")
    said = conda.fails(6, "unsafe-package")
    assert "way has a file or link `way`, and walker has `way/x.txt` below it" in said
    assert list((tmp_path / "elsewhere").iterdir()) == []
    conda.lock("way")
    assert (
        f"way has symbolic links to paths outside the environment: `way` to `{tmp_path}/elsewhere`"
        in conda.create().err
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: data", "name: ../data"),
        ("build: '0'", "build: ../../0"),
        ("version: '1'", "version: 1/../../2"),
    ],
)
def test_a_lock_whose_names_are_paths_is_refused(conda: Conda, old: str, new: str) -> None:
    conda.lock("data")
    text = conda.project.lock.read_text()
    before, _, after = text.partition("packages:\n- conda:")
    line = "- conda:" + after if old in after else ""
    if not line:  # rattler leaves out what the URL says
        url = f"{current_platform()}/data-1-0.conda"
        text = f"{before}packages:\n- conda:{after}".replace(url, f"{url}\n  {new}", 2).replace(f"\n  {new}", "", 1)
    else:
        text = text.replace(old, new)
    conda.project.lock.write_text(text)
    assert "error[lock-corrupt]" in call("create", "tiny", "--frozen").err
    assert conda.state() == ""


def test_files_that_two_packages_bring_are_told(conda: Conda) -> None:
    for name in ("one", "two"):
        conda.make(name, files={"share/both.txt": f"{name}\n", f"share/{name}": name})
    conda.lock("one", "two")
    said = conda.create().err
    assert "note: one and two have the same files (`share/both.txt`); the environment gets one of each" in said
    conda.create("--exact")


def test_a_file_of_the_user_is_not_overwritten(conda: Conda) -> None:
    conda.lock("tool")
    conda.create()
    (conda.prefix / "share").mkdir()
    (conda.prefix / "share" / "data.txt").write_text("mine")
    before = snapshot(conda.prefix)
    conda.lock("tool", "data")
    said = conda.fails(8, "foreign-folder")
    assert f"data has the file `share/data.txt`, which is an unmanaged file in {conda.prefix}" in said
    nothing_changed(conda, before)
    conda.create("--exact")
    assert (conda.prefix / "share" / "data.txt").read_text() == "old\n"


def test_a_folder_with_a_space_is_refused_with_one_that_works(conda: Conda, tmp_path: Path) -> None:
    conda.lock("tool")
    said = conda.fails(2, "usage", "--prefix", str(tmp_path / "my envs" / "a"))
    assert "the path of this environment has a space in it, and conda packages work in none: " in said
    hint = said.partition("hint: tenv create tiny --prefix ")[2].split("\n")[0]
    assert " " not in hint
    assert not (tmp_path / "my envs" / "a" / "conda-meta").exists()
    conda.create("--prefix", hint)


@pytest.mark.parametrize("size", first_fast(["200k", "40k", "400k"]))
def test_a_disk_that_is_full_is_told(conda: Conda, tmp_path: Path, size: str) -> None:
    needs_mounts()
    for number in range(6):
        files = {f"share/{number}/{part}.txt": f"{PLACEHOLDER}\n" * 20 for part in range(20)}  # copied, not linked
        conda.make(f"many{number}", files=files)
    conda.lock(*(f"many{number}" for number in range(6)))
    conda.create()  # all that is needed is in the cache: the disk alone is at fault
    disk = tmp_path / "disk"
    disk.mkdir()
    wrapped = mounted(f"mount -t tmpfs -o size={size} tmpfs {disk}")
    ended = conda.project.run("create", "tiny", "--frozen", "--prefix", str(disk / "env"), wrapped=wrapped)
    assert (ended.status, "error[storage]" in ended.err, "No space left" in ended.err) == (8, True, True), ended.err
    assert "hint: free some space" in ended.err
