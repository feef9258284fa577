"""Conda packages on their way: channels that fail, bytes that are not the lock's, and the package cache."""

import errno
import sys
from pathlib import Path

import pytest

from tenv.rattler_api import fetch
from tenv.rattler_api.cache import cache_folder, downloads_folder
from tests.support.conda_project import Conda, nothing_changed
from tests.support.fakes import Fault
from tests.support.projects import snapshot, write_config
from tests.support.rarely import first_fast

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packages with links and shell scripts")


def test_bytes_that_are_not_the_locks_are_refused_and_nothing_is_touched(
    conda: Conda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_PAUSE", 0.01)
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
    monkeypatch.setattr(fetch, "_PAUSE", 0.01)
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


def test_a_disk_that_is_full_keeps_no_half_of_a_package(conda: Conda, monkeypatch: pytest.MonkeyPatch) -> None:
    conda.lock("tool", "data")

    def write(sink: fetch._Sink, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetch._Sink, "write", write)
    assert "No space left on device" in conda.fails(8, "storage")
    assert list(downloads_folder().iterdir()) == []


def test_the_cache_serves_without_a_network(conda: Conda) -> None:
    conda.lock("tool", "data")
    said = conda.fails(6, "network", "--offline")
    assert "lacks data, tool, and `--offline` forbids the network" in said
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


@pytest.mark.parametrize("damage", first_fast(["cut", "gone", "no list", "deep list"], 2))
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
            (folder / "info" / "paths.json").write_text("{" if damage == "no list" else "[" * 200_000)
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
    for file in (conda.project.lock, conda.project.manifest):
        file.write_text(file.read_text().replace(conda.channel.root, "https://channel.invalid"))
    write_config(f'[mirrors]\n"https://channel.invalid" = ["{conda.channel.root}"]\n')
    file = cache_folder() / "data-1-0" / "share" / "data.txt"
    file.unlink()
    file.write_text("OLD\n")
    conda.create("--exact")
    assert (conda.prefix / "share" / "data.txt").read_text() == "old\n"
