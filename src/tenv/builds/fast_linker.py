"""The linker of a build: mold or lld where the target brings one, since linking libtorch with GNU ld takes minutes."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from tenv.core import process
from tenv.core.missing import Missing

__all__ = ["linker_flags"]

_LINKERS = {"mold": "ld.mold", "lld": "ld.lld"}
_SECONDS = 20.0


def linker_flags(folders: tuple[Path, ...], compiler: str, environ: Mapping[str, str]) -> str:
    """Return the LDFLAGS with which a build links by the fastest linker of its environment.

    Args:
        folders: The ``bin`` folders of the environment.
        compiler: The C++ compiler's command, which must know the linker: GCC knows mold from 12.1 on.
        environ: The environment of the build; a linker that its LDFLAGS name stays.

    Returns:
        The LDFLAGS; those of `environ` where the environment has no such linker.
    """
    flags = environ.get("LDFLAGS", "")
    if "-fuse-ld" in flags:
        return flags
    for name, program in _LINKERS.items():
        found = next((folder for folder in folders if os.access(folder / program, os.X_OK)), None)
        if found and _knows(compiler, name, environ):
            return f"{flags} -fuse-ld={name}".strip()
    return flags


def _knows(compiler: str, name: str, environ: Mapping[str, str]) -> bool:
    words = [*shlex.split(compiler), f"-fuse-ld={name}", "-Wl,--version"]
    said = process.run(words, environment=environ, timeout=_SECONDS)
    return not isinstance(said, Missing) and said.status == 0
