"""Make the editable wheel of a checkout with the objects that its ``build_ext`` left, and install it.

``python editable_wheel.py TEMP LIB OUT BACKEND PATHS INSTALLER…``, in the folder of ``setup.py``. With pip and uv,
setuptools compiles everything again in a folder of its own: its ``editable_wheel`` forgets the ``build_temp`` of every
configuration. The file imports nothing from tenv, since the Python of another environment runs it by path.
"""

import importlib
import os
import shutil
import sys
from typing import Any


def _command() -> Any:
    """Return the ``build_ext`` of setuptools; None without a setuptools that compiles."""
    try:
        return importlib.import_module("setuptools.command.build_ext").build_ext
    except ImportError:
        return None


def _keep(command: Any, temp: str, lib: str) -> None:
    """Let each ``build_ext`` take the objects and libraries of two folders."""
    plain = command.finalize_options

    def finalize(self: Any) -> None:
        self.build_temp, self.build_lib = temp, lib
        plain(self)

    command.finalize_options = finalize


def _main() -> int:
    temp, lib, out, backend, paths, *installer = sys.argv[1:]
    sys.path[:0] = [path for path in paths.split(os.pathsep) if path]
    if command := _command():
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
