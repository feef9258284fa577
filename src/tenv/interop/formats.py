"""The formats, in the order in which a file is compared with them."""

import importlib
import os
import re
import shlex
from collections.abc import Collection
from pathlib import Path

from tenv.core.errors import FormatError
from tenv.core.file_content import in_utf8
from tenv.core.toml_reader import nearest
from tenv.interop.interface import Format, GivenFile

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
    "modulefile": "modulefile",
    "squashfs": "squashfs",
    "slurm": "slurm",
    "schema": "schema",
}
"""The formats: names on the command line and modules here."""

ONLY_READ = ("uv.lock", "pyproject.toml", "Pipfile", "setup.cfg")
"""The formats without an export."""

_READ = ("pixi", "conda-lock", "explicit", "environment.yml", "pylock.toml", "requirements.txt", *ONLY_READ)
ONLY_WRITTEN = tuple(name for name in FORMATS if name not in _READ)
"""The formats without an import."""

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
    r"(.+[._-])?(dockerfile|containerfile)([._-].+)?": "a Dockerfile has commands, not requests: import the file that "
    "it installs from, and `tenv export dockerfile` writes one for a target",
    r"(.+\.def|singularity|apptainer)": "a definition of Apptainer has commands, not requests: import the file that it "
    "installs from, and `tenv export apptainer` writes one for a target",
    r"(docker-)?compose([._-].+)?\.ya?ml": "a compose file names images, not packages: import the file that the image "
    "is made from, and `tenv export dockerfile` writes one for a target",
    r"\.?devcontainer\.json": "a devcontainer.json names an image, not packages: import the file that the image is "
    "made from, and `tenv export devcontainer` writes one for a target",
    r"meta\.yaml": "a meta.yaml is the recipe of a conda package: import an environment.yml or a pyproject.toml "
    "beside it",
    r"recipe\.yaml": "a recipe.yaml is the recipe of a conda package: import an environment.yml or a pyproject.toml "
    "beside it",
    r"poetry\.lock": "`tenv import {pyproject.toml}` reads the requests beside it; `poetry export` writes its pins as "
    "a requirements.txt",
    r"Pipfile\.lock": "`tenv import {Pipfile}` reads the requests beside it; `pipenv requirements` writes its pins as "
    "a requirements.txt",
    r"pdm\.lock": "`tenv import {pyproject.toml}` reads the requests beside it; `pdm export` writes its pins as a "
    "requirements.txt",
    r"setup\.py": "a setup.py is a program, and an import runs none: import a requirements.txt or a pyproject.toml "
    "beside it, or `uv pip compile {setup.py} -o requirements.txt` runs it and writes its requests",
    r"spack\.(yaml|lock)": "spack builds every package from its source: `tenv create auto` chooses a target that has "
    "them built",
}
"""Names of files that people pass and that have no requests, each with a sentence about the way to go, which names
files beside them in braces."""

_LISTS = ("", ".txt", ".in", ".lst", ".list")
"""The suffixes of files that may be lists of names."""

_HEAD = 4096
_MOST = 64 * 1024**2
"""The size of a file that is no request of anybody, such as an image of a disk."""


def find_format(name: str, others: Collection[str] = ()) -> Format:
    """Return a format by its name.

    Args:
        name: Its name.
        others: The formats that can't be meant, which no hint names.

    Raises:
        FormatError: There is no such format.
    """
    if name not in FORMATS:
        known = [one for one in FORMATS if one not in others]
        meant = f"{name} reads `{_TOOLS[name]}`; " if _TOOLS.get(name) in known else ""
        hint = (not meant and nearest(name, known)) or f"{meant}formats: {', '.join(known)}"
        raise FormatError(f"unknown format `{name}`", hint=hint)
    found: Format = importlib.import_module(f"tenv.interop.{FORMATS[name]}").FORMAT
    return found


def importable(folder: Path) -> list[str]:
    """Return the names of the files of a folder that an import reads, in the order of the formats."""
    readers = [find_format(name) for name in _READ]
    found: list[tuple[int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file() and entry.stat().st_size < _MOST:
                with Path(entry.path).open("rb") as file:
                    head = in_utf8(file.read(_HEAD))
                place = next((n for n, reader in enumerate(readers) if reader.recognize(entry.name, head)), None)
                found += [] if place is None else [(place, entry.name)]
    return [name for _, name in sorted(found)]


def recognize(source: GivenFile) -> Format:
    """Return the format of a file by its name and its first bytes.

    Raises:
        FormatError: tenv does not read its format.
    """
    for name in FORMATS:
        found = find_format(name)
        if found.read and found.recognize(source.path.name, source.raw[:_HEAD]):
            return found
    for pattern, hint in _OTHERS.items():
        if re.fullmatch(pattern, source.path.name, re.IGNORECASE):
            way = re.sub(r"\{([^}]*)\}", lambda found: source.beside(found[1]), hint)
            raise FormatError(f"{source.path}: is not read", hint=way)
    raise FormatError(f"{source.path}: unknown format, by its name and its first bytes", hint=_hint(source))


def _hint(source: GivenFile) -> str:
    from tenv.interop.pip_lines import are_names  # late: only for a file that is not recognized

    if source.path.suffix.lower() in _LISTS and are_names(source.raw[:_HEAD]):
        command = f"tenv import {shlex.quote(str(source.path))} --format requirements.txt"
        return f"its lines may be names of packages: `{command}` requests them"
    return f"pass its format with `--format`: {', '.join(name for name in FORMATS if find_format(name).read)}"
