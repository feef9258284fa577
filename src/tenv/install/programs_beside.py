"""The programs of a toolkit beside another environment: a folder of them without any Python, for PATH."""

import re
import shlex
import shutil
from pathlib import Path

from tenv.core.file_stamps import set_executable
from tenv.core.files import relative_link, storage_errors, write_atomic
from tenv.core.prefix import TOOLS
from tenv.environment.made_files import is_of_environment
from tenv.toolchain.discover import Toolchain

_PYTHONS = re.compile(r"(python|pip|pydoc|idle|2to3|wheel|uvx?|easy_install)(-?\d[\w.]*|\d*-config)?")
"""Programs that would hide the other environment's."""

_OF_CONDA = ("cmake", "ctest", "cpack", "ccmake", "ninja", "ccache", "sccache")
"""The programs of a conda toolkit; its folder holds every library's, too."""


def link_programs(toolchain: Toolchain) -> None:
    """Make the folder anew: links to the programs of the environment.

    CMake's wheel starts CMake by a script of Python, which variables such as PYTHONHOME would break, so the links lead
    to the programs themselves. conda's nvcc lies among all programs of its prefix, and gets a script of one line.

    Raises:
        StorageError: The folder is not writable.
    """
    prefix = toolchain.prefix
    folder, programs = prefix / TOOLS, prefix / "bin"
    with storage_errors(f"can't write {folder}"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for program in sorted(programs.iterdir()) if programs.is_dir() else ():
            inner = toolchain.site_packages / "cmake/data/bin" / program.name
            if program.name in _OF_CONDA if toolchain.conda else _is_tool(program):
                relative_link(folder / program.name, inner if inner.is_file() else program)
        if toolchain.nvcc and toolchain.nvcc.parent == programs:
            script = folder / "nvcc"
            write_atomic(script, f'#!/bin/sh\nexec {shlex.quote(str(toolchain.nvcc))} "$@"\n', within=prefix)
            set_executable(script, executable=True)


def _is_tool(program: Path) -> bool:
    of_environment = is_of_environment(f"bin/{program.name}") or _PYTHONS.fullmatch(program.name)
    return program.is_file() and not of_environment
