"""What lies around a prefix, hashed: an attack has failed when none of it has changed."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.support.projects import Project

__all__ = ["Victims", "make_victims"]

_FILES = ("package.json", "src/main.py", ".env", "deep/a/b/c/precious.txt")


@dataclass(frozen=True)
class Victims:
    """Files that no command of tenv has any business with.

    Attributes:
        project: The project.
        around: The folder that the project lies in, and much else.
        home: The home of this user.
    """

    project: Project
    around: Path
    home: Path

    def hashes(self) -> dict[str, str]:
        """Return what every file and link holds that is not tenv's, with its mode."""
        found = {}
        for top in (self.around, self.home):
            for folder, folders, names in os.walk(top):
                here = Path(folder)
                folders[:] = [name for name in folders if here / name not in self._ours()]
                for name in (*names, *folders):
                    path = here / name
                    if path.is_symlink():
                        found[str(path)] = f"link to {path.readlink()}"
                    elif path.is_file():
                        found[str(path)] = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        return {name: value for name, value in found.items() if Path(name) not in self._ours()}

    def _ours(self) -> tuple[Path, ...]:
        folder = self.project.folder
        caches = (self.around / "packages", self.home / ".cache", self.home / "data", self.home / ".local")
        return (folder / ".tenv", folder / "locks", folder / "manifests", self.around / "index", *caches,
                self.around / "channel")  # fmt: skip


def make_victims(project: Project) -> Victims:
    """Put files beside a project and into the home of this user."""
    home = Path(os.environ["HOME"])
    for name in _FILES:
        path = project.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"the user's own {name}\n")
    for path in (home / ".ssh" / "authorized_keys", home / ".bashrc", project.folder.parent / "victim" / "file.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"the user's own {path.name}\n")
    return Victims(project, project.folder.parent, home)
