"""The folders that count in a working folder: project, checkout, the user's, the built-in targets."""

import os

__all__ = ["Folders", "find_folders", "is_name", "own_folder"]

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_DEFAULT = "default = "


class Folders:
    """The folders that count, as `tenv.targets.search.SearchPath` has them.

    Attributes:
        project: The project's folder; None outside a project.
        home: The folder of the environments here.
        outer: The folder of the environments outside projects.
        data: The user's data folder of tenv.
        searched: The folders with manifests and locks, nearest first.
        default: The target of the project's ``tenv.toml``; empty where it names none.
    """

    __slots__ = ("data", "default", "home", "outer", "project", "searched")

    def __init__(self, project: "str | None", own: "str | None", data: str, settings: str, default: str) -> None:
        self.project = project
        self.data = data
        self.outer = f"{data}/envs"
        self.home = f"{own}/.tenv/envs" if own else self.outer
        self.searched = [*([project] if project else []), settings, _built_in()]
        self.default = default

    def locks_of(self, home: str, target: str) -> "list[str] | None":
        """Return the files that may be the lock of a target, nearest first; None for a name without a manifest.

        Args:
            home: The folder that its environment lies in. One outside projects has a lock from there.
            target: The target's name.
        """
        searched = self.searched[1:] if self.project and home == self.outer else self.searched
        for index, folder in enumerate(searched):
            if os.path.isfile(f"{folder}/manifests/{target}.toml"):
                return [f"{near}/locks/{target}.lock" for near in searched[: index + 1]]
        return None


def is_name(text: str) -> bool:
    """Return whether a word is the name of a target."""
    return text[:1] in _LETTERS and _LETTERS.union("._-").issuperset(text) and text != "auto"


def find_folders() -> "Folders | None":
    """Return the folders of the working folder; None where more than a look decides.

    That is: a setting of the user or the project, a folder of somebody else, a path that is not in its plain form.
    """
    data, settings = own_folder("XDG_DATA_HOME", ".local/share"), own_folder("XDG_CONFIG_HOME", ".config")
    start = _working_folder()
    if not data or not settings or not start or os.path.lexists(f"{settings}/config.toml"):
        return None
    found = _project(start)
    real = os.path.realpath(start)
    if found == "" and real != start:
        found = _project(real)
    default = _default(found) if found else ""
    if found is None or default is None:
        return None
    return Folders(found or None, _checkout(start, found) or found, data, settings, default)


def own_folder(variable: str, usual: str) -> str:
    """Return a folder of the user as `platformdirs` does; empty where it is not a plain absolute path."""
    named = os.environ.get(variable, "")
    home = named if named.strip() else f"{os.environ.get('HOME', '')}/{usual}"
    return f"{home}/tenv" if _is_plain(home) and "/.tenv" not in home else ""


def _is_plain(path: str) -> bool:
    return path.startswith("/") and not path.startswith("//") and os.path.normpath(path) == path


def _working_folder() -> str:
    named = os.environ.get("PWD", "")
    try:
        path = named if named and os.path.samefile(named, ".") else os.getcwd()
    except OSError:
        return ""
    return path if _is_plain(path) else ""


def _upwards(start: str) -> "list[str]":
    folders = [start]
    while folders[-1] != "/":
        folders.append(os.path.dirname(folders[-1]))
    return folders


def _project(start: str) -> "str | None":
    """Return the project of a folder, an empty text where there is none; None where its owner is another user."""
    device = None
    for folder in _upwards(start):
        try:
            info = os.stat(folder)
        except OSError:
            continue
        if device not in (None, info.st_dev):
            return ""
        device = info.st_dev
        sign = _sign(folder)
        if info.st_uid != os.geteuid():
            return None if sign else ""
        if sign:
            return folder if os.stat(sign).st_uid == info.st_uid else None
    return ""


def _sign(folder: str) -> str:
    """Return what makes a folder a project."""
    if os.path.isfile(f"{folder}/tenv.toml"):
        return f"{folder}/tenv.toml"
    manifests = f"{folder}/manifests"
    try:
        named = any(name.endswith(".toml") and not name.startswith(".") for name in os.listdir(manifests))
    except PermissionError:  # the program says so
        return manifests if os.path.isdir(manifests) else ""
    except OSError:
        return ""
    return manifests if named else ""


def _default(project: str) -> "str | None":
    """Return the default target of a project, or an empty text; None where its settings say more or can't be read."""
    try:
        with open(f"{project}/tenv.toml", encoding="utf-8") as file:
            lines = [line.strip() for line in file.read(4096).split("\n")]
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        return None
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        return ""
    name = lines[0].removeprefix(_DEFAULT).strip('"')
    return name if lines == [f'{_DEFAULT}"{name}"'] and is_name(name) else None


def _checkout(start: str, project: str) -> str:
    """Return the PyTorch checkout that is nearer than the project, or an empty text."""
    for folder in _upwards(start):
        if folder == project:
            return ""
        if os.path.isdir(f"{folder}/torch/csrc") and os.path.isfile(f"{folder}/setup.py"):
            return folder
    return ""


def _built_in() -> str:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    carried = f"{package}/builtin"
    return carried if os.path.isdir(carried) else os.path.dirname(os.path.dirname(package))
