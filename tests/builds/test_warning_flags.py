"""The options that keep warnings of FBGEMM from ending a build: where they are needed, and nowhere else."""

from pathlib import Path

import pytest

from tenv.builds.build_environ import warning_flags
from tests.support.each import each

BOTH = "-Wno-error=maybe-uninitialized -Wno-error=uninitialized"
GCC = "#define __GNUC__ {}\n#define __x86_64__ 1\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with an FBGEMM that stops at warnings."""
    folder = tmp_path / "pytorch" / "third_party" / "fbgemm"
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text('string(APPEND CMAKE_CXX_FLAGS " -Wall -Wextra -Werror")\n')
    return tmp_path / "pytorch"


def environ(folder: Path, macros: str, **more: str) -> dict[str, str]:
    """Return an environment whose compiler has some macros."""
    program = folder / "own-c++"
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{macros}E\n")
    program.chmod(0o755)
    return {"CXX": str(program), "PATH": "/usr/bin:/bin", **more}


@each(
    "macros, more, flags",
    [
        (GCC.format(12), {}, BOTH),
        (GCC.format(14), {"CXXFLAGS": "-O1"}, f"-O1 {BOTH}"),
        (
            GCC.format(12),
            {"CXXFLAGS": "-Wno-error=uninitialized"},
            "-Wno-error=uninitialized -Wno-error=maybe-uninitialized",
        ),
        (GCC.format(12), {"CXXFLAGS": BOTH}, BOTH),
        (GCC.format(11), {}, ""),
        (GCC.format(12), {"USE_FBGEMM": "OFF"}, ""),
        (GCC.format(12), {"USE_FBGEMM": "0", "CXXFLAGS": "-O1"}, "-O1"),
        ("#define __GNUC__ 12\n#define __aarch64__ 1\n", {}, ""),
        ("#define __clang__ 1\n#define __GNUC__ 14\n#define __x86_64__ 1\n", {}, ""),
        ("", {}, ""),
        (GCC.format(12), {"CXXFLAGS": "-DX='a"}, "-DX='a"),
        (GCC.format(12), {"CXXFLAGS": "-Wno-error"}, "-Wno-error"),
    ],
)
def test_only_a_newer_gcc_on_x86_64_needs_them(
    checkout: Path, tmp_path: Path, macros: str, more: dict[str, str], flags: str
) -> None:
    assert warning_flags(checkout, environ(tmp_path, macros, **more)) == flags


def test_a_checkout_without_such_an_fbgemm_needs_none(checkout: Path, tmp_path: Path) -> None:
    file = checkout / "third_party" / "fbgemm" / "CMakeLists.txt"
    file.write_text("project(fbgemm)\n")
    assert warning_flags(checkout, environ(tmp_path, GCC.format(12))) == ""
    file.unlink()
    assert warning_flags(checkout, environ(tmp_path, GCC.format(12))) == ""


def test_a_compiler_that_does_not_start_changes_nothing(checkout: Path) -> None:
    assert warning_flags(checkout, {"CXX": "/absent/c++", "CXXFLAGS": "-O1"}) == "-O1"
