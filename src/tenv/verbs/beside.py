"""The target of a toolkit beside an environment that exists: ``tenv create --for .venv``."""

import json
import os
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import TorchError, UsageError
from tenv.core.files import write_atomic
from tenv.host.machine import current_platform
from tenv.host.torch_files import TorchPlace
from tenv.project.context import Context
from tenv.targets.search import AUTO, is_target_name, target_name_of
from tenv.targets.torch_beside import BesideTorch, require_beside
from tenv.verbs.init import ignore_environments

_GLIBC = "2.28"
"""The oldest glibc of the toolkits, as torch's own wheels have it from 2.6 on."""

_TEXT = """\
# The toolkit for the torch of another environment. `tenv create {name}` makes it, and again when that torch changes.
description = {description}
platforms   = ["{platform}"]
{kind}for         = {path}

[requirements]                          # `cuda` is that of the torch there
glibc = "{glibc}"

[{section}]                   # CMake and Ninja; the parts of CUDA follow from the torch
cmake = ">=3.27,<5"
ninja = ">=1.11"
"""

_OF_WHEELS = 'python      = ">=3.11,<3.15"            # of this environment alone: `for` keeps its own\n'
_OF_CONDA = 'channels    = ["conda-forge"]\n'


@dataclass(frozen=True, slots=True)
class Beside:
    """The target of a toolkit beside an environment."""

    target: str
    """Its name."""
    manifest: Path
    """Its manifest."""
    torch: BesideTorch
    """The torch that it is for."""
    text: str = ""
    """The text of its manifest where that was not there before; else empty."""
    written: bool = False
    """Whether the manifest was written now."""
    ignore: Path | None = None
    """The ``.gitignore`` that got a line; else None."""

    def lines(self) -> list[str]:
        """Return the torch and the new files, one line each."""
        cuda = f"CUDA {self.torch.cuda}" if self.torch.cuda else "no CUDA: compilers, CMake and Ninja alone"
        held = f"; taken from there: {', '.join(sorted(self.torch.held))}" if self.torch.held else ""
        found = [f"for torch {self.torch.version} of {self.torch.prefix} ({cuda}{held})"]
        found += [f"{self.manifest} {'' if self.written else 'would be '}written"] if self.text else []
        return found + ([f"{self.ignore} now has the line `.tenv/`"] if self.ignore else [])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        torch = self.torch
        return {
            "environment": str(torch.prefix),
            "torch": torch.version,
            "cuda": str(torch.cuda) if torch.cuda else None,
            "taken": sorted(torch.held),
            "parts": [str(part) for part in torch.parts],
            "manifest": str(self.manifest),
        }


def begin(context: Context, path: Path, name: str | None, *, write: bool = True) -> Beside:
    """Find the target of a toolkit beside an environment, or write its manifest.

    It stands in the project, or in the working folder, which becomes a project.

    Args:
        context: The context of the verb.
        path: The environment, or a Python of it.
        name: The target's name; None for the name of the environment's folder.
        write: Whether to write a manifest that is missing.

    Raises:
        UsageError: The path can't be stored, or another target has the name.
        TorchError: The environment has no torch that a toolkit can be made for.
    """
    if os.name != "posix":
        raise TorchError("toolkits beside another environment are made on Linux alone")
    if not str(path).isprintable() or os.pathsep in str(path):
        raise UsageError(f"{str(path)!r} is no folder that variables and scripts can name")
    path = Path(os.path.abspath(path))  # noqa: PTH100 (a link is the name that the user gave)
    torch = require_beside(path)
    folder = context.places.project or Path.cwd()
    site = torch.package.parent
    stored = site if path in (site, torch.package) else torch.prefix
    target = _name(name, torch)
    manifest = folder / "manifests" / f"{target}.toml"
    if manifest.is_file():
        _require_same(context, target, stored, path)
        return Beside(target, manifest, torch)
    if target in context.places.names():
        raise _taken_name(target, path)
    text = _manifest(target, torch, stored, manifest.parent)
    if not write:
        return Beside(target, manifest, torch, text)
    write_atomic(manifest, text, within=folder)
    return Beside(target, manifest, torch, text, written=True, ignore=ignore_environments(folder))


def _name(name: str | None, torch: BesideTorch) -> str:
    target = target_name_of(torch.prefix.name) if name in (None, AUTO) else str(name)
    if target == AUTO or not is_target_name(target):
        raise UsageError(f"`{target}` is not a name for a target", hint="`tenv create NAME --for PATH` gives one")
    return target


def _require_same(context: Context, target: str, stored: Path, path: Path) -> None:
    beside = context.places.find(target).manifest.beside
    if not beside or os.path.realpath(beside) != os.path.realpath(stored):
        raise _taken_name(target, path)


def _taken_name(target: str, path: Path) -> UsageError:
    return UsageError(
        f"there is a target `{target}` that is not for {path}",
        hint=f"`tenv create my-{target} --for {path}` gives the toolkit another name",
    )


def _manifest(name: str, torch: BesideTorch, stored: Path, home: Path) -> str:
    """Return the text of a manifest; a path inside the project is relative to it."""
    inside = stored.is_relative_to(home.parent)
    path = os.path.relpath(stored, home) if inside else str(stored)
    conda = torch.where is TorchPlace.CONDA
    shown = os.path.relpath(stored, home.parent) if inside else str(stored)
    return _TEXT.format(
        name=name,
        description=json.dumps(f"The toolkit for the torch of {shown}", ensure_ascii=False),
        platform=current_platform(),
        kind=_OF_CONDA if conda else _OF_WHEELS,
        path=json.dumps(path, ensure_ascii=False),
        glibc=_GLIBC,
        section="dependencies" if conda else "pypi-dependencies",
    )
