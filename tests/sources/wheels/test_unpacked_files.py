"""The digests of files that uv unpacks, while it fetches others."""

import hashlib
from pathlib import Path
from threading import Event

import pytest

from tenv.sources.wheels import unpacked_files
from tenv.sources.wheels.unpacked_files import Hashed, hashed_ahead
from tests.support.projects import until


def number(path: Path) -> tuple[int, int]:
    info = path.stat()
    return info.st_dev, info.st_ino


def write(cache: Path, wheel: str, text: bytes = b"pass\n") -> Path:
    """Let a wheel come into the cache as a whole."""
    folder = cache / ".tmp" / wheel / "pack"
    folder.mkdir(parents=True)
    (folder / "module.py").write_bytes(text)
    (folder / "link").symlink_to("module.py")
    place = cache / "archive-v0" / wheel
    place.parent.mkdir(exist_ok=True)
    folder.parent.rename(place)
    return place / "pack" / "module.py"


def test_what_comes_meanwhile_is_hashed_once_and_what_was_there_is_not(tmp_path: Path) -> None:
    found: Hashed = {}
    old = write(tmp_path, "old")
    with hashed_ahead(tmp_path, found):
        new = write(tmp_path, "new", b"new = 1\n")
        until(lambda: number(new) in found)
    info = new.stat()
    digest = hashlib.sha256(b"new = 1\n").hexdigest()
    assert found == {number(new): (info.st_size, info.st_mtime_ns, f"sha256:{digest}")}
    assert number(old) not in found


def test_a_cache_that_is_not_there_yet(tmp_path: Path) -> None:
    found: Hashed = {}
    with hashed_ahead(tmp_path / "cache", found):
        new = write(tmp_path / "cache", "new")
        until(lambda: number(new) in found)


def test_it_ends_with_the_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: Hashed = {}
    ended = Event()
    ended.set()
    new = write(tmp_path, "new")
    unpacked_files._hash_wheel(str(new.parent.parent), found, ended)
    assert not found
    monkeypatch.setattr(unpacked_files, "_SECONDS", 60)
    with pytest.raises(KeyboardInterrupt), hashed_ahead(tmp_path, found):
        raise KeyboardInterrupt


def test_a_file_that_vanishes_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: Hashed = {}
    new = write(tmp_path, "new")

    def gone(*_: object) -> str:
        raise FileNotFoundError(new)

    monkeypatch.setattr(unpacked_files, "hash_regular", gone)
    unpacked_files._hash_wheel(str(new.parent.parent), found, Event())
    assert not found
