"""The folder of the project that a working folder lies in, and that of the PyTorch checkout."""

import os
from pathlib import Path

__all__ = ["find_checkout", "find_project", "makes_project"]


def makes_project(folder: Path) -> tuple[Path, ...]:
    """Return what makes a folder a project: its ``tenv.toml``, or ``manifests/`` with a ``*.toml``; nothing if none.

    Other tools have folders of that name. A manifest that can't be read makes a project as well: the error is about it.
    """
    if (folder / "tenv.toml").is_file():
        return (folder / "tenv.toml",)
    manifests = folder / "manifests"
    try:
        if any(name.endswith(".toml") and not name.startswith(".") for name in os.listdir(manifests)):  # noqa: PTH208
            return (manifests,)
    except PermissionError:
        if os.access(folder, os.X_OK) and _is_own(folder) and _is_own(manifests):
            return (manifests,)
    except OSError:
        return ()
    return ()


def find_project(start: Path) -> tuple[Path | None, Path | None]:
    """Return the nearest folder upwards of `start` that is a project, and one that is none since it is another user's.

    The walk ends at a folder of another user, whose manifests would decide what runs here, and at the border of a file
    system. git has the same rule since CVE-2022-24765.
    """
    device = None
    for folder in (start, *start.parents):
        try:
            info = folder.stat()
        except OSError:
            continue
        if device not in (None, info.st_dev):
            break
        device = info.st_dev
        signs = makes_project(folder)
        if not all(_is_own(path) for path in (folder, *signs)) and not _is_safe(folder):
            return None, folder if signs else None
        if signs:
            return folder, None
    return None, None


def _is_own(path: Path) -> bool:
    """Tell whether a file or folder is this user's; Windows has its own rights."""
    return not hasattr(os, "geteuid") or path.stat().st_uid == os.geteuid()


def _is_safe(folder: Path) -> bool:
    from tenv.targets.config import safe_folders  # late: asked only about folders of others
    from tenv.targets.search import settings_folder

    real = Path(os.path.realpath(folder))
    return any(real.is_relative_to(os.path.realpath(safe)) for safe in safe_folders(settings_folder(), os.environ))


def find_checkout(start: Path, project: Path | None) -> Path | None:
    """Return the PyTorch checkout that a folder lies in, where it is nearer than the project."""
    for folder in (start, *start.parents):
        if folder == project:
            return None
        if (folder / "torch" / "csrc").is_dir() and (folder / "setup.py").is_file():
            return folder
    return None
