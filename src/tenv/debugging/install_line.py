"""The command that brings a package into an environment beside its lock."""

import shlex
import sys
from pathlib import Path

from tenv.core import process


def install_line(target: str, words: str, site_packages: Path) -> str:
    """Return the command that installs packages from the index into an environment.

    Few environments have pip. Python brings it by ``ensurepip``, which Debian has in a package of its own; uv, which
    came with tenv, needs neither.

    Args:
        target: The target.
        words: The arguments of ``pip install``, quoted for a shell.
        site_packages: Where the environment keeps packages; if it is not there, an environment is yet to be made.
    """
    install = f"python -m pip install {words}"
    if has_pip(site_packages):
        return f"tenv run {target} -- {install}"
    if _has_ensurepip(site_packages):
        return f"tenv run {target} -- sh -c {shlex.quote(f'python -m ensurepip && {install}')}"
    uv = "uv" if process.find("uv") else f"{shlex.quote(sys.executable)} -m uv"
    return f"{uv} pip install --python {shlex.quote(str(_python(site_packages)))} {words}"


def has_pip(site_packages: Path) -> bool:
    """Return whether an environment has pip."""
    return (site_packages / "pip").is_dir()


def _has_ensurepip(site_packages: Path) -> bool:
    """Return whether the standard library of an environment's Python can bring pip; true where no Python is there."""
    python = _python(site_packages)
    if not python.is_file():
        return True
    home = python.resolve().parent.parent
    return any((home / folder / "ensurepip").is_dir() for folder in (f"lib/{site_packages.parent.name}", "Lib"))


def _python(site_packages: Path) -> Path:
    if sys.platform == "win32":
        return site_packages.parents[1] / "Scripts" / "python.exe"
    return site_packages.parents[2] / "bin" / "python"
