"""A build links with mold or lld where the target brings one and the compiler knows it."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tenv.builds.build_environ import linker_flags

COMPILER = shutil.which("g++") or ""
LINKER = shutil.which("ld") or ""

pytestmark = pytest.mark.skipif(not COMPILER or not LINKER, reason="no g++ or ld")


def environ(folder: Path, **variables: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "LDFLAGS": "", **variables}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The programs of an environment; GNU ld stands for mold, since a compiler takes it by its name."""
    made = tmp_path / "bin"
    made.mkdir()
    (made / "ld.lld").symlink_to(LINKER)
    return made


def test_the_linker_of_the_environment_is_named_to_the_compiler(folder: Path) -> None:
    assert linker_flags((folder,), COMPILER, environ(folder)) == "-fuse-ld=lld"
    assert linker_flags((folder,), COMPILER, environ(folder, LDFLAGS="-L/opt/u")) == "-L/opt/u -fuse-ld=lld"


def test_the_user_s_own_linker_stays(folder: Path) -> None:
    assert linker_flags((folder,), COMPILER, environ(folder, LDFLAGS="-fuse-ld=gold")) == "-fuse-ld=gold"


def test_a_linker_of_the_machine_is_not_taken_by_itself(folder: Path, tmp_path: Path) -> None:
    assert linker_flags((tmp_path,), COMPILER, environ(folder)) == ""


def test_a_compiler_that_does_not_know_the_linker_links_as_before(folder: Path) -> None:
    old = folder / "old-g++"
    old.write_text("#!/bin/sh\necho \"unrecognized command line option '$1'\" >&2\nexit 1\n")
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    assert linker_flags((folder,), str(old), environ(folder)) == ""
