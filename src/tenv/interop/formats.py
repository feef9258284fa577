"""The formats, in the order in which a file is compared with them."""

import importlib

from tenv.core.errors import FormatError
from tenv.core.toml_reader import nearest
from tenv.interop.interface import Format, GivenFile

__all__ = ["FORMATS", "find_format", "recognize"]

FORMATS = {
    "pixi": "pixi",
    "conda-lock": "conda_lock",
    "explicit": "explicit",
    "environment.yml": "environment_yml",
    "pylock.toml": "pylock",
    "requirements.txt": "requirements",
    "uv.lock": "uv_lock",
    "pyproject.toml": "pyproject",
    "Pipfile": "pipfile",
    "setup.cfg": "setup_cfg",
    "vscode": "vscode",
    "direnv": "direnv",
    "clangd": "clangd",
    "dockerfile": "dockerfile",
    "devcontainer": "devcontainer",
    "apptainer": "apptainer",
    "github-actions": "github_actions",
    "schema": "schema",
}
"""The formats: names on the command line and modules here."""

_TOOLS = {
    "conda": "environment.yml",
    "docker": "dockerfile",
    "github": "github-actions",
    "pip": "requirements.txt",
    "pipenv": "Pipfile",
    "poetry": "pyproject.toml",
    "setuptools": "setup.cfg",
    "singularity": "apptainer",
    "uv": "uv.lock",
}
"""Tools by whose name a format is asked for, each with the format that it reads."""

_OTHERS = {
    "Dockerfile": "a Dockerfile has commands, not requests: import the file that it installs from, "
    "and `tenv export dockerfile` writes one for a target",
    "devcontainer.json": "a devcontainer.json names an image, not packages: import the file that the image is made "
    "from, and `tenv export devcontainer` writes one for a target",
    "poetry.lock": "`tenv import pyproject.toml` reads the requests beside it; `poetry export` writes its pins as a "
    "requirements.txt",
    "Pipfile.lock": "`tenv import Pipfile` reads the requests beside it; `pipenv requirements` writes its pins as a "
    "requirements.txt",
    "pdm.lock": "`tenv import pyproject.toml` reads the requests beside it; `pdm export` writes its pins as a "
    "requirements.txt",
    "setup.py": "a setup.py is a program, and an import runs none: import a requirements.txt or a pyproject.toml "
    "beside it",
    "spack.yaml": "spack builds every package from its source: `tenv create auto` chooses a target that has them built",
}
"""Files that people pass and that have no requests, each with a sentence about the way to go."""

_HEAD = 4096


def find_format(name: str) -> Format:
    """Return a format by its name.

    Raises:
        FormatError: There is no such format.
    """
    if name not in FORMATS:
        meant = f"{name} reads `{_TOOLS[name]}`; " if name in _TOOLS else ""
        hint = (not meant and nearest(name, FORMATS)) or f"{meant}formats: {', '.join(FORMATS)}"
        raise FormatError(f"unknown format `{name}`", hint=hint)
    found: Format = importlib.import_module(f"tenv.interop.{FORMATS[name]}").FORMAT
    return found


def recognize(source: GivenFile) -> Format:
    """Return the format of a file by its name and its first bytes.

    Raises:
        FormatError: tenv does not read its format.
    """
    for name in FORMATS:
        found = find_format(name)
        if found.read and found.recognize(source.path.name, source.raw[:_HEAD]):
            return found
    for name, hint in _OTHERS.items():
        if source.path.name == name or source.path.name.startswith(f"{name}."):
            raise FormatError(f"{source.path}: is not read", hint=hint)
    readable = [name for name in FORMATS if find_format(name).read]
    raise FormatError(
        f"{source.path}: unknown format, by its name and its first bytes",
        hint=f"pass its format with `--format`: {', '.join(readable)}",
    )
