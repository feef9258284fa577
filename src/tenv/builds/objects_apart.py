"""Keep the objects of extensions that share a source apart, in a folder of the name of each.

In one folder, each of them compiles the source again over the object of the other: at each build, and after each end in
mid-build. setuptools calls `apart` by an entry point. The file imports nothing from tenv, since the Python of another
environment reads a copy of it.
"""

import importlib
import os
from typing import Any


def _sources(extension: Any) -> set[str]:
    return {os.path.normpath(source) for source in extension.sources}


def apart(_distribution: Any) -> None:
    """Have ``build_ext`` keep the objects of an extension in a folder of its name, where it shares a source."""
    command: Any = importlib.import_module("setuptools.command.build_ext").build_ext
    plain = command.build_extension
    if getattr(plain, "apart", False):
        return

    def build(self: Any, extension: Any) -> None:
        others = [one for one in self.extensions if one is not extension]
        temp = self.build_temp
        if not self.parallel and any(_sources(extension) & _sources(one) for one in others):
            self.build_temp = os.path.join(temp, extension.name)  # noqa: PTH118
        try:
            plain(self, extension)
        finally:
            self.build_temp = temp

    build.apart = True  # type: ignore[attr-defined]
    command.build_extension = build
