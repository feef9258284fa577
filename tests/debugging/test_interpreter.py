"""The Python behind a program: where its code, its debug information and CPython's script are."""

from pathlib import Path

from tenv.debugging.interpreter import describe_interpreter, interpreter_of, symbols_of
from tests.support.each import each
from tests.support.elf import build_id, dynamic, write_elf

LARGE = {".debug_info": bytes(1 << 17)}
ID = "ab12cd34ef"


def test_a_program_that_is_no_python_has_no_frames(tmp_path: Path) -> None:
    assert describe_interpreter(write_elf(tmp_path / "pythonista", {}), tmp_path) is None
    assert describe_interpreter(tmp_path / "cmake", tmp_path) is None


def test_a_virtual_environment_leads_to_the_interpreter(tmp_path: Path) -> None:
    real = write_elf(tmp_path / "opt/bin/python3.11", LARGE)
    (tmp_path / "venv/bin").mkdir(parents=True)
    link = tmp_path / "venv/bin/python"
    link.symlink_to(real)
    found = describe_interpreter(link, tmp_path)
    assert found
    assert (found.program, found.real, found.core, found.minor, found.symbols) == (link, real, real, "3.11", real)
    assert found.lacks() == "the script python-gdb.py"


def test_debug_information_of_the_start_files_alone_does_not_count(tmp_path: Path) -> None:
    assert symbols_of(write_elf(tmp_path / "python3.11", {".debug_info": bytes(266)}), tmp_path) is None


@each("runpath", ["$ORIGIN/../lib", ""])
def test_a_linked_library_holds_the_interpreter(tmp_path: Path, runpath: str) -> None:
    program = write_elf(tmp_path / "x/bin/python3.13", dynamic(["libc.so.6", "libpython3.13.so.1.0"], runpath))
    library = write_elf(tmp_path / "x/lib/libpython3.13.so.1.0", LARGE)
    library.with_name("libpython3.13.so.1.0-gdb.py").write_text("")
    found = describe_interpreter(program, tmp_path)
    assert found
    assert (found.core, found.symbols, found.loads, found.frames) == (library, library, True, True)


@each("place", [f"usr/lib/debug/.build-id/{ID[:2]}/{ID[2:]}.debug", "usr/bin/p.debug", "usr/bin/.debug/p.debug"])
def test_debug_information_in_a_file_of_its_own_is_found(tmp_path: Path, place: str) -> None:
    sections = {".note.gnu.build-id": build_id(ID), ".gnu_debuglink": b"p.debug\0\0\0\0\0\0"}
    program = write_elf(tmp_path / "usr/bin/python3.11", sections)
    assert symbols_of(program, tmp_path) is None
    assert symbols_of(program, tmp_path) != write_elf(tmp_path / place, {})
    assert symbols_of(program, tmp_path) == tmp_path / place


def test_the_script_of_a_build_folder_has_to_be_loaded(tmp_path: Path) -> None:
    program = write_elf(tmp_path / "cpython/python3.12", LARGE)
    script = program.with_name("python-gdb.py")
    script.write_text("")
    found = describe_interpreter(program, tmp_path)
    assert found
    assert (found.script, found.loads, found.frames) == (script, False, True)


def test_the_script_that_debian_installs_counts_for_other_builds_of_that_minor(tmp_path: Path) -> None:
    script = tmp_path / "usr/share/gdb/auto-load/usr/bin/python3.11-gdb.py"
    script.parent.mkdir(parents=True)
    script.write_text("")
    found = describe_interpreter(write_elf(tmp_path / "uv/bin/python3.11", LARGE), tmp_path)
    assert found
    assert (found.script, found.loads) == (script, False)


@each(
    "text, words",
    [
        ("#!/opt/x/bin/python3.11\nimport this\n", ["/opt/x/bin/python3.11"]),
        ("#! /opt/x/bin/python -E \n", ["/opt/x/bin/python", "-E"]),
        ("#!/usr/bin/env python3\n", ["python3"]),
        ("#!/usr/bin/env -S python3 -u\n", ["python3", "-u"]),
        ("#!/bin/sh\n'''exec' /a/very/long/bin/python \"$0\" \"$@\"\n' '''\n", ["/a/very/long/bin/python"]),
        ("#!/bin/sh\n'''exec' \"/a b/bin/python\" \"$0\" \"$@\"\n' '''\n", ["/a b/bin/python"]),
        ('#!/bin/bash\nexec python3 "$@"\n', ["/bin/bash"]),
        ("\x7fELF", []),
        ("", []),
    ],
)
def test_a_script_names_its_interpreter(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "script").write_text(text)
    assert interpreter_of(tmp_path / "script") == words


def test_what_can_t_be_read_has_no_interpreter(tmp_path: Path) -> None:
    assert interpreter_of(tmp_path / "absent") == []
