"""Hook of hatchling: note the commit in a wheel or an sdist, from which `tenv --version` reads it."""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["NoteCommit"]


class NoteCommit(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `tenv/commit.txt` where a checkout of git is built; an sdist brings its own to the wheel made of it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Include the file in what is built.

        Args:
            version: The kind of wheel; an editable one is the checkout itself, whose commit changes.
            build_data: What hatchling includes.
        """
        package = Path(self.root) / "src" / "tenv"
        if version == "editable" or (package / "commit.txt").is_file():
            return
        known = runpy.run_path(str(package / "core" / "source_commit.py"))["source_commit"]
        if commit := known(str(package)):
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name) / "commit.txt"
            file.write_text(f"{commit}\n", encoding="ascii")
            inside = "tenv" if self.target_name == "wheel" else "src/tenv"
            build_data["force_include"][str(file)] = f"{inside}/commit.txt"
