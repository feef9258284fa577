"""The PyTorch checkout that somebody works with: around a folder, installed into an environment, or below a folder."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tenv.checks.pytorch_source import is_pytorch
from tenv.core.file_content import read_text
from tenv.core.names import dist_info, dist_infos

__all__ = ["find_checkout"]


def find_checkout(folder: Path, site_packages: Path | None = None) -> Path | None:
    """Return the nearest PyTorch checkout; None where none is found.

    A checkout of another user is left out: debuggers run scripts that lie in it.

    Args:
        folder: The folder to begin with; its parents and its own folders count.
        site_packages: Where an environment keeps packages: an editable torch names its checkout there.
    """
    around = [folder, *folder.parents]
    installed = list(_editable(site_packages)) if site_packages else []
    below = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    for path in (*around, *installed, *below):
        if is_pytorch(path) and _own(path):
            return path
    return None


def _own(path: Path) -> bool:
    return os.name != "posix" or path.stat().st_uid in (0, os.getuid())


def _editable(site: Path) -> Iterator[Path]:
    """Yield the folders that an editable install of torch names: PEP 610 first, then paths of old setuptools."""
    infos = dist_infos(site) if site.is_dir() else []
    for record in (info / "direct_url.json" for info in infos if dist_info(info)[0] == "torch"):
        try:
            url = urlsplit(str(json.loads(read_text(record))["url"]))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            continue
        if url.scheme == "file":
            yield Path(unquote(url.path))
    for file in (*sorted(site.glob("torch.egg-link")), *sorted(site.glob("*.pth"))):
        try:
            lines = read_text(file, errors="replace").splitlines()
        except OSError:
            continue
        yield from (Path(line) for line in lines if line.startswith("/") and (Path(line) / "torch").is_dir())
