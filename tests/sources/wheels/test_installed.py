"""The records of wheels, which are read while uv puts others there."""

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from tenv.sources.wheels import installed
from tenv.sources.wheels.installed import Wheels

OWNED = {"alpha": ("1.0", "sha256:0")}
DIGEST = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Path]:
    """A RECORD that was written some time ago."""
    info = tmp_path / "lib" / "python3.12" / "site-packages" / "alpha-1.0.dist-info"
    info.mkdir(parents=True)
    write(info / "RECORD", f"alpha.py,{DIGEST},0\n")
    yield info / "RECORD"
    installed._READ.clear()


def write(record: Path, text: str, *, just_now: bool = False) -> None:
    record.write_text(text)
    if not just_now:
        os.utime(record, ns=(1, record.stat().st_mtime_ns - 10**9 + len(text)))


def names(there: Wheels) -> list[str]:
    return [Path(row.name).name for row in there.expected(OWNED)]


def test_what_was_read_ahead_is_not_read_again(tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Wheels(tmp_path)
    before = list(there.expected(OWNED))
    read = Mock(wraps=installed._read_record)
    monkeypatch.setattr(installed, "_read_record", read)
    there.read_ahead()
    there.read_ahead()
    assert read.call_count == 1
    assert list(there.expected(OWNED)) == before
    assert read.call_count == 1
    write(record, f"alpha.py,{DIGEST},0\nother.py,{DIGEST},0\n")
    assert names(there) == ["RECORD", "alpha.py", "other.py"]
    there.read_ahead()
    assert names(there) == ["RECORD", "alpha.py", "other.py"]
    assert read.call_count == 3


def test_what_was_written_just_now_may_still_change(tmp_path: Path, record: Path) -> None:
    there = Wheels(tmp_path)
    write(record, f"alpha.py,{DIGEST},0\n", just_now=True)
    there.read_ahead()
    assert not installed._READ
    record.unlink()
    there.read_ahead()
    assert names(there) == ["RECORD"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"a.py,{DIGEST},0\r\nb.py,,\r\n", ["a.py", "b.py"]),
        (f'"a,b.py",{DIGEST},0\nb.py,,\n', ["a,b.py", "b.py"]),
        (f"a.py,{DIGEST},0\n\nb.py", ["a.py", "b.py"]),
        (f"{'a' * 200_000}.py,,\n", []),
        ("", []),
    ],
    ids=["lines of Windows", "quotes", "no line break at the end", "too long", "empty"],
)
def test_every_form_of_a_record(tmp_path: Path, record: Path, text: str, found: list[str]) -> None:
    record.write_bytes(text.encode())
    assert names(Wheels(tmp_path))[1:] == found


def test_folders_are_those_of_lines_below_a_folder(tmp_path: Path, record: Path) -> None:
    write(record, "nvidia/cu13/include/cuda.h,,\nother/nvidia/no/a.h,,\nnvidia/cudnn/lib/libcudnn.so,,\n")
    below = record.parent.parent / "nvidia"
    assert Wheels(tmp_path).folders(["alpha"], below) == (below / "cu13", below / "cudnn")
    assert Wheels(tmp_path).folders(["alpha"], record.parent.parent / "numpy") == ()
