"""Make the editable wheel of a checkout with the objects that its ``build_ext`` left, and install it.

``python editable_wheel.py TEMP LIB OUT BACKEND PATHS INSTALLER…``, in the folder of ``setup.py``. With pip and uv,
setuptools compiles everything again in a folder of its own: its ``editable_wheel`` forgets the ``build_temp`` of every
configuration. ``python editable_wheel.py setup.py COMMAND…`` runs a command of ``setup.py``, with the objects of
extensions that share a source apart: else each of them compiles it again over the object of the other, at each build.
The file imports nothing from tenv, since the Python of another environment runs it by path.
"""

import importlib
import os
import runpy
import shutil
import sys
from typing import Any


def _command() -> Any:
    """Return the ``build_ext`` of setuptools; None without a setuptools that compiles."""
    try:
        return importlib.import_module("setuptools.command.build_ext").build_ext
    except ImportError:
        return None


def _sources(extension: Any) -> set[str]:
    return {os.path.normpath(source) for source in extension.sources}


def _part(command: Any) -> None:
    """Let a ``build_ext`` keep the objects of an extension in a folder of its name, where it shares a source."""
    plain = command.build_extension

    def build(self: Any, extension: Any) -> None:
        others = [one for one in self.extensions if one is not extension]
        temp = self.build_temp
        if not self.parallel and any(_sources(extension) & _sources(one) for one in others):
            self.build_temp = os.path.join(temp, extension.name)  # noqa: PTH118
        try:
            plain(self, extension)
        finally:
            self.build_temp = temp

    command.build_extension = build


def _keep(command: Any, temp: str, lib: str) -> None:
    """Let each ``build_ext`` take the objects and libraries of two folders."""
    plain = command.finalize_options

    def finalize(self: Any) -> None:
        self.build_temp, self.build_lib = temp, lib
        plain(self)

    command.finalize_options = finalize


def _main() -> int:
    if command := _command():
        _part(command)
    if sys.argv[1] == "setup.py":
        sys.path[0], sys.argv = os.getcwd(), sys.argv[1:]  # noqa: PTH109 (as `python setup.py`)
        runpy.run_path("setup.py", run_name="__main__")
        return 0
    temp, lib, out, backend, paths, *installer = sys.argv[1:]
    sys.path[:0] = [path for path in paths.split(os.pathsep) if path]
    if command:
        _keep(command, temp, lib)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)  # noqa: PTH103
    name, _, attribute = backend.partition(":")
    hooks: Any = importlib.import_module(name)
    for part in filter(None, attribute.split(".")):
        hooks = getattr(hooks, part)
    sys.argv = ["setup.py"]
    wheel = hooks.build_editable(out)
    sys.stdout.flush()
    words = [*installer, os.path.join(out, wheel)]  # noqa: PTH118
    return os.spawnv(os.P_WAIT, words[0], words)  # noqa: S606 (no shell)


if __name__ == "__main__":
    sys.exit(_main())
