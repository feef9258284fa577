"""Conda packages in an environment: installed from the lock, changed, repaired, and refused."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tenv.engine import download
from tenv.engine.cache import cache_folder, downloads_folder
from tenv.files import digest
from tenv.host.machine import current_platform
from tenv.lock import Wheel
from tenv.targets import find_places
from tests.conda import PLACEHOLDER, Channel, Link, make_conda, make_python, write_lock
from tests.fakes import Fault, Index
from tests.faults.test_storage import mounted, needs_mounts
from tests.projects import HERE, Ended, Project, call, snapshot, write_config

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packages with links and shell scripts")

MANIFEST = f"""\
platforms = ["{current_platform()}"]
channels  = ["http://127.0.0.1/channel"]

[dependencies]
"""


@dataclass
class Conda:
    """A project whose target `tiny` is of conda packages, and the channel that has them."""

    project: Project
    channel: Channel

    @property
    def prefix(self) -> Path:
        return self.project.prefix

    def lock(self, *names: str, wheels: tuple[Wheel, ...] = ()) -> None:
        """Lock the newest package of each name, and ask for them."""
        self.channel.refresh()
        parts = [MANIFEST, *(f'{name} = "*"\n' for name in names)]
        parts += ["[pypi-dependencies]\n", *(f'{wheel.name} = "*"\n' for wheel in wheels)] if wheels else []
        self.project.manifest.write_text("".join(parts))
        write_lock(find_places(self.project.folder).find("tiny"), self.channel, names, wheels)

    def make(self, name: str, version: str = "1", **settings: Any) -> None:
        make_conda(self.channel.folder, name, version, **settings)

    def take(self, package: Path) -> None:
        """Put a package that was made elsewhere into the channel."""
        folder = self.channel.folder / package.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(package, folder)

    def create(self, *words: str) -> Ended:
        return self.project.ok("create", "tiny", "--frozen", *words)

    def fails(self, status: int, code: str, *words: str) -> str:
        return self.project.fails(status, code, "create", "tiny", "--frozen", *words)

    def files(self) -> set[str]:
        found = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if not path.is_dir()}
        return {name for name in found if not name.startswith(("tenv-meta", "conda-meta")) and name != "CACHEDIR.TAG"}

    def state(self) -> str:
        return str(self.project.state()["state"]) if self.project.state_file.exists() else ""


def wheel_of(index: Index, name: str) -> Wheel:
    (file,) = index.folder.glob(f"{name}-*.whl")
    return Wheel(name, file.name.split("-")[1], file.name, digest(file), file.stat().st_size, (HERE,))


@pytest.fixture
def conda(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conda]:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    with Channel(tmp_path / "channel") as channel:
        made = Conda(project, channel)
        text = f"#!/bin/sh\necho {PLACEHOLDER}\n"
        made.make("tool", files={"bin/tool": text, "lib/libtool.so": b"\x7fELF\0" + PLACEHOLDER.encode() + b"/lib\0x"})
        made.make("data", files={"share/data.txt": "old\n", "share/link": Link("data.txt")})
        yield made


@pytest.fixture(scope="session")
def python_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_python(tmp_path_factory.mktemp("python"))


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


def other_lock(conda: Conda, old: str, new: str) -> None:
    """Change a text in the lock, as a person with an editor would."""
    text = conda.project.lock.read_text()
    assert old in text
    conda.project.lock.write_text(text.replace(old, new))


def nothing_changed(conda: Conda, before: dict[str, str]) -> None:
    assert conda.state() == "ready"
    assert snapshot(conda.prefix) == before
    conda.project.ok("activate", "tiny")


def test_bytes_that_are_not_the_locks_are_refused_and_nothing_is_touched(
    conda: Conda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_PAUSE", 0.01)
    conda.lock("tool")
    conda.create()
    before = snapshot(conda.prefix)
    conda.lock("tool", "data")
    conda.make("data", files={"share/data.txt": "another\n"})
    said = conda.fails(6, "hash-mismatch")
    assert "data-1-0.conda: its sha256 is" in said
    assert "hint: the channel or a mirror serves another file" in said
    nothing_changed(conda, before)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.ERROR, "500 Internal Server Error"),
        (Fault.FORBIDDEN, "403 Forbidden"),
        (Fault.CUT, "error decoding response body"),
        (Fault.CHANGED, "its sha256 is"),
    ],
)
def test_a_channel_that_fails_leaves_the_environment_as_it_was(
    conda: Conda, fault: Fault, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_PAUSE", 0.01)
    conda.lock("tool")
    conda.create()
    before = snapshot(conda.prefix)
    conda.lock("tool", "data")
    with conda.channel.failing(fault, r"data.*conda$"):
        said = conda.fails(6, "hash-mismatch" if fault is Fault.CHANGED else "network")
    assert words in said
    nothing_changed(conda, before)
    conda.create()


def test_a_package_that_the_channel_has_no_more_is_named(conda: Conda) -> None:
    conda.lock("data")
    (path,) = conda.channel.folder.glob("*/data-1-0.conda")
    path.unlink()
    assert "data-1-0.conda: HTTP status client error (404 Not Found)" in conda.fails(6, "network")
    assert conda.state() == ""


def test_the_cache_serves_without_a_network(conda: Conda) -> None:
    conda.lock("tool", "data")
    said = conda.fails(6, "network", "--offline")
    assert "lacks data, tool, and the network is not to be used" in said
    conda.create()
    conda.project.ok("remove", "tiny")
    conda.channel.stop()
    conda.create("--offline")
    assert conda.files() == {"bin/tool", "lib/libtool.so", "share/data.txt", "share/link"}
    assert not list(downloads_folder().iterdir())


def test_packages_lie_in_pixis_cache_where_pixi_has_one_of_its_own(
    conda: Conda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIXI_CACHE_DIR", str(tmp_path / "pixi"))
    conda.lock("data")
    conda.create()
    assert (tmp_path / "pixi" / "pkgs" / "data-1-0" / "share" / "data.txt").is_file()
    assert not (tmp_path / "packages").exists()


@pytest.mark.parametrize("damage", ["gone", "cut", "no list"])
def test_a_damaged_cache_is_repaired(conda: Conda, damage: str) -> None:
    conda.lock("tool", "data")
    conda.create()
    before = snapshot(conda.prefix)
    conda.project.ok("remove", "tiny")
    folder = cache_folder() / "data-1-0"
    match damage:
        case "gone":
            (folder / "share" / "data.txt").unlink()
        case "cut":
            (folder / "share" / "data.txt").unlink()
            (folder / "share" / "data.txt").write_text("o")
        case _:
            (folder / "info" / "paths.json").write_text("{")
    conda.create()
    assert snapshot(conda.prefix) == before
    conda.project.ok("remove", "tiny")
    conda.create("--offline")


@pytest.mark.parametrize("word", ["--exact", "--repair"])
def test_the_cache_is_compared_with_its_digests(conda: Conda, word: str) -> None:
    conda.lock("data")
    conda.create()
    for file in (cache_folder() / "data-1-0" / "share" / "data.txt", conda.prefix / "share" / "data.txt"):
        file.unlink()
        file.write_text("OLD\n")  # as long as the right one
    conda.create(word)
    assert (conda.prefix / "share" / "data.txt").read_text() == "old\n"
    conda.project.ok("remove", "tiny")
    conda.create("--offline")
    assert (conda.prefix / "share" / "data.txt").read_text() == "old\n"


def test_a_damaged_cache_is_repaired_from_the_mirror(conda: Conda) -> None:
    conda.lock("data")
    conda.create()
    there = conda.project.lock.read_text()
    conda.project.lock.write_text(there.replace(conda.channel.root, "https://channel.invalid"))
    write_config(f'[mirrors]\n"https://channel.invalid" = ["{conda.channel.root}"]\n')
    file = cache_folder() / "data-1-0" / "share" / "data.txt"
    file.unlink()
    file.write_text("OLD\n")
    conda.create("--exact")
    assert (conda.prefix / "share" / "data.txt").read_text() == "old\n"


@pytest.mark.parametrize("damage", ["gone", "no JSON", "nothing"])
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


def test_a_path_too_long_for_its_packages_is_told(conda: Conda, tmp_path: Path) -> None:
    conda.lock("tool")
    prefix = tmp_path / ("a" * 150) / ("b" * 150)
    said = conda.fails(2, "usage", "--prefix", str(prefix))
    assert f"{prefix}: this path is too long for the packages: " in said
    assert "hint: choose a shorter folder: `--prefix`" in said


UNSAFE: dict[str, dict[str, Any]] = {
    "above": {"files": {"ok.txt": "x"}, "paths": {"ok.txt": "../outside.txt"}},
    "absolute": {"files": {"ok.txt": "x"}, "paths": {"ok.txt": "/tmp/outside.txt"}},  # noqa: S108 (never written)
    "drive": {"files": {"ok.txt": "x"}, "paths": {"ok.txt": "C:/outside.txt"}},
    "notes": {"files": {"tenv-meta/state.json": "{}"}},
    "record": {"files": {"conda-meta/other-1-0.json": "{}"}},
    "program": {"noarch": "python", "entry_points": ["../../outside = a:b"]},
    "through": {"files": {"way": Link("/usr"), "way2/x.txt": "x"}, "paths": {"way2/x.txt": "way/x.txt"}},
}


@pytest.mark.parametrize("kind", sorted(UNSAFE))
def test_a_package_that_would_write_elsewhere_is_refused(conda: Conda, kind: str) -> None:
    conda.lock("tool")
    conda.create()
    before = snapshot(conda.prefix)
    conda.make("evil", **UNSAFE[kind])
    conda.lock("tool", "evil")
    assert "so nothing is installed" in conda.fails(6, "unsafe-package")
    nothing_changed(conda, before)


def test_a_package_below_a_link_of_another_is_refused(conda: Conda, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    conda.make("way", files={"way": Link(str(tmp_path / "elsewhere"))})
    conda.make("walker", files={"way/x.txt": "x"})
    conda.lock("way", "walker")
    said = conda.fails(6, "unsafe-package")
    assert "way has a file or a link `way`, and walker puts `way/x.txt` below it, so nothing is installed" in said
    assert list((tmp_path / "elsewhere").iterdir()) == []
    conda.lock("way")
    assert f"way has links that lead out of the environment: `way` to `{tmp_path}/elsewhere`" in conda.create().err


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
    assert "note: one and two bring the same files (`share/both.txt`); only one of each can be there" in said
    conda.create("--exact")


def test_a_file_of_the_user_is_not_overwritten(conda: Conda) -> None:
    conda.lock("tool")
    conda.create()
    (conda.prefix / "share").mkdir()
    (conda.prefix / "share" / "data.txt").write_text("mine")
    before = snapshot(conda.prefix)
    conda.lock("tool", "data")
    said = conda.fails(8, "foreign-folder")
    assert f"data brings `share/data.txt`, which is in {conda.prefix} already and not from tenv" in said
    nothing_changed(conda, before)
    conda.create("--exact")
    assert (conda.prefix / "share" / "data.txt").read_text() == "old\n"


def test_a_compiler_below_a_folder_with_a_space_is_told(conda: Conda, tmp_path: Path) -> None:
    conda.make("gcc_linux-64", files={"bin/cc": "#!/bin/sh\n"})
    conda.lock("tool", "gcc_linux-64")
    told = "the path of this environment has a space in it, and what follows it is another word to gcc_linux-64"
    assert told in conda.create("--prefix", str(tmp_path / "my envs" / "a")).err
    assert told not in conda.create("--prefix", str(tmp_path / "envs" / "a")).err
    conda.lock("tool")
    assert told not in conda.create("--prefix", str(tmp_path / "my envs" / "b")).err


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


@pytest.mark.parametrize("size", ["40k", "200k", "400k"])
def test_a_disk_that_is_full_is_told(conda: Conda, tmp_path: Path, size: str) -> None:
    needs_mounts()
    for number in range(20):
        files = {f"share/{number}/{part}.txt": f"{PLACEHOLDER}\n" * 20 for part in range(20)}  # copied, not linked
        conda.make(f"many{number}", files=files)
    conda.lock(*(f"many{number}" for number in range(20)))
    conda.create()  # all that is needed is in the cache: the disk alone is at fault
    disk = tmp_path / "disk"
    disk.mkdir()
    wrapped = mounted(f"mount -t tmpfs -o size={size} tmpfs {disk}")
    ended = conda.project.run("create", "tiny", "--frozen", "--prefix", str(disk / "env"), wrapped=wrapped)
    assert (ended.status, "error[storage]" in ended.err, "No space left" in ended.err) == (8, True, True), ended.err
    assert "hint: free some space" in ended.err
