"""Other programs called tenv on PATH, such as the version manager for Terraform of that name."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path


def other_programs(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the programs called tenv on PATH that do not start this one, in their order."""
    return tuple(dict.fromkeys(program for program in _on_path(environ) if not _is_own(program)))


def note_on_other(environ: Mapping[str, str]) -> str:
    """Return a note if the word `tenv` starts another program; else an empty text."""
    first = next(iter(_on_path(environ)), "")
    if not first or _is_own(first):
        return ""
    return f"note: {first} is another program called tenv, and first on PATH; `python -m tenv` starts this one"


def _on_path(environ: Mapping[str, str]) -> list[str]:
    folders = environ.get("PATH", "").split(os.pathsep)
    return [program for folder in folders if folder and (program := shutil.which("tenv", path=folder))]


def _is_own(program: str) -> bool:
    """Tell whether a program is the running one, or the script of this installation, by links too."""
    script = Path(sysconfig.get_path("scripts")) / Path(program).name
    return Path(program).resolve() in (Path(sys.argv[0]).resolve(), script.resolve())
