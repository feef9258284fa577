"""A build with debug information: its libraries get an index for GDB, and Ninja has nothing to do afterwards."""

import subprocess
from pathlib import Path

import pytest

from tests.builds.conftest import Workshop, codes, step

ADDER = """#!/bin/sh
# Adds a section, as gdb-add-index does.
printf index > index.bin
exec objcopy --add-section .gdb_index=index.bin --set-section-flags .gdb_index=readonly "$1" "$1"
"""


def sections(file: Path) -> str:
    return subprocess.run(["readelf", "-SW", file], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def adder(tmp_path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name first on PATH: the machine may have no GDB."""
    import os

    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "gdb-add-index"
    program.write_text(ADDER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr("tenv.builds.compile_step._add_indexes.__defaults__", (1,))
    assert workshop.checkout.is_dir()
    return program


@pytest.mark.long
@pytest.mark.usefixtures("adder")
def test_the_libraries_get_an_index_and_nothing_is_linked_again(workshop: Workshop) -> None:
    found = step(workshop.build("--debug"), "build")
    library = workshop.checkout / "torch" / "lib" / "libc10.so"
    assert ".gdb_index" in sections(library)
    assert "libc10.so" in [row["library"] for row in found["facts"]["gdb_index"]]
    before = {path: path.stat().st_mtime_ns for path in workshop.checkout.rglob("*.so")}
    again = step(workshop.build("--debug"), "build")
    assert {path: path.stat().st_mtime_ns for path in workshop.checkout.rglob("*.so")} == before
    assert "gdb_index" not in again["facts"]
    assert ".gdb_index" in sections(library)


@pytest.mark.long
def test_a_build_without_debug_information_gets_none(workshop: Workshop, adder: Path) -> None:
    adder.write_text("#!/bin/sh\nexit 1\n")
    found = step(workshop.build(), "build")
    assert codes(found, "note") == ()


@pytest.mark.long
def test_a_program_that_fails_is_a_note_and_leaves_the_library(workshop: Workshop, adder: Path) -> None:
    adder.write_text("#!/bin/sh\necho 'gdb: out of memory' >&2\nexit 1\n")
    data = workshop.build("--debug")
    found = step(data, "build")
    assert "TE964" in codes(found, "note")
    assert any(row["evidence"] == "gdb: out of memory" for row in found["findings"])
    assert step(data, "import")["ok"]
